"""Tests of trainers/record_torch.py.

What is recorded is checked against replay.py, which shares no code with the recorder.
"""

import glob
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np

import replay
from recorder_case import RECORDER, Recorder, files, needs_torch


@needs_torch
class Models(Recorder):

    def test_each_model_replays_and_has_whole_parts(self):
        shapes = {
            "softmax": {
                "0.weight": (10, 64),
                "0.bias": (10,)
            },
            "mlp --hidden 12,7": {
                "0.weight": (12, 64),
                "0.bias": (12,),
                "2.weight": (7, 12),
                "2.bias": (7,),
                "4.weight": (10, 7),
                "4.bias": (10,)
            },
            "cnn --hidden 4": {
                "conv1.weight": (4, 1, 3, 3),
                "conv1.bias": (4,),
                "conv2.weight": (8, 4, 3, 3),
                "conv2.bias": (8,),
                "head.weight": (10, 32),
                "head.bias": (10,)
            },
            "transformer --hidden 16": None,
        }
        for number, (model, expected) in enumerate(shapes.items()):
            with self.subTest(model):
                trace = self.record(f"--model {model} --steps 7 --workers 3 --batch 5 --lr 0.2",
                                    f"{self.out}{number}")
                kind = model.split()[0]
                self.assertEqual(trace.json["model"]["kind"], kind)
                self.assertEqual(trace.json["model"]["graph"] is None, kind
                                 in ("cnn", "transformer"))
                if expected is not None:
                    self.assertEqual(trace.shapes, expected)
                self.assert_replays(trace)
                self.check_parts(trace)

    def check_parts(self, trace):
        data = trace.tensors("data.safetensors")
        rows = len(data["train_inputs"])
        self.assertEqual(data["batches"].shape, (7, 3, 5))
        self.assertLess(data["batches"].max(), rows)
        self.assertEqual(len(data["train_labels"]), rows)
        self.assertEqual(len(data["eval_labels"]), len(data["eval_inputs"]))
        self.assertLess(data["train_labels"].max(), trace.json["data"]["classes"])
        timing = trace.tensors("timing.safetensors")
        self.assertEqual(timing["ready_us"].shape, (7, 3, len(trace.names)))
        self.assertEqual(timing["optimizer_us"].shape, (7,))
        self.assertTrue((timing["ready_us"] > 0).all())
        self.assertTrue((timing["ready_us"].max(2) <= timing["backward_us"]).all())
        self.assertTrue((timing["forward_us"] > 0).all())
        count = sum(int(np.prod(shape, dtype=int)) for shape in trace.shapes.values())
        self.assertEqual(trace.json["model"]["parameters"], count)

    def test_gradients_are_those_of_the_mean_loss_of_the_worker_s_batch(self):
        for number, options in enumerate(["softmax", "mlp", "mlp --data synthetic"]):
            with self.subTest(options):
                trace = self.record(f"--model {options} --steps 1 --workers 2",
                                    f"{self.out}{number}")
                data, weights = trace.tensors("data.safetensors"), trace.tensors(
                    "initial.safetensors")
                for rank in range(2):
                    rows = data["batches"][0, rank]
                    x = data["train_inputs"][rows] * trace.json["data"]["input_scale"]
                    expected = replay.backward(trace.json["model"]["graph"], weights, x,
                                               data["train_labels"][rows])
                    for name, found in trace.gradients(0, rank).items():
                        np.testing.assert_allclose(found, expected[name], rtol=1e-4, atol=1e-6)

    def test_training_learns(self):
        for number, (options, better) in enumerate([
            ("softmax --lr 0.2", 0.85), ("cnn --lr 0.1 --steps 150", 0.85),
            ("mlp --data synthetic", 0.6),
            ("transformer --optimizer adamw --lr 0.01 --steps 60", 0.4)
        ]):
            with self.subTest(options):
                results = self.record(f"--model {options}", f"{self.out}{number}").json["results"]
                self.assertGreater(results["final_eval_accuracy"], better)
                self.assertLess(results["train_loss"][-1], results["train_loss"][0])


