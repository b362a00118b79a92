"""Repositories for what Debian's packages install.

None of them hands out /usr/include as an include folder: that would break the compiler's own
#include_next. A header on the compiler's path needs nothing but link options.

Bazel does not see packages come and go: `bazel clean --expunge` after an upgrade.
"""

_INCLUDE_ROOTS = [
    "/usr/include",
    "/usr/local/include",
]

_HINT = "run tools/install_deps.sh"

_SYSTEM_LIBRARY = """\
cc_library(
    name = {name},
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
)
"""

def _system_library_impl(ctx):
    header = ctx.attr.header
    if not any([ctx.path(root + "/" + header).exists for root in _INCLUDE_ROOTS]):
        fail("%s: no %s below %s: %s" % (ctx.name, header, " or ".join(_INCLUDE_ROOTS), _HINT))
    ctx.file("BUILD", "\n".join([
        _SYSTEM_LIBRARY.format(
            name = repr(name),
            linkopts = [option for option in options.split(" ") if option],
        )
        for name, options in ctx.attr.targets.items()
    ]))

system_library = repository_rule(
    doc = "Libraries whose headers lie on the compiler's own path.",
    implementation = _system_library_impl,
    attrs = {
        "header": attr.string(
            doc = "A header that is there when the package is installed.",
            mandatory = True,
        ),
        "targets": attr.string_dict(
            doc = "From the name of a cc_library to its link options, separated by spaces.",
            mandatory = True,
        ),
    },
    local = True,
)

def _system_folder_impl(ctx):
    folder = ctx.path(ctx.attr.path)
    if not folder.exists:
        fail("%s: no folder %s: %s" % (ctx.name, folder, _HINT))
    for entry in folder.readdir():
        if entry.basename not in ["BUILD", "BUILD.bazel", "WORKSPACE", "WORKSPACE.bazel"]:
            ctx.symlink(entry, entry.basename)
    ctx.symlink(ctx.attr.build_file, "BUILD")

system_folder = repository_rule(
    doc = "A folder of the system, with a BUILD file of ours.",
    implementation = _system_folder_impl,
    attrs = {
        "build_file": attr.label(
            allow_single_file = True,
            mandatory = True,
        ),
        "path": attr.string(mandatory = True),
    },
    local = True,
)

_PYTHON = """\
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

py_runtime(
    name = "runtime",
    interpreter_path = "{python}",
    python_version = "PY3",
    stub_shebang = "#!{python}",
)

py_runtime_pair(
    name = "pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

def _python_repository_impl(ctx):
    python = "/usr/bin/python3"
    if not ctx.path(python).exists:
        fail("%s: no %s: %s" % (ctx.name, python, _HINT))
    ctx.file("BUILD", _PYTHON.format(python = python))

python_repository = repository_rule(
    doc = "Debian's Python, by its full path: another python3 may come first on PATH.",
    implementation = _python_repository_impl,
    local = True,
)
