"""scripts/guards against a program that prints and writes something else: guards_test.py SCRIPT PROGRAM"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop()
SCRIPT = sys.argv.pop()
# The real program, but one more card in a table and another default in a long file.
OTHER = f"""#!/bin/sh
"{PROGRAM}" "$@" || exit
case "$1 $2" in
"gpus ") echo 'gtx-1080-8gb';;
"schema -o") sed -i 's/"maximum":/"most":/' "$3";;
esac
"""


class Guards(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.other = Path(self.folder.name) / "vramlab"
        self.other.write_text(OTHER)
        self.other.chmod(0o755)

    def look(self, program, *options):
        done = subprocess.run([sys.executable, SCRIPT, "--check", *options], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "VRAMLAB": str(program)})
        return done.returncode, done.stdout

    def test_equal_outputs_pass(self):
        code, text = self.look(PROGRAM, "reference")
        self.assertEqual(code, 0, text)
        self.assertIn("commands: as kept", text)

    def test_a_difference_of_a_short_output_is_shown(self):
        code, text = self.look(self.other, "reference")
        self.assertEqual(code, 1)
        self.assertIn("\n+gtx-1080-8gb\n", text)

    def test_a_difference_of_a_long_file_is_shown_against_the_program_before(self):
        self.assertNotIn('"most":', self.look(self.other, "reference")[1])
        code, text = self.look(self.other, "--base", PROGRAM, "reference")
        self.assertEqual(code, 1)
        self.assertRegex(text, r'\n-\s+"maximum": \d+')
        self.assertRegex(text, r'\n\+\s+"most": \d+')

    def test_a_group_that_there_is_not_is_refused(self):
        code, text = self.look(PROGRAM, "nothing")
        self.assertEqual(code, 2)
        self.assertIn("there is no group nothing: help,", text)


if __name__ == "__main__":
    unittest.main()
