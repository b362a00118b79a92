#!/usr/bin/python3
"""The usual ways to do what slimgrad's kernels do, in PyTorch and NumPy, timed on request.

Reads requests from standard input, one a line: {"peer", "data", "n"}; answers {"seconds"} each,
the mean over as many calls as take 20 ms, at least one. The first request of its kind also sets up
and warms up. The first line that is written names the versions.

Each is written from its method's definition, the way the code that is in use does it: with whole
passes over tensors. tools/bench_table.py starts this with huge pages and a heap that keeps what is
freed, so that no page fault is timed.
"""

import argparse
import json
import pathlib
import resource
import struct
import sys
import time

import numpy
import torch

_TURNS = 4  # buffers a role, taken in turn, as in benchmarks/data.h
_SCALE = 1e-3
_FEW_FAULTS = 4  # a measurement
_WARM_UPS = 5
_TRACE = pathlib.Path(__file__).absolute().parent.parent / "traces" / "digits_mlp"

# --- data: the distributions of benchmarks/data.h


def _recorded():
    parts = []
    for path in sorted((_TRACE / "steps").iterdir()):
        raw = path.read_bytes()
        (header_bytes,) = struct.unpack("<Q", raw[:8])
        parts.append(numpy.frombuffer(raw[8 + header_bytes :], dtype="<f4"))
    return numpy.concatenate(parts)


def _values(data, n, random):
    normal = random.standard_normal
    if data == "normal":
        return normal(n, dtype=numpy.float32)
    if data == "laplace":
        return random.laplace(size=n)
    if data == "student_t":
        return random.standard_t(2, size=n)
    if data in ("sparse", "sparser"):
        share = 0.01 if data == "sparse" else 0.0005
        return numpy.where(random.random(n) < share, normal(n, dtype=numpy.float32), 0)
    if data == "constant":
        return numpy.ones(n)
    if data == "zeros":
        return numpy.zeros(n)
    if data == "two_values":
        return numpy.where(random.random(n) < 1 / 3, 2.0, -1.0)
    if data == "sorted":
        return numpy.arange(n) / n - 1 / 3
    raise ValueError(f"no data '{data}'")


def inputs(data, n):
    """One tensor a turn."""
    if data == "recorded":
        return [torch.from_numpy(numpy.resize(_recorded(), n)) for _ in range(_TURNS)]
    return [
        torch.from_numpy(
            (_SCALE * _values(data, n, numpy.random.default_rng(turn))).astype(numpy.float32)
        )
        for turn in range(_TURNS)
    ]


# --- peers: each takes the inputs and returns what is timed, a function of the turn


def _from_f16(xs):
    codes = [x.half() for x in xs]
    return lambda turn: codes[turn].float()


def _pack(x):
    return numpy.packbits((x >= 0).numpy())


def _unpack(bits, n):
    return torch.from_numpy(numpy.unpackbits(bits, count=n)).float().mul_(2).sub_(1)


def _sign_unpack(xs):
    codes = [_pack(x) for x in xs]
    return lambda turn: _unpack(codes[turn], xs[turn].numel())


def _one_bit_feedback(xs):
    """DeepSpeed's: one scale, |p| / sqrt(n); the signs as floats, then as bits."""
    residuals = [torch.zeros_like(x) for x in xs]

    def run(turn):
        p = xs[turn] + residuals[turn]
        scale = p.norm() / p.numel() ** 0.5
        positive = p.sign().add_(1).bool()
        torch.sub(p, positive.float().sub_(0.5).mul_(2 * scale), out=residuals[turn])
        return numpy.packbits(positive.numpy()), scale

    return run


def _one_bit_round_trip(xs):
    def run(turn):
        x = xs[turn]
        scale = x.norm() / x.numel() ** 0.5
        return _unpack(_pack(x), x.numel()).mul_(scale)

    return run


def _quantized(x, block, levels):
    rows = x.view(-1, block)
    absmax = rows.abs().amax(dim=1, keepdim=True)
    return (rows * (levels / absmax)).round_().clamp_(-levels, levels).to(torch.int8), absmax


