"""What tools/ptxrun makes of each fault planted in faults.cu: the exit status, and what it says."""

import os
import pathlib
import subprocess
import unittest

_PROGRAM = pathlib.Path("tests/tools/ptxrun/faults")
_RUNTIME = pathlib.Path("tools/ptxrun/libcudart.so.13")

# ptxrun's exit statuses, and the program's own.
_NOTES, _UNREADABLE_PTX, _COMPRESSED_PTX, _FAULT = 96, 97, 98, 99
_REFUSED, _LAUNCH_FAILED, _WRONG_RESULT = 42, 43, 44

_ORDERS = {"forward": "0", "reverse": "1", "random": "2"}

# Those that any order of the threads shows.
_FAULTS = {
    "none": (0, ""),
    "out_of_bounds": (_FAULT, "global access out of bounds"),
    "null": (_FAULT, "global access out of bounds"),
    "out_of_shared": (_FAULT, "shared access out of bounds"),
    "out_of_local": (_FAULT, "local access out of bounds"),
    "misaligned": (_FAULT, "misaligned access"),
    "freed": (_FAULT, "global access out of bounds"),
    "host_memory": (_FAULT, "global access out of bounds"),
    "other_device": (_FAULT, "memory of another device"),
    "divergent_barrier": (_FAULT, "deadlock"),
    "race_across_warps": (_NOTES, "RACE"),
    "race_in_a_warp": (_NOTES, "RACE"),
    "write_after_write": (_NOTES, "RACE shared write after write"),
    "write_after_read": (_NOTES, "RACE"),
    "uninitialised": (_NOTES, "UNINITIALISED shared read"),
    "atomic_race": (_NOTES, "RACE"),
    "not_in_mask": (_FAULT, "not in its own member mask"),
    "inactive_lane": (_NOTES, "shuffle reads an inactive lane"),
    "assert": (_FAULT, "device assert failed"),
    "matrix": (_FAULT, "unsupported instruction"),
    "endless": (_FAULT, "an endless loop"),
    "too_many_threads": (_REFUSED, ""),
    "copy_too_much": (_REFUSED, "leaves its allocation"),
    "free_twice": (_REFUSED, "bad or double cudaFree"),
    "compressed_ptx": (_COMPRESSED_PTX, "--compress-mode=none"),
    "unreadable_ptx": (_UNREADABLE_PTX, "parse error: PTX line 3"),
}


def run(fault, order="forward", **environment):
    """The exit status, and everything that it printed."""
    done = subprocess.run(
        [_PROGRAM, fault],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        env={
            **os.environ,
            "LD_LIBRARY_PATH": str(_RUNTIME.parent),
            "PTXRUN_DEVICES": "2",
            "PTXRUN_LIMIT": "3000000",
            "PTXRUN_ORDER": _ORDERS[order],
            **environment,
        },
    )
    return done.returncode, done.stdout


@unittest.skipUnless(_RUNTIME.exists(), "no CUDA toolkit in this build")
class FaultsTest(unittest.TestCase):
    def test_faults_that_show_in_every_order(self):
        for fault, (expected_status, expected_text) in _FAULTS.items():
            for order in _ORDERS:
                with self.subTest(fault=fault, order=order):
                    status, text = run(fault, order)
                    self.assertEqual(status, expected_status, text)
                    self.assertIn(expected_text, text)

    def test_every_fault_of_the_program_is_here(self):
        status, text = run("no such fault")
        self.assertEqual(status, 2)
        others = {"missing_wait", "later_block", "missing_edge"}
        self.assertEqual(set(text.split()), set(_FAULTS) | others)

    def test_asynchronous_copies_arrive_late_but_in_reverse_order(self):
        for order, expected in {"forward": _NOTES, "reverse": 0, "random": _NOTES}.items():
            with self.subTest(order=order):
                status, text = run("missing_wait", order)
                self.assertEqual(status, expected, text)

    def test_only_random_order_runs_blocks_together(self):
        for order, expected in {"forward": _FAULT, "reverse": _FAULT, "random": 0}.items():
            with self.subTest(order=order):
                status, text = run("later_block", order)
                self.assertEqual(status, expected, text)

    def test_graphs_run_as_recorded_in_forward_order_only(self):
        self.assertEqual(run("missing_edge", "forward")[0], 0)
        self.assertEqual(run("missing_edge", "reverse")[0], _WRONG_RESULT)
        random = {run("missing_edge", "random", PTXRUN_SEED=str(seed))[0] for seed in range(8)}
        self.assertEqual(random, {0, _WRONG_RESULT})

    def test_a_message_says_where(self):
        _, text = run("out_of_shared")
        self.assertRegex(text, r"offset 128 size 4 of 128")
        self.assertRegex(text, r"kernel \S*ReadBeyondShared\S* block \(0,0,0\) thread \(31,0,0\)")
        self.assertRegex(text, r"PTX line \d+: ld\.shared")

    def test_without_abort_a_fault_is_an_error_of_the_runtime(self):
        status, text = run("out_of_bounds", PTXRUN_NOABORT="1")
        self.assertEqual(status, _LAUNCH_FAILED)
        self.assertIn("global access out of bounds", text)
        self.assertEqual(run("race_across_warps", PTXRUN_NOABORT="1")[0], 0)

    def test_races_are_not_looked_for_on_request(self):
        self.assertEqual(run("race_across_warps", PTXRUN_RACE="0"), (0, ""))

    def test_the_limit_is_told(self):
        _, text = run("endless", PTXRUN_LIMIT="50000")
        self.assertIn("ran over 50000 instructions", text)

    def test_summary(self):
        status, text = run("none", PTXRUN_SUMMARY="1")
        self.assertEqual(status, 0)
        self.assertRegex(text, r"1 launches, 64 threads, \d+ instructions")
        self.assertIn("0 notes, 0 bytes leaked", text)


if __name__ == "__main__":
    unittest.main()
