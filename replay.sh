#!/bin/bash
# Replays recorded gradients through compressors and reports what each loses and what it saves.
# Installs what is missing, builds, runs.
#
# usage: ./replay.sh                        the shipped trace through every method
#        ./replay.sh REPLAY OPTIONS         your own trace or choice: slimgrad replay REPLAY OPTIONS
#        ./replay.sh --help                 what the options are
set -euo pipefail
root=$(cd "$(dirname "$0")" && pwd)

"$root/tools/install_deps.sh"
(cd "$root" && bazel build -c opt //sim:slimgrad)
slimgrad=$root/bazel-bin/sim/slimgrad

if (($#)); then
  exec "$slimgrad" replay "$@"
fi

# Each method without and with error feedback; the dense baselines are always there.
specs=(
  'none'
  'bf16'
  'fp16'
  'int8(block=256)'
  'int8(block=256,rounding=stochastic)'
  'error_feedback(int8(block=256))'
  'top_k(ratio=0.01)'
  'error_feedback(top_k(ratio=0.01))'
  'error_feedback(top_k(ratio=0.01)|delta_index|fp16_values)'
  'error_feedback(top_k(ratio=0.001))'
  'one_bit'
  'error_feedback(one_bit)'
  'scaled_sign'
  'error_feedback(scaled_sign)'
  'power_sgd(rank=2)'
  'error_feedback(power_sgd(rank=2))'
  'small_tensors(error_feedback(top_k(ratio=0.01)),below=64)'
)
compressors=$(printf '%s; ' "${specs[@]}")

cd "$root"
"$slimgrad" replay --trace traces/digits_mlp --compressors "${compressors%; }" --out replay_report
echo
echo "The report with its plots: $root/replay_report/report.html"
