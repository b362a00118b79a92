"""What the tests of the recorder share: running it into a temporary folder."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import datasets
import replay

try:
    import torch
except ImportError:
    torch = None

needs_torch = unittest.skipIf(torch is None, "PyTorch is not installed (apt install python3-torch)")

RECORDER = os.path.join(os.path.dirname(os.path.abspath(datasets.__file__)), "record_torch.py")


def files(folder):
    """{path: bytes} of all files below `folder`."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


class Recorder(unittest.TestCase):

    def setUp(self):
        self.parent = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.parent)
        self.out = os.path.join(self.parent, "trace")

    def run_recorder(self, arguments, out=None):
        command = [sys.executable, "-B", RECORDER, "--out", out or self.out]
        command += shlex.split(arguments)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    def record(self, arguments, out=None):
        """The recorded trace; the recorder must succeed and complain about nothing."""
        done = self.run_recorder(arguments, out)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return replay.Trace(out or self.out)

    def assert_replays(self, trace):
        """The gradients lead from the initial to the final weights, to rounding; these differ."""
        initial, final = (
            trace.tensors(trace.json[f"{when}_weights"]) for when in ("initial", "final"))
        self.assertEqual(set(final), set(trace.names))
        for name, weights in trace.replay().items():
            self.assertEqual(final[name].dtype, np.float32)
            np.testing.assert_allclose(weights, final[name], rtol=1e-5, atol=1e-5, err_msg=name)
            self.assertGreater(np.abs(initial[name] - final[name]).max(), 1e-3, name)
