#!/bin/bash
# Installs what is missing, builds and tests.
#
# usage: ./test.sh [BAZEL OPTIONS AND TARGETS]   (default: everything)
#   ./test.sh //tests/core/...
#   ./test.sh --config=asan //...
#
# Closes on one line, 'N passed, N failed, N skipped', counted over test cases. Exit status: 0 if
# something was tested and nothing failed, else that of Bazel (1: the build broke, 3: tests failed,
# 4: no tests).
set -uo pipefail
cd "$(dirname "$0")" || exit 1

tools/install_deps.sh --test || exit 1

(($#)) || set -- //...
events=$(mktemp) || exit 1
trap 'rm -f "$events"' EXIT
bazel test -c opt --keep_going --build_event_json_file="$events" "$@"
status=$?
tools/test_summary.py --bazel_status=$status "$events" || ((status)) || status=1
exit $status
