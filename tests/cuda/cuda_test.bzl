"""cuda_test: a test of CUDA kernels, on a GPU or on tools/ptxrun, in three orders of the threads."""

load("@cuda//:defs.bzl", "CUDA_AVAILABLE")

_ORDERS = {
    "": "forward",
    "_reverse": "reverse",
    "_random": "random",
}

def cuda_test(name, deps, srcs = [], args = [], env = {}, size = "medium", **kwargs):
    """NAME, NAME_reverse and NAME_random: the same program, which says that it skips without CUDA."""
    program = name + "_program"
    native.cc_binary(
        name = program,
        testonly = True,
        srcs = srcs,
        linkstatic = False,  # on the objects that the other tests use
        deps = deps + [
            "//kernels:on_cuda",
            "@cuda//:cudart_shared",
        ],
        **kwargs
    )
    stand_in = ["//tools/ptxrun:libcudart.so.13"] if CUDA_AVAILABLE else []
    for suffix, order in _ORDERS.items():
        native.sh_test(
            name = name + suffix,
            size = size,
            srcs = ["//tests/cuda:run.sh"],
            args = [order, "$(location :%s)" % program] + args,
            data = [":" + program] + stand_in,
            env = env,
            tags = ["cuda"],
        )
