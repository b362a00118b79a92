"""How code on Highway is compiled, here and in benchmarks/."""

# The instruction sets: on x86-64, where the compiler's own default would be none, from SSE4 on.
SIMD_DEFINES = [
    "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)",
] + select({
    "@platforms//cpu:x86_64": ["HWY_BASELINE_TARGETS=HWY_SSE4"],
    "//conditions:default": [],
})