def _dequantized(codes, absmax, levels):
    return (codes.float() * (absmax / levels)).view(-1)


def _int8(xs):
    return lambda turn: _quantized(xs[turn], 256, 127)


def _int8_decode(xs):
    codes = [_quantized(x, 256, 127) for x in xs]
    return lambda turn: _dequantized(*codes[turn], 127)


def _int8_feedback(xs):
    residuals = [torch.zeros_like(x) for x in xs]

    def run(turn):
        p = xs[turn] + residuals[turn]
        code = _quantized(p, 128, 127)
        torch.sub(p, _dequantized(*code, 127), out=residuals[turn])
        return code

    return run


def _int8_stochastic(xs):
    def run(turn):
        rows = xs[turn].view(-1, 256)
        absmax = rows.abs().amax(dim=1, keepdim=True)
        scaled = rows * (127 / absmax)
        return scaled.add_(torch.rand_like(scaled)).floor_().clamp_(-127, 127).to(torch.int8), absmax

    return run


def _int4(xs):
    def run(turn):
        codes, absmax = _quantized(xs[turn], 128, 7)
        pairs = codes.view(-1, 2).bitwise_and_(15).view(torch.uint8)
        return pairs[:, 0] | (pairs[:, 1] << 4), absmax

    return run


def _qsgd(xs):
    """GRACE's, with the norm of each bucket of 128 in place of the tensor's."""

    def run(turn):
        rows = xs[turn].view(-1, 128)
        norms = rows.norm(dim=1, keepdim=True)
        level = rows.abs() * (127 / norms)
        below = level.floor()
        up = (torch.rand_like(level) < level - below).float()
        return ((below + up) * rows.sign()).to(torch.int8), norms

    return run


def _kept(x, density):
    return max(1, round(density * x.numel()))


def _top_k(density):
    def make(xs):
        kept = _kept(xs[0], density)

        def run(turn):
            indices = torch.topk(xs[turn].abs(), kept, sorted=False).indices
            return indices, xs[turn][indices]

        return run

    return make


def _top_k_feedback(density):
    def make(xs):
        kept = _kept(xs[0], density)
        residuals = [torch.zeros_like(x) for x in xs]

        def run(turn):
            p = residuals[turn].add_(xs[turn])
            indices = torch.topk(p.abs(), kept, sorted=False).indices
            values = p[indices]
            p[indices] = 0
            return indices, values

        return run

    return make


def _top_k_round_trip(density):
    def make(xs):
        encode = _top_k(density)(xs)

        def run(turn):
            indices, values = encode(turn)
            return torch.zeros_like(xs[turn]).index_put_((indices,), values)

        return run

    return make


def _threshold_select(density):
    def make(xs):
        threshold = torch.topk(xs[0].abs(), _kept(xs[0], density)).values[-1]

        def run(turn):
            indices = (xs[turn].abs() >= threshold).nonzero().view(-1)
            return indices, xs[turn][indices]

        return run

    return make


def _shape(n):
    """As ShapeOf in benchmarks/low_rank.cc."""
    side = int(n**0.5)
    cols = side - side % min(side, 64)
    rows = n // cols
    return rows - rows % 8, cols


def _orthogonalize(p):
    for i in range(p.shape[1]):
        column = p[:, i : i + 1]
        column /= column.norm() + 1e-8
        if i + 1 < p.shape[1]:
            rest = p[:, i + 1 :]
            rest -= (column * rest).sum(dim=0) * column


def _power_sgd_step(rank):
    """The hook's arithmetic, a single rank's."""

    def make(xs):
        rows, cols = _shape(xs[0].numel())
        matrices = [x[: rows * cols].view(rows, cols) for x in xs]
        residuals = [torch.zeros(rows, cols) for _ in xs]
        q = torch.randn(cols, rank)
        _orthogonalize(q)

        def run(turn):
            m = residuals[turn].add_(matrices[turn])
            p = m @ q
            _orthogonalize(p)
            torch.matmul(m.t(), p, out=q)
            average = p @ q.t()
            m.sub_(average)
            _orthogonalize(q)
            return average

        return run

    return make


