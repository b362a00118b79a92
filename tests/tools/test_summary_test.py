"""How tools/test_summary.py counts: it decides whether a change passes."""

import json
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from tools import test_summary

_GTEST = """<testsuites><testsuite>
  <testcase name="passes" status="run" result="completed"/>
  <testcase name="fails" status="run" result="completed"><failure message="x"/></testcase>
  <testcase name="skips" status="run" result="skipped"><skipped message="no GPU"/></testcase>
  <testcase name="DISABLED_one" status="notrun" result="suppressed"/>
</testsuite></testsuites>"""

_BAZEL = """<testsuites><testsuite>
  <testcase name="t" status="run">{error}</testcase>
  <system-out>{output}</system-out>
</testsuite></testsuites>"""


class TestSummaryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def counts(self, xml):
        return str(test_summary.xml_counts(ElementTree.fromstring(xml)))

    def result(self, status, xml=None):
        outputs = []
        if xml is not None:
            path = self.folder / "a b.xml"
            path.write_text(xml, encoding="utf-8")
            outputs.append({"name": "test.xml", "uri": path.as_uri()})
        return {"status": status, "testActionOutput": outputs}

    def result_counts(self, *arguments):
        return str(test_summary.result_counts(self.result(*arguments)))

    def read(self, events):
        path = self.folder / "events.json"
        path.write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
        return test_summary.read_events(path)

    def test_googletest_cases(self):
        self.assertEqual(self.counts(_GTEST), "1 passed, 1 failed, 2 skipped")

    def test_cases_that_an_environment_skips_are_skipped(self):
        case = '<testcase name="a" status="run" result="completed" timestamp="{}T00:00:00.000"/>'
        never = "<testsuites>" + 2 * case.format("1970-01-01") + "</testsuites>"
        ran = "<testsuites>" + 2 * case.format("2026-01-01") + "</testsuites>"
        self.assertEqual(self.counts(never), "0 passed, 0 failed, 2 skipped")
        self.assertEqual(self.counts(ran), "2 passed, 0 failed, 0 skipped")

    def test_unittest_methods(self):
        good = "...\nRan 3 tests in 0.1s\n\nOK (skipped=1)\n"
        self.assertEqual(
            self.counts(_BAZEL.format(error="", output=good)), "2 passed, 0 failed, 1 skipped"
        )
        bad = "Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1, unexpected successes=1)\n"
        self.assertEqual(
            self.counts(_BAZEL.format(error="<error/>", output=bad)),
            "2 passed, 3 failed, 0 skipped",
        )

    def test_program_without_cases(self):
        self.assertEqual(
            self.counts(_BAZEL.format(error="", output="hello")), "1 passed, 0 failed, 0 skipped"
        )
        self.assertEqual(
            self.counts(_BAZEL.format(error="<error/>", output="")), "0 passed, 1 failed, 0 skipped"
        )

    def test_status_counts_where_no_case_failed(self):
        passing = _BAZEL.format(error="", output="")
        self.assertEqual(self.result_counts("FAILED", passing), "1 passed, 1 failed, 0 skipped")
        self.assertEqual(self.result_counts("TIMEOUT"), "0 passed, 1 failed, 0 skipped")
        self.assertEqual(self.result_counts("FAILED", "<not whole"), "0 passed, 1 failed, 0 skipped")
        self.assertEqual(self.result_counts("PASSED"), "1 passed, 0 failed, 0 skipped")
        self.assertEqual(self.result_counts("FAILED", _GTEST), "1 passed, 1 failed, 2 skipped")

    def test_last_attempt_of_each_shard_counts(self):
        def event(shard, attempt, status):
            identity = {"label": "//a:t", "run": 1, "shard": shard, "attempt": attempt}
            return {"id": {"testResult": identity}, "testResult": self.result(status)}

        results, broken = self.read(
            [event(1, 1, "FAILED"), event(1, 2, "PASSED"), event(2, 1, "PASSED")]
        )
        self.assertEqual([result["status"] for result in results.values()], ["PASSED", "PASSED"])
        self.assertEqual(broken, set())

    def test_targets_that_were_not_built(self):
        def event(label, **payload):
            return {"id": {"targetCompleted": {"label": label}}, **payload}

        _, broken = self.read(
            [
                event("//a:good", completed={"success": True}),
                event("//a:bad", completed={}),
                event("//a:aborted", aborted={"reason": "ANALYSIS_FAILURE"}),
                event("//a:filtered", aborted={"reason": "SKIPPED"}),
            ]
        )
        self.assertEqual(broken, {"//a:bad", "//a:aborted"})


if __name__ == "__main__":
    unittest.main()
