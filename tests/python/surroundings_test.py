"""The same command prints and writes the same bytes in any folder and under a locale with commas, and so does the
library in a process that has set such a locale.

usage: surroundings_test.py PROGRAM LIBRARY
"""

import gzip
import json
import locale
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

LIBRARY, PROGRAM = map(os.path.abspath, (sys.argv.pop(), sys.argv.pop()))
ROOT = Path(__file__).resolve().parent.parent.parent
COMMA = "de_DE.UTF-8"  # 0,5 instead of 0.5, and 1.000 instead of 1000

# The threshold goes in steps that are no whole numbers.
SWEEP = {
    "version": 1, "kind": "training", "name": "small", "objective": "samples_per_s",
    "device": {"total": "9.765625GiB", "context": 0},
    "workload": {"model": {"kind": "linear", "fixed": "1000MiB", "per_sample": "810MiB", "parameters": {"batch": [2, 64]},
                           "step_time": {"floor_ms": 100.5}},
                 "iterations": 60, "start": {"batch": 8}},
    "policies": [{"use": "threshold-step", "step": 2}],
    "sweep": [{"vary": "/policies/0/target_vram_usage", "from": 0.6, "to": 0.8, "step": 0.05}],
}
OOM = "docs/examples/oom-neighbour.txt"
BERT = "tests/data/recorded/bert.pickle.gz"


def commands():
    """Words, with files by whole paths; what they write goes into the folder that they run in."""
    picture = ["--picture", "ratchet.svg"] if shutil.which("gnuplot") else []
    return [
        ["compare", ROOT / "scenarios/ratchet.json", "--policies", "peak", "--json", "ratchet.json", "--trace-dir", "traces", *picture],
        ["compare", "sweep.json", "--json", "answer.json", "--results", "results.csv"],
        ["run", ROOT / "scenarios/ratchet.json", "--policy", "peak", "--first-iterations", "40", "--trace", "trace.csv", "--report",
         "run.html", "--export", "run.pickle"],
        ["whatif", ROOT / BERT, "--capacity", "2.5GiB", "--format", "csv"],
        ["explain", ROOT / OOM],
    ]


class Surroundings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.plain = cls.ran("here", {"LC_ALL": "C"})

    @classmethod
    def ran(cls, name, environment):
        """{file: bytes} of all that the commands print and write in a folder of this name."""
        folder = cls.folder / name
        folder.mkdir(parents=True)
        (folder / "sweep.json").write_text(json.dumps(SWEEP))
        found = {}
        for words in commands():
            done = subprocess.run([PROGRAM, *words], cwd=folder, env={**os.environ, **environment}, capture_output=True)
            assert done.returncode in (0, 1), done.stderr
            found[" ".join(map(str, words))] = (done.returncode, done.stdout, done.stderr)
        for file in filter(Path.is_file, folder.rglob("*")):
            whole = file.read_bytes()
            found[str(file.relative_to(folder))] = gzip.decompress(whole) if whole[:2] == b"\x1f\x8b" else whole
        return found

    def same(self, other):
        self.assertEqual(sorted(self.plain), sorted(other))
        for name, what in self.plain.items():
            self.assertEqual(what, other[name], name)

    def comma_locale(self):
        """A folder with the locale, for LOCPATH."""
        words = ["localedef", "-i", "de_DE", "-f", "UTF-8", self.folder / COMMA]
        if not shutil.which(words[0]) or subprocess.run(words, capture_output=True).returncode != 0:
            self.skipTest("localedef cannot make de_DE.UTF-8 here (package locales)")
        return self.folder

    def test_two_folders(self):
        self.same(self.ran("a longer name/with a space", {"LC_ALL": "C"}))

    def test_a_comma_in_the_environment(self):
        place = self.comma_locale()
        self.same(self.ran("comma", {"LC_ALL": COMMA, "LOCPATH": str(place)}))

    def test_a_comma_in_the_process_of_the_library(self):
        place = self.comma_locale()
        os.environ["VRAMLAB_LIBRARY"] = LIBRARY
        sys.path.insert(0, str(ROOT / "python"))
        import vramlab

        def answers():
            texts = {"sweep.json": json.dumps(SWEEP)}
            given = [vramlab.ask("compare", "sweep.json", texts=texts), vramlab.ask("explain", str(ROOT / OOM)),
                     vramlab.ask("whatif", str(ROOT / BERT), "--capacity", "2.5GiB")]
            return [(answer.text, json.dumps(answer)) for answer in given]

        plain = answers()
        os.environ["LOCPATH"] = str(place)
        self.addCleanup(os.environ.pop, "LOCPATH")
        self.addCleanup(locale.setlocale, locale.LC_ALL, "C")
        locale.setlocale(locale.LC_ALL, COMMA)
        self.assertEqual(locale.localeconv()["decimal_point"], ",")
        self.assertEqual(answers(), plain)


if __name__ == "__main__":
    unittest.main()
