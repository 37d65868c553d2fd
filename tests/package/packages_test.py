"""Tries the packages of scripts/package where nothing else is: an empty root, and a new Debian system.

usage: packages_test.py FOLDER_OF_PACKAGES   (scripts/package --check calls it)

What cannot be tried here is skipped with the reason. DEBIAN_ROOT names a folder made by
`debootstrap --variant=minbase`, so that none is made anew; it is copied, not changed.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

PACKAGES = Path(".")
SOURCE = Path(__file__).resolve().parent.parent.parent
RECORDING = "tests/data/recorded/resnet.pickle.gz"
# Commands of README.md: what is asked, and the beginning of a line of the answer.
COMMANDS = [
    (["whatif", RECORDING, "--capacity", "4GiB"], "Fits on a card of 4.0 GiB (context assumed) with default settings"),
    (["explain", "docs/examples/oom-fraction.txt"], ""),
    (["compare", "scenarios/ratchet.json", "--report", "/tmp/r.html"], "Best: predictive, 0.9 % short of the best safe fixed"),
    (["check", "scenarios/resnet-on-cards.json"], ""),
]
QUICK = ["ratchet", "corner", "start-up", "fault-restart", "epoch-skewed", "find-gpt2", "queue-race", "resnet-on-cards"]


def only(pattern):
    found = sorted(PACKAGES.glob(pattern))
    if len(found) != 1:
        raise AssertionError(f"{PACKAGES}/{pattern}: {len(found)} files instead of one")
    return found[0]


def can_change_root():
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0


# Runs as root of a namespace of its own, which is nobody special outside. The program asks /proc where it lies.
INSIDE = """
import os, subprocess, sys
root, folder, program = sys.argv[1:4]
subprocess.run(["mount", "--rbind", "/proc", root + "/proc"], check=True)
os.chroot(root)
os.chdir(folder)
os.execve(program, sys.argv[3:], {})
"""


def run_in(root, folder, words, namespaces="-rm"):
    """Runs words in `root` as its whole file system."""
    return subprocess.run(["unshare", namespaces, sys.executable, "-c", INSIDE, root, folder, *words],
                          capture_output=True, text=True, check=False)


class Archive(unittest.TestCase):
    """The archive in a root that holds nothing but it and an empty /tmp and /proc: no C library, no shell, no gnuplot."""

    @classmethod
    def setUpClass(cls):
        if not can_change_root():
            raise unittest.SkipTest("unshare -rm is not allowed here")
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = Path(cls.folder.name)
        for folder in ("tmp", "proc"):
            (cls.root / folder).mkdir()
        start = time.monotonic()
        with tarfile.open(only("vramlab-*-linux-*.tar.gz")) as archive:
            archive.extractall(cls.root / "anywhere")
        cls.unpacked = time.monotonic() - start
        (cls.name,) = os.listdir(cls.root / "anywhere")
        cls.home = f"/anywhere/{cls.name}"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def ask(self, *words):
        return run_in(self.root, self.home, [f"{self.home}/bin/vramlab", *words])

    def test_readmes_commands_answer(self):
        print(f"\nunpacked in {self.unpacked:.1f} s")
        for words, begin in COMMANDS:
            start = time.monotonic()
            done = self.ask(*words)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue(any(line.startswith(begin) for line in done.stdout.splitlines()), done.stdout)
            print(f"vramlab {' '.join(words)}: {time.monotonic() - start:.1f} s")

    def test_answers_are_those_of_the_normal_program(self):
        normal = SOURCE / "build/release/vramlab"
        if not normal.exists():
            self.skipTest("build/release/vramlab is not built")
        for name in QUICK:
            words = ["compare", f"scenarios/{name}.json", "--json", "-"]
            ours = self.ask(*words)
            theirs = subprocess.run([normal, *words], cwd=SOURCE, capture_output=True, text=True, check=False)
            self.assertEqual((name, ours.stdout, ours.stderr, ours.returncode),
                             (name, theirs.stdout, theirs.stderr, theirs.returncode))

    def test_what_is_left_out_says_so(self):
        done = self.ask("compare", "scenarios/ratchet.json", "--picture", "/tmp/p.svg")
        self.assertEqual((done.returncode, "gnuplot is needed to draw it" in done.stderr), (2, True), done.stderr)
        done = self.ask("compare", "scenarios/ratchet.json", "--plugin", "LICENSE")
        self.assertEqual((done.returncode, "linked statically and cannot load plugins" in done.stderr), (2, True), done.stderr)
        done = self.ask("compare", "scenarios/ratchet.json", "--device", "cuda")
        self.assertEqual((done.returncode, "this build has no CUDA" in done.stderr), (2, True), done.stderr)

    def test_licences_of_what_is_inside_are_there(self):
        names = sorted(file.name for file in (self.root / self.home[1:] / "licences").iterdir())
        self.assertEqual(names, ["boost", "bzip2", "eigen", "fmt", "glibc", "libstdc++", "nlohmann-json", "xz", "yaml-cpp",
                                 "zlib", "zstd"])
        self.assertTrue((self.root / self.home[1:] / "LICENSE").exists())


class DebianPackage(unittest.TestCase):
    """The .deb in a new Debian system, with what apt finds that it needs."""

    def test_installs_and_answers(self):
        if os.geteuid() != 0 or shutil.which("debootstrap") is None:
            self.skipTest("needs root and debootstrap")
        package = only("vramlab_*.deb")
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "root"
            given = os.environ.get("DEBIAN_ROOT")
            make = ["cp", "-a", given, root] if given else ["debootstrap", "--variant=minbase", "bookworm", root]
            done = subprocess.run(make, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                self.skipTest("no Debian system could be made: " + (done.stdout + done.stderr)[-300:])
            shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
            shutil.copy(package, root / "tmp")

            def inside(*words):
                return subprocess.run(["chroot", root, *words], capture_output=True, text=True, check=False,
                                      env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"})

            inside("apt-get", "update")
            done = inside("apt-get", "install", "-y", "--no-install-recommends", f"/tmp/{package.name}")
            self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-2000:])
            shared = "/usr/share/vramlab"
            for words, begin in COMMANDS:
                words = [f"{shared}/{word}" if (root / f"usr/share/vramlab/{word}").exists() else word for word in words]
                if words[0] == "explain":
                    shutil.copy(SOURCE / words[1], root / "tmp/message.txt")
                    words = ["explain", "/tmp/message.txt"]
                nobody = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
                done = run_in(root, "/", [*nobody, "/usr/bin/vramlab", *words], "-m")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertTrue(any(line.startswith(begin) for line in done.stdout.splitlines()), done.stdout)
            self.assertEqual(inside("apt-get", "remove", "-y", "vramlab").returncode, 0)
            self.assertFalse((root / "usr/share/vramlab").exists())


if __name__ == "__main__":
    PACKAGES = Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
