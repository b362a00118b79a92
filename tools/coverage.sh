#!/bin/bash
# Runs the tests instrumented and prints the line coverage of each folder.
#
# usage: tools/coverage.sh [--files] [TARGET PATTERN ...]   (default: //tests/...)
#   --files  also of each file, with the lines that never ran
set -euo pipefail
cd "$(dirname "$0")/.."

options=()
if [[ ${1:-} == --files ]]; then
  options=(--files)
  shift
fi
(($#)) || set -- //tests/...
bazel coverage --repo_env=SLIMGRAD_NO_CUDA=1 "$@"
report=$(bazel info --repo_env=SLIMGRAD_NO_CUDA=1 output_path)/_coverage/_coverage_report.dat
tools/coverage_summary.py "${options[@]}" "$report"
