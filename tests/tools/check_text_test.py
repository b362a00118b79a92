"""What tools/check_text.py refuses, and what it lets pass."""

import pathlib
import tempfile
import unittest

from tools import check_text


class CheckTextTest(unittest.TestCase):
    def problems(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, name)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            return list(check_text.problems(path))

    def test_a_long_source_needs_a_reason(self):
        at_most = "int x;\n" * check_text.MAX_LINES
        self.assertEqual(self.problems("a.cc", at_most), [])
        (problem,) = self.problems("a.cc", at_most + "int x;\n")
        self.assertIn("401 lines, expected at most 400", problem)
        reason = "// This file is long because it is a table.\n"
        self.assertEqual(self.problems("a.cc", reason + at_most), [])
        self.assertNotEqual(self.problems("a.cc", at_most + reason), [])

    def test_prose_and_data_may_be_long(self):
        self.assertEqual(self.problems("a.md", "x\n" * 1000), [])
        self.assertEqual(self.problems("a.h", b"\xff" * 1000), [])

    def test_machine_folders_and_registries_are_refused(self):
        for text in ("/" + "home/me/x", 'path = "/' + 'root/x"', "see /" + "work/x", "py" + "pi.org"):
            with self.subTest(text):
                (problem,) = self.problems("a.md", "fine\n" + text + "\n")
                self.assertIn("a.md:2: names a ", problem)

    def test_system_folders_and_relative_paths_are_fine(self):
        for text in ("/usr/include/eigen3", "docs/home/x", "//kernels:work", "../work/x"):
            with self.subTest(text):
                self.assertEqual(self.problems("a.md", text), [])


if __name__ == "__main__":
    unittest.main()
