"""Data sets for recording traces: shipped or made here, never downloaded. numpy alone.

Made data comes from numpy's RandomState, whose streams are frozen: the same seed gives the same
data with every numpy.
"""

import dataclasses
import os

import numpy as np

from trace_writer import load_safetensors

_DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.safetensors")


@dataclasses.dataclass(frozen=True)
class Dataset:
    """inputs: uint8 or float32 [rows, features]; labels: uint8 [rows] ([rows, positions] for text).

    A model's input is float32(inputs) * input_scale, or the character codes themselves for text.
    """

    name: str
    train_inputs: np.ndarray
    train_labels: np.ndarray
    eval_inputs: np.ndarray
    eval_labels: np.ndarray
    input_scale: float
    classes: int
    license: dict


def digits():
    """8x8 handwritten digits, pixels 0 to 16: every fifth for evaluation (359), 1438 for training.

    The images lie in writers' order: every fifth puts every writer into both parts. data/README.md
    has the source and the licence.
    """
    tensors = load_safetensors(_DIGITS)
    inputs, labels = tensors["inputs"], tensors["labels"]
    held = np.arange(len(inputs)) % 5 == 4
    return Dataset(
        "digits",
        inputs[~held],
        labels[~held],
        inputs[held],
        labels[held],
        input_scale=1 / 16,
        classes=10,
        license={
            "data": "CC BY 4.0",
            "source":
                "UCI Machine Learning Repository, Optical Recognition of Handwritten Digits "
                "(test set), doi:10.24432/C50P49, as in scikit-learn",
            "authors": "E. Alpaydin, C. Kaynak",
        })


def synthetic(seed):
    """10 overlapping Gaussian classes in 64 dimensions: 2000 rows for training, 500 to evaluate."""
    random = np.random.RandomState(seed)
    classes, features, train, rows = 10, 64, 2000, 2500
    centres = random.standard_normal((classes, features)) * 0.4
    labels = random.randint(0, classes, rows).astype(np.uint8)
    inputs = (centres[labels] + random.standard_normal((rows, features))).astype(np.float32)
    return Dataset("synthetic",
                   inputs[:train],
                   labels[:train],
                   inputs[train:],
                   labels[train:],
                   input_scale=1.0,
                   classes=classes,
                   license=_made())


def text(seed, context=32):
    """Sentences from a small grammar, as windows of `context` codes; labels: the codes after."""
    random = np.random.RandomState(seed)
    words = {
        "who":
            "the miller,a grey heron,my sister,an old ferry,the north wind,a clock".split(","),
        "did":
            "waits for,carries,remembers,never follows,counts,paints".split(","),
        "what":
            "the river,seven lanterns,a quiet road,the last apple,her brother,every stone".split(","
                                                                                                ),
        "when":
            "at noon,before the rain,in winter,once a year,by candle light,twice".split(","),
    }

    def pick(kind):
        return words[kind][random.randint(len(words[kind]))]

    length = 24000
    sentences, size = [], 0
    while size < length:
        sentence = f"{pick('who')} {pick('did')} {pick('what')} {pick('when')}. "
        sentences.append(sentence)
        size += len(sentence)
    characters = "".join(sentences)[:length]
    alphabet = sorted(set(characters))
    codes = np.array([alphabet.index(character) for character in characters], np.uint8)
    starts = np.arange(0, length - context - 1, context // 2)
    inputs = np.stack([codes[s:s + context] for s in starts])
    labels = np.stack([codes[s + 1:s + context + 1] for s in starts])
    # Two windows between the parts are dropped: neighbours overlap by half.
    cut = len(starts) * 9 // 10
    return Dataset("text",
                   inputs[:cut],
                   labels[:cut],
                   inputs[cut + 2:],
                   labels[cut + 2:],
                   input_scale=1.0,
                   classes=len(alphabet),
                   license=_made())


def _made():
    return {
        "data": "Apache-2.0",
        "source": "made by trainers/datasets.py",
        "authors": "the slimgrad authors"
    }


def shards(labels, workers, how, seed):
    """Rows of each worker's shard, int32, of equal size; up to workers - 1 rows are left out.

    "iid": a random permutation is cut. "by-label": the rows sorted by label are cut, so that each
    worker sees few classes.
    """
    rows = len(labels)
    if how == "iid":
        order = np.random.RandomState(seed).permutation(rows)
    else:
        order = np.argsort(labels.reshape(rows, -1)[:, 0], kind="stable")
    size = rows // workers
    return [order[rank * size:(rank + 1) * size].astype(np.int32) for rank in range(workers)]


def batches(parts, steps, batch, seed):
    """Rows of every batch, int32 [steps, workers, batch]; shards are reshuffled each round."""
    out = np.empty((steps, len(parts), batch), np.int32)
    for rank, rows in enumerate(parts):
        random = np.random.RandomState((seed + 7919 * (rank + 1)) % 2**32)
        rounds = -(-steps * batch // len(rows))
        order = np.concatenate([random.permutation(rows) for _ in range(rounds)])
        out[:, rank] = order[:steps * batch].reshape(steps, batch)
    return out
