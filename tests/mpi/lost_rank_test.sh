#!/bin/bash
# A rank that is killed or stopped in the middle of a call: every other one gets an error that names
# it, in time, and leaves.
#
# What mpirun itself returns then differs, and is not looked at: Open MPI's gives 0. MPICH's ends all
# ranks when one is killed, -disable-auto-cleanup or not (seen with 4.0.2), so that there a rank is
# only stopped.
#
# usage: lost_rank_test.sh NAME_OF_MPI MPIRUN RANKS PROGRAM
set -euo pipefail
ranks=$3
if [[ -z $2 ]]; then
  exec tests/mpi/run.sh "$@"
fi

ways=(stop)
[[ $1 == "Open MPI" ]] && ways+=(combine gather)
failed=0
for way in "${ways[@]}"; do
  echo "== $way"
  output=$(KEEP_SURVIVORS=1 timeout 60 tests/mpi/run.sh "$@" "$way" 2>&1) || true
  echo "$output"
  lost=$((ranks - 1))
  for ((rank = 0; rank < lost; ++rank)); do
    if ! grep -Eq "^rank $rank after [0-9]{1,4} ms: PEER_LOST: rank $lost (did not come|sent and took nothing) within 1500 ms$" <<<"$output"; then
      echo "FAILED: rank $rank: expected an error within 10 s that names rank $lost alone"
      failed=1
    fi
    if ! grep -q "^rank $rank has left$" <<<"$output"; then
      echo "FAILED: rank $rank: expected it to leave"
      failed=1
    fi
  done
done
exit $failed
