"""From samples to the table of tools/bench_table.py."""

import collections
import dataclasses
import statistics

VARIANTS = ("plain", "prefetch", "stream", "stream_prefetch")

# A single-threaded sample that was off its core for more than this share of it is taken again.
_MOST_PREEMPTED = 0.05


def operation_name(row, simd):
    return f"{row.operation}/data:{row.data}/n:{row.n}/threads:{row.threads}/simd:{simd}"


def ceiling_names(row, simd):
    """All variants; those that stream only where something is written that is not read again."""
    if not row.traffic:
        return []
    streams = row.traffic not in ("r4", "r8w4")
    return [
        f"ceiling:{row.traffic}/variant:{variant}/n:{row.n}/threads:{row.threads}/simd:{simd}"
        for variant in VARIANTS
        if streams or not variant.startswith("stream")
    ]


def peer_name(row):
    return f"peer:{row.operation}/data:{row.data}/n:{row.n}/threads:{row.threads}"


@dataclasses.dataclass
class Samples:
    """Of rows that were measured together: seconds and counters, by the names above."""

    seconds: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(list))
    counters: dict = dataclasses.field(default_factory=dict)

    def median(self, name):
        return statistics.median(self.seconds[name])

    def quartiles(self, name):
        values = self.seconds[name]
        if len(values) < 2:
            return values[0], values[0]
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
        return low, high

    def add(self, document, keep_all=False):
        """Takes what Google Benchmark wrote; returns the names that are to be taken again."""
        again = []
        for run in document["benchmarks"]:
            name = run["name"].removesuffix("/real_time")
            preempted = 1 - run["cpu_time"] / run["real_time"]
            if "/threads:1/" in name and preempted > _MOST_PREEMPTED and not keep_all:
                again.append(name)
                continue
            self.seconds[name].append(1e-9 * run["real_time"])
            self.counters[name] = {
                key: run[key] for key in ("wrong", "ratio", "rel_error") if key in run
            }
        return again

    def wrong(self):
        """Words that differ from the reference's, over all operations."""
        return sum(counters["wrong"] for counters in self.counters.values())


def _time(seconds):
    return f"{1e3 * seconds:.2f} ms" if seconds >= 1e-4 else f"{1e6 * seconds:.2f} µs"


def _target(found, target, text, at_most=False):
    """The target as `text`, and whether it is met or by how much it is missed."""
    if target is None:
        return ""
    if found <= target if at_most else found >= target:
        return f"{text}: met"
    return f"{text}: missed by {100 * abs(found / target - 1):.0f} %"


HEADER = (
    "operation",
    "data",
    "n",
    "threads",
    "simd",
    "ours (quartiles)",
    "ceiling",
    "of ceiling",
    "target",
    "usual way",
    "times as fast",
    "target",
    "other",
    "target",
    "wrong",
    "rel. error",
    "bytes ÷",
)


def _ceiling(row, simd, samples):
    return row.times * min(samples.median(name) for name in ceiling_names(row, simd))


def _against_ceiling(row, simd, samples, ours):
    if not row.traffic:
        return ["", "", ""]
    ceiling = _ceiling(row, simd, samples)
    share = ceiling / ours
    return [
        _time(ceiling),
        f"{share:.2f}",
        _target(share, row.of_ceiling, f"{row.of_ceiling or 0:.2f}"),
    ]


def _against_peer(row, samples, ours):
    if not row.has_peer or peer_name(row) not in samples.seconds:
        return ["", "", ""]
    peer = samples.median(peer_name(row))
    times = peer / ours
    return [_time(peer), f"{times:.1f}", _target(times, row.to_peer, f"{row.to_peer or 0:g}")]


def _other(row, simd, samples, baseline, ours):
    if row.scaling:
        found = baseline / ours
        memory = ""
        if row.traffic:
            gain = _ceiling(row.baseline(), simd, samples) / _ceiling(row, simd, samples)
            memory = f" (memory: {gain:.2f}x)"
        return [f"{found:.2f}x of 1 thread{memory}", _target(found, row.scaling, f"{row.scaling:g}x")]
    if row.to_normal:
        found = ours / baseline
        text = f"at most {row.to_normal:g}x"
        return [f"{found:.2f}x normal's time", _target(found, row.to_normal, text, at_most=True)]
    if row.most_us:
        found = 1e6 * ours
        text = f"at most {row.most_us:g} µs"
        return ["", _target(found, row.most_us, text, at_most=True)]
    return ["", ""]


def cells(row, simd, samples):
    """One line of the table, as text."""
    name = operation_name(row, simd)
    ours = samples.median(name)
    low, high = samples.quartiles(name)
    baseline = row.baseline()
    before = samples.median(operation_name(baseline, simd)) if baseline else None
    counters = samples.counters[name]
    return [
        row.operation,
        row.data,
        f"{row.n}",
        f"{row.threads}",
        simd,
        f"{_time(ours)} ({_time(low)} to {_time(high)})",
        *_against_ceiling(row, simd, samples, ours),
        *_against_peer(row, samples, ours),
        *_other(row, simd, samples, before, ours),
        f"{counters['wrong']:.0f}",
        f"{counters['rel_error']:.2g}" if "rel_error" in counters else "",
        f"{counters['ratio']:.4g}" if "ratio" in counters else "",
    ]


def markdown(lines):
    """HEADER and `lines`, aligned, so that it reads as text too."""
    every = [HEADER, *lines]
    widths = [max(len(line[column]) for line in every) for column in range(len(HEADER))]

    def text(line):
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([text(HEADER), rule, *map(text, lines)])


def summary(lines):
    """'N targets met, N missed', and a line for each that is missed."""
    targets = [
        (line, column, cell)
        for line in lines
        for column, cell in enumerate(line)
        if HEADER[column] == "target" and cell
    ]
    missed = [
        f"{line[0]}, {line[1]}, n = {line[2]}, {line[3]} thread(s): {HEADER[column - 1]} "
        f"{line[column - 1]}, target {cell}"
        for line, column, cell in targets
        if "missed" in cell
    ]
    return "\n".join(
        [f"{len(targets) - len(missed)} targets met, {len(missed)} missed", *missed]
    )
