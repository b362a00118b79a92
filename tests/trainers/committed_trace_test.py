"""Tests of the committed trace, traces/digits_mlp."""

import os
import unittest

import numpy as np

import datasets
import replay
from recorder_case import Recorder, files, needs_torch

_COMMITTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../traces/digits_mlp")


class Committed(Recorder):
    def setUp(self):
        super().setUp()
        self.trace = replay.Trace(_COMMITTED)

    def test_is_what_the_readme_says_and_small(self):
        self.assertLessEqual(sum(map(len, files(_COMMITTED).values())), 4_000_000)
        self.assertEqual((self.trace.json["steps"], self.trace.json["world_size"]), (96, 4))
        self.assertEqual([self.trace.shapes[name] for name in self.trace.names], [(32, 64), (32,),
                                                                                  (10, 32), (10,)])
        self.assertEqual(self.trace.json["license"]["data"], "CC BY 4.0")

    def test_replays(self):
        self.assert_replays(self.trace)

    def test_results_are_those_of_the_final_weights(self):
        data, final = self.trace.tensors("data.safetensors"), self.trace.tensors(
            "final.safetensors")
        x = data["eval_inputs"] * self.trace.json["data"]["input_scale"]
        logits, _ = replay.forward(self.trace.json["model"]["graph"], final, x)
        labels, results = data["eval_labels"], self.trace.json["results"]
        self.assertEqual(results["eval_count"], 359)
        accuracy = (logits.argmax(1) == labels).mean()
        self.assertAlmostEqual(results["final_eval_accuracy"], accuracy, places=6)
        self.assertGreater(accuracy, 0.94)
        loss = -replay.log_softmax(logits)[np.arange(len(labels)), labels].mean()
        self.assertAlmostEqual(results["final_eval_loss"], loss, places=5)

    def test_its_digits_are_the_shipped_ones(self):
        data, shipped = self.trace.tensors("data.safetensors"), datasets.digits()
        for name in ("train_inputs", "train_labels", "eval_inputs", "eval_labels"):
            np.testing.assert_array_equal(data[name], getattr(shipped, name))

    @needs_torch
    def test_its_command_records_it_again(self):
        again = self.record(self.trace.json["provenance"]["command"].split(" ", 1)[1])
        old, new = files(_COMMITTED), files(self.out)
        old.pop("README.md")
        self.assertEqual(sorted(old), sorted(new))
        for trace in (again, self.trace):
            trace.json["provenance"] = trace.json["provenance"]["command"]
            del trace.json["results"]
        self.assertEqual(again.json, self.trace.json)
        for path in ("initial.safetensors", "data.safetensors"):
            self.assertEqual(old[path], new[path], path)
        # Another CPU or PyTorch may differ in the last bits of its products.
        for name, weights in again.tensors("final.safetensors").items():
            np.testing.assert_allclose(weights,
                                       self.trace.tensors("final.safetensors")[name],
                                       rtol=1e-3,
                                       atol=1e-3)


if __name__ == "__main__":
    unittest.main()
