"""Writes gradient traces: the folders that docs/trace_format.md defines.

Needs numpy alone. Tensors may be numpy arrays or PyTorch CPU tensors; nothing here imports PyTorch.
Single-threaded. The same calls with the same values write the same bytes.
"""

import json
import math
import numbers
import os
import re
import shutil
import struct
import tempfile

import numpy as np

STEP_FILES = "steps/{step:05}.{rank:03}.safetensors"
GRADIENT_DTYPES = ("F32", "BF16", "F16")
_DTYPES = {
    "F32": "<f4",
    "BF16": "<u2",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "U16": "<u2",
    "U8": "|u1"
}
_BY_NUMPY = {np.dtype(code): name for name, code in _DTYPES.items() if name != "BF16"}
_OPTIMIZER_KEYS = {
    "sgd": {"momentum", "dampening", "nesterov"},
    "adam": {"betas", "eps"},
    "adamw": {"betas", "eps"},
}


class TraceError(ValueError):
    """This cannot be a trace; the message names the field, the expected and the found."""


def to_numpy(value):
    """A numpy array of a PyTorch tensor (16-bit floats widened) or of anything numpy takes."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.float() if value.is_floating_point() else value).numpy()
    return np.asarray(value)


def float_to_bf16(values):
    """The bf16 bits (uint16) of float32 `values`: to nearest, ties to even; NaN stays NaN."""
    values = np.asarray(values, np.float32, order="C")
    bits = values.view(np.uint32)
    with np.errstate(over="ignore"):
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def _encode(value, dtype):
    """(dtype name, little-endian array) of a tensor; `dtype` None keeps the array's own type."""
    array = to_numpy(value)
    if dtype is None:
        if array.dtype not in _BY_NUMPY:
            raise TraceError(
                f"dtype: expected one of {sorted(set(_BY_NUMPY.values()))}, found {array.dtype}")
        dtype = _BY_NUMPY[array.dtype]
    if dtype == "BF16":
        array = float_to_bf16(array)
    with np.errstate(over="ignore"):  # an fp16 overflow becomes inf, which the caller refuses
        return dtype, np.asarray(array, dtype=_DTYPES[dtype], order="C")


def _is_finite(value, dtype):
    """Whether every element is finite once it is stored as `dtype` (rounding may overflow)."""
    stored = _encode(value, dtype)[1]
    if dtype == "BF16":
        return bool(((stored & 0x7F80) != 0x7F80).all())
    return bool(np.isfinite(stored).all())


def save_safetensors(path, tensors, dtype=None):
    """Writes {name: tensor} to `path`, rounded to `dtype` ("F32", "BF16" or "F16") where given.

    Wider element types come first, so every tensor is aligned to its element size in the file.
    """
    encoded = [(name, *_encode(value, dtype)) for name, value in tensors.items()]
    encoded.sort(key=lambda item: -item[2].itemsize)
    header, end = {}, 0
    for name, kind, array in encoded:
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, array in encoded:
            file.write(array.tobytes())


