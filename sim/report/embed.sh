#!/bin/bash
# Writes files as C++ string constants of slimgrad::sim::report to stdout.
#
# usage: embed.sh NAME=FILE...
set -euo pipefail

echo '#include "sim/report/assets.h"'
echo 'namespace slimgrad::sim::report {'
for pair in "$@"; do
  if grep -qF ')embedded"' "${pair#*=}"; then
    echo "embed.sh: ${pair#*=} holds the delimiter )embedded\"" >&2
    exit 1
  fi
  printf 'const char %s[] = R"embedded(' "${pair%%=*}"
  cat "${pair#*=}"
  echo ')embedded";'
done
echo '}  // namespace slimgrad::sim::report'
