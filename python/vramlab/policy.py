"""Policies written in Python, for simulations: slower than those of plugins, under the same contract.

    @vramlab.policy.tuner("mine")
    class Mine:
        def __init__(self, target=0.9):  # options, as a scenario may set them
            self.target = target

        def decide(self, question):
            memory = question.observation.memory
            if memory.peak_allocated > self.target * memory.total:
                return vramlab.policy.move({"batch": -1}, f"{memory.peak_allocated} bytes", reset_peak=True)

    vramlab.compare("scenarios/ratchet.json", policies=["fixed", "mine"])

The class is made anew for each run, with the options that the scenario gives. `decide` is asked after each step and
returns what `move` makes, or None for no change. An exception ends the run of that policy with its text, and nothing
else; what leaves the bounds is moved into them. capi/vramlab.h lists what questions hold; further methods are `phase`
of tuners, `told` and `epoch_ends` of composers, `statistics` of all, and `save` and `load` of tuners and composers.
"""

import contextlib
import ctypes
import inspect
import json
import os
import traceback
from ctypes import CFUNCTYPE, c_char_p, c_int, c_uint64, c_void_p
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence, Tuple, Type, TypeVar

from ._library import Error, size, whole

Class = TypeVar("Class", bound=type)

_Call = CFUNCTYPE(c_int, c_void_p, c_uint64, c_char_p, c_void_p)
FUNCTIONS: Dict[str, Any] = {
    "policies_create": (c_void_p, []),
    "policies_destroy": (None, [c_void_p]),
    "policies_add": (c_int, [c_void_p, c_char_p, _Call, c_void_p]),
    "policies_error": (c_char_p, [c_void_p]),
    "reply_set": (None, [c_void_p, c_char_p]),
}
_METHODS = ("phase", "told", "epoch_ends", "statistics", "save")
_REFUSED, _FAILED = 2, 1

_known: Dict[str, Tuple[str, type, bytes]] = {}  # by name: family, class, description


def tuner(name: str, *, bounds: Optional[Mapping[str, Tuple[float, float]]] = None) -> Callable[[Class], Class]:
    """Makes a class a tuner of this name. Its options are the arguments of __init__, each with a default; `bounds`
    are what numbers among them may be."""
    return _decorator("tuner", name, bounds)


def composer(name: str, *, bounds: Optional[Mapping[str, Tuple[float, float]]] = None) -> Callable[[Class], Class]:
    """A composer of batches: `decide` returns `run`, `clean_up` or `give_up`. Its class may have `window` (how many
    waiting samples it is shown), `batch_size` and `adaptive`."""
    return _decorator("composer", name, bounds)


def searcher(name: str, *, bounds: Optional[Mapping[str, Tuple[float, float]]] = None) -> Callable[[Class], Class]:
    """A searcher for the largest batch: `decide` returns `probe`, `found`, `none_fits` or `give_up`. Its class may
    have `depth`, such as {"steps": 3}."""
    return _decorator("searcher", name, bounds)


def admitter(name: str, *, bounds: Optional[Mapping[str, Tuple[float, float]]] = None) -> Callable[[Class], Class]:
    """A policy of a queue of jobs: `decide` returns `start`, `refuse`, `fail`, `requeue`, `to_back`, or None to wait.
    Its class may have `rules`, such as {"wait_timeout_s": 600, "enforces_promise": True}."""
    return _decorator("admitter", name, bounds)


def is_own(name: str) -> bool:
    return name in _known


# ---- What `decide` may return

Reply = Dict[str, Any]


def move(change: Optional[Mapping[str, int]] = None, reason: str = "", *, log: Sequence[str] = (),
         reset_peak: bool = False, empty_cache: bool = False, retry: bool = False, end_run: bool = False) -> Reply:
    """Of a tuner: by how much each parameter changes, and why. retry: run the failed step again at once."""
    moved = {name: whole(f"change[{name!r}]", value, -2**62, 2**62) for name, value in (change or {}).items()}
    return {"change": moved, "reason": str(reason), "log": [str(line) for line in log], "reset_peak": bool(reset_peak),
            "empty_cache": bool(empty_cache), "retry": bool(retry), "end_run": bool(end_run)}


def probe(batch: int, reason: str = "") -> Reply:
    """Of a searcher: try this size."""
    return {"action": "probe", "batch": whole("batch", batch, -2**62, 2**62), "reason": str(reason)}


def found(batch: int, reason: str = "", *, extrapolated: bool = False, largest_good: int = 0) -> Reply:
    """Of a searcher: take this size. extrapolated: no probe of it was good."""
    return {"action": "found", "batch": whole("batch", batch, -2**62, 2**62), "reason": str(reason),
            "extrapolated": bool(extrapolated), "largest_good": whole("largest_good", largest_good, 0, 2**62)}


