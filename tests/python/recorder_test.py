"""Trains a pretended model on the stub of torch, records it, and lets vramlab fit and predict it.

usage: recorder_test.py VRAMLAB
"""

import json
import os
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "stub"), os.path.join(here, "..", "..", "python")]

import torch  # noqa: E402: the stub
from vramlab_recorder import Recorder  # noqa: E402

memory = torch.cuda.memory
weights, moments, gradients = [], [], []


def train_step(batch, seq):
    activations = [memory.alloc(64 * batch * seq), memory.alloc(1000 + 8 * batch), memory.alloc(2 * seq)]
    while gradients:
        memory.free(gradients.pop(0))
    gradients.extend(memory.alloc(size) for size in (40960, 512))
    for activation in reversed(activations):
        memory.free(activation)
    if not moments:
        moments.extend(memory.alloc(size) for size in (40960, 40960, 512, 512))


def run(vramlab, *words):
    done = subprocess.run([vramlab, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def main(vramlab):
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "run")
        recorder = Recorder()
        weights.extend(memory.alloc(size) for size in (40960, 512))
        recorder.built()
        for batch, seq in [(2, 128), (2, 128), (4, 256), (4, 256), (8, 128), (8, 128), (3, 96), (3, 96)]:
            with recorder.step(batch=batch, seq=seq):
                train_step(batch, seq)
        try:
            with recorder.step(batch=512, seq=512):
                raise torch.cuda.OutOfMemoryError("stub")
        except torch.cuda.OutOfMemoryError:
            pass
        for wrong in (8.0, True, [1, None]):
            try:
                with recorder.step(batch=wrong):
                    raise AssertionError("not reached")
            except TypeError as error:
                assert "batch=" in str(error), error
        try:
            with recorder.step(batch=2, seq=128):
                memory.free(memory.alloc(512))
                raise RuntimeError("CUBLAS_STATUS_ALLOC_FAILED")
        except RuntimeError:
            pass
        try:
            recorder.time(lambda: train_step(2, 128), batch=2, seq=128)
            raise AssertionError("not reached")
        except RuntimeError as error:
            assert "after save()" in str(error), error
        recorder.save(name)

        marks = json.load(open(name + ".marks.json"))["marks"]
        assert [m["phase"] for m in marks] == ["other"] * 2 + ["step"] * 9 + ["other"]
        assert [m["oom"] for m in marks] == [False] * 10 + [True, False]
        assert marks[4]["params"] == {"batch": 4, "seq": 256}
        assert marks[0]["mem_get_info"] == [7 << 30, 8 << 30]

        fitted = json.loads(run(vramlab, "fit", name + ".pickle", "--marks", name + ".marks.json", "-o",
                                name + ".json", "--json", "-"))
        assert fitted["residuals"]["exact"] == fitted["residuals"]["allocations"] == 5, fitted
        data = json.load(open(name + ".json"))["data"]
        assert data["extras"] == [40960, 40960, 512, 512] and data["kept"] == 2, data
        asked = json.loads(run(vramlab, "predict", name + ".json", "--set", "batch=16", "--set", "seq=1000",
                               "--json", "-"))
        # 7 tensors that stay, old gradients freed before new ones: blocks of 512 B
        blocks = [64 * 16 * 1000, 1000 + 8 * 16, 2 * 1000] + [40960, 512] * 4
        assert asked["step_seconds"] is None, asked  # nothing was timed
        assert asked["peak_allocated_bytes"] == sum((b + 511) // 512 * 512 for b in blocks), asked

        for batch in (2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28):
            recorder.time(lambda: (train_step(batch, 128), time.sleep(batch * 1e-3)), batch=batch, seq=128)
        recorder.save_times(name)
        rows = json.load(open(name + ".times.json"))["rows"]
        assert len(rows) == 12 and len(rows[0]["step_ms"]) == 3 and rows[0]["step_ms"][0] >= 2, rows
        again = ("fit", name + ".pickle", "--marks", name + ".marks.json", "-o", name + ".json", "--times")
        run(vramlab, *again, name + ".times.json")
        asked = json.loads(run(vramlab, "predict", name + ".json", "--set", "batch=16", "--set", "seq=128", "--json", "-"))
        assert 0.014 < asked["step_seconds"] < 0.05, asked  # 16 ms of sleep
    print("ok")


main(sys.argv[1])
