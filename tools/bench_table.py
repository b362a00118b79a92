#!/usr/bin/python3
"""Measures the kernels beside the memory they move and beside PyTorch, and writes the table.

One command, on an idle machine, some ten minutes:

    tools/bench_table.py

It builds benchmarks:kernels, measures in rounds, prints the table and writes it with the machine's
facts to benchmarks/results/CPU.md. In each round the operation, all variants of its ceiling and the
usual way take their turns, so that what disturbs the machine disturbs all of them. Times are
medians over the rounds, with the quartiles; benchmarks/README.md says how to read them. Exit
status 1 if an output had other bits than the reference's; a missed target is no error.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys

_ROOT = pathlib.Path(__file__).absolute().parent.parent
sys.path.insert(0, str(_ROOT))

from tools import bench_report, bench_rows  # noqa: E402

# No page fault and huge pages: what PyTorch can do on this machine, not what its heap does.
_TUNABLES = (
    "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=8589934592:"
    "glibc.malloc.trim_threshold=17179869184:glibc.malloc.top_pad=268435456"
)


class Kernels:
    """benchmarks:kernels, running, asked for some benchmarks at a time."""

    def __init__(self, binary, least_seconds):
        self.process = subprocess.Popen(
            [binary, "--names_from_stdin", f"--benchmark_min_time={least_seconds}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
        )
        self.best_simd = json.loads(self.process.stdout.readline())["simd"]

    def run(self, names):
        """What Google Benchmark writes of them, each run once."""
        self.process.stdin.write(" ".join(names) + "\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == "end\n":
                return json.loads("".join(lines))
            lines.append(line)
        raise RuntimeError(f"benchmarks:kernels ended while it ran {' '.join(names)}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Peers:
    """benchmarks/peers.py, running, for one number of threads."""

    def __init__(self, threads, least_seconds):
        self.process = subprocess.Popen(
            [
                "/usr/bin/python3",
                _ROOT / "benchmarks" / "peers.py",
                f"--threads={threads}",
                f"--least_seconds={least_seconds}",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ
            | {
                "GLIBC_TUNABLES": _TUNABLES,
                "OMP_NUM_THREADS": str(threads),
                "OPENBLAS_NUM_THREADS": str(threads),
            },
        )
        self.versions = self._read()

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("benchmarks/peers.py ended")
        return json.loads(line)

    def seconds(self, row):
        request = {"peer": row.operation, "data": row.data, "n": row.n}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._read()["seconds"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def groups(rows):
    """Rows that are measured together: (those of the table, those with what they relate to)."""
    shown = collections.defaultdict(list)
    for row in rows:
        shown[row.operation, row.data, row.n].append(row)
    for members in shown.values():
        everything = list(members)
        for baseline in filter(None, (row.baseline() for row in members)):
            same = (baseline.data, baseline.threads)
            if same not in [(row.data, row.threads) for row in everything]:
                everything.append(baseline)
        yield members, everything


def measure(members, simd, rounds, kernels, peers):
    """Samples of all members: so many rounds, every other one in reverse order."""
    samples = bench_report.Samples()
    names = []
    for row in members:
        names.append(bench_report.operation_name(row, simd))
        names += bench_report.ceiling_names(row, simd)
    names = list(dict.fromkeys(names))
    for turn in range(rounds):
        again = names if turn % 2 == 0 else names[::-1]
        for attempt in range(3):
            again = samples.add(kernels.run(again), keep_all=attempt == 2)
            if not again:
                break
        for row in members:
            if row.has_peer and peers:
                name = bench_report.peer_name(row)
                samples.seconds[name].append(peers[row.threads].seconds(row))
    return samples


def _first(path, pattern, default="unknown"):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return default
    return found.group(1).strip() if found else default


def _output(*command):
    if shutil.which(command[0]) is None:
        return "unknown"
    done = subprocess.run(command, capture_output=True, text=True, cwd=_ROOT, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def _cpu():
    info = "/proc/cpuinfo"
    model = _first(info, r"^model name\s*:\s*(.*)", platform.machine())
    family = _first(info, r"^cpu family\s*:\s*(.*)", "")
    number = _first(info, r"^model\s*:\s*(.*)", "")
    return f"{model} (family {family}, model {number})" if family else model


def _release():
    """The kernel's number; what a build adds to it says nothing to others."""
    return re.match(r"[\d.]*", platform.release()).group()


def slug(text):
    """Lower case, words joined by hyphens: a file's name."""
    return "-".join(re.findall(r"[a-z0-9]+", re.sub(r"\((r|tm)\)", "", text.lower())))


