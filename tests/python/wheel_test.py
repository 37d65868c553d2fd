"""Builds the wheel, installs it into an empty folder, and uses it there with the stub of torch.

usage: wheel_test.py SCRIPTS_WHEEL FOLDER_OF_LIBRARIES
"""

import os
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = """
import torch, vramlab
assert vramlab.__file__.startswith({site!r}), vramlab.__file__
tuner = vramlab.Tuner("threshold-step", batch=(8, 1, 256))
for at in tuner.steps(200):
    with at, torch.Used(at.batch << 20):
        pass
assert tuner["batch"] > 8, tuner.statistics
from vramlab.record import record
import vramlab_recorder
assert vramlab.predict("models/superres-rrdb6.json", at={{"batch": 8, "lq": 96}}).fits  # of the wheel's own data
scenario = {site!r} + "/vramlab/share/vramlab/scenarios/ratchet.json"  # which names a model of theirs
assert vramlab.compare(scenario, policies="fixed").policies[0].finished
print("used")
"""


def main(script, libraries):
    python = os.environ.get("VRAMLAB_PYTHON", "/usr/bin/python3")
    if subprocess.run([python, "-c", "import setuptools, wheel"], capture_output=True).returncode != 0:
        print(f"skipped: {python} has no setuptools or wheel (scripts/setup installs them)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([script, folder, libraries], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        (wheel,) = [name for name in os.listdir(folder) if name.endswith(".whl")]
        assert "-py3-none-linux_" in wheel, wheel
        site = os.path.join(folder, "site")
        with zipfile.ZipFile(os.path.join(folder, wheel)) as file:  # all that pip does with a wheel without scripts
            names = file.namelist()
            file.extractall(site)
        for wanted in ("vramlab/py.typed", "vramlab/libvramlab_policy.so", "vramlab/libvramlab.so", "vramlab/gate.py", "vramlab_recorder.py"):
            assert wanted in names, (wanted, names)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VRAMLAB_")}
        environment["PYTHONPATH"] = os.pathsep.join([site, os.path.join(HERE, "stub")])
        done = subprocess.run([sys.executable, "-c", PROGRAM.format(site=site)], cwd=folder, env=environment,
                              capture_output=True, text=True)
        assert done.stdout == "used\n", done.stdout + done.stderr
    print("the wheel is whole")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
