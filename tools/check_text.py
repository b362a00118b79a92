#!/usr/bin/python3
"""Checks what no compiler does: that files are short, and that none names where it was written.

usage: tools/check_text.py [FILE ...]   (default: every file that git tracks)

A source of more than 400 lines states near its top why: a comment with 'long because'. No text
names a folder of somebody's machine or a package registry: a checkout works anywhere.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 400
TOP_LINES = 20
SOURCES = {".bzl", ".cc", ".cu", ".cuh", ".h", ".html", ".js", ".py", ".sh"}

# Written so that this file does not match itself.
_FORBIDDEN = {
    "a folder of one machine": re.compile(r"(?<![\w.])/(?:[h]ome|[r]oot|[w]ork|[U]sers|[m]nt)/\w"),
    "a package registry": re.compile(
        r"[p]ypi\.org|[r]egistry\.npmjs|[a]rtifactory|[p]roxy\.golang|[d]eb\.debian\.org"
        r"|[i]ndex-url|[p]kg\.dev"
    ),
}


def tracked_files():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name]


def problems(path):
    """What is wrong with one file, a line each."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return  # not a text
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    if path.suffix in SOURCES and len(lines) > MAX_LINES:
        if "long because" not in "\n".join(lines[:TOP_LINES]):
            yield (
                f"{name}: {len(lines)} lines, expected at most {MAX_LINES}, or 'long because ...'"
                f" in the first {TOP_LINES}"
            )
    for number, line in enumerate(lines, start=1):
        for what, pattern in _FORBIDDEN.items():
            found = pattern.search(line)
            if found:
                yield f"{name}:{number}: names {what}: {found.group()}"


def main():
    paths = [pathlib.Path(name).resolve() for name in sys.argv[1:]] or tracked_files()
    found = [problem for path in paths if path.is_file() for problem in problems(path)]
    for problem in found:
        print(problem)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
