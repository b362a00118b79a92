"""Stand-ins for the archives that Bazel 4 fetches before it builds anything.

Even a plain cc_binary asks for rules_cc and rules_java there, and a test for
remote_coverage_tools. All that is needed of them is the native rules under their names, so a build
needs no network.
"""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")

_CC_RULES = [
    "cc_binary",
    "cc_import",
    "cc_library",
    "cc_proto_library",
    "cc_test",
    "cc_toolchain",
    "cc_toolchain_suite",
    "objc_library",
]

_JAVA_RULES = [
    "java_binary",
    "java_import",
    "java_library",
    "java_proto_library",
    "java_runtime",
    "java_test",
    "java_toolchain",
]

_COVERAGE_BUILD = """\
package(default_visibility = ["//visibility:public"])

sh_binary(
    name = "lcov_merger",
    srcs = ["merge.py"],
)

sh_binary(
    name = "coverage_report_generator",
    srcs = ["merge.py"],
)
"""

def _stand_in_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    for path, content in ctx.attr.files.items():
        ctx.file(path, content, executable = False)
    for label, path in ctx.attr.links.items():
        ctx.symlink(label, path)

_stand_in = repository_rule(
    implementation = _stand_in_impl,
    attrs = {
        "files": attr.string_dict(doc = "From a path to its content."),
        "links": attr.label_keyed_string_dict(
            doc = "From a file of this project to the path that it has there.",
            allow_files = True,
        ),
    },
)

def _native_rules(name, package, rules):
    definitions = ["%s = native.%s\n" % (rule, rule) for rule in rules]
    maybe(
        _stand_in,
        name = name,
        files = {
            "BUILD": "",
            package + "/BUILD": "",
            package + "/defs.bzl": "".join(definitions),
        },
    )

def offline_repositories():
    """Declares the stand-ins; nothing from Bazel 5 on, which does not want them."""

    # Debian's 4.2.3 gives its version as "".
    if native.bazel_version and int(native.bazel_version.split(".")[0]) >= 5:
        return
    _native_rules("rules_cc", "cc", _CC_RULES)
    _native_rules("rules_java", "java", _JAVA_RULES)
    _native_rules("rules_proto", "proto", ["proto_library"])
    maybe(
        _stand_in,
        name = "remote_coverage_tools",
        files = {"BUILD": _COVERAGE_BUILD},
        links = {Label("//third_party/bazel:lcov_merge.py"): "merge.py"},
    )
