#!/usr/bin/python3
"""Times what a PyTorch user would write in place of slimgrad's kernels, on the GPU.

    gpu_check_torch.py ELEMENTS[,ELEMENTS...] OUT.json

Medians of 9 rounds between CUDA events, after a warm-up.
"""

import json
import statistics
import sys

import torch

_ROUNDS = 9
_LEVEL_BLOCK = 4096  # elements that share their levels


def _top_k(x, density):
    values, indices = torch.topk(x.abs(), max(1, int(x.numel() * density)), sorted=False)
    return x[indices], values


def _pack(positive):
    places = torch.arange(8, device=positive.device, dtype=torch.uint8)
    return (positive.view(-1, 8).to(torch.uint8) << places).sum(dim=1, dtype=torch.uint8)


def _one_bit(x, residual):
    """Bits, the means of each block's elements >= 0 and < 0, and what they leave."""
    corrected = (x + residual).view(-1, _LEVEL_BLOCK)
    positive = corrected >= 0
    count = positive.sum(dim=1, keepdim=True)
    above = corrected.clamp(min=0).sum(dim=1, keepdim=True) / count.clamp(min=1)
    others = (_LEVEL_BLOCK - count).clamp(min=1)
    below = corrected.clamp(max=0).sum(dim=1, keepdim=True) / others
    rest = corrected - torch.where(positive, above, below)
    return _pack(positive), above, below, rest.view(-1)


def _int8(x):
    blocks = x.view(-1, 256)
    scale = blocks.abs().amax(dim=1, keepdim=True) / 127
    return (blocks / scale).round().to(torch.int8), scale


_OPERATIONS = {
    "f32_to_f16": lambda x, residual: x.half(),
    "f32_to_bf16": lambda x, residual: x.bfloat16(),
    "one_bit_feedback": _one_bit,
    "int8": lambda x, residual: _int8(x),
    "top_k/density:0.001": lambda x, residual: _top_k(x, 0.001),
    "top_k/density:0.01": lambda x, residual: _top_k(x, 0.01),
}


def _milliseconds(operation, x, residual):
    times = []
    for _ in range(_ROUNDS + 1):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        operation(x, residual)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[1:])


def main(arguments):
    """Writes the JSON file."""
    if len(arguments) != 2:
        sys.exit(__doc__)
    rows = []
    for text in arguments[0].split(","):
        n = max(1, int(text) // _LEVEL_BLOCK) * _LEVEL_BLOCK
        x = torch.randn(n, device="cuda") * 1e-3
        residual = torch.zeros_like(x)
        for name, operation in _OPERATIONS.items():
            rows.append({"kernel": name, "elements": n, "ms": _milliseconds(operation, x, residual)})
    with open(arguments[1], "w", encoding="utf-8") as file:
        json.dump({"torch": torch.__version__, "rows": rows}, file, indent=2)


if __name__ == "__main__":
    main(sys.argv[1:])
