"""The ways through the code in docs/architecture.md name files and functions that exist: ways_test.py ROOT"""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1)).resolve()
STEP = re.compile(r"^\d+\. `(?P<file>[\w/]+\.[a-z]+)`: `(?P<function>\w+)`", re.M)
# A definition at the margin of a namespace or a class: a type, and no "=" or "(" before the name.
DEFINITION = r"^(?:  )?(?!return\b)[\w:<>&*,\[\] ]+[ &*](?:\w+(?:<\w+>)?::)*{}\("


def ways():
    """The steps of each way by its heading, as (file, function)."""
    document = (ROOT / "docs/architecture.md").read_text()
    section = document.split("\n## Three ways through the code\n")[1].split("\n## ")[0]
    parts = re.split(r"^### (.+)$", section, flags=re.M)[1:]
    return {heading: [(step["file"], step["function"]) for step in STEP.finditer(text)]
            for heading, text in zip(parts[::2], parts[1::2])}


def line_of(file, function):
    """Where the function is defined, from 1; 0 if it is not."""
    text = (ROOT / file).read_text()
    for found in re.finditer(DEFINITION.format(function), text, re.M):
        statement = re.match(r"[^;{]*[;{]", text[found.start():])
        if statement and statement[0].endswith("{"):
            return text.count("\n", 0, found.start()) + 1
    return 0


class Ways(unittest.TestCase):
    def test_there_are_three(self):
        self.assertEqual(len(ways()), 3)
        for way, steps in ways().items():
            self.assertGreaterEqual(len(steps), 8, way)

    def test_every_file_defines_its_function(self):
        for way, steps in ways().items():
            for file, function in steps:
                self.assertTrue((ROOT / file).is_file(), f"{way}: there is no {file}")
                self.assertGreater(line_of(file, function), 0, f"{way}: {file} does not define {function}")

    def test_a_reader_goes_back_up_at_most_twice(self):
        for way, steps in ways().items():
            at = {}
            back = []
            for file, function in steps:
                line = line_of(file, function)
                if line < at.get(file, 0):
                    back.append(f"{file}: {function}")
                at[file] = line
            self.assertLessEqual(len(back), 2, f"{way} goes back up at {', '.join(back)}")


if __name__ == "__main__":
    unittest.main()
