"""libvramlab_policy.so (capi/vramlab_policy.h) through ctypes: its structures, its functions, its errors."""

import ctypes
import functools
import json
import math
import operator
import os
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List, Mapping, Optional

MOST_BYTES = 1 << 60


class Error(Exception):
    """Something cannot be done as asked; the text says what, where, and what is allowed."""


class PolicyEnded(Error):
    """The policy cannot go on; the text is its reason."""


class OutOfMemory(PolicyEnded):
    """Memory ran out and no way is left to make do with less."""


class Step(ctypes.Structure):
    _fields_ = [("iteration", c_int64), ("time_ns", c_int64)] + [
        (name, c_uint64) for name in ("allocated", "peak_allocated", "reserved", "peak_reserved", "total",
                                      "alloc_retries", "allocator_ooms")] + [("oom", c_int32)]


class Decision(ctypes.Structure):
    _fields_ = [(name, c_int32) for name in ("empty_cache", "reset_peak", "retry", "end_run", "moved")]


class Phase(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("begins", c_int32), ("oom", c_int32), ("peak_allocated", c_uint64),
                ("asked", c_uint64), ("ran", POINTER(c_int64)), ("follow", POINTER(c_int64))]


class Sample(ctypes.Structure):
    _fields_ = [("task", c_uint32), ("images", c_int32), ("length", c_int64), ("tokens", c_int64)]


class Batch(ctypes.Structure):
    RUN, CLEAN_UP, EPOCH_OVER, GIVE_UP = range(4)
    _fields_ = [(name, c_int32) for name in ("action", "oversize", "checkpointing", "accumulates")] + [
        ("samples", POINTER(c_uint32)), ("count", c_uint64), ("predicted", c_uint64), ("predicted_at_most", c_uint64)]


class BatchEnd(ctypes.Structure):
    _fields_ = [("oom", c_int32), ("typical", c_int32), ("rise", c_uint64), ("peak", c_uint64), ("total", c_uint64)]


class BatchNext(ctypes.Structure):
    _fields_ = [("steps", c_int32), ("gives_up", c_int32), ("effective", c_int64), ("skipped", c_int64)]


_T, _P = c_char_p, c_void_p
_FUNCTIONS: Dict[str, Any] = {
    "session_create": (_P, [_T]),
    "session_destroy": (None, [_P]),
    "session_after_cards": (c_int, [_P, POINTER(Step), c_uint64, POINTER(Decision)]),
    "session_phase": (c_int, [_P, POINTER(Phase), POINTER(Step), POINTER(Decision)]),
    "session_asked": (c_int, [_P, c_uint64]),
    "session_new_process": (c_int, [_P]),
    "session_save": (_T, [_P]),
    "session_load": (c_int, [_P, _T]),
    "session_get": (c_int, [_P, _T, POINTER(c_int64)]),
    "session_set": (c_int, [_P, _T, c_int64]),
    "session_reason": (_T, [_P]),
    "session_log": (_T, [_P]),
    "session_adjustments": (_T, [_P]),
    "session_statistics": (_T, [_P]),
    "composer_create": (_P, [_T, POINTER(Sample), c_uint64]),
    "composer_destroy": (None, [_P]),
    "composer_samples": (c_int, [_P, POINTER(Sample), c_uint64]),
    "composer_begin_epoch": (c_int, [_P, c_int64, POINTER(c_int64)]),
    "composer_next": (c_int, [_P, POINTER(Step), POINTER(Batch)]),
    "composer_limits": (c_int, [_P, c_uint64, c_int64]),
    "composer_told": (c_int, [_P, POINTER(c_uint32), c_uint64, POINTER(BatchEnd), POINTER(BatchNext)]),
    "composer_left": (c_int, [_P, POINTER(c_uint64), POINTER(c_int64)]),
    "composer_reason": (_T, [_P]),
    "composer_statistics": (_T, [_P]),
    "composer_save": (_T, [_P]),
    "composer_load": (c_int, [_P, _T]),
    "searcher_create": (_P, [_T]),
    "searcher_destroy": (None, [_P]),
    "searcher_next": (_T, [_P, POINTER(Step)]),
    "searcher_told": (c_int, [_P, _T]),
    "admitter_create": (_P, [_T]),
    "admitter_destroy": (None, [_P]),
    "admitter_save": (_T, [_P]),
    "admitter_load": (c_int, [_P, _T]),
    "admitter_submit": (c_int, [_P, _T, c_int64, POINTER(c_uint32)]),
    "admitter_examine": (c_int, [_P, c_int64]),
    "admitter_job": (_T, [_P, c_uint32]),
    "admitter_out_of_memory": (c_int, [_P, c_uint32, c_int64]),
    "admitter_leave": (c_int, [_P, c_uint32]),
    "admitter_used": (c_int, [_P, c_uint32, c_uint64]),
    "admitter_foreign": (c_int, [_P, c_uint32, c_uint64]),
    "last_error": (_T, []),
}


