"""tools/bench_table.py as a command, on small tensors."""

import contextlib
import io
import pathlib
import tempfile
import unittest

from tools import bench_table

_BINARY = pathlib.Path("benchmarks/kernels").absolute()


class BenchTableRunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = pathlib.Path(folder.name) / "new" / "table.md"

    def run_command(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            with contextlib.redirect_stderr(io.StringIO()):
                status = bench_table.main(
                    ["--quick", f"--binary={_BINARY}", f"--output={self.output}", *arguments]
                )
        self.assertEqual(status, 0)
        return printed.getvalue()

    def test_every_row(self):
        printed = self.run_command("--no_peers", "--repeats=1")
        self.assertEqual(printed, self.output.read_text(encoding="utf-8") + "\n")
        table = [line.split("|") for line in printed.split("\n") if line.startswith("| ")]
        self.assertGreater(len(table), 40)
        self.assertEqual({line[15].strip() for line in table[1:]}, {"0"}, "words differ")

    def test_usual_ways(self):
        printed = self.run_command("--rows=^(f32_to_f16|top_k/density:0.01)$")
        table = [line.split("|") for line in printed.split("\n") if line.startswith("| ")]
        header = [cell.strip() for cell in table[0]]
        self.assertEqual(header[10:12], ["usual way", "times as fast"])
        for line in table[1:3]:
            self.assertGreater(float(line[11]), 0)


if __name__ == "__main__":
    unittest.main()
