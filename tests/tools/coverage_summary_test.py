"""What tools/coverage_summary.py reads and how it shortens."""

import pathlib
import tempfile
import unittest

from tools import coverage_summary


class CoverageSummaryTest(unittest.TestCase):
    def test_counts_of_one_source_add_up(self):
        text = "SF:a/x.cc\nDA:1,0\nDA:2,3\nend_of_record\nSF:a/x.cc\nDA:1,2\nDA:4,0\nend_of_record\n"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "report.dat")
            path.write_text(text, encoding="utf-8")
            self.assertEqual(coverage_summary.read_lcov(path), {"a/x.cc": {1: 2, 2: 3, 4: 0}})

    def test_ranges(self):
        self.assertEqual(coverage_summary.ranges([7, 1, 3, 2]), "1-3 7")
        self.assertEqual(coverage_summary.ranges([]), "")

    def test_rows_line_up(self):
        self.assertEqual(len(coverage_summary.row("a/", 1, 2)), len(coverage_summary.row("b/", 100, 999)))
        self.assertTrue(coverage_summary.row("a/", 1, 8).endswith(" 12.5"))
        self.assertTrue(coverage_summary.row("empty/", 0, 0).endswith("100.0"))


if __name__ == "__main__":
    unittest.main()
