#!/usr/bin/env python3
"""Records a gradient trace from data-parallel PyTorch training, workers simulated in one process.

Every worker has its own shard of the data and its own batches. Each step, the workers' gradients
are written down, averaged (rank-order fp32 sum, one division) and applied with torch.optim.
docs/trace_format.md defines what is written. Runs with Debian 12's python3-torch and newer.
Exit status: 0 done, 1 the run failed, 2 wrong arguments.

  trainers/record_torch.py --model mlp --workers 4 --steps 96 --out my_trace
  trainers/record_torch.py --model transformer --optimizer adamw --lr 0.003 --dtype bf16 --out text
  trainers/record_torch.py --model cnn --shards by-label --workers 8 --clip-global-norm 1 --out skew
"""

import argparse
import math
import os
import signal
import sys

import datasets
from trace_writer import TraceError, check_directory

_DEFAULT_HIDDEN = {"softmax": [], "mlp": [32], "cnn": [8], "transformer": [32]}
_SGD_ONLY, _ADAM_ONLY = ("momentum", "dampening", "nesterov"), ("betas", "eps")


def _number(low, high, low_open=False, high_open=False):
    """An argparse type: a finite number from `low` to `high`."""

    def parse(text):
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        inside = low <= value <= high and not math.isinf(value)
        if not inside or (low_open and value == low) or (high_open and value == high):
            left, right = "(" if low_open else "[", ")" if high_open else "]"
            raise argparse.ArgumentTypeError(
                f"expected a number in {left}{low:g}, {high:g}{right}, found {text!r}")
        return value

    return parse


def _count(low, high):
    """An argparse type: a whole number from `low` to `high`."""

    def parse(text):
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(
                f"expected a whole number from {low} to {high}, found {text!r}")
        return int(text)

    return parse


def _widths(text):
    return [_count(1, 65536)(part) for part in text.split(",")]


def _betas(text):
    values = [_number(0, 1, high_open=True)(part) for part in text.split(",")]
    if len(values) != 2:
        raise argparse.ArgumentTypeError(f"expected two numbers, as in 0.9,0.999, found {text!r}")
    return values


def _parser():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0],
                                     epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    add = parser.add_argument
    positive = _number(0, math.inf, low_open=True)
    add("--out", required=True, metavar="DIR", help="the trace's folder: new, or empty")
    add("--name", help="the trace's name (default: the folder's)")
    add("--model", choices=sorted(_DEFAULT_HIDDEN), default="mlp")
    add("--hidden",
        type=_widths,
        metavar="N[,N...]",
        help="MLP widths (32), CNN channels (8) or transformer width (32)")
    add("--data",
        choices=["digits", "synthetic", "text"],
        help="default: digits; text for the transformer")
    add("--shards",
        choices=["iid", "by-label"],
        default="iid",
        help="how the training set is split among workers")
    add("--workers", type=_count(1, 4096), default=4)
    add("--steps", type=_count(1, 10_000_000), default=96)
    add("--batch", type=_count(1, 1_000_000), default=16, help="examples a worker a step")
    add("--optimizer", choices=["sgd", "adam", "adamw"], default="sgd")
    add("--momentum", type=_number(0, 1, high_open=True), help="sgd (default 0.9)")
    add("--dampening", type=_number(0, 1), help="sgd (default 0)")
    add("--nesterov", action="store_true", default=None, help="sgd")
    add("--betas", type=_betas, metavar="B1,B2", help="adam, adamw (default 0.9,0.999)")
    add("--eps", type=positive, help="adam, adamw (default 1e-8)")
    add("--weight-decay", type=_number(0, math.inf), default=0.0)
    add("--clip-global-norm",
        type=positive,
        help="largest 2-norm of the averaged gradient (default: no clipping)")
    add("--lr", type=_number(0, math.inf), default=0.1, help="learning rate at the first step")
    add("--schedule", choices=["constant", "cosine", "step"], default="constant")
    add("--step-every", type=_count(1, 10_000_000), help="schedule step: steps between drops")
    add("--step-factor", type=positive, help="schedule step: factor at each drop (default 0.1)")
    add("--dtype",
        choices=["f32", "bf16", "f16"],
        default="f32",
        help="stored gradients; training uses the rounded ones")
    add("--seed", type=_count(0, 2**32 - 1), default=0)
    add("--threads",
        type=_count(1, 1024),
        default=1,
        help="PyTorch's threads; more than 1 may change the last bits")
    add("--sample-tensors",
        type=_count(1, 1_000_000),
        metavar="N",
        help="record only N tensors, evenly spread")
    add("--sample-steps",
        type=_count(1, 10_000_000),
        metavar="N",
        help="record only N steps, evenly spread")
    return parser