def facts(arguments, versions, load):
    """Lines about the machine and the measurement; `load`: averages before it."""
    caches = _output("lscpu", "--caches=NAME,ALL-SIZE", "--noheadings").split("\n")
    memory_kb = int(_first("/proc/meminfo", r"^MemTotal:\s*(\d+)", "0"))
    pages = _first("/sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]")
    clean = _output("git", "status", "--porcelain") in ("", "unknown")
    changed = "" if clean else ", with changes"
    return [
        f"CPU: {_cpu()}, {os.cpu_count()} cores; caches of all cores: "
        f"{', '.join(' '.join(cache.split()) for cache in caches)}",
        f"memory: {memory_kb / 2**20:.1f} GB; transparent huge pages: {pages}",
        f"kernel: {_release()}; compiler: {_output('g++', '--version').splitlines()[0]}",
        f"usual way: PyTorch {versions.get('torch', 'not measured')}, "
        f"NumPy {versions.get('numpy', 'not measured')}, GLIBC_TUNABLES={_TUNABLES}",
        f"date: {datetime.date.today()}; commit: {_output('git', 'rev-parse', '--short', 'HEAD')}"
        f"{changed}; load averages at the start: "
        f"{', '.join(f'{value:.2f}' for value in load)}",
        f"rounds: {arguments.repeats}; in each, every operation, ceiling and usual way for at "
        f"least {arguments.least_seconds:g} s",
        f"command: `{shlex.join(['tools/bench_table.py', *sys.argv[1:]])}`",
    ]


def report(fact_lines, lines):
    """The whole document."""
    return "\n".join(
        [
            "# Kernels, measured",
            "",
            "Written by `tools/bench_table.py`; how to read it: [README.md](../README.md).",
            "",
            *(f"* {line}" for line in fact_lines),
            "",
            bench_report.markdown(lines),
            "",
            "```",
            bench_report.summary(lines),
            "```",
            "",
        ]
    )


def build():
    """Builds benchmarks:kernels; returns its path."""
    subprocess.run(["bazel", "build", "-c", "opt", "//benchmarks:kernels"], cwd=_ROOT, check=True)
    return pathlib.Path(_output("bazel", "info", "-c", "opt", "bazel-bin")) / "benchmarks/kernels"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", default="", help="only operations that match, e.g. '^top_k'")
    parser.add_argument("--repeats", type=int, default=9, help="rounds (default: %(default)s)")
    parser.add_argument("--simd", help="instruction set (default: the best)")
    parser.add_argument("--n", type=int, default=bench_rows.LARGE, help="size of the large rows: "
                        "1024, 16384, 262144, 1048576, 24993792 or 67108864")
    parser.add_argument("--quick", action="store_true", help="16384 elements, 3 rounds: a trial")
    parser.add_argument("--no_peers", action="store_true", help="without PyTorch and NumPy")
    parser.add_argument("--output", help="the file (default: benchmarks/results/CPU.md; with "
                        "--quick, --n or --rows none)")
    parser.add_argument("--binary", help="benchmarks:kernels, built already")
    found = parser.parse_args(arguments)
    found.least_seconds = 0.001 if found.quick else 0.02
    if found.quick:
        found.repeats, found.n = min(found.repeats, 3), 16384
    found.whole = found.n == bench_rows.LARGE and not found.rows
    return found


def chosen_rows(arguments):
    rows = [row for row in bench_rows.rows() if re.search(arguments.rows, row.operation)]
    return [
        bench_rows.of_size(row, arguments.n) if row.n == bench_rows.LARGE else row for row in rows
    ]


def main(arguments=None):
    load = os.getloadavg()  # before the build and the opponents' warm-up, which are a load
    arguments = parse(arguments)
    binary = arguments.binary or build()
    kernels = Kernels(binary, arguments.least_seconds)
    simd = arguments.simd or kernels.best_simd
    peers = {}
    if not arguments.no_peers:
        peers = {threads: Peers(threads, arguments.least_seconds) for threads in (1, 2)}
    fact_lines = facts(arguments, peers[1].versions if peers else {}, load)
    lines, wrong = [], 0
    for shown, members in groups(chosen_rows(arguments)):
        samples = measure(members, simd, arguments.repeats, kernels, peers)
        lines += [bench_report.cells(row, simd, samples) for row in shown]
        wrong += samples.wrong()
        print(f"{shown[0].operation}, {shown[0].data}: {lines[-1][5]}", file=sys.stderr)
    for process in (kernels, *peers.values()):
        process.close()
    text = report(fact_lines, lines)
    print(text)
    output = arguments.output
    if not output and arguments.whole:
        output = _ROOT / "benchmarks" / "results" / f"{slug(_cpu())}.md"
    if output:
        path = pathlib.Path(output)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if wrong:
        print(f"{wrong:.0f} words differ from the reference's", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
