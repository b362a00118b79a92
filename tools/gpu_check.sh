#!/bin/bash
# Checks slimgrad on a machine with a GPU, and measures its kernels there. That machine needs a
# driver; compute-sanitizer and a python3 with torch are used where it has them. It needs neither
# Bazel nor a network: the programs are built elsewhere and carried over.
#
#   tools/gpu_check.sh pack FOLDER             with Bazel and nvcc: builds, and fills FOLDER
#   FOLDER/gpu_check.sh run OUT [ELEMENTS]     on the GPU, in some minutes: tests, then times
#
# ELEMENTS: sizes to measure, joined by commas. OUT gets tests.log, sanitizer.log, kernels.md,
# kernels.json and, where there is torch, torch.json. Exit status 1 if anything failed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

pack() {
  local folder=$1 target
  cd "$here/.." || exit 1
  local targets=(//tests/kernels:all_test_cuda_program //tests/conformance:device_test_program
    //benchmarks:cuda_kernels)
  bazel build -c opt --dynamic_mode=off --strip=always \
    --//third_party/cuda:archs=sm_80,sm_90,compute_90 "${targets[@]}" || exit 1
  mkdir -p "$folder"
  for target in "${targets[@]}"; do
    target=${target#//}
    install "bazel-bin/${target/://}" "$folder/"
  done
  install tools/gpu_check.sh tools/gpu_check_torch.py "$folder/"
  # The tests are linked with the shared runtime, which an older toolkit there does not have.
  install -m 644 "$(readlink -f "${CUDA_HOME:-/usr/local/cuda}/lib64/libcudart.so.13")" \
    "$folder/libcudart.so.13"
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

run_tests() {
  local out=$1
  step "kernel tests" "$out/tests.log" "$here/all_test_cuda_program"
  step "compressor tests" "$out/tests.log" "$here/device_test_program"
  grep -E '^\[  (PASSED|SKIPPED|FAILED)' "$out/tests.log"
  local tool
  if ! command -v compute-sanitizer >/dev/null; then
    echo "compute-sanitizer: not on this machine"
    return
  fi
  for tool in memcheck racecheck; do
    step "compute-sanitizer $tool" "$out/sanitizer.log" timeout 60 compute-sanitizer --tool "$tool" \
      --error-exitcode 9 "$here/all_test_cuda_program" '--gtest_filter=*Literal*:*Saturat*'
  done
}

run() {
  local out=$1 elements=${2:-1048576,16777216,67108864,268435456}
  mkdir -p "$out"
  rm -f "$out"/*.log
  export LD_LIBRARY_PATH=$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv 2>/dev/null
  run_tests "$out"
  step "kernels, measured" "$out/kernels.log" "$here/cuda_kernels" "--elements=$elements" \
    "--table=$out/kernels.md" "--json=$out/kernels.json"
  if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    step "torch, measured" "$out/torch.log" python3 "$here/gpu_check_torch.py" "$elements" \
      "$out/torch.json"
  fi
  [[ -e $out/kernels.md ]] && cat "$out/kernels.md"
  return $failed
}

case ${1:-} in
  pack) (($# == 2)) && pack "$2" && exit ;;
  run) (($# == 2 || $# == 3)) && { run "${@:2}"; exit; } ;;
esac
sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
exit 2
