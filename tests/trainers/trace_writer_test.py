"""Tests of trainers/trace_writer.py: numpy only."""

import os
import re
import shutil
import tempfile
import unittest

import numpy as np

import replay
import trace_writer
from trace_writer import TraceError, TraceWriter

_DOC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/trace_format.md")


class InTemporaryFolder(unittest.TestCase):

    def setUp(self):
        self.parent = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.parent)
        self.folder = os.path.join(self.parent, "trace")

    def assert_nothing_left(self):
        self.assertEqual(os.listdir(self.parent), [])


def _writer(folder, **changes):
    arguments = dict(tensors={
        "w": (2, 3),
        "b": ()
    },
                     world_size=2,
                     learning_rates=[0.5, 0.25],
                     optimizer={"kind": "sgd"})
    arguments.update(changes)
    return TraceWriter(folder, **arguments)


def _fill(trace, value=1.0):
    for step in range(2):
        for rank in range(2):
            trace.step(step, rank, {"b": np.float32(rank), "w": np.full((2, 3), value, np.float32)})


class SafetensorsFile(InTemporaryFolder):

    def test_layout_byte_for_byte(self):
        path = os.path.join(self.parent, "x.safetensors")
        trace_writer.save_safetensors(path, {
            "n": np.array([7], np.uint8),
            "x": np.array([1.0, -2.0], np.float32)
        })
        header = (b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
                  b'"n":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}}')
        padded = header + b" " * (-len(header) % 8)
        expected = len(padded).to_bytes(8, "little") + padded + bytes.fromhex("0000803f000000c007")
        with open(path, "rb") as file:
            self.assertEqual(file.read(), expected)

    def test_every_dtype_and_shape_comes_back(self):
        path = os.path.join(self.parent, "x.safetensors")
        arrays = {
            f"{kind}{i}": np.arange(np.prod(shape, dtype=int)).astype(kind).reshape(shape)
            for kind in ("<f4", "<f2", "<i8", "<i4", "<u2", "u1")
            for i, shape in enumerate([(), (0,), (1,), (3, 5), (2, 1, 3)])
        }
        trace_writer.save_safetensors(path, arrays)
        for found in (trace_writer.load_safetensors(path), {
                k: v for k, (_, v) in replay.read_tensors(path).items()
        }):
            self.assertEqual(set(found), set(arrays))
            for name, array in arrays.items():
                self.assertEqual((found[name].dtype, found[name].shape), (array.dtype, array.shape))
                np.testing.assert_array_equal(found[name], array)

    def test_columns_of_a_matrix_are_written_in_row_order(self):
        path = os.path.join(self.parent, "x.safetensors")
        array = np.arange(6, dtype=np.float32).reshape(2, 3).T
        trace_writer.save_safetensors(path, {"x": array})
        np.testing.assert_array_equal(replay.read_tensors(path)["x"][1], array)

    def test_bf16_rounds_to_nearest_even(self):
        bits = np.array([
            0x7F800001, 0x3E89CCD5, 0x7F7FFFFF, 0x3F808000, 0x3F818000, 0xFF800000, 0x80000000,
            0x00000001
        ], np.uint32)
        found = [int(x) for x in trace_writer.float_to_bf16(bits.view(np.float32))]
        self.assertTrue(found[0] & 0x7F80 == 0x7F80 and found[0] & 0x7F, hex(found[0]))
        self.assertEqual(found[1:], [0x3E8A, 0x7F80, 0x3F80, 0x3F82, 0xFF80, 0x8000, 0x0000])

    def test_f16_rounds_to_nearest_even(self):
        path = os.path.join(self.parent, "x.safetensors")
        bits = np.array([0x33000000, 0x33000001, 0x33400000, 0x477FEFFF], np.uint32)
        trace_writer.save_safetensors(path, {"x": bits.view(np.float32)}, "F16")
        found = replay.read_tensors(path)["x"][1].view(np.uint16)
        self.assertEqual([int(x) for x in found], [0x0000, 0x0001, 0x0001, 0x7BFF])

    def test_unknown_dtype_is_refused(self):
        with self.assertRaisesRegex(TraceError, "dtype: expected .*'F32'.*found complex64"):
            trace_writer.save_safetensors(os.path.join(self.parent, "x"),
                                          {"x": np.zeros(2, np.complex64)})


