"""@mpi: the MPI whose mpicxx is on PATH, or nothing where there is none."""

_DEFS = """\
MPI_AVAILABLE = {available}

# "Open MPI" or another: what mpirun calls itself
MPI_NAME = {name}

MPIRUN = {mpirun}

def if_mpi(value, otherwise = []):
    return value if MPI_AVAILABLE else otherwise
"""

_BUILD = """\
cc_library(
    name = "mpi",
    hdrs = glob({headers}),
    # the C interface alone
    defines = [
        "MPICH_SKIP_MPICXX=1",
        "OMPI_SKIP_MPICXX=1",
    ],
    includes = {includes},
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
)
"""

# Headers there need no include folder, and must not have one: it would break #include_next.
_INCLUDE_ROOTS = [
    "/usr/include",
    "/usr/local/include",
]

def _run(ctx, arguments):
    result = ctx.execute(arguments)
    if result.return_code:
        fail("%s: %s%s" % (" ".join([str(a) for a in arguments]), result.stdout, result.stderr))
    return result.stdout

def _mpi_repository_impl(ctx):
    mpicxx, mpirun = ctx.which("mpicxx"), ctx.which("mpirun")
    if ctx.os.environ.get("SLIMGRAD_NO_MPI", "") == "1" or not mpicxx or not mpirun:
        ctx.file("defs.bzl", _DEFS.format(available = False, name = "''", mpirun = "''"))
        ctx.file("BUILD", "")
        return

    # Open MPI and MPICH both show the compiler's command line so.
    flags = [flag for flag in _run(ctx, [mpicxx, "-show"]).replace("\n", " ").split(" ") if flag]
    includes = []
    for flag in flags:
        if flag.startswith("-I") and flag[2:] not in _INCLUDE_ROOTS and ctx.path(flag[2:]).exists:
            includes.append("include%d" % len(includes))
            ctx.symlink(flag[2:], includes[-1])
    ctx.file("BUILD", _BUILD.format(
        headers = [folder + "/**/*.h" for folder in includes],
        includes = includes,
        linkopts = [
            flag
            for flag in flags
            if flag.startswith("-L") or flag.startswith("-Wl,-rpath") or
               # not MPI's own C++ interface, which both have dropped: -lmpi_cxx, -lmpichcxx
               (flag.startswith("-l") and not flag.endswith("cxx"))
        ],
    ))
    name = "Open MPI" if "Open MPI" in _run(ctx, [mpirun, "--version"]) else "another"
    ctx.file("defs.bzl", _DEFS.format(
        available = True,
        name = repr(name),
        mpirun = repr(str(mpirun)),
    ))

mpi_repository = repository_rule(
    doc = "An MPI, if there is one; SLIMGRAD_NO_MPI=1 in the environment hides it.",
    implementation = _mpi_repository_impl,
    environ = [
        "PATH",
        "SLIMGRAD_NO_MPI",
    ],
    local = True,
)