def none_fits(reason: str = "") -> Reply:
    """Of a searcher: not even the smallest fits."""
    return {"action": "none_fits", "reason": str(reason)}


def give_up(reason: str = "") -> Reply:
    """Of a searcher or a composer: it cannot go on."""
    return {"action": "give_up", "reason": str(reason)}


def run(batch: Sequence[int], reason: str = "", *, likely: int = 0, at_most: Optional[int] = None,
        oversize: bool = False, checkpointing: bool = False) -> Reply:
    """Of a composer: train on these of the waiting samples. likely, at_most: bytes that they are predicted to take."""
    samples = [whole("batch", one, 0, 2**32 - 1) for one in batch]
    most = {} if at_most is None else {"at_most": size("at_most", at_most)}
    return {"action": "run", "batch": samples, "likely": size("likely", likely), **most, "oversize": bool(oversize),
            "checkpointing": bool(checkpointing), "reason": str(reason)}


def clean_up() -> Reply:
    """Of a composer: empty the cache and ask again."""
    return {"action": "clean_up"}


def wait(reason: str = "") -> Reply:
    """Of an admitter: nothing more to do now; None says the same."""
    return {"action": "wait", "reason": str(reason)}


def start(job: int, cards: Sequence[int], reason: str = "", *, need: Optional[int] = None, batch: Optional[int] = None,
          accumulation: Optional[int] = None, variant: Optional[int] = None) -> Reply:
    """Of an admitter: this waiting job starts on these cards of one node. need: bytes promised on each; batch and
    accumulation: how it is to run; variant: which of its others, from 1. What is left out is as the job asked for it."""
    numbers = {"batch": batch, "accumulation": accumulation, "variant": variant}
    how = {key: whole(key, value, 0, 2**62) for key, value in numbers.items() if value is not None}
    if need is not None:
        how["need"] = size("need", need)
    return {"action": "start", "job": _job(job), "cards": [whole("cards", one, 0, 2**32 - 1) for one in cards],
            "reason": str(reason), **how}


def refuse(reason: str = "") -> Reply:
    """Of an admitter, when a job was submitted: it can never fit."""
    return {"action": "refuse", "reason": str(reason)}


def fail(reason: str = "", *, job: Optional[int] = None) -> Reply:
    """Of an admitter: give the job up; by default the one it was asked about."""
    return {"action": "fail", "reason": str(reason), **({} if job is None else {"job": _job(job)})}


def requeue(reason: str = "", *, job: Optional[int] = None, overdue: Optional[bool] = None, **demand: int) -> Reply:
    """Of an admitter, after an out-of-memory error or a wait that is over: it waits again. need, per_sample (bytes),
    share_milli and batch change what it asks for."""
    known = ("need", "per_sample", "share_milli", "batch")
    for key, value in demand.items():
        if key not in known:
            raise Error(f"{key}={value!r}: cannot be changed. Known: {', '.join(known)}, overdue.")
    asked: Reply = {key: size(key, value) for key, value in demand.items()}
    if overdue is not None:
        asked["overdue"] = bool(overdue)
    return {"action": "requeue", "reason": str(reason), **asked, **({} if job is None else {"job": _job(job)})}


def to_back(job: int, reason: str = "") -> Reply:
    """Of an admitter: this waiting job goes behind the others."""
    return {"action": "to_back", "job": _job(job), "reason": str(reason)}


def _job(number: Any) -> int:
    return whole("job", number, 0, 2**32 - 1)


# ---- Behind the decorators

def _option(name: str, given: inspect.Parameter, bounds: Mapping[str, Tuple[float, float]]) -> Dict[str, Any]:
    default = given.default
    if given.kind in (given.VAR_POSITIONAL, given.VAR_KEYWORD, given.POSITIONAL_ONLY):
        raise Error(f"the policy {name}: __init__ may not have {given}; each option has a name.")
    if not isinstance(default, (bool, int, float, str)):
        raise Error(f"the policy {name}: the option {given.name} needs a default: a number, True or False, or a text.")
    option: Dict[str, Any] = {"name": given.name, "default": default}
    if given.name in bounds:
        option["low"], option["high"] = bounds[given.name]
    return option