class Writing(InTemporaryFolder):

    def test_the_ten_lines_of_the_document(self):
        with open(_DOC, encoding="utf-8") as file:
            (program,) = re.findall(r"```python\n(.*?)```", file.read(), re.S)
        body = [
            line for line in program.splitlines()
            if line and not line.startswith(("import", "from"))
        ]
        self.assertLessEqual(len(body), 10)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.parent)
        exec(compile(program, "trace_format.md", "exec"), {})
        trace = replay.Trace(os.path.join(self.parent, "my_trace"))
        self.assertEqual((trace.json["steps"], trace.json["world_size"]), (4, 2))
        self.assertEqual(trace.shapes, {"w": (3, 2), "b": (3,)})
        np.testing.assert_array_equal(trace.gradients(3, 1)["w"], np.ones((3, 2)))

    def test_all_fields(self):
        with _writer(self.folder,
                     dtype="BF16",
                     name="n",
                     loss="cross_entropy",
                     license={"data": "made"}) as trace:
            _fill(trace, 1 + 2.0**-9)
            trace.weights("initial", {"w": np.zeros((2, 3)), "b": np.float64(1)})
            trace.data({"train_inputs": np.zeros((1, 1), np.uint8)}, classes=3)
            trace.timing({"optimizer_us": np.zeros(2)})
            trace.results(final_eval_loss=0.5)
            self.assertFalse(os.path.exists(self.folder))
        self.assertEqual(os.listdir(self.parent), ["trace"])
        self.assertEqual(os.stat(self.folder).st_mode & 0o700, 0o700)
        trace = replay.Trace(self.folder)
        self.assertEqual(trace.json["name"], "n")
        self.assertEqual(trace.json["data"], {"file": "data.safetensors", "classes": 3})
        self.assertEqual(trace.json["initial_weights"], "initial.safetensors")
        self.assertNotIn("final_weights", trace.json)
        np.testing.assert_array_equal(trace.gradients(1, 0)["w"], np.ones((2, 3)))
        self.assertEqual(trace.gradients(1, 1)["b"], 1)
        self.assertEqual(replay.read_tensors(self.folder + "/initial.safetensors")["b"][0], "F32")

    def test_numpy_numbers_are_numbers(self):
        with _writer(self.folder,
                     world_size=np.int64(2),
                     learning_rates=list(np.array([0.5, 0.25], np.float32)),
                     optimizer={"kind": "sgd", "momentum": np.float32(0.5)}) as trace:
            _fill(trace)
        found = replay.Trace(self.folder).json
        self.assertEqual((found["world_size"], found["learning_rates"]), (2, [0.5, 0.25]))
        self.assertEqual(found["optimizer"], {"kind": "sgd", "momentum": 0.5})

    def test_an_empty_folder_is_filled(self):
        os.mkdir(self.folder)
        with _writer(self.folder) as trace:
            _fill(trace)
        replay.Trace(self.folder)

    def test_a_folder_with_something_in_it_is_refused_and_left_alone(self):
        os.mkdir(self.folder)
        with open(os.path.join(self.folder, "mine"), "w"):
            pass
        with self.assertRaisesRegex(TraceError, "expected a new or empty folder"):
            _writer(self.folder)
        self.assertEqual(os.listdir(self.parent), ["trace"])
        self.assertEqual(os.listdir(self.folder), ["mine"])

    def test_a_folder_filled_meanwhile_is_left_alone(self):
        with self.assertRaises(OSError):
            with _writer(self.folder) as trace:
                _fill(trace)
                os.makedirs(os.path.join(self.folder, "mine"))
        self.assertEqual(os.listdir(self.parent), ["trace"])
        self.assertEqual(os.listdir(self.folder), ["mine"])

    def test_a_missing_step_leaves_nothing(self):
        with self.assertRaisesRegex(TraceError, "expected 4 .*found 1: step 0, rank 1 is missing"):
            with _writer(self.folder) as trace:
                trace.step(0, 0, {"w": np.zeros((2, 3)), "b": np.zeros(())})
        self.assert_nothing_left()

    def test_an_exception_leaves_nothing(self):
        for error in (KeyboardInterrupt, SystemExit, ZeroDivisionError):
            with self.assertRaises(error):
                with _writer(self.folder) as trace:
                    _fill(trace)
                    raise error()
            self.assert_nothing_left()


