"""scripts/documents against a program of three words: documents_test.py SCRIPT"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(sys.argv.pop())
PROGRAM = """#!/bin/sh
echo run >> "$RUNS"
case "$1" in
tables) printf 'Best: one.\\n\\n| a |\\n| --- |\\n| 1 |\\n\\n| b |\\n| --- |\\n| 2 |\\n';;
hello) echo 'hello, reader';;
*) echo "$1 is not a verb"; exit 2;;
esac
"""


class Documents(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.program = Path(self.folder.name) / "program"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        self.runs = Path(self.folder.name) / "runs"
        self.document = Path(self.folder.name) / "page.md"

    def look(self, text, *options):
        """Exit code, output, and the document afterwards."""
        self.document.write_text(text)
        done = subprocess.run([sys.executable, SCRIPT, *options, self.document], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "VRAMLAB": str(self.program), "RUNS": str(self.runs)})
        return done.returncode, done.stdout, self.document.read_text()

    def test_a_command_may_leave_out_the_build_folder(self):
        for program in ("vramlab", "build/release/vramlab"):
            right = f"```\n{program} hello\n```\n\n```\nhello, reader\n```\n"
            self.assertEqual(self.look(right)[0], 0)
            self.assertIn("1 checked, as the program says", self.look(right)[1])
            wrong = right.replace("reader", "you")
            self.assertEqual(self.look(wrong)[0], 1)
            self.assertEqual(self.look(wrong, "--write")[::2], (0, right))

    def test_what_cannot_be_rewritten_stays_a_failure(self):
        refused = "```\nvramlab nothing\n```\n\n```\nhello, reader\n```\n"
        missing = "```\nvramlab hello scenarios/none.json\n```\n\n```\nhello, reader\n```\n"
        generated = "<!-- vramlab nothing -->\n\nhello, reader\n\n<!-- end -->\n"
        for text in (refused, missing, generated):
            self.assertEqual(self.look(text)[0], 1)
            self.assertEqual(self.look(text, "--write")[::2], (1, text))

    def test_a_generated_part_may_be_one_table(self):
        right = ("<!-- vramlab tables, table 2 -->\n\n| b |\n| --- |\n| 2 |\n\n<!-- end -->\n\n"
                 "<!-- vramlab tables, table 1 -->\n\n| a |\n| --- |\n| 1 |\n\n<!-- end -->\n")
        self.assertEqual(self.look(right)[0], 0)
        self.assertEqual(self.runs.read_text(), "run\n")  # once for both
        self.assertEqual(self.look(right.replace("2 |", "3 |"), "--write")[::2], (0, right))
        third = right.replace("table 2", "table 3")
        self.assertEqual(self.look(third, "--write")[::2], (1, third))

    def test_a_long_paragraph_is_a_failure_that_the_writer_mends(self):
        sentence = "A sentence of forty characters, all told. "
        for text in (sentence * 11 + "\n", f"- {sentence * 11}\n- {sentence * 11}\n", f"```\n{sentence * 20}\n```\n"):
            self.assertEqual(self.look(text)[0], 0)
        for text in (sentence * 12 + "\n", f"- short\n- {sentence * 12}\n", f"| a |\n| --- |\n| {sentence * 12} |\n"):
            self.assertEqual(self.look(text, "--write")[::2], (1, text))
            self.assertIn("a paragraph of 50", self.look(text)[1])


if __name__ == "__main__":
    unittest.main()
