#!/bin/bash
# What a change must pass besides the tests: formatting, clang-tidy, shellcheck, and the checks of
# tools/check_text.py. With the versions of Debian 12: clang-format and clang-tidy 14.
#
# usage: tools/lint.sh [--fix] [FILE ...]   (default: every file that git tracks)
#   --fix  format the C++ in place first
set -euo pipefail
cd "$(dirname "$0")/.."

tools/install_deps.sh --lint

fix=
if [[ ${1:-} == --fix ]]; then
  fix=1
  shift
fi
if (($#)); then
  files=("$@")
else
  mapfile -t files < <(git ls-files)
fi

sources=() cxx=() scripts=()
for file in "${files[@]}"; do
  [[ -f $file ]] || continue
  case $file in
    *.cc) cxx+=("$file") sources+=("$file") ;;
    *.h | *.cu | *.cuh) cxx+=("$file") ;;
    *.sh | .ci/run) scripts+=("$file") ;;
  esac
done

failed=0
check() {  # check NAME COMMAND...
  echo "== $1"
  shift
  "$@" || failed=1
}

# shellcheck disable=SC2317  # called by check
tidy() {
  # the examples are a workspace of their own, unknown to this one's compile commands
  tools/compile_commands.py 2>/dev/null || return 1
  printf '%s\n' "${sources[@]}" | grep -v '^examples/' |
    xargs --max-procs="$(nproc)" --max-args=2 \
      clang-tidy -p . --quiet --warnings-as-errors='*' 2>/dev/null
}

if [[ $fix ]] && ((${#cxx[@]})); then
  clang-format -i "${cxx[@]}"
fi
((${#cxx[@]} == 0)) || check clang-format clang-format --dry-run --Werror "${cxx[@]}"
((${#sources[@]} == 0)) || check clang-tidy tidy
((${#scripts[@]} == 0)) || check shellcheck shellcheck "${scripts[@]}"
check 'length and names' tools/check_text.py "${files[@]}"
if ((failed)); then
  echo "lint: failed"
else
  echo "lint: clean"
fi
exit $failed