def load_safetensors(path):
    """{name: array} of a file that we wrote ourselves (not a hostile one); bf16 becomes float32."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[begin:end], _DTYPES[entry["dtype"]]).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = array
    return tensors


def check_directory(directory):
    """Raises TraceError unless `directory` is new or empty, in a folder that exists."""
    directory = os.path.abspath(directory)
    if not os.path.isdir(os.path.dirname(directory)):
        raise TraceError("directory: expected an existing parent folder, found none: "
                         f"{os.path.dirname(directory)}")
    if os.path.lexists(directory):
        if not os.path.isdir(directory):
            raise TraceError(
                f"directory: expected a new or empty folder, found a file: {directory}")
        if os.listdir(directory):
            raise TraceError(
                f"directory: expected a new or empty folder, found a non-empty one: {directory}")


def _check_number(field, value, good, expected):
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and good(value)):
        raise TraceError(f"{field}: expected {expected}, found {value!r}")


def _check_count(field, value, high):
    count = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not (count and 1 <= value <= high):
        raise TraceError(f"{field}: expected a whole number from 1 to {high}, found {value!r}")


def _check_name(field, name):
    if not name or len(name.encode()) > 256 or re.search(r"[\x00-\x1f\x7f-\x9f]", name):
        raise TraceError(
            f"{field}: expected 1 to 256 bytes without control characters, found {name!r}")


def _check_adam(optimizer):
    betas = optimizer.get("betas", ())
    if len(betas) != 2:
        raise TraceError(f"optimizer.betas: expected two numbers, found {betas!r}")
    for beta in betas:
        _check_number("optimizer.betas", beta, lambda x: 0 <= x < 1, "numbers in [0, 1)")
    _check_number("optimizer.eps", optimizer.get("eps"), lambda x: x > 0, "a number > 0")


def _check_sgd(optimizer):
    momentum, dampening = optimizer.get("momentum", 0), optimizer.get("dampening", 0)
    _check_number("optimizer.momentum", momentum, lambda x: 0 <= x < 1, "a number in [0, 1)")
    _check_number("optimizer.dampening", dampening, lambda x: 0 <= x <= 1, "a number in [0, 1]")
    if optimizer.get("nesterov", False) and (momentum == 0 or dampening != 0):
        raise TraceError("optimizer.nesterov: expected momentum > 0 and dampening = 0, "
                         f"found momentum {momentum} and dampening {dampening}")


def _check_optimizer(optimizer):
    kind = optimizer.get("kind")
    if kind not in _OPTIMIZER_KEYS:
        raise TraceError(
            f"optimizer.kind: expected one of {sorted(_OPTIMIZER_KEYS)}, found {kind!r}")
    known = _OPTIMIZER_KEYS[kind] | {"kind", "weight_decay", "clip_global_norm"}
    for key in sorted(set(optimizer) - known):
        raise TraceError(
            f"optimizer.{key}: expected one of {sorted(known)} for {kind}, found {key!r}")
    _check_number("optimizer.weight_decay", optimizer.get("weight_decay", 0), lambda x: x >= 0,
                  "a number >= 0")
    if optimizer.get("clip_global_norm") is not None:
        _check_number("optimizer.clip_global_norm", optimizer["clip_global_norm"], lambda x: x > 0,
                      "a number > 0")
    (_check_sgd if kind == "sgd" else _check_adam)(optimizer)


def _check_tensors(tensors):
    if not tensors:
        raise TraceError("tensors: expected at least one, found none")
    for name, shape in tensors.items():
        _check_name("tensors, name", name)
        if name == "__metadata__":
            raise TraceError(f"tensors, name: expected any other name, found {name!r}")
        if len(shape) > 8 or any(int(size) < 0 for size in shape):
            raise TraceError(
                f"tensors.{name}: expected a shape of at most 8 sizes >= 0, found {tuple(shape)}")


def _json(value):
    # numpy's scalars become Python's
    return json.dumps(value, allow_nan=False, ensure_ascii=False, default=lambda x: x.item())


class TraceWriter:
    """Writes one trace, as a context manager: it appears whole at the end or not at all.

    directory       the trace's folder: new, or empty
    tensors         {name: shape} in model order
    world_size      number of workers
    learning_rates  one a step; their count is the number of steps
    optimizer       {"kind": "sgd" | "adam" | "adamw", ...} as in docs/trace_format.md
    dtype           "F32", "BF16" or "F16": gradients are rounded to it (nearest, ties to even)
    name            for reports; the folder's name by default
    fields          further fields of trace.json: loss, model, sample, provenance, license
    """

    def __init__(self,
                 directory,
                 *,
                 tensors,
                 world_size,
                 learning_rates,
                 optimizer,
                 dtype="F32",
                 name=None,
                 **fields):
        check_directory(directory)
        _check_tensors(tensors)
        _check_optimizer(optimizer)
        _check_count("world_size", world_size, 65536)
        if dtype not in GRADIENT_DTYPES:
            raise TraceError(f"dtype: expected one of {GRADIENT_DTYPES}, found {dtype!r}")
        _check_count("learning_rates, one a step", len(learning_rates), 10_000_000)
        for rate in learning_rates:
            _check_number("learning_rates", rate, lambda x: x >= 0, "numbers >= 0")
        for key in sorted(set(fields) - {"loss", "model", "sample", "provenance", "license"}):
            raise TraceError(
                f"fields: expected loss, model, sample, provenance or license, found {key!r}")
        self._directory = os.path.abspath(directory)
        name = name or os.path.basename(self._directory)
        _check_name("name", name)
        self._tensors = {key: tuple(int(size) for size in shape) for key, shape in tensors.items()}
        self._dtype = dtype
        self._written = set()
        self._trace = {
            "format": "slimgrad-trace",
            "version": 1,
            "name": name,
            "world_size": world_size,
            "steps": len(learning_rates),
            "tensors": [{
                "name": key,
                "shape": list(shape)
            } for key, shape in self._tensors.items()],
            "gradients": {
                "dtype": dtype,
                "files": STEP_FILES,
                "taken": "after_backward_before_clipping"
            },
            "optimizer": dict(optimizer),
            "learning_rates": [float(rate) for rate in learning_rates],
            **fields,
        }
        parent, base = os.path.split(self._directory)
        self._temporary = tempfile.mkdtemp(prefix=f".{base}.partial-", dir=parent)
        os.mkdir(os.path.join(self._temporary, "steps"))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        try:
            if kind is None:
                self._finish()
        finally:
            self.abort()

    def abort(self):
        """Removes what is unfinished; does nothing after the trace has appeared."""
        shutil.rmtree(self._temporary, ignore_errors=True)

    def _save(self, file_name, tensors, dtype=None):
        save_safetensors(os.path.join(self._temporary, file_name), tensors, dtype)

    def _checked(self, field, tensors, dtype):
        """{name: array} in model order; refuses other names or shapes, and what is not finite."""
        for name in sorted(set(tensors) ^ set(self._tensors)):
            raise TraceError(
                f"{field}, tensor {name!r}: expected the tensors {sorted(self._tensors)}, "
                f"found {sorted(tensors)}")
        checked = {}
        for name, shape in self._tensors.items():
            array = to_numpy(tensors[name])
            if array.shape != shape:
                raise TraceError(
                    f"{field}, tensor {name!r}: expected shape {shape}, found {array.shape}")
            if not _is_finite(array, dtype):
                raise TraceError(f"{field}, tensor {name!r}: expected finite values in {dtype}, "
                                 "found NaN or infinity")
            checked[name] = array
        return checked

    def step(self, step, rank, gradients):
        """Stores worker `rank`'s gradients at `step`: {name: tensor}, all, finite; once."""
        steps, world = self._trace["steps"], self._trace["world_size"]
        if not (0 <= step < steps and 0 <= rank < world):
            raise TraceError(f"step, rank: expected below {steps}, {world}, found {step}, {rank}")
        if (step, rank) in self._written:
            raise TraceError(f"step {step}, rank {rank}: expected once, found twice")
        self._save(STEP_FILES.format(step=step, rank=rank),
                   self._checked(f"step {step}, rank {rank}", gradients, self._dtype), self._dtype)
        self._written.add((step, rank))

    def weights(self, when, tensors):
        """Stores {name: tensor} as float32; `when`: "initial" (before all steps) or "final"."""
        if when not in ("initial", "final"):
            raise TraceError(f"weights: expected 'initial' or 'final', found {when!r}")
        self._save(f"{when}.safetensors", self._checked(f"{when} weights", tensors, "F32"), "F32")
        self._trace[f"{when}_weights"] = f"{when}.safetensors"

    def data(self, arrays, **fields):
        """Stores training and evaluation set and batches; `fields`: name, input_scale, classes."""
        self._save("data.safetensors", arrays)
        self._trace["data"] = {"file": "data.safetensors", **fields}

    def timing(self, arrays):
        """Stores microseconds: ready_us, forward_us, backward_us, optimizer_us; each optional."""
        self._save("timing.safetensors", arrays, "F32")
        self._trace["timing"] = "timing.safetensors"

    def results(self, **values):
        """Stores final_eval_loss, final_eval_accuracy, eval_count and train_loss; each optional."""
        for key, value in values.items():
            if not np.isfinite(value).all():
                raise TraceError(f"results.{key}: expected finite numbers, found NaN or infinity")
        self._trace["results"] = values

    def _finish(self):
        steps, world = self._trace["steps"], self._trace["world_size"]
        for step in range(steps):
            for rank in range(world):
                if (step, rank) not in self._written:
                    raise TraceError(
                        f"steps: expected {steps * world} gradient files, found "
                        f"{len(self._written)}: step {step}, rank {rank} is missing")
        with open(os.path.join(self._temporary, "trace.json"), "w", encoding="utf-8") as file:
            lines = [f"{json.dumps(key)}: {_json(value)}" for key, value in self._trace.items()]
            file.write("{" + ",\n ".join(lines) + "}\n")
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(self._temporary, 0o777 & ~mask)  # mkdtemp makes it private
        # Replaces an empty folder, refuses one that was filled meanwhile.
        os.rename(self._temporary, self._directory)
