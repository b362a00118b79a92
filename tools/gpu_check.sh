#!/bin/bash
# Checks slimgrad on a machine with a GPU, and measures its kernels there. That machine needs a
# driver for CUDA 13 (580 or later) and the C++ library of Debian 12, Ubuntu 22.04 or later;
# compute-sanitizer and a python3 with torch are used where it has them. It needs neither Bazel nor
# a network: the programs are built elsewhere and carried over.
#
#   tools/gpu_check.sh pack FOLDER [ARCHS]     with Bazel and nvcc: builds, and fills FOLDER
#   FOLDER/gpu_check.sh run OUT [ELEMENTS]     on the GPU, in some minutes: tests, then times
#
# ARCHS: what nvcc compiles for, joined by commas; with PTX alone, the driver takes its time.
# ELEMENTS: sizes to measure, likewise. OUT gets tests.log, kernels.md, kernels.json, torch.json
# where there is torch, and sanitizer.log. Exit status 1 if anything failed.
#
# To try it without a GPU: put tools/ptxrun's libcudart.so.13 into FOLDER, over the one there.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# What the programs load, but for the libraries of C and C++: a machine has its own, and those from
# here might want a later C library.
pack_libraries() {  # FOLDER PROGRAM...
  local folder=$1 name path
  shift
  if ldd "$@" | grep 'not found'; then return 1; fi
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | sort -u | while read -r name path; do
    case $name in
      libc.* | libm.* | libdl.* | librt.* | libpthread.* | libstdc++.* | libgcc_s.*) ;;
      *) install -m 644 "$path" "$folder/$name" ;;
    esac
  done
}

pack() {
  local archs=${2:-sm_80,sm_90,compute_90} folder target bin programs=()
  local flags=(-c opt --dynamic_mode=off --strip=always "--//third_party/cuda:archs=$archs")
  local targets=(//tests/kernels:all_test_cuda_program //tests/conformance:device_test_program
    //benchmarks:cuda_kernels_test_program)
  folder=$(realpath -m "$1")
  cd "$here/.." || exit 1
  bazel build "${flags[@]}" "${targets[@]}" || exit 1
  bin=$(bazel info "${flags[@]}" bazel-bin 2>/dev/null) || exit 1
  for target in "${targets[@]}"; do
    target=${target#//}
    programs+=("$bin/${target/://}")
  done
  mkdir -p "$folder"
  install "${programs[@]}" tools/gpu_check.sh tools/gpu_check_torch.py "$folder/" || exit 1
  pack_libraries "$folder" "${programs[@]}" || exit 1
  du -sh "$folder"
}

failed=0
step() {  # NAME LOG COMMAND...
  local name=$1 log=$2 start=$SECONDS
  shift 2
  if "$@" >>"$log" 2>&1; then
    echo "$name: passed, $((SECONDS - start)) s"
  else
    echo "$name: FAILED (status $?), $((SECONDS - start)) s; see $log"
    tail -n 15 "$log"
    failed=1
  fi
}

# Not for Python, whose torch brings libraries of its own.
own_libraries=(env "LD_LIBRARY_PATH=$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")

# Status 1 also where tests skip, as they do without a GPU, and where there are none.
# shellcheck disable=SC2317  # called by step
run_tests() {  # SECONDS COMMAND...
  timeout "$1" "${own_libraries[@]}" "${@:2}" 2>&1 |
    awk '{print} /: Skipped$/ {skips = 1} /^\[  PASSED  \] [1-9]/ {passes = 1}
         END {exit skips || !passes}'
  local status=("${PIPESTATUS[@]}")
  return $((status[0] ? status[0] : status[1]))
}

run_all_tests() {  # OUT
  local log=$1/tests.log
  # By themselves, since a capture that fails can leave the device useless to what follows.
  step "kernel tests" "$log" run_tests 300 "$here/all_test_cuda_program" \
    '--gtest_filter=-CaptureTest.*'
  step "captured graphs" "$log" run_tests 60 "$here/all_test_cuda_program" \
    '--gtest_filter=CaptureTest.*'
  step "compressor tests" "$log" run_tests 120 "$here/device_test_program"
  grep -E '^\[  (PASSED|FAILED) ' "$log"
}

measure() {  # OUT ELEMENTS
  step "kernels, measured" "$1/kernels.log" timeout 120 "${own_libraries[@]}" \
    "$here/cuda_kernels_test_program" "--elements=$2" "--table=$1/kernels.md" \
    "--json=$1/kernels.json"
  if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    step "torch, measured" "$1/torch.log" timeout 60 python3 "$here/gpu_check_torch.py" "$2" \
      "$1/torch.json"
  else
    echo "torch for CUDA: not on this machine"
  fi
}

sanitize() {  # OUT
  local tool
  PATH=$PATH:/usr/local/cuda/bin
  if ! command -v compute-sanitizer >/dev/null; then
    echo "compute-sanitizer: not on this machine"
    return
  fi
  local check=(run_tests 60 compute-sanitizer --error-exitcode 9)
  if [[ $("${check[@]}" "$here/all_test_cuda_program" '--gtest_filter=Stamps*') == \
    *'Device not supported'* ]]; then
    echo "compute-sanitizer: not on this device"
    return
  fi
  for tool in memcheck racecheck; do
    step "compute-sanitizer $tool" "$1/sanitizer.log" "${check[@]}" --tool "$tool" \
      "$here/all_test_cuda_program" '--gtest_filter=*Literal*:*Saturat*'
  done
}

run() {
  local out=$1 elements=${2:-1048576,16777216,67108864}
  mkdir -p "$out" || exit 1
  rm -f "$out"/{tests,kernels,torch,sanitizer}.log "$out"/{kernels.md,kernels.json,torch.json}
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null ||
    echo "nvidia-smi: not on this machine"
  run_all_tests "$out"
  measure "$out" "$elements"
  sanitize "$out"
  [[ -e $out/kernels.md ]] && cat "$out/kernels.md"
  return $failed
}

case ${1:-} in
  pack) (($# == 2 || $# == 3)) && pack "${@:2}" && exit ;;
  run) (($# == 2 || $# == 3)) && { run "${@:2}"; exit; } ;;
esac
sed -n '2,15s/^# \{0,1\}//p' "$0" >&2
exit 2
