"""Records the memory of a training loop for `vramlab fit`: marks of the steps, and the snapshot.

    from vramlab_recorder import Recorder

    recorder = Recorder()                  # before the model is built
    model, optimizer = build()
    recorder.built()
    for batch, seq in [(2, 128), (2, 128), (4, 256), (4, 256), (8, 128), (8, 128)]:
        with recorder.step(batch=batch, seq=seq):
            train_step(model, optimizer, batch, seq)
    recorder.save("run")                   # run.pickle and run.marks.json

    for batch, seq in shapes:              # a second pass: recording slows steps down
        recorder.time(lambda: train_step(model, optimizer, batch, seq), batch=batch, seq=seq)
    recorder.save_times("run")             # run.times.json

Then: vramlab fit run.pickle --marks run.marks.json --times run.times.json -o model.json

The second pass may be left out; the model then has no times, and no rates come from it. Every other point gives the
law of the time and the others show its error: time a dozen shapes, the smallest and the largest among them. Steps
under `recorder.step` are timed after save(), too, each shape from its second step on.

Record every shape twice: what the first step of a process keeps for good (optimizer state, workspaces) is told
from gradients by the second. Let every parameter move, and not together. For steps over items of different
lengths give lists and words with one entry an item, and the number of items of each kind:

    with recorder.step(short=2, long=1, kinds=["short", "long", "short"], lengths=[51, 213, 60]):

Needs PyTorch 2.2 or newer and nothing else. Recording costs some microseconds an allocation.
"""

import contextlib
import json
import operator
import os
import time

import torch

MAX_ENTRIES = 1_000_000  # of the history; older ones would be lost


def _plain(name, value):
    """A whole number, a word, or a list of either, as the marks file has them; NumPy's numbers become Python's."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(name, one) for one in value]
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name}={value!r}: a parameter of a step is a whole number, a word, or a list of either")


@contextlib.contextmanager
def whole_file(name):
    """The name of a file beside `name`, which takes its place once it is written; until then, and where writing fails,
    what was there stays."""
    part = f"{name}.part"
    try:
        yield part
        os.replace(part, name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)


def _write(name, text):
    with whole_file(name) as part, open(part, "w") as file:
        file.write(text + "\n")


def _ranks():
    """Which process of how many this is, where there are several; one file a rank then."""
    parallel = getattr(torch, "distributed", None)
    if parallel is None or not (parallel.is_available() and parallel.is_initialized()):
        return {}
    return {"world": parallel.get_world_size(), "rank": parallel.get_rank()}


class Recorder:
    """Switches the recording of memory on; `save` switches it off. record=False: it only takes times."""

    def __init__(self, max_entries=MAX_ENTRIES, stacks=False, record=True):
        self.marks = []
        self.rows = []
        self.recording = record
        self._row_of = {}  # by parameters, of steps that are timed one by one
        torch.cuda.init()
        if not record:
            return
        torch.cuda.memory._record_memory_history(
            "all", context="all" if stacks else None, max_entries=max_entries)
        self._mark("other", "start", {}, False)

    def built(self, label="built"):
        """What was allocated so far is the model, not a step."""
        self._mark("other", label, {}, False)

    @contextlib.contextmanager
    def step(self, **params):
        """Everything inside is one step with these parameters. Out-of-memory errors are noted and passed on.

        While nothing is recorded it is timed instead, unless it is the first of these parameters: in that libraries
        choose their algorithms, and its peaks are noted.
        """
        params = {name: _plain(name, value) for name, value in params.items()}
        if not self.recording:
            with self._timed(params):
                yield
            return
        label = " ".join(f"{name}{value}" for name, value in params.items() if isinstance(value, int))
        try:
            yield
        except torch.cuda.OutOfMemoryError:
            self._mark("step", label, params, True)
            raise
        except Exception:  # no whole step: not to be counted into the next one
            self._mark("other", f"failed {label}", {}, False)
            raise
        self._mark("step", label, params, False)

    def phase(self, label):
        """What happened since the last mark is neither building nor a step (validation, saving)."""
        self._mark("other", label, {}, False)

    def save(self, name):
        """Writes name.pickle and name.marks.json."""
        torch.cuda.synchronize()
        with whole_file(f"{name}.pickle") as part:
            torch.cuda.memory._dump_snapshot(part)
        torch.cuda.memory._record_memory_history(None)
        self.recording = False
        text = json.dumps({"workload": name, **_ranks(), "marks": self.marks}, indent=1)
        _write(f"{name}.marks.json", text)

    @contextlib.contextmanager
    def _timed(self, params):
        key = json.dumps(params, sort_keys=True)
        row = self._row_of.get(key)
        if row is None:
            base = self._begin_row()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        yield  # a step that fails is not counted
        torch.cuda.synchronize()
        if row is not None:
            row["step_ms"].append((time.perf_counter() - begin) * 1e3)
            return
        self._row_of[key] = row = {**params, "base": base, **self._peaks(), "step_ms": []}
        self.rows.append(row)

    def _begin_row(self):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()

    def _peaks(self):
        return {"peak_allocated": torch.cuda.max_memory_allocated(), "peak_reserved": torch.cuda.max_memory_reserved()}

    def time(self, step, steps=4, **params):
        """Runs `step()` four times with these parameters and notes its memory and the times of all but the first."""
        if self.recording:
            raise RuntimeError("time() comes after save(): what is recorded is slower")
        row = {name: _plain(name, value) for name, value in params.items()}
        row["base"] = self._begin_row()
        times = []
        for _ in range(steps):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            step()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) * 1e3)
        row.update(self._peaks(), step_ms=times[1:])
        self.rows.append(row)

    def save_times(self, name):
        """Writes name.times.json."""
        warm_up = [{key: value for key, value in row.items() if key not in ("peak_allocated", "peak_reserved", "step_ms")}
                   for row in self.rows[:1]]
        text = json.dumps({"name": name, "device": torch.cuda.get_device_name(),
                           "total_memory": torch.cuda.mem_get_info()[1], "warm_up": warm_up, "rows": self.rows}, indent=1)
        _write(f"{name}.times.json", text)

    def _mark(self, phase, label, params, oom):
        if not self.recording:
            return
        torch.cuda.synchronize()
        # [free, total] of the card: what neither is free nor the allocator's is context, libraries, NCCL and others
        info = list(torch.cuda.mem_get_info())
        self.marks.append({"t_us": time.time_ns() // 1000, "phase": phase, "label": label,
                           "params": dict(params), "oom": oom, "mem_get_info": info})
        # an entry of the next step must be later than the mark, to the microsecond
        while time.time_ns() // 1000 <= self.marks[-1]["t_us"]:
            pass
