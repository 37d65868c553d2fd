"""Records what a program does to memory, for `vramlab fit`, `whatif` and `verify`.

    python3 -m vramlab.record -o run train.py ARGUMENTS

runs train.py and writes run.pickle and run.marks.json. A step ends where an optimizer has stepped. Its parameters are the
sizes of the first tensor that the first module of the step was given: size0 is the batch in most programs. Inside a
program the same with names of its own:

    with vramlab.record("run") as recorder:
        ...
        recorder.built()
        with recorder.step(batch=8):
            train_step(8)
"""

import argparse
import contextlib
import gzip
import os
import runpy
import shutil
import sys
import types
from typing import Any, Dict, Iterator, List, Optional

from ._library import Error
from ._memory import torch


def _recorder() -> Any:
    """The module vramlab_recorder: beside this package in the source tree, and in the wheel."""
    torch()
    try:
        import vramlab_recorder
    except ImportError:
        sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        import vramlab_recorder
    return vramlab_recorder


@contextlib.contextmanager
def record(name: str, *, golden: bool = False, **more: Any) -> Iterator[Any]:
    """Records the block and writes name.pickle and name.marks.json at its end, after an error as well.

    golden: small files to keep beside a test: no stacks, and the pickle compressed (name.pickle.gz). `more` goes to
    vramlab_recorder.Recorder: stacks=True, max_entries=….
    """
    if golden and more.get("stacks"):
        raise Error("golden and stacks: small files have no stacks. Leave one out.")
    folder = os.path.dirname(os.path.abspath(name))
    if not os.access(folder, os.W_OK):
        raise Error(f"{folder}: is not a folder that can be written to; nothing was recorded.")
    recorder = _recorder().Recorder(**more)
    try:
        yield recorder
    finally:
        recorder.save(name)
        if golden:
            with open(f"{name}.pickle", "rb") as plain, gzip.GzipFile(f"{name}.pickle.gz", "wb", mtime=0) as small:
                shutil.copyfileobj(plain, small)
            os.unlink(f"{name}.pickle")


class _StepMarks:
    """Makes a step of everything between two steps of an optimizer."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._sizes: Optional[Dict[str, int]] = None
        self._built = False
        module = torch().nn.modules.module
        optimizer = torch().optim.optimizer
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
        self._sizes = {f"size{i}": int(length) for i, length in enumerate(shapes[0])} if shapes else {}

    def _optimizer_stepped(self, optimizer: Any, arguments: Any, more: Any) -> None:
        if self._sizes:
            with self._recorder.step(**self._sizes):
                pass  # the mark at its end counts: it ends the step that has just run
        self._sizes = None

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


def main(words: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m vramlab.record", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="run", metavar="NAME", help="writes NAME.pickle and NAME.marks.json")
    parser.add_argument("--stacks", action="store_true", help="record who allocates (larger files)")
    parser.add_argument("--golden", action="store_true", help="small files to keep beside a test")
    parser.add_argument("program", help="the Python program to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what it is given")
    given = parser.parse_args(words)
    if not os.path.isfile(given.program):
        parser.error(f"{given.program}: there is no such program")
    try:
        with record(given.output, golden=given.golden, stacks=given.stacks) as recorder:
            marks = _StepMarks(recorder)
            sys.argv = [given.program, *given.arguments]
            sys.path.insert(0, os.path.dirname(os.path.abspath(given.program)))
            try:
                runpy.run_path(given.program, run_name="__main__")
            finally:
                marks.remove()
    except Error as error:
        parser.exit(2, f"{error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
