"""The built command, as a user runs it: output, exit status, and what it leaves behind."""

import hashlib
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import unittest

import numpy as np

from command_case import ENVIRONMENT, SLIMGRAD, CommandTest, gradients, write_trace
from trace_writer import save_safetensors

DIGITS = os.path.abspath("traces/digits_mlp")
WRITE_SAMPLES = os.path.abspath("tests/sim/write_samples")
FILES = ["report.csv", "report.html", "report.json", "timings.json"]


class Help(CommandTest):

    def test_help_has_examples(self):
        text = self.succeed("--help")
        for command in ["list", "replay", "inspect"]:
            self.assertIn(command, text)
            self.assertIn(f"slimgrad {command}", self.succeed(command, "--help"))
        text = self.succeed("replay", "--help")
        for word in ["--trace", "--compressors", "--out", "--steps", "--seed", "--open-loop",
                     "--closed-loop", "slimgrad replay --trace"]:
            self.assertIn(word, text)

    def test_the_examples_run(self):
        text = self.succeed("replay", "--help")
        self.assertIn("--trace traces/digits_mlp --compressors "
                      "'error_feedback(top_k(ratio=0.01))'", text)
        self.succeed("replay", "--trace", DIGITS, "--compressors",
                     "error_feedback(top_k(ratio=0.01))", "--steps", "2")
        self.assertIn("digits_mlp", self.succeed("inspect", DIGITS))

    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"^slimgrad \d+\.\d+\.\d+\n$")


class Output(CommandTest):

    def test_all_four_files(self):
        text = self.succeed(*self.replay("--out", self.out))
        self.assertEqual(sorted(os.listdir(self.out)), FILES)
        self.assertEqual(sorted(os.listdir(self.root)), ["out", "trace"])
        report = json.loads(self.read(self.out, "report.json"))
        self.assertEqual([row["label"] for row in report["rows"]], ["none", "bf16", "top_k(k=1)"])
        csv = self.read(self.out, "report.csv").decode().splitlines()
        self.assertEqual(len(csv), 1 + 3)
        self.assertIn(b"<html", self.read(self.out, "report.html"))
        self.assertNotIn(b"http://", self.read(self.out, "report.csv"))
        timings = json.loads(self.read(self.out, "timings.json"))
        self.assertEqual(len(timings["rows"]), 3)
        self.assertIn("top_k(k=1)", text)

    def test_a_rerun_gives_the_same_bytes(self):
        other = os.path.join(self.root, "deeper", "other")
        arguments = dict(compressors="int8(rounding=stochastic); error_feedback(one_bit); "
                         "power_sgd(rank=1)")
        self.succeed(*self.replay("--out", self.out, "--seed", "3", **arguments))
        self.succeed(*self.replay("--out", other, "--seed", "3", **arguments))
        for name in ["report.json", "report.csv"]:
            self.assertEqual(self.read(self.out, name), self.read(other, name))
        # Into a folder that exists: the files are replaced, others stay.
        self.write(b"mine", self.out, "notes.txt")
        before = self.read(self.out, "report.json")
        self.succeed(*self.replay("--out", self.out, "--seed", "4", **arguments))
        self.assertEqual(sorted(os.listdir(self.out)), sorted(FILES + ["notes.txt"]))
        self.assertNotEqual(self.read(self.out, "report.json"), before)

    def test_neither_time_nor_place_is_in_the_report(self):
        self.succeed(*self.replay("--out", self.out))
        for name in ["report.json", "report.csv"]:
            self.assertNotIn(self.root.encode(), self.read(self.out, name))

    def unwritten(self, out):
        """The message where a report cannot be kept; the run itself is not lost."""
        return self.refused(1, *self.replay("--out", out), printed="# tool       slimgrad")

    def test_out_cannot_be_written(self):
        self.write(b"mine", self.out)
        self.assertIn(self.out, self.unwritten(self.out))
        self.assertEqual(self.read(self.out), b"mine")
        # Below a file, and in a file system that takes none: for root, too.
        self.assertIn(self.out, self.unwritten(os.path.join(self.out, "x")))
        self.assertIn("/proc/", self.unwritten("/proc/slimgrad_report"))

    def test_a_name_in_the_way_leaves_nothing_half_written(self):
        os.makedirs(os.path.join(self.out, "report.json"))
        self.assertIn("report.json", self.unwritten(self.out))
        self.assertEqual(os.listdir(self.out), ["report.json"])

    def test_full_disk(self):
        for arguments in [self.replay(), ("list",), ("inspect", self.trace)]:
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = self.run_command(*arguments, stdout=full)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn("standard output", done.stderr)

    def test_a_diverged_spec(self):
        shutil.rmtree(self.trace)
        write_trace(self.trace, [1e39, 0.1])
        done = self.run_command(*self.replay("--out", self.out))
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("diverged at step 1", done.stdout)
        self.assertIn("top_k(k=1)", done.stdout)
        self.assertEqual(sorted(os.listdir(self.out)), FILES)
        self.assertIn(b"diverged at step 1", self.read(self.out, "report.json"))

    def test_a_skipped_step(self):
        tensors = gradients(0)
        tensors["b"][1] = np.nan
        save_safetensors(self.path("steps", "00001.000.safetensors"), tensors)
        self.assertIn("skipped", self.succeed(*self.replay("--out", self.out)))
        report = json.loads(self.read(self.out, "report.json"))
        for row in report["rows"]:
            self.assertEqual(row["skipped_steps"], 1)
            self.assertEqual(row["steps"]["nmse"][1], None)

    def test_loops(self):
        opened = self.succeed(*self.replay("--open-loop", "--out", self.out))
        row = json.loads(self.read(self.out, "report.json"))["rows"][2]
        self.assertIsNone(row["closed_eval_accuracy"])
        self.assertIsNotNone(row["open_eval_accuracy"])
        self.succeed(*self.replay("--closed-loop", "--out", self.out))
        row = json.loads(self.read(self.out, "report.json"))["rows"][2]
        self.assertIsNotNone(row["closed_eval_accuracy"])
        self.assertIsNone(row["open_eval_accuracy"])
        self.assertNotEqual(opened, self.succeed(*self.replay()))

    def test_steps(self):
        self.succeed(*self.replay("--steps", "02", "--seed", "010", "--out", self.out))
        report = json.loads(self.read(self.out, "report.json"))
        self.assertEqual(len(report["rows"][2]["steps"]["nmse"]), 2)
        self.assertIn("# seed       10\n", self.succeed(*self.replay("--seed", "010")))


