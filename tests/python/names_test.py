#!/usr/bin/env python3
"""What comments and documents name exists: names_test.py ROOT"""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1)).resolve()
TEXTS = (".cpp", ".hpp", ".h", ".cu", ".md", ".py", ".mjs", ".json", ".cmake", ".txt", ".csv")
FOLDERS = ("build", "results", "node_modules", ".git", "data")  # built, or written by others


def texts(*endings):
    """The project's own files with one of `endings`, as (path from the root, content)."""
    for file in sorted(ROOT.rglob("*")):
        inside = file.relative_to(ROOT)
        if file.suffix in endings and file.is_file() and not set(inside.parts) & set(FOLDERS):
            yield str(inside), file.read_text()


def documented_rules():
    """R3.1 and the like, with what "R1.2 to R1.5" spans."""
    table = (ROOT / "docs/allocator-rules.md").read_text()
    rules = set(re.findall(r"\bR\d+\.\d+\b", table))
    for section, first, last in re.findall(r"\bR(\d+)\.(\d+) to R\d+\.(\d+)", table):
        rules |= {f"R{section}.{number}" for number in range(int(first), int(last) + 1)}
    return rules


class Names(unittest.TestCase):
    def test_rules_are_documented(self):
        known = documented_rules()
        named = 0
        for file, text in texts(*TEXTS):
            for rule in re.findall(r"\bR\d{1,2}\.\d{1,2}\b", text):
                named += 1
                self.assertIn(rule, known, f"{file} names {rule}, docs/allocator-rules.md does not")
        self.assertGreater(named, 100)

    def test_files_of_rules_exist(self):
        rows = re.findall(r"^\| (?:R\d|section).*\| ([^|]+) \|$", (ROOT / "docs/allocator-rules.md").read_text(), re.M)
        self.assertGreater(len(rows), 30)
        for name in re.findall(r"`([^`]+)`", " ".join(rows)):
            stem = ROOT / (name if "/" in name else "sim/memory/caching/" + name)
            self.assertTrue(list(stem.parent.glob(stem.name + ".[ch]pp")), f"docs/allocator-rules.md names {name}")

    def test_cases_are_documented(self):
        known = set(re.findall(r"^\| (K\d-\d\d) \|", (ROOT / "docs/reported-cases.md").read_text(), re.M))
        named = 0
        for file, text in texts(*TEXTS):
            for case in re.findall(r"\bK\d-\d\d", text):
                named += 1
                self.assertIn(case, known, f"{file} names {case}, docs/reported-cases.md does not")
        self.assertGreater(named, 50)

    def test_no_other_ids(self):
        for file, text in texts(".cpp", ".hpp", ".h", ".cu", ".md", ".py", ".mjs"):
            self.assertEqual(re.findall(r"\bP\d\.\d\b", text), [], file)


class Contributing(unittest.TestCase):
    """Paths and identifiers in backquotes where the project describes itself, and links between documents."""

    def names(self):
        for document in ("README.md", "CONTRIBUTING.md", "docs/architecture.md"):
            text = re.sub(r"^```.*?^```$", "", (ROOT / document).read_text(), flags=re.S | re.M)
            for name in re.findall(r"`([^`\n]+)`", text):
                yield document, name

    def test_paths_exist(self):
        checked = 0
        for document, name in self.names():
            word = name.split()[0]
            if not re.fullmatch(r"\.?[\w.-]+(/[\w.-]*)*", word) or ("/" not in word and not re.search(r"\.\w+$", word)):
                continue
            if word.startswith("build/") or word == "snapshot.pickle":  # built, or the reader's own
                continue
            checked += 1
            places = re.sub(r"\b[A-Z]{3,}\b", "*", word)  # lab/kinds/KIND/spec.cpp
            found = (ROOT / word).exists() or ((ROOT / document).parent / word).exists() or any(ROOT.glob(places))
            self.assertTrue(found, f"{document} names {word}, which is not there")
        self.assertGreater(checked, 20)

    def test_links_lead_somewhere(self):
        links = 0
        for file, text in texts(".md"):
            for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
                links += 1
                self.assertTrue((ROOT / file).parent.joinpath(target).exists(), f"{file} links to {target}")
        self.assertGreater(links, 20)

    def test_identifiers_exist(self):
        words = set()
        for _, text in texts(".cpp", ".hpp", ".h", ".cu", ".txt", ".cmake"):
            words |= set(re.findall(r"\w+", text))
        checked = 0
        for document, name in self.names():
            if not re.fullmatch(r"k?[A-Z]\w+(::\w+)*|\w+_\w+(\(\))?|[A-Z]\w+<[\w, ]+>", name):
                continue
            for word in re.findall(r"\w+", name):
                if re.fullmatch(r"[A-Z]+", word):  # a placeholder
                    continue
                checked += 1
                self.assertIn(word, words, f"{document} names {name}, which is not in the sources")
        self.assertGreater(checked, 10)


if __name__ == "__main__":
    unittest.main()
