"""The built command, refusing: bad usage (exit status 2) and bad traces (1), nothing written."""

import json
import os
import resource
import shutil
import struct
import sys
import unittest

import numpy as np

from command_case import CommandTest, gradients
from trace_writer import TraceWriter, save_safetensors


class BadUsage(CommandTest):
    """Exit status 2, a message that says what is wrong, and nothing written."""

    def expect(self, words, *arguments):
        message = self.refused(2, *arguments)
        for word in words:
            self.assertIn(word, message)

    def test_options(self):
        self.expect(["subcommand"])
        self.expect(["list, replay or inspect", "frobnicate"], "frobnicate")
        self.expect(["--frobnicate"], *self.replay("--frobnicate"))
        self.expect(["--trace"], "replay", "--compressors", "none")
        self.expect(["--compressors"], "replay", "--trace", self.trace)
        self.expect(["path"], "inspect")
        self.expect(["surplus"], "list", "surplus")

    def test_seeds(self):
        for seed in ["x", "-1", "1.5", "0x10", "", "18446744073709551616"]:
            self.expect(["--seed", "expected a whole number from 0 to 18446744073709551615",
                         f"found '{seed}'"], *self.replay("--out", self.out, "--seed", seed))

    def test_steps(self):
        for steps in ["0", "-1", "1.5", "many", "99999999999999999999"]:
            self.expect(["--steps", "expected a whole number from 1 to", f"found '{steps}'"],
                        *self.replay("--out", self.out, "--steps", steps))
        self.expect(["steps", "expected 1 to 3", "found 4"],
                    *self.replay("--out", self.out, "--steps", "4"))

    def test_specs(self):
        cases = {
            "topk": ["topk"],
            "none; topk": ["topk"],
            "top_k(ration=0.1)": ["ration", "ratio"],
            "top_k(ratio=0)": ["ratio", "(0, 1]", "0"],
            "top_k(ratio=nan)": ["ratio", "(0, 1]", "nan"],
            "top_k(ratio=inf)": ["ratio", "(0, 1]", "inf"],
            "top_k(ratio=1.5)": ["ratio", "(0, 1]", "1.5"],
            "top_k(k=-1)": ["k", ">= 1", "-1"],
            "top_k(k=0)": ["k", ">= 1", "0"],
            "top_k(k=1.5)": ["k", "integer", "1.5"],
            "top_k(k=1, ratio=0.5)": ["ratio", "k"],
            "top_k(": ["expected", "end"],
            "top_k)": ["expected", ")"],
            "()": ["expected", "("],
            "error_feedback()": ["error_feedback"],
            "error_feedback(error_feedback)": ["error_feedback"],
            "top_k | one_bit": ["one_bit"],
            "delta_index": ["delta_index"],
            "int8(rounding=up)": ["rounding", "nearest", "stochastic", "up"],
            "top_k(k=1) top_k(k=2)": ["expected"],
            "error_feedback(" * 100 + "none" + ")" * 100: ["deep"],
        }
        for spec, words in cases.items():
            with self.subTest(spec=spec):
                message = self.refused(2, *self.replay("--out", self.out, compressors=spec))
                for word in words:
                    self.assertIn(word, message)
                self.assertIn("^", message, "no mark under the character")


    def test_an_empty_folder_name(self):
        for name, arguments in [
                ("--out", self.replay("--out", "")),
                ("--trace", ("replay", "--trace", "", "--compressors", "none")),
                ("path", ("inspect", ""))]:
            self.expect([f"{name}: expected a name, found an empty one"], *arguments)

    def test_a_file_in_place_of_the_folder(self):
        self.write(b"", self.out)
        message = self.refused(1, *self.replay("--out", self.out), printed="#")
        self.assertIn(f"{self.out}: expected a folder, or nothing yet, found a file", message)