@needs_torch
class Options(Recorder):

    def test_every_optimizer_replays(self):
        for number, options in enumerate([
                "--momentum 0", "--momentum 0.8 --dampening 0.3 --weight-decay 0.1",
                "--nesterov --weight-decay 0.01 --schedule step --step-every 3 --step-factor 0.5",
                "--optimizer adam --weight-decay 0.1 --betas 0.8,0.9 --eps 0.001 --lr 0.01",
                "--optimizer adamw --weight-decay 0.5 --schedule cosine --lr 0.01",
                "--clip-global-norm 0.2", "--optimizer adamw --clip-global-norm 0.2 --lr 0.01"
        ]):
            with self.subTest(options):
                trace = self.record(f"--steps 9 {options}", f"{self.out}{number}")
                self.assert_replays(trace)

    def test_clipping_and_decay_are_not_in_the_recorded_gradients(self):
        plain = self.record("--steps 1", self.out + "0")
        other = self.record("--steps 1 --clip-global-norm 0.01 --weight-decay 0.9", self.out + "1")
        np.testing.assert_array_equal(
            plain.gradients(0, 0)["0.weight"],
            other.gradients(0, 0)["0.weight"])

    def test_schedules(self):
        step = self.record("--steps 5 --lr 1 --schedule step --step-every 2", self.out + "0")
        np.testing.assert_allclose(step.json["learning_rates"], [1, 1, 0.1, 0.1, 0.01])
        cosine = self.record("--steps 4 --lr 1 --schedule cosine", self.out + "1")
        np.testing.assert_allclose(cosine.json["learning_rates"],
                                   [1, (1 + 0.5**0.5) / 2, 0.5, (1 - 0.5**0.5) / 2])

    def test_16_bit_gradients_are_what_training_used(self):
        for dtype in ("BF16", "F16"):
            with self.subTest(dtype):
                trace = self.record(f"--steps 20 --dtype {dtype.lower()}", self.out + dtype)
                self.assertEqual(trace.json["gradients"]["dtype"], dtype)
                self.assert_replays(trace)

    def test_shards(self):
        for how, most in [("iid", 10), ("by-label", 4)]:
            trace = self.record(f"--steps 60 --shards {how}", self.out + how)
            data = trace.tensors("data.safetensors")
            seen = [set(data["batches"][:, rank].ravel()) for rank in range(4)]
            self.assertEqual(sum(map(len, seen)), len(set.union(*seen)))  # no row in two shards
            labels = [len(set(data["train_labels"][sorted(rows)])) for rows in seen]
            self.assertLessEqual(max(labels), most)
            self.assertEqual(how == "iid", min(labels) == 10, labels)

    def test_samples_are_declared(self):
        whole = self.record("--steps 10 --hidden 9", self.out + "0")
        part = self.record("--steps 10 --hidden 9 --sample-tensors 2 --sample-steps 4",
                           self.out + "1")
        self.assertEqual(
            part.json["sample"], {
                "training_steps": 10,
                "step_numbers": [0, 3, 6, 9],
                "model_tensors": 4,
                "model_parameters": 685
            })
        self.assertEqual(part.names, ["0.weight", "2.bias"])
        for index, step in enumerate([0, 3, 6, 9]):
            np.testing.assert_array_equal(
                part.gradients(index, 3)["2.bias"],
                whole.gradients(step, 3)["2.bias"])
        self.assertIsNone(part.json["model"]["graph"])
        self.assertFalse({"data", "final_weights"} & set(part.json))
        self.assertEqual(part.tensors("timing.safetensors")["ready_us"].shape, (4, 4, 2))

    def test_final_weights_of_a_sample_only_where_they_follow(self):
        free = self.record("--steps 6 --sample-tensors 2", self.out + "0")
        self.assert_replays(free)
        clipped = self.record("--steps 6 --sample-tensors 2 --clip-global-norm 1", self.out + "1")
        self.assertNotIn("final_weights", clipped.json)


@needs_torch
class Determinism(Recorder):

    def test_two_runs_give_the_same_bytes_but_for_times(self):
        for number, options in enumerate(["mlp", "cnn --dtype bf16", "transformer --steps 6"]):
            runs = []
            for again in "ab":
                out = f"{self.out}{number}{again}"
                self.record(f"--steps 8 --name same --seed 3 --model {options}", out)
                runs.append(files(out))
            self.assertNotEqual(runs[0].pop("timing.safetensors"),
                                runs[1].pop("timing.safetensors"))
            self.assertEqual(sorted(runs[0]), sorted(runs[1]))
            for path in runs[0]:
                self.assertEqual(runs[0][path], runs[1][path], path)

    def test_another_seed_gives_another_trace(self):
        a = self.record("--steps 1 --seed 1", self.out + "0")
        b = self.record("--steps 1 --seed 2", self.out + "1")
        self.assertFalse(
            np.array_equal(
                a.tensors("initial.safetensors")["0.weight"],
                b.tensors("initial.safetensors")["0.weight"]))
        self.assertFalse(
            np.array_equal(
                a.tensors("data.safetensors")["batches"],
                b.tensors("data.safetensors")["batches"]))


