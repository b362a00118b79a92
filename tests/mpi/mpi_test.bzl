"""mpi_test: a program that mpirun starts, as several numbers of ranks."""

load("@mpi//:defs.bzl", "MPIRUN", "MPI_AVAILABLE", "MPI_NAME")

def mpi_test(
        name,
        deps,
        srcs,
        ranks = [1, 2, 3, 4, 5, 7],
        runner = "//tests/mpi:run.sh",
        args = [],
        size = "small",
        timeout = "moderate"):
    """NAME_N for each N of ranks; where there is no MPI, they say that they are skipped.

    Args:
      name: of the tests, before the number of ranks.
      deps: of the program, which calls MPI_Init itself; //tests/mpi:main has a main for GoogleTest.
      srcs: of the program.
      ranks: how many to start.
      runner: starts the ranks; run.sh, or a script that calls it.
      args: of the program.
      size: of each test.
      timeout: of each test: more than they take alone, since ranks share processors.
    """
    program = name + "_program"
    if MPI_AVAILABLE:
        native.cc_binary(
            name = program,
            testonly = True,
            srcs = srcs,
            linkstatic = False,
            deps = deps,
        )
    for n in ranks:
        native.sh_test(
            name = "%s_%d" % (name, n),
            size = size,
            timeout = timeout,
            srcs = [runner],
            args = [repr(MPI_NAME), repr(MPIRUN), str(n)] +
                   (["$(rootpath :%s)" % program] if MPI_AVAILABLE else ["none"]) + args,
            data = ["//tests/mpi:run.sh"] + ([":" + program] if MPI_AVAILABLE else []),
            # A rank a processor, and one such test at a time where there are fewer.
            tags = ["cpu:%d" % n],
        )
