"""How tools/bench_table.py groups rows, judges samples and writes its table."""

import unittest
import unittest.mock

from tools import bench_report, bench_rows, bench_table

_ROW = bench_rows.Row(
    "int8", traffic="r4w1", has_peer=True, of_ceiling=0.85, to_peer=8.0, n=1000
)
_TWO = bench_rows.Row("int8", traffic="r4w1", has_peer=True, scaling=1.8, threads=2, n=1000)


def _run(name, milliseconds, **more):
    return {
        "name": name + "/real_time",
        "real_time": 1e6 * milliseconds,
        "cpu_time": 1e6 * milliseconds,
        "wrong": 0.0,
        **more,
    }


def _samples(*runs, peers=()):
    samples = bench_report.Samples()
    assert samples.add({"benchmarks": list(runs)}) == []
    for name, milliseconds in peers:
        samples.seconds[name].append(1e-3 * milliseconds)
    return samples


class FakeKernels:
    """Answers every name with its next time from `times`, or with 1 ms."""

    def __init__(self, times=None):
        self.asked = []
        self.times = times or {}

    def run(self, names):
        self.asked.append(list(names))
        return {
            "benchmarks": [
                self.times[name].pop(0) if self.times.get(name) else _run(name, 1.0)
                for name in names
            ]
        }


class FakePeers:
    def seconds(self, row):
        return 1e-3 * row.threads


