"""Everything that slimgrad takes from outside: Debian packages, found where Debian puts them.

Another project loads this file as @slimgrad//third_party:repositories.bzl (see examples/). A
repository that the project has declared before under the same name is left alone.
"""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//third_party:system.bzl", "python_repository", "system_folder", "system_library")
load("//third_party/bazel:offline.bzl", "offline_repositories")
load("//third_party/cuda:configure.bzl", "cuda_repository")
load("//third_party/mpi:configure.bzl", "mpi_repository")

def _libraries():
    """Libraries whose headers lie on the compiler's own path."""
    maybe(
        system_library,
        name = "benchmark",
        header = "benchmark/benchmark.h",
        targets = {"benchmark": "-lbenchmark -lpthread"},
    )
    maybe(
        system_library,
        name = "cli11",
        header = "CLI/CLI.hpp",
        targets = {"cli11": ""},
    )
    maybe(
        system_library,
        name = "fmt",
        header = "fmt/format.h",
        targets = {"fmt": "-lfmt"},
    )
    maybe(
        system_library,
        name = "highway",
        header = "hwy/highway.h",
        targets = {"highway": "-lhwy"},
    )
    maybe(
        system_library,
        name = "json",
        header = "nlohmann/json.hpp",
        targets = {"json": ""},
    )
    maybe(
        system_library,
        name = "random123",
        header = "Random123/philox.h",
        targets = {"random123": ""},
    )
    maybe(
        system_library,
        name = "xxhash",
        header = "xxhash.h",
        targets = {"xxhash": "-lxxhash"},
    )

def _folders():
    """Libraries that lie in a folder of their own."""
    maybe(
        system_folder,
        name = "chartjs",
        build_file = Label("//third_party:chartjs.BUILD"),
        path = "/usr/share/javascript/chart.js",
    )
    maybe(
        system_folder,
        name = "eigen3",
        build_file = Label("//third_party:eigen3.BUILD"),
        path = "/usr/include/eigen3",
    )

    # From source, so that the sanitizers see into it.
    maybe(
        system_folder,
        name = "googletest_src",
        build_file = Label("//third_party:googletest_src.BUILD"),
        path = "/usr/src/googletest",
    )

def slimgrad_repositories():
    """Declares every external repository that slimgrad builds with."""
    offline_repositories()
    _libraries()
    _folders()
    maybe(
        python_repository,
        name = "python3",
    )
    maybe(
        cuda_repository,
        name = "cuda",
    )
    maybe(
        mpi_repository,
        name = "mpi",
    )