def find_library(name: str, target: str, variable: str) -> str:
    """Where a library lies: what `variable` names, in this package, in a build of the source tree, or installed."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get(variable, ""), os.path.join(here, name)]
    places += [os.path.join(here, "..", "..", "build", preset, name) for preset in ("release", "dev")]
    places += [os.path.join(here, "..", "..", "..", "..", "lib", name)]
    for place in places:
        if place and os.path.exists(place):
            return place
    raise Error(f"{name} is neither in {here} nor in a build of the source tree; build it (ninja {target}) or set "
                f"{variable} to its path.")


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    return load_library(find_library("libvramlab_policy.so", "vramlab_policy", "VRAMLAB_POLICY_LIBRARY"), _FUNCTIONS)


def load_library(file: str, functions: Dict[str, Any]) -> ctypes.CDLL:
    """The library with the types of its functions set. Raises Error where it cannot be used."""
    try:
        loaded = ctypes.CDLL(file)
        for name, (result, arguments) in functions.items():
            function = getattr(loaded, "vramlab_" + name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise Error(f"{file}: cannot be used: {error}. It must be of the same version as this package.") from None
    return loaded


class Handle:
    """An object of the library, destroyed with this one. Calls raise Error where the library reports one."""

    def __init__(self, family: str, *arguments: Any) -> None:
        self._family = family
        self._pointer: Optional[int] = None
        self._pid = os.getpid()
        self._pointer = self.call_plain("create", *arguments)
        if not self._pointer:
            raise Error(last_error())

    def __del__(self) -> None:
        if getattr(self, "_pointer", None) and self._pid == os.getpid():
            getattr(library(), f"vramlab_{self._family}_destroy")(self._pointer)

    def call_plain(self, name: str, *arguments: Any) -> Any:
        return getattr(library(), f"vramlab_{self._family}_{name}")(*arguments)

    def call(self, name: str, *arguments: Any) -> None:
        if self.call_plain(name, self._pointer, *arguments):
            raise Error(last_error())

    def text(self, name: str, *arguments: Any) -> str:
        found = self.call_plain(name, self._pointer, *arguments)
        if found is None:
            raise Error(last_error())
        return found.decode()

    def json(self, name: str, *arguments: Any) -> Any:
        return json.loads(self.text(name, *arguments))


def last_error() -> str:
    return library().vramlab_last_error().decode()


def described(use: str, profile: str, options: Optional[Dict[str, Any]], plugins: Any, **more: Any) -> bytes:
    """The JSON text of a policy and what it is for. Raises Error for options that no policy can have."""
    if options is not None and not isinstance(options, Mapping):
        raise Error(f"options={options!r}: give them by their names, as {{'safety_margin': 0.1}}.")
    options = dict(options or {})
    for key, value in options.items():
        if not isinstance(key, str):
            raise Error(f"option {key!r}: the name of an option is a text.")
        if not isinstance(value, (bool, int, float, str, dict)):
            raise Error(f"option {key}={value!r}: an option is a number, True or False, or a text.")
        if isinstance(value, float) and not math.isfinite(value):
            raise Error(f"option {key}={value!r}: not a finite number.")
    clash = sorted(set(options) & set(more))
    if clash:
        raise Error(f"option {clash[0]}: is not an option of a policy; there is an argument of that name.")
    description: Dict[str, Any] = {"use": use, **options, **more}
    if profile:
        description["profile"] = profile
    if plugins:
        description["plugins"] = [path("plugins", file) for file in listed("plugins", plugins)]
    return json.dumps(description).encode()


def listed(name: str, values: Any) -> List[Any]:
    """`values` as a list. Raises Error for what is none, a text among them."""
    try:
        if isinstance(values, (str, bytes, Mapping)):
            raise TypeError
        return list(values)
    except TypeError:
        raise Error(f"{name}={values!r}: must be a list.") from None


def path(name: str, value: Any) -> str:
    try:
        return os.fsdecode(value)
    except TypeError:
        raise Error(f"{name}={value!r}: must be the path of a file.") from None


def whole(name: str, value: Any, low: int, high: int) -> int:
    """`value` as an int; NumPy's and PyTorch's whole numbers as well. Raises Error outside the range."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise Error(f"{name}={value!r}: must be a whole number.") from None
    if not low <= number <= high:
        raise Error(f"{name}={number}: is out of range. Allowed: {low} to {high}.")
    return number


def size(name: str, value: Any) -> int:
    """A number of bytes."""
    return whole(name, value, 0, MOST_BYTES)


def nanoseconds(name: str, seconds: Any) -> int:
    if not isinstance(seconds, (int, float)) or not math.isfinite(seconds) or not 0 <= seconds <= 1e9:
        raise Error(f"{name}={seconds!r}: must be a number of seconds, 0 to 1e9.")
    return round(seconds * 1e9)


def sample_array(samples: List[Any]) -> Any:
    """`samples` as (task, images, length, tokens) each."""
    if not samples:
        raise Error("there is no sample: a data set has at least one.")
    return (Sample * len(samples))(*samples)
