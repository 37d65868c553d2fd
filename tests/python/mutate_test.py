"""scripts/mutate sees a fault that a test sees, one that none does, and one that does not compile.

usage: mutate_test.py SCRIPT BUILD_FOLDER
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = sys.argv.pop()
SCRIPT = sys.argv.pop()
FAULT = "core/units.cpp\tif (unit != name) continue;\t"
SEEN = FAULT + "if (unit == name) continue;\ttest_core"
UNSEEN = FAULT + "if (unit == name) continue;\ttest_core:Csv.*"  # tests of something else
BROKEN = FAULT + "if (unit != nothing) continue;\ttest_core"
TWICE = "core/units.cpp\tsize\tsizes\ttest_core"


class Mutate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def ran(self, *faults, more=()):
        faults_file = self.folder / "faults.tsv"
        faults_file.write_text("".join(fault + "\n" for fault in faults))
        done = subprocess.run([sys.executable, SCRIPT, "--build", BUILD, "--work", self.folder, "--list", faults_file,
                               *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def test_a_fault_is_seen_and_remembered(self):
        code, text = self.ran(SEEN)
        self.assertEqual(code, 0, text)
        self.assertIn("killed by Units.", text)
        self.assertIn("1 of 1 faults are noticed", text)
        self.assertNotIn("killed by", self.ran(SEEN)[1])  # not tried again

    def test_what_survives_and_what_does_not_compile(self):
        code, text = self.ran(UNSEEN, BROKEN)
        self.assertEqual(code, 1, text)
        self.assertIn("does not compile", text)
        self.assertIn("0 of 1 faults are noticed\nsurvives: core/units.cpp", text)

    def test_a_list_that_does_not_fit(self):
        code, text = self.ran(TWICE, more=["--check"])
        self.assertEqual(code, 1)
        self.assertIn("1 faults, 1 do not fit the sources", text)


if __name__ == "__main__":
    unittest.main()
