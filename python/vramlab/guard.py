"""Recovery from out-of-memory errors: the step runs again, in halves."""

import functools
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type

from ._composer import Composer
from ._library import Error, OutOfMemory, described, whole
from ._memory import Cards, is_out_of_memory, let_go


def _is_array(value: Any) -> bool:
    return bool(getattr(value, "shape", ())) and hasattr(value, "__getitem__")


def _length(value: Any) -> Optional[int]:
    """Samples of a batch or of a part of it; None for what has none (a number, a setting)."""
    if _is_array(value):
        return int(value.shape[0])
    if isinstance(value, dict):
        lengths = [found for found in map(_length, value.values()) if found is not None]
        return lengths[0] if lengths else None
    if isinstance(value, (list, tuple)) and value:
        return _length(value[0]) if _is_array(value[0]) else len(value)
    return None


def _part(value: Any, begin: int, end: int, count: int) -> Any:
    """Samples begin … end - 1 of `value`; what is not of `count` samples stays whole."""
    if isinstance(value, dict):
        return {key: _part(one, begin, end, count) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and value and _is_array(value[0]):  # fields, as the default collate gives them
        return type(value)(_part(one, begin, end, count) for one in value)
    return value[begin:end] if _length(value) == count else value


class _Gradients:
    """What the gradients of a model were before a part of a step, to go back to when it fails half-way."""

    def __init__(self, model: Any) -> None:
        kept = [(parameter, parameter.grad) for parameter in model.parameters()] if model is not None else []
        # with zero_grad(set_to_none=True) all are None, and nothing is copied; else copies wait on the host
        self._kept = [(parameter, None if grad is None else grad.detach().to("cpu", copy=True))
                      for parameter, grad in kept]

    def restore(self) -> None:
        for parameter, grad in self._kept:
            if grad is None:
                parameter.grad = None
            else:
                parameter.grad.copy_(grad)


class OomGuard:
    """Runs a step again in pieces where it ran out of memory, as the guardian of `vramlab` does.

        guard = vramlab.OomGuard(model)

        @guard
        def accumulate(images, targets):
            (loss_of(model(images), targets) * guard.share).backward()

    Called with a batch, `accumulate` runs once over all of it; where memory runs out, its first half runs, then the
    second, and each half again in halves, up to `halvings` times. It returns a list with the result of each piece.
    Positional arguments that have the batch's number of samples are cut; all else is passed on. `guard.share` is the
    piece's share of the batch, so that the gradients of means add up to the whole one. With `model`, the gradients of a
    piece that failed half-way are taken back.

    As a context manager it only catches: `with guard:` ends at an out-of-memory error, cleans up, and sets `failed`.

    `keep_limit`: after an error no piece is larger than half of what failed, until `reset()`. Raises OutOfMemory where
    nothing helps.
    """

    def __init__(self, model: Any = None, *, halvings: int = 3, keep_limit: bool = False,
                 total_bytes: Optional[int] = None) -> None:
        if model is not None and not callable(getattr(model, "parameters", None)):
            raise Error(f"model: a module of PyTorch is expected, with parameters(), or nothing; got {model!r:.80}.")
        options = {"guardian": True, "halvings": whole("halvings", halvings, 0, 20), "keep_limit": bool(keep_limit),
                   "reset_at_epoch_end": False, "batch_size": 1000000, "safety_margin": 0.0}
        self._description = described("planned-batches", "fixed", options, (), shuffle=False)
        self._model, self._total = model, total_bytes
        self._composer: Optional[Composer] = None
        self._inside = False
        self.share = 1.0
        self.failed = False
        self.failures = 0  # out-of-memory errors so far

    def __call__(self, function: Callable[..., Any]) -> Callable[..., List[Any]]:
        @functools.wraps(function)
        def guarded(*arguments: Any, **more: Any) -> List[Any]:
            return self.run(function, *arguments, **more)
        return guarded

    def run(self, function: Callable[..., Any], *arguments: Any, **more: Any) -> List[Any]:
        """What a decorated `function` does."""
        counts = [count for count in map(_length, arguments) if count is not None]
        if not counts or counts[0] == 0:
            raise Error(f"{getattr(function, '__name__', 'the step')}: no argument has samples to cut: give a tensor, a "
                        "list of samples, or a dictionary of tensors first.")
        if self._inside:
            raise Error("a guarded step begins inside another one of the same guard; use a second OomGuard.")
        self._inside = True
        try:
            return self._pieces(function, arguments, more, counts[0])
        except OutOfMemory:
            self._composer = None  # it has given up for good
            raise
        finally:
            self._inside, self.share = False, 1.0

    def _pieces(self, function: Callable[..., Any], arguments: Tuple[Any, ...], more: Dict[str, Any],
                count: int) -> List[Any]:
        composer = self._start(count)
        results: Dict[int, Any] = {}
        while True:
            piece = composer.next()
            if piece is None:
                return [results[begin] for begin in sorted(results)]
            begin, end = piece.samples[0], piece.samples[-1] + 1
            self.share = (end - begin) / count
            gradients = _Gradients(self._model)
            composer.begin()
            try:
                results[begin] = function(*(_part(one, begin, end, count) for one in arguments), **more)
            except Exception as error:
                if not is_out_of_memory(error):
                    composer.end(2, error)
                    raise
                self.failures += 1
                gradients.restore()
                let_go(error)
                failed = error
            else:
                composer.end(0, None)
                continue
            Cards.empty_cache()
            composer.end(1, failed)
            del failed

    def _start(self, count: int) -> Composer:
        samples: Sequence[Any] = [(0, 0, 1, 1)] * count
        if self._composer is None or self._composer.running:
            self._composer = Composer(self._description, list(samples), self._total)
        else:
            self._composer.set_samples(list(samples))
        return self._composer

    def reset(self) -> None:
        """Forgets the limit that `keep_limit` keeps."""
        self._composer = None

    def __enter__(self) -> "OomGuard":
        self.failed = False
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> bool:
        if error is None or not is_out_of_memory(error):
            return False
        self.failed = True
        self.failures += 1
        let_go(error)
        Cards.empty_cache()
        return True
