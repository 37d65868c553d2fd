"""Records what a program does to memory, for `vramlab fit`, `whatif` and `verify`.

    python3 -m vramlab.record -o run train.py ARGUMENTS

runs train.py and writes run.pickle and run.marks.json. A step ends where an optimizer has stepped. Its parameters are the
sizes of the first tensor that the first module of the step was given: size0 is the batch in most programs. What is
recorded is slower; with --times the program runs once more without, and run.times.json has its times. Inside a program
the same with names of its own:

    with vramlab.record("run") as recorder:
        ...
        recorder.built()
        with recorder.step(batch=8):
            train_step(8)
"""

import argparse
import bisect
import contextlib
import gzip
import logging
import os
import pickle
import runpy
import shutil
import subprocess
import sys
import time
import types
from typing import Any, Dict, Iterator, List, Optional

from ._library import Error
from ._memory import torch

logger = logging.getLogger("vramlab")


def _recorder() -> Any:
    """The module vramlab_recorder: beside this package in the source tree, and in the wheel."""
    torch()
    try:
        import vramlab_recorder
    except ImportError:
        sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        import vramlab_recorder
    return vramlab_recorder


class _ModuleNames:
    """Notes which modules are in their forward, and writes them into a snapshot as the stacks of what was allocated.

    A block's frames are then the names of modules, the innermost first, in files called as their classes. Backward has
    none, save where checkpointing runs a forward again.
    """

    def __init__(self) -> None:
        self._names: Dict[int, Any] = {}  # by id: the module, which must stay for that, and its frame
        self._open: List[int] = []
        self._times: List[int] = []
        self._frames: List[List[Any]] = []
        self._known: Dict[Any, List[Any]] = {}  # equal stacks are one object, which a pickle holds once
        module = torch().nn.modules.module
        try:
            self._handles = [module.register_module_forward_pre_hook(self._begins),
                             module.register_module_forward_hook(self._ends, always_call=True)]
        except (AttributeError, TypeError):
            raise Error("modules: this PyTorch has no hooks for all modules that follow an error (2.1 or newer has them).") \
                from None

    def _begins(self, module: Any, inputs: Any) -> None:
        if id(module) not in self._names:
            for name, one in module.named_modules():
                frame = {"name": name or "(whole)", "filename": type(one).__name__, "line": 0}
                self._names.setdefault(id(one), (one, frame))
        self._open.append(id(module))
        self._note()

    def _ends(self, module: Any, inputs: Any, outputs: Any) -> None:
        if id(module) in self._open:
            while self._open.pop() != id(module):
                pass
            self._note()

    def _note(self) -> None:
        stack = tuple(reversed(self._open))
        frames = self._known.setdefault(stack, [self._names[one][1] for one in stack])
        self._times.append(time.time_ns() // 1000)
        self._frames.append(frames)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def write(self, file: str) -> None:
        with open(file, "rb") as opened:
            snapshot = pickle.load(opened)  # written by this process a moment ago
        for trace in snapshot["device_traces"]:
            for entry in trace or []:
                place = bisect.bisect_right(self._times, entry["time_us"]) - 1
                if place >= 0 and self._frames[place]:
                    entry["frames"] = self._frames[place]
        with _recorder().whole_file(file) as part, open(part, "wb") as opened:
            pickle.dump(snapshot, opened)


@contextlib.contextmanager
def record(name: str, *, golden: bool = False, only_times: bool = False, modules: bool = False, device: str = "cuda",
           card: str = "h100-80gb", stand_in: Optional[Dict[str, Any]] = None, **more: Any) -> Iterator[Any]:
    """Records the block and writes name.pickle and name.marks.json at its end, after an error as well.

    Steps after recorder.save(name) are timed, and all are with only_times, which records nothing: name.times.json is
    then written as well, or alone. modules: what a forward allocates is marked with the names of its modules, which
    `whatif` then shows by frame and their classes by module. golden: small files to keep beside a test, for `vramlab
    judge`: stacks cut to the project's own frames (unless stacks=False, or modules), and the pickle compressed
    (name.pickle.gz). `more` goes to vramlab_recorder.Recorder: stacks=True, max_entries=….

    device="fake": on no card at all, as on `card`; stand_in gives values to what the program reads from the card, by the
    place that reads it: {"train.py:40": 0.0}. See docs/no-gpu.md.
    """
    if modules and (more.get("stacks") or only_times):
        raise Error("modules: names of modules take the place of stacks in what is recorded. Leave stacks and only_times out.")
    if golden and not modules and not only_times:
        more.setdefault("stacks", True)
    if device not in ("cuda", "fake"):
        raise Error(f'device={device!r}: is "cuda", or "fake" for a program that runs without a card.')
    if device == "fake" and (only_times or modules):
        raise Error('device="fake": nothing runs on a card, so there are no times, and names of modules are told by the time '
                    "they ran at. Leave only_times and modules out; stacks=True shows who allocates.")
    if only_times and (golden or more.get("stacks")):
        raise Error("only_times: records nothing, so golden and stacks say nothing. Leave them out.")
    folder = os.path.dirname(os.path.abspath(name))
    if not os.access(folder, os.W_OK):
        raise Error(f"{folder}: is not a folder that can be written to; nothing was recorded.")
    if device == "fake":
        yield from _recorded_on_no_card(name, card, stand_in, golden, bool(more.get("stacks")))
        return
    recorder = _recorder().Recorder(record=not only_times, **more)
    names = _ModuleNames() if modules else None
    try:
        yield recorder
    finally:
        if names is not None:
            names.remove()
        try:
            _save(recorder, name, names, golden, only_times, golden and bool(more.get("stacks")))
        except OSError as error:
            raise Error(f"{error.filename or name}: {error.strerror}; what was not written yet is lost, and what was there "
                        "before is as it was.") from error


def _recorded_on_no_card(name: str, card: str, stand_in: Optional[Dict[str, Any]], golden: bool, stacks: bool) -> Iterator[Any]:
    from ._fake_record import recording, require_card

    require_card(card)
    _recorder()

    try:
        with recording(name, card, stand_in, stacks) as recorder:
            yield recorder
    finally:
        if golden and os.path.exists(f"{name}.pickle"):
            if stacks:
                _cut_stacks(f"{name}.pickle")
            _compress(f"{name}.pickle")


def _compress(file: str) -> None:
    """FILE.gz takes its place, the same for the same bytes."""
    with _recorder().whole_file(f"{file}.gz") as part, open(file, "rb") as plain, open(part, "wb") as opened, \
            gzip.GzipFile("", "wb", mtime=0, fileobj=opened) as small:
        shutil.copyfileobj(plain, small)
    os.unlink(file)


def _is_projects(frame: Any) -> bool:
    """Whether a frame of a stack tells the project's reader something; the optimizer's are what it is told by."""
    path = str(frame.get("filename", "")).replace("\\", "/")
    if "/torch/optim/" in path:
        return True
    standard = os.path.dirname(os.__file__).replace("\\", "/") + "/"
    installed = "/site-packages/" in path or "/dist-packages/" in path
    in_torch = "/torch/" in path and (installed or "/lib/" in path)
    return path.endswith(".py") and not in_torch and (installed or not path.startswith(standard))


def _cut_stacks(file: str) -> None:
    """Leaves of every stack in a snapshot what is not PyTorch's own or Python's; equal stacks become one object."""
    with open(file, "rb") as opened:
        snapshot = pickle.load(opened)  # written by this process a moment ago
    known: Dict[Any, List[Any]] = {}
    frames: Dict[Any, Any] = {}

    def cut(holder: Any) -> None:
        if not holder.get("frames"):
            return
        key = tuple((one.get("filename"), one.get("line"), one.get("name")) for one in holder["frames"] if _is_projects(one))
        if key not in known:
            known[key] = [frames.setdefault(one, dict(zip(("filename", "line", "name"), one))) for one in key]
        holder["frames"] = known[key]

    for trace in snapshot.get("device_traces") or []:
        for entry in trace or []:
            cut(entry)
    for segment in snapshot.get("segments") or []:
        cut(segment)
        for block in segment.get("blocks") or []:
            cut(block)
    with _recorder().whole_file(file) as part, open(part, "wb") as opened:
        pickle.dump(snapshot, opened)


def _save(recorder: Any, name: str, names: Optional[_ModuleNames], golden: bool, only_times: bool, cut: bool) -> None:
    if recorder.recording:
        recorder.save(name)
    if names is not None:
        names.write(f"{name}.pickle")
    if cut:
        _cut_stacks(f"{name}.pickle")
    if recorder.rows:
        recorder.save_times(name)
    elif only_times:
        logger.warning("no step ended, so %s.times.json was not written", name)
    if golden:
        _compress(f"{name}.pickle")


class _StepMarks:
    """Makes a step of everything between two steps of an optimizer."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._sizes: Optional[Dict[str, int]] = None
        self._step: Any = None
        self._built = False
        module = torch().nn.modules.module
        optimizer = sys.modules.get("torch.optim.optimizer") or torch().optim.optimizer  # PyTorch 2.11 does not name it
        try:
            self._handles: List[Any] = [module.register_module_forward_pre_hook(self._module_begins),
                                        optimizer.register_optimizer_step_post_hook(self._optimizer_stepped)]
        except AttributeError:
            raise Error("this PyTorch has no hooks for all modules and optimizers (2.1 or newer has them): use "
                        "vramlab.record() in the program.") from None

    def _module_begins(self, module: Any, inputs: Any) -> None:
        if self._sizes is not None:
            return
        if not self._built:
            self._recorder.built()
            self._built = True
        shapes = [tuple(one.shape) for one in inputs if hasattr(one, "shape")]
        if not shapes:
            return  # given by keywords, or none: the first module within that has one tells
        self._sizes = {f"size{i}": int(length) for i, length in enumerate(shapes[0])}
        if self._sizes:
            self._step = self._recorder.step(**self._sizes)
            self._step.__enter__()

    def _optimizer_stepped(self, optimizer: Any, arguments: Any, more: Any) -> None:
        if self._step is not None:
            self._step.__exit__(None, None, None)
        self._sizes = self._step = None

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


class _Recording:
    """A recording with the marks of steps that begins and ends with calls."""

    def __init__(self, name: str, **more: Any) -> None:
        self._name, self._more = name, more
        self._open = contextlib.ExitStack()

    def start(self) -> None:
        self.stop()  # a run before that ended without a word
        marks = _StepMarks(self._open.enter_context(record(self._name, **self._more)))
        self._open.callback(marks.remove)

    def stop(self) -> None:
        self._open.close()


def lightning_callback(name: str, **more: Any) -> Any:
    """For Lightning: Trainer(callbacks=[lightning_callback("run")]) records fit() as `python3 -m vramlab.record` does."""
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

    class RecordCallback(_Recording, Callback):
        def on_fit_start(self, trainer: Any, module: Any) -> None:
            self.start()

        def on_fit_end(self, trainer: Any, module: Any) -> None:
            self.stop()

        def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
            self.stop()

    return RecordCallback(name, **more)


def trainer_callback(name: str, **more: Any) -> Any:
    """For the Trainer of transformers: Trainer(..., callbacks=[trainer_callback("run")]) records train() alike."""
    from transformers import TrainerCallback

    class RecordCallback(_Recording, TrainerCallback):
        def on_train_begin(self, arguments: Any, state: Any, control: Any, **others: Any) -> None:
            self.start()

        def on_train_end(self, arguments: Any, state: Any, control: Any, **others: Any) -> None:
            self.stop()

    return RecordCallback(name, **more)


class _Callable(types.ModuleType):
    """vramlab.record is this module once it is imported, and the function all the same."""
    __call__ = staticmethod(record)


sys.modules[__name__].__class__ = _Callable


def _stand_ins(given: List[str]) -> Dict[str, Any]:
    values: Dict[str, Any] = {}
    for one in given:
        place, equals, value = one.rpartition("=")
        try:
            values[place] = {"True": True, "False": False}[value] if value in ("True", "False") else float(value)
        except ValueError:
            equals = ""
        if not equals or not place:
            raise Error(f"--stand-in {one}: is not PLACE=VALUE. Write train.py:40=0.5, or *=0 for every place; a value is a number, "
                        "True or False.")
    return values


def main(words: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m vramlab.record", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="run", metavar="NAME", help="writes NAME.pickle and NAME.marks.json")
    parser.add_argument("--stacks", action="store_true", help="record who allocates (larger files)")
    passes = parser.add_mutually_exclusive_group()
    passes.add_argument("--times", action="store_true", help="run the program once more and write NAME.times.json")
    passes.add_argument("--only-times", action="store_true", help="write NAME.times.json and record nothing")
    parser.add_argument("--modules", action="store_true", help="mark what a forward allocates with the names of modules")
    parser.add_argument("--golden", action="store_true", help="small files to keep beside a test: stacks cut to the project's frames, compressed")
    parser.add_argument("--device", choices=["cuda", "fake"], default="cuda", help="fake: without a card, by PyTorch's fake tensors")
    parser.add_argument("--card", default="h100-80gb", metavar="NAME", help="with --device fake: whose kernels to suppose (h100-80gb)")
    parser.add_argument("--stand-in", action="append", default=[], metavar="PLACE=VALUE",
                        help="with --device fake: a value for what is read from the card at FILE, FILE:LINE, FILE:FUNCTION or *")
    parser.add_argument("program", help="the Python program to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what it is given")
    given = parser.parse_args(words)
    if not os.path.isfile(given.program):
        parser.error(f"{given.program}: there is no such program")
    try:
        if given.device == "fake" and given.times:
            parser.error("--times: nothing runs on a card with --device fake, so there are no times to take")
        stacks = given.stacks or (given.golden and not given.modules)
        with record(given.output, golden=given.golden, stacks=stacks, only_times=given.only_times, modules=given.modules,
                    device=given.device, card=given.card, stand_in=_stand_ins(given.stand_in)) as recorder:
            marks = _StepMarks(recorder)
            sys.argv = [given.program, *given.arguments]
            sys.path.insert(0, os.path.dirname(os.path.abspath(given.program)))
            try:
                runpy.run_path(given.program, run_name="__main__")
            except SystemExit as ending:
                if ending.code:
                    raise
            finally:
                marks.remove()
    except Error as error:
        parser.exit(2, f"{error}\n")
    if not given.times:
        return 0
    again = [sys.executable, "-m", "vramlab.record", "-o", given.output, "--only-times", given.program]
    return subprocess.run([*again, *given.arguments]).returncode  # a process of its own: nothing is warm


if __name__ == "__main__":
    sys.exit(main())