class Refusing(InTemporaryFolder):

    def refused(self, message, **changes):
        with self.assertRaisesRegex(TraceError, message):
            _writer(self.folder, **changes)
        self.assert_nothing_left()

    def test_arguments(self):
        self.refused("tensors: expected at least one", tensors={})
        self.refused("tensors, name: .*found ''", tensors={"": (1,)})
        self.refused("tensors, name: .*__metadata__", tensors={"__metadata__": (1,)})
        self.refused("tensors.w: expected a shape", tensors={"w": (-1,)})
        self.refused("tensors.w: expected a shape", tensors={"w": (1,) * 9})
        self.refused("world_size: .*found 0", world_size=0)
        self.refused("world_size: .*found 1.5", world_size=1.5)
        self.refused("learning_rates", learning_rates=[])
        self.refused("learning_rates: .*found nan", learning_rates=[float("nan")])
        self.refused("dtype: .*found 'F64'", dtype="F64")
        self.refused("^name: ", name="a\nb")
        self.refused("^name: ", name="a\x9b31m")
        self.refused("fields: .*found 'modle'", modle={})
        with self.assertRaisesRegex(TraceError, "existing parent folder"):
            _writer(os.path.join(self.folder, "deeper"))

    def test_optimizers(self):
        adam = {"kind": "adam", "betas": [0.9, 0.999], "eps": 1e-8}
        for message, optimizer in [
            ("optimizer.kind: .*found 'lamb'", {
                "kind": "lamb"
            }),
            ("optimizer.betas: .*found 'betas'", {
                "kind": "sgd",
                "betas": [0, 0]
            }),
            ("optimizer.momentum: .*found 1", {
                "kind": "sgd",
                "momentum": 1
            }),
            ("optimizer.momentum: .*found True", {
                "kind": "sgd",
                "momentum": True
            }),
            ("optimizer.dampening: .*found 2", {
                "kind": "sgd",
                "dampening": 2
            }),
            ("optimizer.nesterov", {
                "kind": "sgd",
                "nesterov": True
            }),
            ("optimizer.weight_decay: .*found -1", {
                "kind": "sgd",
                "weight_decay": -1
            }),
            ("optimizer.clip_global_norm: .*found 0", {
                "kind": "sgd",
                "clip_global_norm": 0
            }),
            ("optimizer.betas: expected two", {
                **adam, "betas": [0.9]
            }),
            ("optimizer.betas: .*found 1", {
                **adam, "betas": [0.9, 1]
            }),
            ("optimizer.eps: .*found None", {
                "kind": "adamw",
                "betas": [0.9, 0.9]
            }),
            ("optimizer.momentum: ", {
                **adam, "momentum": 0.5
            }),
        ]:
            with self.subTest(message):
                self.refused(message, optimizer=optimizer)
        with _writer(self.folder, optimizer=adam) as trace:  # the right one is taken
            _fill(trace)

    def test_gradients(self):
        good = {"w": np.zeros((2, 3)), "b": np.zeros(())}
        big, huge = np.full((2, 3), 65520.0), np.full((2, 3), 3.4e38, np.float32)
        for message, dtype, step, rank, gradients in [
            ("expected below 2, 2, found 2, 0", "F32", 2, 0, good),
            ("expected below 2, 2, found 0, -1", "F32", 0, -1, good),
            ("tensor 'b': expected the tensors", "F32", 0, 0, {
                "w": good["w"]
            }),
            ("tensor 'x': expected the tensors", "F32", 0, 0, {
                **good, "x": good["b"]
            }),
            (r"'w': expected shape \(2, 3\), found \(3, 2\)", "F32", 0, 0, {
                **good, "w": good["w"].T
            }),
            ("'b': expected finite", "F32", 0, 0, {
                **good, "b": np.float32("nan")
            }),
            ("'w': expected finite values in F16", "F16", 0, 0, {
                **good, "w": big
            }),
            ("'w': expected finite values in BF16", "BF16", 0, 0, {
                **good, "w": huge
            }),
        ]:
            with self.subTest(message):
                with self.assertRaisesRegex(TraceError, message):
                    with _writer(self.folder, dtype=dtype) as trace:
                        trace.step(step, rank, gradients)
                self.assert_nothing_left()

    def test_the_same_step_twice(self):
        good = {"w": np.zeros((2, 3)), "b": np.zeros(())}
        with self.assertRaisesRegex(TraceError, "step 1, rank 0: expected once"):
            with _writer(self.folder) as trace:
                trace.step(1, 0, good)
                trace.step(1, 0, good)

    def test_results_that_json_cannot_hold(self):
        with self.assertRaisesRegex(TraceError, "results.train_loss: expected finite"):
            with _writer(self.folder) as trace:
                _fill(trace)
                trace.results(train_loss=[1.0, float("inf")])
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