class Terminal(CommandTest):

    def on_terminal(self, *arguments):
        """What a terminal of 120 columns shows of standard error; standard output is a pipe."""
        try:
            master, slave = pty.openpty()
        except OSError as error:  # a bare container may have no /dev/pts
            self.skipTest(f"no pseudo-terminal on this system: {error}")
        process = subprocess.Popen([SLIMGRAD, *arguments], stdout=subprocess.PIPE, stderr=slave,
                                   env=ENVIRONMENT)
        os.close(slave)
        shown, output = b"", b""
        while True:
            ready, _, _ = select.select([master, process.stdout], [], [], 120)
            self.assertTrue(ready, "the command hangs")
            if master in ready:
                try:
                    shown += os.read(master, 65536)
                except OSError:  # the other end is closed
                    break
            else:
                output += os.read(process.stdout.fileno(), 65536)
                if process.poll() is not None:
                    break
        output += process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        os.close(master)
        return shown.decode(), output.decode()

    def test_a_bar_on_a_terminal_and_none_left_behind(self):
        shown, output = self.on_terminal(*self.replay())
        self.assertIn("\r[", shown)
        self.assertIn("100%", shown)
        self.assertIn("top_k(k=1)", shown)
        self.assertNotIn("\n", shown)
        last = shown.split("\r")
        self.assertEqual(last[-1], "")  # the cursor is at the start of its line ...
        self.assertEqual(last[-2].strip(), "")  # ... which was wiped
        self.assertGreaterEqual(len(last[-2]), max(len(part) for part in last))
        self.assertNotIn("\r", output)

    def test_no_control_characters_in_a_pipe(self):
        for arguments in [self.replay(), ("list",), ("inspect", self.trace)]:
            text = self.succeed(*arguments)
            controls = {c for c in text if ord(c) < 32 or ord(c) == 127}
            self.assertEqual(controls, {"\n"}, arguments)

    def test_a_name_cannot_move_the_cursor(self):
        text = self.read(self.path("trace.json"))
        self.write(text.replace(b'"softmax"', b'"soft\\u001b[2Jmax"'), self.path("trace.json"))
        for arguments in [self.replay(), ("inspect", self.trace)]:
            self.assertIn(r"soft\x1B[2Jmax", self.refused(1, *arguments))


class Inspect(CommandTest):

    def setUp(self):
        super().setUp()
        subprocess.run([WRITE_SAMPLES, self.root], check=True, env=ENVIRONMENT)

    def test_a_trace(self):
        text = self.succeed("inspect", self.trace)
        for line in ["workers        2", "steps          3", "w       [2, 3]  6"]:
            self.assertIn(line, text)

    def test_frames(self):
        text = self.succeed("inspect", os.path.join(self.root, "frames"))
        self.assertEqual(text.count("0123456789abcdef"), 2)
        for word in ["1000", "index", "value", "U32", "F32"]:
            self.assertIn(word, text)

    def test_a_state(self):
        text = self.succeed("inspect", os.path.join(self.root, "state"))
        for word in ["error_feedback(top_k(k=1))", "1 of 2", "w::residual", "[2]", "3.00"]:
            self.assertIn(word, text)

    def test_every_flipped_byte_of_a_frame_is_refused(self):
        data = self.read(self.root, "frames")
        path = os.path.join(self.root, "damaged")
        self.write(b"", path)
        for at in range(0, len(data), 7):
            self.write(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:], path)
            self.assertIn(path, self.refused(1, "inspect", path))

    def test_garbage(self):
        path = os.path.join(self.root, "garbage")
        state = self.read(self.root, "state")
        noise = hashlib.sha512(b"noise").digest() * 9
        for data in [b"", b"Dear reader,\n", noise, b"SGRF", state[:-1], state[:100], bytes(100)]:
            self.write(data, path)
            message = self.refused(1, "inspect", path)
            self.assertTrue(message.startswith("slimgrad: " + path), message)
            for word in ["expected", "found"]:
                self.assertIn(word, message)

    def test_nothing_there(self):
        path = os.path.join(self.root, "nothing")
        self.assertIn(path, self.refused(1, "inspect", path))


class List(CommandTest):

    def test_every_method_with_its_parameters(self):
        text = self.succeed("list")
        for name, parameters in {
                "none": [], "fp16": ["overflow"], "bf16": ["overflow"],
                "int8": ["block", "rounding"], "top_k": ["ratio", "k"], "one_bit": ["block"],
                "scaled_sign": ["block"], "power_sgd": ["rank"], "error_feedback": [],
                "small_tensors": ["below", "use"], "delta_index": [], "fp16_values": []
        }.items():
            start = text.find(f"\n\n{name}: ")
            self.assertNotEqual(start, -1, name)
            details = text[start + 2:].split("\n\n")[0]
            for parameter in parameters:
                self.assertIn(f"\n  {parameter} ", details, name)


if __name__ == "__main__":
    sys.exit(unittest.main())