class BenchTableTest(unittest.TestCase):
    def line(self, row, samples):
        """The cells by their headings; targets by the heading before them."""
        found = {}
        cells = bench_report.cells(row, "avx2", samples)
        self.assertEqual(len(cells), len(bench_report.HEADER))
        for heading, before, cell in zip(
            bench_report.HEADER, ("", *bench_report.HEADER), cells
        ):
            found[f"{before}: target" if heading == "target" else heading] = cell
        return found

    def test_medians_are_judged(self):
        name = bench_report.operation_name(_ROW, "avx2")
        ceilings = bench_report.ceiling_names(_ROW, "avx2")
        samples = _samples(
            *(_run(name, time, ratio=3.9, rel_error=0.0042) for time in (1.0, 50.0, 2.0, 3.0, 2.0)),
            *(_run(ceiling, time) for ceiling, time in zip(ceilings, (1.8, 3.0, 1.6, 9.0))),
            peers=[(bench_report.peer_name(_ROW), 15.0)],
        )
        line = self.line(_ROW, samples)
        self.assertEqual(line["ours (quartiles)"], "2.00 ms (2.00 ms to 3.00 ms)")
        self.assertEqual(line["ceiling"], "1.60 ms")
        self.assertEqual(line["of ceiling"], "0.80")
        self.assertEqual(line["of ceiling: target"], "0.85: missed by 6 %")
        self.assertEqual(line["times as fast"], "7.5")
        self.assertEqual(line["times as fast: target"], "8: missed by 6 %")
        self.assertEqual(line["wrong"], "0")
        self.assertEqual(line["rel. error"], "0.0042")
        self.assertEqual(line["bytes ÷"], "3.9")
        self.assertEqual(line["other"], "")

    def test_ceiling_is_taken_so_many_times(self):
        row = bench_rows.Row("power_sgd_step/rank:1", traffic="r8w4", times=28 / 12, of_ceiling=0.9)
        names = bench_report.ceiling_names(row, "avx2")
        self.assertEqual(len(names), 2, "nothing is streamed")
        samples = _samples(
            _run(bench_report.operation_name(row, "avx2"), 28.0),
            *(_run(name, 12.0) for name in names),
        )
        line = self.line(row, samples)
        self.assertEqual((line["ceiling"], line["of ceiling"]), ("28.00 ms", "1.00"))
        self.assertEqual(line["of ceiling: target"], "0.90: met")
        self.assertEqual(line["usual way"], "")

    def test_two_threads_against_one(self):
        row = bench_rows.Row("int8", threads=2, scaling=1.8)
        samples = _samples(
            _run(bench_report.operation_name(row, "avx2"), 1.0),
            _run(bench_report.operation_name(row.baseline(), "avx2"), 1.9),
        )
        line = self.line(row, samples)
        self.assertEqual(line["other"], "1.90x of 1 thread")
        self.assertEqual(line["other: target"], "1.8x: met")

    def test_two_threads_against_what_they_gain_of_memory(self):
        row = bench_rows.Row("int8", threads=2, scaling=1.8, traffic="r4w1")
        one = row.baseline()
        samples = _samples(
            _run(bench_report.operation_name(row, "avx2"), 4.0),
            _run(bench_report.operation_name(one, "avx2"), 5.0),
            *(_run(name, 3.0) for name in bench_report.ceiling_names(row, "avx2")),
            *(_run(name, 3.6) for name in bench_report.ceiling_names(one, "avx2")),
        )
        line = self.line(row, samples)
        self.assertEqual(line["other"], "1.25x of 1 thread (memory: 1.20x)")

    def test_worst_case_against_normal_data(self):
        row = bench_rows.Row("top_k/density:0.01", data="zeros", to_normal=4.0)
        samples = _samples(
            _run(bench_report.operation_name(row, "avx2"), 5.0),
            _run(bench_report.operation_name(row.baseline(), "avx2"), 1.0),
        )
        self.assertEqual(self.line(row, samples)["other: target"], "at most 4x: missed by 25 %")

    def test_latency(self):
        row = bench_rows.Row("f16_round_trip", n=bench_rows.SMALL, most_us=1.0)
        samples = _samples(_run(bench_report.operation_name(row, "avx2"), 0.00025))
        line = self.line(row, samples)
        self.assertEqual(line["ours (quartiles)"], "0.25 µs (0.25 µs to 0.25 µs)")
        self.assertEqual(line["other: target"], "at most 1 µs: met")

    def test_preempted_samples_are_refused(self):
        name = bench_report.operation_name(_ROW, "avx2")
        samples = bench_report.Samples()
        preempted = _run(name, 10.0) | {"cpu_time": 9e6}
        self.assertEqual(samples.add({"benchmarks": [preempted]}), [name])
        self.assertEqual(samples.seconds[name], [])
        # two threads sleep, which is no sign of anything
        two = bench_report.operation_name(_TWO, "avx2")
        self.assertEqual(samples.add({"benchmarks": [_run(two, 10.0) | {"cpu_time": 5e6}]}), [])
        self.assertEqual(samples.add({"benchmarks": [preempted]}, keep_all=True), [])
        self.assertEqual(samples.seconds[name], [0.01])

    def test_rows_are_measured_with_what_they_relate_to(self):
        worst = bench_rows.Row("top_k", data="zeros", to_normal=4.0)
        (first, first_all), (second, second_all) = bench_table.groups([_ROW, _TWO, worst])
        self.assertEqual(first, [_ROW, _TWO])
        self.assertEqual(first_all, [_ROW, _TWO], "the row of one thread is there already")
        self.assertEqual(second, [worst])
        self.assertEqual([row.data for row in second_all], ["zeros", "normal"])
        ((_, alone),) = bench_table.groups([_TWO])
        self.assertEqual([row.threads for row in alone], [2, 1])

    def test_rounds_take_turns_and_repeat_what_was_preempted(self):
        name = bench_report.operation_name(_ROW, "avx2")
        bad = _run(name, 8.0) | {"cpu_time": 1e6}
        kernels = FakeKernels({name: [bad, _run(name, 2.0), bad, bad, bad]})
        samples = bench_table.measure([_ROW, _TWO], "avx2", 3, kernels, {1: FakePeers(), 2: FakePeers()})
        self.assertEqual(samples.seconds[name], [0.002, 0.008, 0.001])
        whole = [round for round in kernels.asked if len(round) > 1]
        self.assertEqual(len(whole), 3)
        self.assertEqual(len(whole[0]), 2 * 5, "two operations, four variants of two ceilings")
        self.assertEqual(whole[1], whole[0][::-1])
        self.assertEqual([round for round in kernels.asked if len(round) == 1], 3 * [[name]])
        self.assertEqual(samples.seconds[bench_report.peer_name(_TWO)], 3 * [0.002])

    def test_wrong_words_are_counted(self):
        name = bench_report.operation_name(_ROW, "avx2")
        samples = _samples(_run(name, 1.0, wrong=3.0), _run("other", 1.0, wrong=2.0))
        self.assertEqual(samples.wrong(), 5)

    def test_report(self):
        name = bench_report.operation_name(_ROW, "avx2")
        samples = _samples(
            _run(name, 2.0),
            *(_run(ceiling, 1.0) for ceiling in bench_report.ceiling_names(_ROW, "avx2")),
            peers=[(bench_report.peer_name(_ROW), 20.0)],
        )
        text = bench_table.report(["CPU: x"], [bench_report.cells(_ROW, "avx2", samples)])
        lines = text.split("\n")
        self.assertIn("* CPU: x", lines)
        table = [line for line in lines if line.startswith("|")]
        self.assertEqual(len(table), 3)
        self.assertEqual(len({len(line) for line in table}), 1)
        self.assertIn("1 targets met, 1 missed", lines)
        self.assertIn(
            "int8, normal, n = 1000, 1 thread(s): of ceiling 0.50, target 0.85: missed by 41 %",
            lines,
        )

    def test_rows_name_what_exists_once(self):
        rows = bench_rows.rows()
        self.assertEqual(len(rows), len(set(rows)))
        names = [bench_report.operation_name(row, "") for row in rows]
        self.assertEqual(len(names), len(set(names)))

    def test_other_sizes_have_no_targets(self):
        row = bench_rows.of_size(_ROW, 16384)
        self.assertEqual((row.n, row.of_ceiling, row.to_peer), (16384, None, None))
        self.assertEqual(bench_rows.of_size(_ROW, _ROW.n), _ROW)

    def test_facts_have_the_load_from_before_and_the_kernels_number_alone(self):
        with unittest.mock.patch("platform.release", return_value="6.1.0-42-cloud-amd64"):
            facts = bench_table.facts(bench_table.parse([]), {}, (0.25, 1, 2))
        self.assertTrue(any("load averages at the start: 0.25, 1.00, 2.00" in f for f in facts))
        self.assertTrue(any(f.startswith("kernel: 6.1.0; compiler: ") for f in facts))

    def test_slug(self):
        self.assertEqual(
            bench_table.slug("Intel(R) Xeon(R) CPU @ 2.10GHz (family 6, model 207)"),
            "intel-xeon-cpu-2-10ghz-family-6-model-207",
        )


if __name__ == "__main__":
    unittest.main()
