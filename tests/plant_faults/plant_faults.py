#!/usr/bin/python3
"""Plants faults in a copy of the sources, one at a time, and shows which tests catch each.

    tests/plant_faults/plant_faults.py [--jobs N] [--only TEXT] [--output_base DIR] [--list]

Run by hand, from anywhere in the checkout: a suite that is to be trusted has to fail when the code
is wrong. The copy is what `git ls-files` lists, as it lies in the working tree. First the tests run
on the copy as it is, and have to pass. Then each fault of faults.py is applied, the tests that are
said to notice it are built and run, and the file is put back. A fault whose text is not in the file
exactly once any more, or that does not build, is an error of the list: mend it with the code.

Prints a table, a row as soon as it is known:  fault | what it breaks | caught by.
Exit status: 0 if every fault was caught, 1 if one survived or was not planted, 2 for bad usage.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from faults import FAULTS

ROOT = pathlib.Path(__file__).resolve().parents[2]


def copy_sources(target):
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True).stdout
    for name in listed.decode().split("\0"):
        source = ROOT / name
        if name and source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


def run_tests(tree, targets, options, *flags):
    """Bazel's exit status, the targets that failed and the output."""
    command = ["bazel", f"--output_base={options.output_base}", "test", "-c", "opt", "--keep_going",
               f"--jobs={options.jobs}", "--test_output=errors", *flags, *targets]
    done = subprocess.run(command, cwd=tree, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    failed = re.findall(r"^(//\S+)\s+(?:FAILED|TIMEOUT)", done.stdout, re.MULTILINE)
    cases = re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/.]+)", done.stdout, re.MULTILINE)
    return done.returncode, failed, cases, done.stdout


def planted(text, fault):
    """The file's text with the fault in it, or None where it has no place."""
    for old, new in fault.edits:
        if text.count(old) != 1:
            return None
        text = text.replace(old, new)
    return text


def try_fault(tree, fault, options):
    """Whether the fault was caught, and by what."""
    path = tree / fault.file
    honest = path.read_text()
    faulty = planted(honest, fault)
    if faulty is None:
        return False, "NOT PLANTED: its text is not in the file exactly once"
    path.write_text(faulty)
    # The first target that notices is enough.
    status, failed, cases, output = run_tests(tree, fault.targets, options, "--notest_keep_going")
    path.write_text(honest)
    if status == 3 and failed:
        # "Specs/Determinism.Name/top_k" is one test, whatever the spec.
        names = sorted({re.sub(r"/\w+$", "", case.removeprefix("Specs/")) for case in cases})
        return True, ", ".join(names[:3] or failed) + (" ..." if len(names) > 3 else "")
    if status == 0:
        return False, "SURVIVED"
    errors = [line for line in output.splitlines() if "error" in line.lower()]
    return False, f"NOT TRIED: bazel ended with {status}: {' '.join(errors[:2])[:200]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="of Bazel")
    parser.add_argument("--only", default="", help="faults with this text in file or description")
    parser.add_argument("--output_base", default="", help="kept for the next run; else temporary")
    parser.add_argument("--list", action="store_true", help="prints the faults and ends")
    options = parser.parse_args()
    faults = [f for f in FAULTS if options.only in f.file or options.only in f.breaks]
    if options.list:
        for fault in faults:
            print(f"{fault.file}: {fault.breaks}  [{' '.join(fault.targets)}]")
        return 0
    if not faults:
        print(f"no fault has '{options.only}' in its file or description", file=sys.stderr)
        return 2

    with tempfile.TemporaryDirectory(prefix="plant_faults.") as folder:
        tree = pathlib.Path(folder) / "sources"
        tree.mkdir()
        copy_sources(tree)
        if not options.output_base:
            options.output_base = folder + "/output"
        try:
            return run_all(tree, faults, options)
        finally:
            subprocess.run(["bazel", f"--output_base={options.output_base}", "shutdown"], cwd=tree,
                           check=False, capture_output=True)
            if options.output_base.startswith(folder):  # Bazel makes its folders read-only
                subprocess.run(["chmod", "-R", "u+w", options.output_base], check=False)


def run_all(tree, faults, options):
    targets = sorted({target for fault in faults for target in fault.targets})
    status, failed, _, output = run_tests(tree, targets, options)
    if status != 0:
        print(output[-4000:])
        print(f"# the tests do not pass without a fault: {' '.join(failed) or 'not built'}")
        return 1
    print(f"# {len(targets)} test targets pass without a fault; {len(faults)} faults follow")
    caught = 0
    for fault in faults:
        good, verdict = try_fault(tree, fault, options)
        caught += good
        print(f"{fault.file:32} | {fault.breaks:58} | {verdict}", flush=True)
    print(f"# {caught} of {len(faults)} faults caught")
    return 0 if caught == len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