class Refusals(Recorder):

    def refused(self, arguments, message):
        with self.subTest(arguments):
            done = self.run_recorder(arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, message)
            self.assertNotIn("Traceback", done.stderr)
            self.assertEqual(os.listdir(self.parent), [])

    def test_bad_arguments_end_with_status_2(self):
        self.refused("--model resnet", "--model: invalid choice: 'resnet'")
        self.refused("--workers 0", "--workers: expected a whole number from 1 to 4096, found '0'")
        self.refused("--steps -1", "--steps: expected a whole number")
        self.refused("--batch 1.5", "--batch: expected a whole number")
        self.refused("--batch 360", "--batch: expected at most 359")
        self.refused("--lr nan", "--lr: expected a number in .*found 'nan'")
        self.refused("--lr inf", "--lr: expected a number")
        self.refused("--momentum 1", r"--momentum: expected a number in \[0, 1\), found '1'")
        self.refused("--momentum 0 --nesterov", "--nesterov: expected momentum > 0")
        self.refused("--betas 0.9,0.9", "--betas: expected --optimizer adam or adamw, found sgd")
        self.refused("--optimizer adam --betas 0.9", "--betas: expected two numbers")
        self.refused("--optimizer adam --momentum 0.9", "--momentum: expected --optimizer sgd")
        self.refused("--clip-global-norm 0", "--clip-global-norm: expected a number")
        self.refused("--schedule step", "--step-every: expected with --schedule step")
        self.refused("--step-every 3", "--step-every.*found constant")
        self.refused("--model softmax --hidden 3", "--hidden: expected none")
        self.refused("--model cnn --hidden 3,4", "--hidden: expected one number")
        self.refused("--model transformer --hidden 6", "--hidden: expected a multiple of 4")
        self.refused("--data text", "--data: expected text with transformer")
        self.refused("--dtype f64", "--dtype: invalid choice")
        self.refused("--shard iid", "unrecognized arguments: --shard iid")

    def test_a_folder_with_something_in_it_is_left_alone(self):
        os.mkdir(self.out)
        with open(os.path.join(self.out, "mine"), "w"):
            pass
        done = self.run_recorder("")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "--out: directory: expected a new or empty folder")
        self.assertEqual((os.listdir(self.parent), os.listdir(self.out)), (["trace"], ["mine"]))

    def test_missing_pytorch_is_said(self):
        with open(os.path.join(self.parent, "torch.py"), "w") as file:
            file.write("raise ImportError('not here')")
        command = [sys.executable, "-B", RECORDER, "--out", self.out]
        done = subprocess.run(command, env={"PYTHONPATH": self.parent}, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^record_torch.py: needs PyTorch .*python3-torch.*not here")
        self.assertFalse(os.path.exists(self.out))

    @needs_torch
    def test_a_run_that_diverges_ends_with_status_1_and_leaves_nothing(self):
        done = self.run_recorder("--lr 1e38 --steps 20")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "step [0-9]+, rank 0, tensor .*: expected finite values")
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(os.listdir(self.parent), [])

    @needs_torch
    def test_an_interrupted_run_leaves_nothing(self):
        command = [sys.executable, "-B", RECORDER, "--steps", "100000", "--out", self.out]
        for number, status in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
            # A shell's background job ignores SIGINT, and so would its children.
            heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                                  preexec_fn=heed) as process:
                # leaving `with` waits for the end
                watchdog = threading.Timer(120, process.kill)
                watchdog.start()
                self.addCleanup(watchdog.cancel)
                end = time.monotonic() + 60
                while not self.steps_written() and time.monotonic() < end:
                    time.sleep(0.02)
                self.assertTrue(self.steps_written())  # it was in the middle of its work
                self.assertFalse(os.path.exists(self.out))
                process.send_signal(number)
                message = process.communicate()[1]
            self.assertEqual(process.returncode, status, message)
            self.assertNotIn("Traceback", message)
            self.assertEqual(os.listdir(self.parent), [])

    def steps_written(self):
        return glob.glob(os.path.join(self.parent, ".*", "steps", "*"))


if __name__ == "__main__":
    unittest.main()