def _check(parser, options):
    """Fills defaults that depend on other options; refuses what does not fit together (exit 2)."""
    wrong, other = _SGD_ONLY, "sgd"
    if options.optimizer == "sgd":
        wrong, other = _ADAM_ONLY, "adam or adamw"
    for key in wrong:
        if getattr(options, key) is not None:
            parser.error(
                f"argument --{key}: expected --optimizer {other}, found {options.optimizer}")
    if options.schedule != "step" and (options.step_every or options.step_factor):
        parser.error("argument --step-every, --step-factor: expected --schedule step, "
                     f"found {options.schedule}")
    if options.schedule == "step" and not options.step_every:
        parser.error("argument --step-every: expected with --schedule step, found none")
    if options.hidden is None:
        options.hidden = _DEFAULT_HIDDEN[options.model]
    elif options.model == "softmax":
        parser.error("argument --hidden: expected none for softmax, which has no hidden layer")
    elif options.model != "mlp" and len(options.hidden) != 1:
        parser.error(f"argument --hidden: expected one number for {options.model}, "
                     f"found {len(options.hidden)}")
    if options.model == "transformer" and options.hidden[0] % 4:
        parser.error("argument --hidden: expected a multiple of 4 (heads) for transformer, "
                     f"found {options.hidden[0]}")
    options.data = options.data or ("text" if options.model == "transformer" else "digits")
    if (options.data == "text") != (options.model == "transformer"):
        parser.error("argument --data: expected text with transformer and no other model, "
                     f"found {options.data} with {options.model}")
    try:
        check_directory(options.out)
    except TraceError as error:
        parser.error(f"argument --out: {error}")


def _optimizer(parser, options):
    """The trace's `optimizer` object, every hyper-parameter written out."""
    settings = {
        "kind": options.optimizer,
        "weight_decay": options.weight_decay,
        "clip_global_norm": options.clip_global_norm
    }
    if options.optimizer != "sgd":
        settings["betas"] = options.betas or [0.9, 0.999]
        settings["eps"] = options.eps or 1e-8
        return settings
    settings["momentum"] = 0.9 if options.momentum is None else options.momentum
    settings["dampening"] = options.dampening or 0.0
    settings["nesterov"] = bool(options.nesterov)
    if settings["nesterov"] and (settings["momentum"] == 0 or settings["dampening"] != 0):
        parser.error("argument --nesterov: expected momentum > 0 and dampening = 0, "
                     f"found {settings['momentum']:g} and {settings['dampening']:g}")
    return settings


def _learning_rates(options):
    """One learning rate a training step."""
    if options.schedule == "cosine":
        return [
            options.lr * 0.5 * (1 + math.cos(math.pi * t / options.steps))
            for t in range(options.steps)
        ]
    if options.schedule == "step":
        factor = 0.1 if options.step_factor is None else options.step_factor
        return [options.lr * factor**(t // options.step_every) for t in range(options.steps)]
    return [options.lr] * options.steps


def _dataset(parser, options):
    data = {
        "digits": datasets.digits,
        "synthetic": lambda: datasets.synthetic(options.seed),
        "text": lambda: datasets.text(options.seed)
    }[options.data]()
    shard = len(data.train_inputs) // options.workers
    if options.batch > shard:
        parser.error(
            f"argument --batch: expected at most {shard} (one of {options.workers} shards of "
            f"{len(data.train_inputs)} examples), found {options.batch}")
    return data


def _command(options):
    """The command line without --out, in a fixed order: recording again gives the same bytes."""
    words = ["trainers/record_torch.py"]
    for key, value in sorted(vars(options).items()):
        if key == "out" or value in (None, [], False):
            continue
        text = ",".join(str(part) for part in value) if isinstance(value, list) else str(value)
        words.append("--" + key.replace("_", "-") + ("" if value is True else " " + text))
    return " ".join(words)


def main(arguments):
    parser = _parser()
    options = parser.parse_args(arguments)
    _check(parser, options)
    settings, data = _optimizer(parser, options), _dataset(parser, options)
    if options.name is None:
        options.name = os.path.basename(os.path.abspath(options.out))
    try:
        import numpy
        import torch
        from recording import Recording
    except ImportError as error:
        print(
            f"record_torch.py: needs PyTorch (Debian: apt install python3-torch): {error}",
            file=sys.stderr)
        return 1
    torch.set_num_threads(options.threads)
    torch.use_deterministic_algorithms(True)
    # An interruption unwinds like an exception, so the unfinished folder is removed.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    provenance = {
        "framework": f"PyTorch {torch.__version__}",
        "numpy": numpy.__version__,
        "seed": options.seed,
        "threads": options.threads,
        "shards": options.shards,
        "batch_per_worker": options.batch,
        "command": _command(options)
    }
    try:
        loss, accuracy = Recording(options, data, settings,
                                   _learning_rates(options)).write(options.out, provenance)
    except (TraceError, OSError) as error:
        print(f"record_torch.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("record_torch.py: interrupted, nothing written", file=sys.stderr)
        return 130
    print(f"{options.out}: {options.steps} steps, {options.workers} workers; "
          f"final evaluation loss {loss:.4f}, accuracy {accuracy:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