class TooLarge(CommandTest):

    LIMIT = 256 << 20

    def limited(self, *arguments):
        limit = (self.LIMIT, self.LIMIT)
        return self.run_command(
            *arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))

    def test_threads_that_do_not_start(self):
        if self.limited("list").returncode != 0:
            self.skipTest("a sanitizer alone takes more")
        done = self.limited(*self.replay("--threads", "1000"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"^slimgrad: --threads: expected that the system starts 1000, "
                                      r"found that it starts only \d+\n$")

    def test_not_enough_memory(self):
        if self.limited("list").returncode != 0:
            self.skipTest("a sanitizer alone takes more")
        header = json.dumps({"w": {"dtype": "F32", "shape": [self.LIMIT // 4],
                                   "data_offsets": [0, self.LIMIT]}}).encode()
        header += b" " * (-len(header) % 8)
        big = os.path.join(self.root, "big")
        with TraceWriter(big, tensors={"w": (1,)}, world_size=1, learning_rates=[0.1],
                         optimizer={"kind": "sgd"}) as trace:
            trace.step(0, 0, {"w": np.zeros(1, np.float32)})
        text = self.read(big, "trace.json")
        self.write(text.replace(b'"shape": [1]', b'"shape": [%d]' % (self.LIMIT // 4)),
                   big, "trace.json")
        step = os.path.join(big, "steps", "00000.000.safetensors")
        self.write(struct.pack("<Q", len(header)) + header, step)
        os.truncate(step, 8 + len(header) + self.LIMIT)  # a hole: takes no disk
        done = self.limited("replay", "--trace", big, "--compressors", "top_k")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"^slimgrad: .*memory\n$")


class BadTraces(CommandTest):
    """Exit status 1, a message that names field, expected and found, and nothing written."""

    def expect(self, *words):
        for arguments in [self.replay("--out", self.out), ("inspect", self.trace)]:
            message = self.refused(1, *arguments)
            self.assertTrue(message.startswith("slimgrad: "), message)
            self.assertEqual(message.count("\n"), 1, message)
            for word in ("expected", "found", *words):
                self.assertIn(word, message)

    def step(self):
        return self.path("steps", "00002.001.safetensors")

    def test_no_folder(self):
        shutil.rmtree(self.trace)
        message = self.refused(1, *self.replay("--out", self.out))
        self.assertIn(f"{self.trace}: expected the folder of a trace, found nothing", message)
        self.assertIn(self.trace, self.refused(1, "inspect", self.trace))

    def test_a_text_file(self):
        shutil.rmtree(self.trace)
        self.write(b"Dear reader,\n", self.trace)
        self.expect(self.trace)

    def test_text_in_place_of_the_description(self):
        self.write(b"Dear reader,\n", self.path("trace.json"))
        self.expect("trace.json", "JSON")

    def test_a_field_out_of_range(self):
        text = self.read(self.path("trace.json"))
        for old, new, word in [(b'"momentum": 0.9', b'"momentum": 1.5', "optimizer.momentum"),
                               (b'"world_size": 2', b'"world_size": 0', "world_size"),
                               (b'"world_size": 2', b'"world_size": 3', "rank 2"),
                               (b'"version": 1', b'"version": 2', "version")]:
            self.assertIn(old, text)
            self.write(text.replace(old, new), self.path("trace.json"))
            self.expect("trace.json" if word != "rank 2" else "steps/", word)

    def test_a_missing_step(self):
        os.remove(self.step())
        self.expect("steps/00002.001.safetensors", "step 2 of 3 and rank 1 of 2")

    def test_a_truncated_step(self):
        data = self.read(self.step())
        for size in [0, 4, 8, 20, len(data) - 4]:
            self.write(data[:size], self.step())
            self.expect("steps/00002.001.safetensors")

    def test_a_header_longer_than_the_file(self):
        data = self.read(self.step())
        self.write(struct.pack("<Q", len(data) + 8) + data[8:], self.step())
        self.expect("steps/00002.001.safetensors", "header")

    def entries(self, w, b, size=32):
        header = json.dumps({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": w},
                             "b": {"dtype": "F32", "shape": [2], "data_offsets": b}}).encode()
        header += b" " * (-len(header) % 8)
        self.write(struct.pack("<Q", len(header)) + header + bytes(size), self.step())

    def test_overlapping_and_out_of_range_tensors(self):
        self.entries([0, 24], [24, 32])
        self.succeed(*self.replay())
        self.entries([0, 24], [16, 24])
        self.expect("steps/00002.001.safetensors")
        self.entries([0, 24], [24, 32], size=28)
        self.expect("steps/00002.001.safetensors")
        self.entries([0, 24], [1 << 62, (1 << 62) + 8])
        self.expect("steps/00002.001.safetensors")
        self.entries([24, 0], [24, 32])
        self.expect("steps/00002.001.safetensors")

    def test_another_shape(self):
        tensors = gradients(0)
        tensors["w"] = tensors["w"].reshape(3, 2)
        save_safetensors(self.step(), tensors)
        self.expect("steps/00002.001.safetensors", "w", "[2, 3]", "[3, 2]")

    def test_another_type(self):
        save_safetensors(self.step(), gradients(0), "F16")
        self.expect("steps/00002.001.safetensors", "F32", "F16")

    def test_closed_loop_without_a_model(self):
        bare = os.path.join(self.root, "bare")
        with TraceWriter(bare, tensors={"w": (2,)}, world_size=1, learning_rates=[0.1],
                         optimizer={"kind": "sgd"}) as trace:
            trace.step(0, 0, {"w": np.ones(2, np.float32)})
        message = self.refused(1, "replay", "--trace", bare, "--compressors", "none",
                            "--closed-loop", "--out", self.out)
        self.assertIn("closed loop: the trace has no model", message)
        text = self.succeed("replay", "--trace", bare, "--compressors", "top_k(k=1)")
        self.assertIn("No closed loop: ", text)
        self.assertIn("n/a", text)


if __name__ == "__main__":
    sys.exit(unittest.main())