def _decorator(family: str, name: str, bounds: Optional[Mapping[str, Tuple[float, float]]]) -> Callable[[Class], Class]:
    if not isinstance(name, str) or not name or "," in name:
        raise Error(f"{name!r} is no name of a policy; it is a text without a comma.")
    allowed = dict(bounds or {})

    def add(made: Class) -> Class:
        if not isinstance(made, type) or not callable(getattr(made, "decide", None)):
            raise Error(f"the policy {name}: must be a class with a method decide(self, question).")
        own_init = made.__init__ is not object.__init__  # type: ignore[misc]
        arguments = list(inspect.signature(made).parameters.values()) if own_init else []
        unknown = sorted(set(allowed) - {one.name for one in arguments})
        if unknown:
            raise Error(f"the policy {name}: bounds of {unknown[0]!r}, which is no option of it.")
        summary = (inspect.getdoc(made) or "a policy of the calling program").splitlines()[0]
        description = {"family": family, "name": name, "summary": summary,
                       "options": [_option(name, one, allowed) for one in arguments]}
        try:
            text = json.dumps(description, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise Error(f"the policy {name}: its options cannot be written as JSON: {error}.") from None
        before = _known.get(name)
        _known[name] = (family, made, text)
        try:
            from .answers import library
            with handed_over(library()):
                pass  # refuses what is wrong with it now, not at its first use
        except Error:
            del _known[name]
            if before is not None:
                _known[name] = before
            raise
        return made

    return add


@contextlib.contextmanager
def handed_over(library: Any) -> Iterator[Optional[int]]:
    """The policies of this program as the library takes them, for one call; None if there are none."""
    if not _known:
        yield None
        return
    answers = _Answering(library, dict(_known))
    handle = library.vramlab_policies_create()
    if not handle:
        raise MemoryError("no memory for policies")
    try:
        for name, (_, _, description) in answers.known.items():
            if library.vramlab_policies_add(handle, description, answers.call, None):
                raise Error(f"the policy {name}: " + library.vramlab_policies_error(handle).decode(errors="replace"))
        yield handle
    finally:
        library.vramlab_policies_destroy(handle)
    if answers.stopped is not None:
        raise answers.stopped


class _Answering:
    """Answers the library's questions in one call of it."""

    def __init__(self, library: Any, known: Dict[str, Tuple[str, type, bytes]]) -> None:
        self.known = known
        self.stopped: Optional[BaseException] = None  # Ctrl-C and the like, which is for the whole program
        self.call = _Call(self._called)
        self._library = library
        self._instances: Dict[int, Any] = {}
        self._facts: Dict[int, Dict[str, Any]] = {}  # what every question of an instance holds

    def _called(self, context: Any, number: int, question: bytes, reply: Any) -> int:
        code, text, what = 0, "", ""
        try:
            asked = json.loads(question, object_hook=_record())
            what = asked.pop("do")
            answer = self._answer(what, number, asked)
            text = json.dumps(answer, allow_nan=False)
        except Error as error:
            code, text = _REFUSED if what in ("make", "load") else _FAILED, str(error)
        except Exception as error:
            code, text = _FAILED, _told(error)
        except BaseException as error:
            self.stopped = error
            code, text = _FAILED, _told(error)
        self._library.vramlab_reply_set(reply, text.encode(errors="replace"))
        return code

    def _answer(self, what: str, number: int, asked: Any) -> Any:
        if what == "make":
            return self._make(asked)
        if what == "drop":
            self._facts.pop(number, None)
            self._instances.pop(number, None)
            return {}
        one = self._instances[number]
        if what == "statistics":
            return {str(name): float(value) for name, value in one.statistics().items()}
        if what == "save":
            return {"state": one.save()}
        if what == "load":
            one.load(asked["state"])
            return {}
        if what == "told":
            return {"skip": one.told(asked) == "skip"}
        if what == "epoch_ends":
            one.epoch_ends()
            return {}
        if "samples" in asked:
            self._facts[number]["samples"] = asked["samples"]
        asked.update(self._facts[number])
        answer = getattr(one, what)(asked)
        if answer is not None and not isinstance(answer, dict):
            raise Error(f"{what} returned {answer!r}; it returns what move(), probe(), run() and the like make, or None")
        return answer or {}

    def _make(self, asked: Any) -> Dict[str, Any]:
        _, made, _ = self.known[asked["policy"]]
        one = made(**asked["options"])
        number = id(one)
        self._instances[number] = one
        self._facts[number] = _record()({key: asked[key] for key in ("parameters", "tasks") if key in asked})
        reply = {"instance": number, "methods": [name for name in _METHODS if callable(getattr(one, name, None))]}
        said = ("depth", "window", "batch_size", "adaptive", "rules")
        reply.update({key: getattr(one, key) for key in said if hasattr(one, key)})
        return reply


def _record() -> Type[Dict[str, Any]]:
    from .answers import Record
    return Record


def _told(error: BaseException) -> str:
    """One line: what was raised, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
