"""An independent reader and replay of gradient traces, in numpy, written from docs/trace_format.md.

It shares no code with trainers/: a mistake made there is not made here again.
"""

import json
import math
import os
import struct

import numpy as np

_SIZES = {"F32": 4, "BF16": 2, "F16": 2, "I64": 8, "I32": 4, "U16": 2, "U8": 1}
_NUMPY = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U16": "<u2", "U8": "u1"}


def read_tensors(path):
    """{name: (dtype, array)}; asserts the rules of the safetensors subset. BF16 becomes F32."""
    with open(path, "rb") as file:
        raw = file.read()
    (length,) = struct.unpack_from("<Q", raw)
    assert 2 <= length <= len(raw) - 8 and length % 8 == 0, (path, length)
    header, data = json.loads(raw[8:8 + length].decode()), raw[8 + length:]
    tensors, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = entry["data_offsets"]
        size = _SIZES[entry["dtype"]]
        assert begin == end and begin % size == 0, (path, name, begin, end)
        assert stop - begin == math.prod(entry["shape"]) * size, (path, name)
        end = stop
        if entry["dtype"] == "BF16":
            words = np.frombuffer(data[begin:stop], "<u2").astype(np.uint32) << 16
            array = words.view(np.float32)
        else:
            array = np.frombuffer(data[begin:stop], _NUMPY[entry["dtype"]])
        tensors[name] = (entry["dtype"], array.reshape(entry["shape"]))
    assert end == len(data), (path, end, len(data))
    return tensors


class Trace:
    """A whole trace in memory. gradients(step, rank): {name: float32 array}."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "trace.json"), encoding="utf-8") as file:
            self.json = json.load(file)
        assert self.json["format"] == "slimgrad-trace" and self.json["version"] == 1
        assert len(self.json["learning_rates"]) == self.json["steps"]
        self.names = [tensor["name"] for tensor in self.json["tensors"]]
        self.shapes = {tensor["name"]: tuple(tensor["shape"]) for tensor in self.json["tensors"]}
        self.files = sorted(os.listdir(os.path.join(folder, "steps")))
        assert len(self.files) == self.json["steps"] * self.json["world_size"]

    def tensors(self, file_name):
        """{name: array} of a file in the folder."""
        found = read_tensors(os.path.join(self.folder, file_name))
        return {name: array for name, (_, array) in found.items()}

    def gradients(self, step, rank):
        found = read_tensors(os.path.join(self.folder, f"steps/{step:05}.{rank:03}.safetensors"))
        assert set(found) == set(self.names), (step, rank, sorted(found))
        for name, (dtype, array) in found.items():
            assert dtype == self.json["gradients"]["dtype"], (step, rank, name, dtype)
            assert array.shape == self.shapes[name], (step, rank, name, array.shape)
        return {name: array.astype(np.float32) for name, (_, array) in found.items()}

    def average(self, step):
        """A step's averaged gradient: rank-order float32 sum, one division, then clipping."""
        world = self.json["world_size"]
        total = self.gradients(step, 0)
        for rank in range(1, world):
            more = self.gradients(step, rank)
            total = {name: total[name] + more[name] for name in self.names}
        mean = {name: total[name] / np.float32(world) for name in self.names}
        limit = self.json["optimizer"].get("clip_global_norm")
        if limit is None:
            return mean
        norm = math.sqrt(sum(float((g.astype(np.float64)**2).sum()) for g in mean.values()))
        factor = np.float32(min(1.0, limit / (norm + 1e-6)))
        return {name: g * factor for name, g in mean.items()}

    def replay(self):
        """The final weights that the update rule makes of the initial ones."""
        weights = {k: v.copy() for k, v in self.tensors(self.json["initial_weights"]).items()}
        update = _sgd if self.json["optimizer"]["kind"] == "sgd" else _adam
        state = {name: {} for name in self.names}
        for step in range(self.json["steps"]):
            rate, mean = self.json["learning_rates"][step], self.average(step)
            for name in self.names:
                weights[name] = update(self.json["optimizer"], rate, step + 1, weights[name],
                                       mean[name], state[name])
                assert weights[name].dtype == np.float32
        return weights


def _sgd(settings, rate, t, w, g, state):
    momentum = np.float32(settings.get("momentum", 0))
    g = g + np.float32(settings.get("weight_decay", 0)) * w
    if momentum > 0:
        keep = np.float32(1 - settings.get("dampening", 0))
        state["v"] = g if t == 1 else momentum * state["v"] + keep * g
        g = g + momentum * state["v"] if settings.get("nesterov") else state["v"]
    return w - np.float32(rate) * g


def _adam(settings, rate, t, w, g, state):
    beta1, beta2 = settings["betas"]
    decay = settings.get("weight_decay", 0)
    if settings["kind"] == "adam":
        g = g + np.float32(decay) * w
    else:
        w = w * np.float32(1 - rate * decay)
    zero = np.zeros_like(w)
    state["m"] = np.float32(beta1) * state.get("m", zero) + np.float32(1 - beta1) * g
    state["v"] = np.float32(beta2) * state.get("v", zero) + np.float32(1 - beta2) * g * g
    root = np.sqrt(state["v"]) / np.float32(math.sqrt(1 - beta2**t))
    step_size = np.float32(rate / (1 - beta1**t))
    return w - step_size * (state["m"] / (root + np.float32(settings["eps"])))


def forward(graph, weights, x):
    """(logits, the inputs of each op) in float64 for inputs [batch, features]."""
    inputs = []
    for op in graph:
        inputs.append(x)
        if op["op"] == "linear":
            x = x @ weights[op["weight"]].astype(np.float64).T
            x = x + weights[op["bias"]] if "bias" in op else x
        else:
            x = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh}[op["op"]](x)
    return x, inputs


def log_softmax(logits):
    shifted = logits - logits.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def backward(graph, weights, x, labels):
    """{name: gradient of the mean cross-entropy} in float64; linear and relu only."""
    logits, inputs = forward(graph, weights, x)
    rows = np.arange(len(labels))
    delta = np.exp(log_softmax(logits))
    delta[rows, labels] -= 1
    delta /= len(labels)
    gradients = {}
    for op, x_in in reversed(list(zip(graph, inputs))):
        if op["op"] == "linear":
            gradients[op["weight"]] = delta.T @ x_in
            gradients[op["bias"]] = delta.sum(0)
            delta = delta @ weights[op["weight"]].astype(np.float64)
        else:
            delta = delta * (x_in > 0)
    return gradients
