#!/usr/bin/python3
"""Prints the table of docs/kernels.md: what ptxas says of every CUDA kernel.

    tools/ptxas_report.py [ARCHITECTURE]      sm_80 if not said; needs nvcc

A row for each kernel: the most registers, shared memory and spilled bytes among its instantiations,
and how many those are. Exit status 1 if any kernel spills.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys

_ROOT = pathlib.Path(__file__).absolute().parent.parent
_HOME = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))

_SPILL = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def _ptxas_output(source, architecture):
    number = architecture.removeprefix("sm_")
    command = [
        _HOME / "bin/nvcc", "-std=c++20", "-O3", "--fmad=false", "--expt-relaxed-constexpr", "-I.",
        "-gencode", f"arch=compute_{number},code={architecture}", "-Xptxas", "-v",
        "-cubin", source, "-o", os.devnull,
    ]
    return subprocess.run(command, cwd=_ROOT, check=True, text=True, capture_output=True).stderr


def _kernel_names(mangled):
    filtered = subprocess.run(["c++filt"], input="\n".join(mangled), text=True,
                              check=True, capture_output=True).stdout
    return [re.search(r"\w+Kernel\b", line).group(0) for line in filtered.splitlines()]


def _usage(output):
    """(mangled name, registers, shared bytes, spilled bytes) of each entry function."""
    rows = []
    for part in output.split("ptxas info    : Compiling entry function")[1:]:
        name = re.search(r"'(\w+)'", part).group(1)
        spill = _SPILL.search(part)
        shared = _SHARED.search(part)
        rows.append((name, int(_USED.search(part).group(1)), int(shared.group(1)) if shared else 0,
                     int(spill.group(1)) + int(spill.group(2)) if spill else 0))
    return rows


def _table(architecture):
    kernels = collections.defaultdict(list)
    for source in sorted(_ROOT.glob("kernels/*_cuda.cu")):
        usage = _usage(_ptxas_output(source, architecture))
        for name, row in zip(_kernel_names([row[0] for row in usage]), usage):
            kernels[(source.name, name)].append(row[1:])
    return kernels


def main(arguments):
    """Prints the table; exit status."""
    architecture = arguments[0] if arguments else "sm_80"
    print("| file | kernel | registers | shared memory | spilled | instantiations |")
    print("|---|---|---|---|---|---|")
    spilled = 0
    for (file, name), rows in _table(architecture).items():
        most = [max(column) for column in zip(*rows)]
        spilled += most[2]
        print(f"| {file} | {name} | {most[0]} | {most[1]} B | {most[2]} B | {len(rows)} |")
    return 1 if spilled else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
