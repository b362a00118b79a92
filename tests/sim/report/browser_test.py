"""The HTML report in a real browser: it draws, sorts, filters and fits a phone, without an error.

The report stands in frames of several widths, with browser_checks.js added at its end; the page
around collects what the checks post, and --dump-dom hands it out.
"""

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

_HERE = os.path.dirname(os.path.abspath(__file__))
_CHROMIUM = shutil.which("chromium")
_WIDTHS = (360, 390, 1280)

# First in the page, before anything can go wrong.
_COLLECT = """<script>
window.collectedErrors = [];
for (const name of ["error", "warn"]) {
  console[name] = (...all) => window.collectedErrors.push(`console.${name}: ${all.join(" ")}`);
}
addEventListener("error", (event) => window.collectedErrors.push(`error: ${event.message}`));
addEventListener("unhandledrejection", (event) => window.collectedErrors.push(`${event.reason}`));
document.addEventListener("securitypolicyviolation",
    (event) => window.collectedErrors.push(`policy: ${event.blockedURI}`));
</script>"""

_AROUND = """<!doctype html><body><pre id="results"></pre><script>
const results = {};
addEventListener("message", (event) => {
  results[event.data.width] = event.data.result;
  document.getElementById("results").textContent = JSON.stringify(results);
});
</script>
%s</body>"""


def _write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _report_with_checks():
    report = subprocess.run(
        [os.path.join(_HERE, "write_sample"), "html"], check=True, stdout=subprocess.PIPE
    ).stdout.decode()
    with open(os.path.join(_HERE, "browser_checks.js"), encoding="utf-8") as file:
        checks = "<script>%s</script></body>" % file.read()
    assert report.count("<head>") == 1 and report.count("</body>") == 1
    return report.replace("<head>", "<head>" + _COLLECT).replace("</body>", checks)


def _browse(folder, url, *flags):
    """The page's DOM after its scripts ran, as text, and what the browser logged."""
    command = [
        _CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
        "--disable-dev-shm-usage", "--user-data-dir=" + os.path.join(folder, "profile"),
        "--virtual-time-budget=20000", "--window-size=2200,900", *flags, "--dump-dom", url,
    ]
    done = subprocess.run(
        command, check=True, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=dict(os.environ, HOME=folder))
    return done.stdout.decode(), done.stderr.decode()


def _numbers(values):
    """The numbers of a sorted column, and how many cells without one follow them."""
    empty = values.index("") if "" in values else len(values)
    assert all(value == "" for value in values[empty:]), values
    return [float(value) for value in values[:empty]], len(values) - empty


@unittest.skipUnless(_CHROMIUM, "no chromium: tools/install_deps.sh installs it")
class BrowserTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            _write(os.path.join(folder, "report.html"), _report_with_checks())
            around = os.path.join(folder, "around.html")
            frame = '<iframe src="report.html" width="%d" height="800" frameborder="0"></iframe>'
            _write(around, _AROUND % "".join(frame % width for width in _WIDTHS))
            cls.light = cls._results(folder, around)
            cls.dark = cls._results(folder, around, "--blink-settings=preferredColorScheme=0")

    @classmethod
    def _results(cls, folder, page, *flags):
        dom, log = _browse(folder, "file://" + page, *flags)
        found = re.search(r'<pre id="results">(.*?)</pre>', dom, re.DOTALL)
        assert found and found.group(1), "the checks did not run: " + log[-2000:]
        # The checks read canvases back often, which the browser remarks upon.
        console = [line for line in log.splitlines()
                   if ":CONSOLE:" in line and "willReadFrequently" not in line]
        assert not console, console
        return json.loads(html.unescape(found.group(1)))

    def _pages(self):
        for theme, results in (("light", self.light), ("dark", self.dark)):
            self.assertEqual(sorted(map(int, results)), sorted(_WIDTHS))
            for width, result in results.items():
                yield f"{theme}, {width} px", result

    def test_no_errors(self):
        for where, page in self._pages():
            with self.subTest(where):
                self.assertEqual(page["errors"], [])

    def test_charts_are_drawn(self):
        for where, page in self._pages():
            with self.subTest(where):
                for chart, colors in page["colors"].items():
                    self.assertGreater(colors, 20, chart)
                # Sizes by three, by accuracy, loss, error and cosine in all loops.
                self.assertEqual(len(page["axes"]), 3 * 6)
                for x, y, colors in page["axes"]:
                    self.assertGreater(colors, 20, (x, y))

    def test_best_trade_offs_are_marked(self):
        for where, page in self._pages():
            with self.subTest(where):
                self.assertEqual(page["front"], [9, 10, 12, 15, 16])

    def test_table_sorts_both_ways(self):
        for where, page in self._pages():
            with self.subTest(where):
                for column, orders in (
                        ("sent", ["ascending", "descending"]),  # few bytes first
                        ("accuracy", ["descending", "ascending"])):  # high accuracy first
                    self.assertEqual([each["order"] for each in page[column]], orders)
                    for each in page[column]:
                        numbers, missing = _numbers(each["values"])
                        self.assertEqual(len(numbers) + missing, 18)
                        self.assertEqual(missing, 1 if column == "sent" else 2)
                        self.assertEqual(
                            numbers, sorted(numbers, reverse=each["order"] == "descending"))

    def test_table_filters(self):
        for where, page in self._pages():
            with self.subTest(where):
                self.assertEqual(
                    page["filter"],
                    {"found": [15], "status": "1 of 18 compressors", "after": 18})
                self.assertEqual(page["nothing"]["found"], [])

    def test_columns_hide_and_come_back(self):
        for where, page in self._pages():
            with self.subTest(where):
                before, after, again = page["speed"]
                self.assertEqual((after, again), (before - 2, before))
                before, after, again = page["details"]
                self.assertGreater(after, before)
                self.assertEqual(again, before)

    def test_picker(self):
        for where, page in self._pages():
            with self.subTest(where):
                self.assertEqual(page["none"], {"boxes": 0, "drawn": ["chart-front"]})
                self.assertEqual(page["all"]["boxes"], 18)
                self.assertEqual(len(page["all"]["drawn"]), 5)
                self.assertEqual(page["best"]["boxes"], 5)

    def test_nothing_overflows_sideways(self):
        for where, page in self._pages():
            with self.subTest(where):
                self.assertLessEqual(page["overflow"], 0)
                self.assertEqual(page["wide"], [])

    def test_dark_and_light(self):
        for width in map(str, _WIDTHS):
            light = [int(n) for n in re.findall(r"\d+", self.light[width]["background"])]
            dark = [int(n) for n in re.findall(r"\d+", self.dark[width]["background"])]
            self.assertGreater(min(light[:3]), 200)
            self.assertLess(max(dark[:3]), 60)

    def test_points_say_what_they_are(self):
        for where, page in self._pages():
            with self.subTest(where):
                self.assertEqual(len(page["tooltips"]), 5)
                for chart, lines in page["tooltips"].items():
                    self.assertIn(
                        "9 error_feedback(top_k(ratio=0.01)|delta_index|fp16_values): ",
                        "".join(lines), chart)
                self.assertTrue(
                    any(line.endswith("): 0.610 bits, 95.8 %")
                        for line in page["tooltips"]["chart-front"]))

    def test_prints_light(self):
        for where, page in self._pages():
            with self.subTest(where):
                self.assertTrue(page["printing"])


if __name__ == "__main__":
    unittest.main()
