"""What the tests of the command share: a small trace, and ways to run the built binary."""

import os
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

from trace_writer import TraceWriter

SLIMGRAD = os.path.abspath("sim/slimgrad")

# A sanitizer's finding must not pass for the status 1 that a test expects.
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="exitcode=99", UBSAN_OPTIONS="exitcode=99")

SHAPES = {"w": (2, 3), "b": (2,)}


def write_trace(folder, learning_rates=(0.1, 0.1, 0.1)):
    """One linear layer, 3 -> 2, two workers: all that both loops need."""
    with TraceWriter(folder, tensors=SHAPES, world_size=2, learning_rates=list(learning_rates),
                     optimizer={"kind": "sgd", "momentum": 0.9}, loss="cross_entropy",
                     model={"kind": "softmax",
                            "graph": [{"op": "linear", "weight": "w", "bias": "b"}]}) as trace:
        for step in range(len(learning_rates)):
            for rank in range(2):
                trace.step(step, rank, gradients(step * 10 + rank))
        trace.weights("initial", gradients(5))
        inputs = np.arange(12, dtype=np.uint8).reshape(4, 3)
        labels = np.array([0, 1, 1, 0], np.uint8)
        batches = np.arange(len(learning_rates) * 4, dtype=np.uint16).reshape(-1, 2, 2) % 4
        trace.data({"train_inputs": inputs, "train_labels": labels, "eval_inputs": inputs,
                    "eval_labels": labels, "batches": batches}, classes=2)


def gradients(start):
    return {"w": (np.arange(6, dtype=np.float32).reshape(2, 3) + start) / 8,
            "b": np.float32([start, -1])}


class CommandTest(unittest.TestCase):

    def setUp(self):
        self.root = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.root)
        self.trace = os.path.join(self.root, "trace")
        self.out = os.path.join(self.root, "out")
        write_trace(self.trace)

    def run_command(self, *arguments, **options):
        options.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([SLIMGRAD, *arguments], stderr=subprocess.PIPE, text=True,
                              timeout=240, env=ENVIRONMENT, check=False, **options)

    def succeed(self, *arguments):
        done = self.run_command(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def refused(self, status, *arguments, printed=""):
        """Runs what must fail, and returns the message. Standard output starts with `printed`."""
        before = sorted(os.listdir(self.root))
        done = self.run_command(*arguments)
        self.assertEqual(done.returncode, status, (arguments, done.stdout, done.stderr))
        self.assertEqual(done.stdout[:len(printed) or 1], printed, arguments)
        self.assertNotIn("\r", done.stderr)
        self.assertNotIn("\033", done.stderr)
        self.assertEqual(sorted(os.listdir(self.root)), before, "something was left behind")
        return done.stderr

    def replay(self, *arguments, compressors="top_k(k=1)"):
        return ("replay", "--trace", self.trace, "--compressors", compressors, *arguments)

    def path(self, *names):
        return os.path.join(self.trace, *names)

    def read(self, *names):
        with open(os.path.join(*names), "rb") as file:
            return file.read()

    def write(self, data, *names):
        with open(os.path.join(*names), "wb") as file:
            file.write(data)
