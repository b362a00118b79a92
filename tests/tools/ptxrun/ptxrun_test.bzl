"""ptxrun_test: a test of tools/ptxrun itself, a CUDA program that runs on it in three orders."""

load("@cuda//:defs.bzl", "CUDA_AVAILABLE")
load("//third_party/cuda:cuda.bzl", "cuda_library")

_ORDERS = {
    "": "0",
    "_reverse": "1",
    "_random": "2",
}

# What a program needs to find ptxrun as its CUDA runtime.
PTXRUN_DATA = ["//tools/ptxrun:libcudart.so.13"] if CUDA_AVAILABLE else []
_ENV = {
    "LD_LIBRARY_PATH": "tools/ptxrun",
    "PTXRUN_DEVICES": "4",
}

def ptxrun_test(name, newer_ptx = False):
    """NAME, NAME_reverse and NAME_random, of NAME.cu; without CUDA they say that they skip.

    Args:
      name: of the source and the targets.
      newer_ptx: build for sm_90 besides, where other instructions do the work: the three run that,
        and NAME_sm_80 the PTX that all are built for.
    """
    cuda_library(
        name = name + "_cases",
        testonly = True,
        srcs = [name + ".cu"],
        copts = ["-gencode", "arch=compute_90,code=compute_90"] if newer_ptx else [],
        without_cuda = ["no_cuda.cc"],
        deps = [
            ":device",
            "@googletest_src//:gtest",
        ],
    )
    runs = {name + suffix: {"PTXRUN_ORDER": order} for suffix, order in _ORDERS.items()}
    if newer_ptx:
        runs[name + "_sm_80"] = {"PTXRUN_SM": "80"}
    for run, environment in runs.items():
        native.cc_test(
            name = run,
            size = "small",
            data = PTXRUN_DATA,
            env = dict(_ENV, **environment),
            tags = ["cuda"],
            deps = [
                ":" + name + "_cases",
                "@cuda//:cudart_shared",
                "@googletest_src//:gtest_main",
            ],
        )
