#!/bin/bash
# Starts a program as several ranks on this machine, or says that it skips where there is no MPI.
#
# usage: run.sh NAME_OF_MPI MPIRUN RANKS PROGRAM [ARGUMENTS]
# With KEEP_SURVIVORS=1, Open MPI lets the others go on when a rank has died.
set -euo pipefail
name=$1 mpirun=$2 ranks=$3 program=$4
shift 4

if [[ -z $mpirun ]]; then
  echo "skipped: no MPI on this machine"
  if [[ -n ${XML_OUTPUT_FILE:-} ]]; then
    cat >"$XML_OUTPUT_FILE" <<XML
<testsuites><testsuite name="mpi" tests="1">
  <testcase name="${TEST_TARGET##*:}" status="notrun"><skipped/></testcase>
</testsuite></testsuites>
XML
  fi
  exit 0
fi

# MPI leaks by design.
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-}

options=()
if [[ $name == "Open MPI" ]]; then
  # More ranks than processors, on this machine alone, as whoever runs the tests.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
  export OMPI_MCA_plm=isolated OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
  export OMPI_MCA_btl_vader_backing_directory=/tmp
  [[ ${KEEP_SURVIVORS:-} ]] && options+=(--enable-recovery)
fi

# Sockets lie there, and their paths may have 108 characters: shorter than the test's own folder.
TMPDIR=$(mktemp -d /tmp/slimgrad_mpi.XXXXXX)
trap 'rm -rf "$TMPDIR"' EXIT
export TMPDIR HOME=${HOME:-/tmp}
"$mpirun" "${options[@]}" -n "$ranks" "$program" "$@"