def _count_non_finite(xs):
    return lambda turn: (~torch.isfinite(xs[turn])).sum()


# By the names of benchmarks:kernels.
PEERS = {
    "f32_to_f16": lambda xs: lambda turn: xs[turn].half(),
    "f32_to_bf16": lambda xs: lambda turn: xs[turn].bfloat16(),
    "f16_to_f32": _from_f16,
    "f16_round_trip": lambda xs: lambda turn: xs[turn].half().float(),
    "sign_pack": lambda xs: lambda turn: _pack(xs[turn]),
    "sign_unpack": _sign_unpack,
    "one_bit_feedback": _one_bit_feedback,
    "one_bit_round_trip": _one_bit_round_trip,
    "int8": _int8,
    "int8_feedback": _int8_feedback,
    "int8_decode": _int8_decode,
    "int8_stochastic": _int8_stochastic,
    "int4": _int4,
    "qsgd": _qsgd,
    "top_k/density:0.001": _top_k(0.001),
    "top_k/density:0.01": _top_k(0.01),
    "top_k/density:0.1": _top_k(0.1),
    "top_k_feedback/density:0.001": _top_k_feedback(0.001),
    "top_k_feedback/density:0.01": _top_k_feedback(0.01),
    "top_k_feedback/density:0.1": _top_k_feedback(0.1),
    "top_k_round_trip/density:0.01": _top_k_round_trip(0.01),
    "threshold_select/density:0.01": _threshold_select(0.01),
    "power_sgd_step/rank:1": _power_sgd_step(1),
    "power_sgd_step/rank:2": _power_sgd_step(2),
    "power_sgd_step/rank:4": _power_sgd_step(4),
    "count_non_finite": _count_non_finite,
}

# --- timing


def _page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


class Timer:
    """Holds what was asked for last, so that asking again costs no set-up."""

    def __init__(self, least_seconds=0.02):
        self.least_seconds = least_seconds
        self.xs_key = self.run_key = self.run = None
        self.xs = []
        self.turn = 0

    def seconds(self, peer, data, n):
        """Of one call: the mean over a measurement."""
        self._set_up(peer, data, n)
        calls = 1
        while True:
            elapsed, faults = self._time(calls)
            if faults > _FEW_FAULTS and not self.warm(_WARM_UPS):
                faults = 0  # this one always has some
            if elapsed >= self.least_seconds and faults <= _FEW_FAULTS:
                return elapsed / calls
            wanted = int(1.4 * calls * self.least_seconds / elapsed)
            calls = max(calls, min(10 * calls, wanted + 1))

    def warm(self, most):
        """Runs until all turns pass without page faults, which the heap needs some calls for."""
        return any(self._time(_TURNS)[1] <= _FEW_FAULTS for _ in range(most))

    def _set_up(self, peer, data, n):
        if (data, n) != self.xs_key:
            self.xs_key, self.run_key, self.run = (data, n), None, None
            self.xs = []  # before there are new ones
            self.xs = inputs(data, n)
        if peer != self.run_key:
            self.run_key, self.run = peer, None
            self.run = PEERS[peer](self.xs)
            self.warm(_WARM_UPS)

    def _time(self, calls):
        faults = _page_faults()
        start = time.perf_counter()
        for _ in range(calls):
            self.run(self.turn % _TURNS)
            self.turn += 1
        return time.perf_counter() - start, _page_faults() - faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--least_seconds", type=float, default=0.02, help="of one measurement")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    print(json.dumps({"torch": torch.__version__, "numpy": numpy.__version__}), flush=True)
    timer = Timer(arguments.least_seconds)
    for line in sys.stdin:
        request = json.loads(line)
        seconds = timer.seconds(request["peer"], request["data"], request["n"])
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
