#!/bin/bash
# Runs the kernels' tests on Arm's NEON without an Arm machine: cross-compiled, and interpreted by
# qemu. Slow, so tests of threads and of outputs that outgrow the caches are left out.
#
# usage: tools/test_neon.sh [GTEST_FILTER]
#
# Needs: dpkg --add-architecture arm64 && apt-get update && apt-get install \
#   g++-aarch64-linux-gnu qemu-user libhwy-dev:arm64 libxxhash-dev:arm64
set -euo pipefail
cd "$(dirname "$0")/.."

filter=${1:-*-*Thread*:*Stream*:*DeathTest*:*AllExponents*:*Slow*}
triple=aarch64-linux-gnu
for tool in $triple-g++ qemu-aarch64; do
  command -v "$tool" >/dev/null || {
    echo "No $tool. $0 says near its top what to install." >&2
    exit 2
  }
done

googletest=/usr/src/googletest/googletest
build=${TMPDIR:-/tmp}/slimgrad-neon
mkdir -p "$build"
sources=(kernels/*.cc
  core/{dtype,executor,frame,hash,memory,payload,random,scratch,status,tensor}.cc
  tests/kernels/main.cc tests/kernels/*_test.cc "$googletest/src/gtest-all.cc")

object_of() { echo "$build/${1//\//_}.o"; }

# Any source may include any header: a newer one makes all objects again.
compile() {  # compile SOURCE
  local object
  object=$(object_of "$1")
  [[ $object -nt $1 &&
    -z $(find core kernels tests/kernels -name '*.h' -newer "$object" -print -quit) ]] ||
    aarch64-linux-gnu-g++ -std=c++20 -O2 -ffp-contract=off -I. -isystem /usr/include/eigen3 \
      -isystem "$googletest" -isystem "$googletest/include" \
      '-DHWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)' \
      -c "$1" -o "$object"
}
export -f compile object_of
export build googletest
mapfile -t sources < <(printf '%s\n' "${sources[@]}" |
  grep -Ev "simd_test|capture_test|cuda_stream.cc")
printf '%s\n' "${sources[@]}" | xargs --max-procs="$(nproc)" -I{} bash -c 'compile {}'
# Not all that lie there: a source may be gone.
mapfile -t objects < <(for source in "${sources[@]}"; do object_of "$source"; done)
$triple-g++ -o "$build/tests" "${objects[@]}" -lhwy -lxxhash -lpthread
qemu-aarch64 -L /usr/$triple -E LD_LIBRARY_PATH=/usr/lib/$triple "$build/tests" \
  --gtest_filter="$filter" --gtest_brief=1
