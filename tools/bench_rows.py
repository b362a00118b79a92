"""The rows of the table that tools/bench_table.py makes, and what each is to reach."""

import dataclasses
from typing import Optional

LARGE = 24_993_792  # 100 MB of fp32
SMALL = 1024


@dataclasses.dataclass(frozen=True)
class Row:
    """An operation of benchmarks:kernels on one kind of data, of one size, on so many threads."""

    operation: str
    data: str = "normal"
    n: int = LARGE
    threads: int = 1
    # the memory that it moves: a ceiling of benchmarks:kernels, taken so many times
    traffic: str = ""
    times: float = 1.0
    has_peer: bool = False
    # targets; None: only reported
    of_ceiling: Optional[float] = None  # least share of the ceiling's speed
    to_peer: Optional[float] = None  # least speed, relative to the usual way
    scaling: Optional[float] = None  # least speed, relative to one thread
    to_normal: Optional[float] = None  # most time, relative to normal data
    most_us: Optional[float] = None  # most time

    def baseline(self):
        """The row whose time `scaling` or `to_normal` relates to, or None."""
        if self.scaling:
            return dataclasses.replace(self, threads=1, scaling=None)
        if self.to_normal:
            return dataclasses.replace(self, data="normal", to_normal=None)
        return None


def of_size(row, n):
    """The same at another size: without targets, unless n is the size they are for."""
    if n == row.n:
        return row
    return dataclasses.replace(
        row, n=n, of_ceiling=None, to_peer=None, scaling=None, to_normal=None, most_us=None
    )


def _both_threads(operation, traffic, of_ceiling, to_peer, scaling=1.8, times=1.0, has_peer=True):
    one = Row(
        operation,
        traffic=traffic,
        times=times,
        has_peer=has_peer,
        of_ceiling=of_ceiling,
        to_peer=to_peer,
    )
    return [one, dataclasses.replace(one, threads=2, of_ceiling=None, to_peer=None, scaling=scaling)]


def _dense():
    rows = []
    for operation, traffic, of_ceiling, to_peer in (
        ("f32_to_f16", "r4w2", 0.90, 2.0),
        ("f32_to_bf16", "r4w2", 0.85, 1.5),
        ("f16_to_f32", "r2w4", 0.95, 1.9),
        ("sign_pack", "r4w0.125", 0.90, 3.0),
        ("sign_unpack", "r0.125w4", 0.95, 8.0),
        ("one_bit_feedback", "r8w4.125", 0.88, 11.0),
        ("int8", "r4w1", 0.85, 8.0),
        ("int8_feedback", "r8w5", 0.82, 9.0),
        ("int8_decode", "r1w4", 0.92, 5.5),
        ("int8_stochastic", "r4w1", 0.60, 16.0),
        ("int4", "r4w0.5", 0.82, 10.0),
        ("qsgd", "r4w1", 0.55, 35.0),
    ):
        rows += _both_threads(operation, traffic, of_ceiling, to_peer)
    for operation, traffic, of_ceiling in (  # PyTorch of Debian 12 has no 8-bit floats
        ("f32_to_e4m3", "r4w1", 0.85),
        ("f32_to_e4m3_feedback", "r8w5", 0.82),
        ("e4m3_to_f32", "r1w4", 0.92),
    ):
        rows += _both_threads(operation, traffic, of_ceiling, to_peer=None, has_peer=False)
    return rows


def _selections():
    rows = []
    for density, of_read, to_peer, of_feedback, to_feedback_peer in (
        ("0.001", 0.85, 22.0, 0.82, 16.0),
        ("0.01", 0.70, 40.0, 0.72, 24.0),
        ("0.1", 0.45, 25.0, 0.55, 18.0),
    ):
        suffix = f"/density:{density}"
        rows += _both_threads("top_k" + suffix, "r4", of_read, to_peer, 1.5)
        rows += _both_threads("top_k_feedback" + suffix, "r8w4", of_feedback, to_feedback_peer, 1.5)
    rows += _both_threads("threshold_select/density:0.01", "r4", 0.85, 12.0)
    return rows


def _low_rank():
    # 28 bytes an element, as fast as error feedback moves its 12
    rows = []
    for rank in (1, 2, 4):
        rows += _both_threads(f"power_sgd_step/rank:{rank}", "r8w4", 0.90, 3.3, times=28 / 12)
    return rows


def _worst_cases():
    return [
        Row("top_k/density:0.01", data=data, traffic="r4", to_normal=4.0)
        for data in ("constant", "zeros", "sparser", "sparse", "two_values", "sorted")
    ]


def _other_data():
    return [
        Row(operation, data=data, traffic=traffic)
        for operation, traffic in (("int8", "r4w1"), ("top_k/density:0.01", "r4"))
        for data in ("laplace", "student_t", "recorded")
    ]


def _latencies():
    return [
        Row("f16_round_trip", n=SMALL, has_peer=True, most_us=1.0),
        Row("one_bit_round_trip", n=SMALL, has_peer=True, most_us=1.0),
        Row("top_k_round_trip/density:0.01", n=SMALL, has_peer=True, most_us=3.0),
    ]


def rows():
    """All rows, in the order of the table."""
    check = Row("count_non_finite", traffic="r4", has_peer=True)
    return (
        _dense() + _selections() + _low_rank() + [check] + _worst_cases() + _other_data()
        + _latencies()
    )
