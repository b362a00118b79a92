#!/bin/bash
# Runs a CUDA test program on the machine's GPU, or else on tools/ptxrun, or else as it is: then it
# says that it skips.
#
# usage: run.sh forward|reverse|random PROGRAM [ARGUMENTS]
set -euo pipefail
order=$1 program=$2
shift 2
stand_in=tools/ptxrun/libcudart.so.13

if [[ -e /dev/nvidiactl ]]; then
  echo "CUDA: the machine's GPU"
elif [[ -e $stand_in ]]; then
  declare -A orders=([forward]=0 [reverse]=1 [random]=2)
  export PTXRUN_ORDER=${orders[$order]}
  LD_LIBRARY_PATH=$(dirname "$stand_in")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
  echo "CUDA: ptxrun, threads in $order order"
else
  echo "CUDA: none"
fi
exec "$program" "$@"
