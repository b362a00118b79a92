#!/usr/bin/python3
"""Prints the line coverage of an lcov report, by folder and, with --files, by file."""

import argparse
import collections
import os


def read_lcov(path):
    """From each source to its lines and how often they ran."""
    sources = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("SF:"):
                lines = sources.setdefault(line[3:].strip(), {})
            elif line.startswith("DA:"):
                number, count = map(int, line[3:].split(",")[:2])
                lines[number] = lines.get(number, 0) + count
    return sources


def ranges(numbers):
    """[1, 2, 3, 7] as '1-3 7'."""
    runs = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{first}-{last}" if first < last else f"{first}" for first, last in runs)


def row(name, hit, total, more=""):
    percent = 100 * hit / total if total else 100
    return f"{name:<48} {hit:>6} {total:>6} {percent:>6.1f}  {more}".rstrip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", help="an lcov file")
    parser.add_argument("--files", action="store_true", help="by file too, with what never ran")
    arguments = parser.parse_args()

    folders = collections.defaultdict(dict)
    for source, lines in read_lcov(arguments.report).items():
        if source.startswith("tests/"):
            continue  # of interest is what the tests reach, not the tests
        folders[os.path.dirname(source)][source] = lines

    print(f"{'':<48} {'hit':>6} {'lines':>6} {'%':>6}")
    hit_of_all = total_of_all = 0
    for folder, sources in sorted(folders.items()):
        hit = sum(count > 0 for lines in sources.values() for count in lines.values())
        total = sum(map(len, sources.values()))
        print(row(folder + "/", hit, total))
        hit_of_all += hit
        total_of_all += total
        if arguments.files:
            for source, lines in sorted(sources.items()):
                never = [number for number, count in lines.items() if not count]
                print(row("  " + source, len(lines) - len(never), len(lines), ranges(never)))
    print(row("all", hit_of_all, total_of_all))


if __name__ == "__main__":
    main()
