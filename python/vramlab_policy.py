"""A policy of vramlab beside a real training loop: it says which batch and patch size to run next.

    from vramlab_policy import VramPolicy

    policy = VramPolicy(profile="settled", adjustment_frequency=100, batch=(2, 64), lq=(32, 256))
    policy.set_current_parameters(batch_size=8, lq_size=96)
    policy.set_dynamic_wrappers(dataloader, dataset)   # told of every change; may be left out
    policy.start_monitoring_period()
    for data in dataloader:
        try:
            train_step(data)
        except torch.cuda.OutOfMemoryError:
            policy.handle_oom_recovery()
        else:
            policy.update_vram_monitoring()

Before the first step the calls may come in any order. TrainingAutomations(OPTIONS) makes the policy from the options of
a training framework, a dictionary or a YAML file. What the policy has to say goes to the logger "vramlab".

The policies are those that `vramlab compare` runs on a simulated card, in the same machine code:
libvramlab_policy.so, found in VRAMLAB_POLICY_LIBRARY, beside this file, in build/release, or where it is
installed. Needs PyTorch and nothing else.
"""

import ctypes
import json
import logging
import os
import time
from collections import deque

import torch

logger = logging.getLogger("vramlab")


class _Step(ctypes.Structure):
    _fields_ = [("iteration", ctypes.c_int64), ("time_ns", ctypes.c_int64)] + [
        (name, ctypes.c_uint64) for name in ("allocated", "peak_allocated", "reserved", "peak_reserved", "total",
                                             "alloc_retries", "allocator_ooms")] + [("oom", ctypes.c_int32)]


class _Decision(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("empty_cache", "reset_peak", "retry", "end_run", "moved")]


def _library_file():
    here = os.path.dirname(os.path.abspath(__file__))
    name = "libvramlab_policy.so"
    places = [os.environ.get("VRAMLAB_POLICY_LIBRARY", ""), os.path.join(here, name),
              os.path.join(here, "..", "build", "release", name),
              os.path.join(here, "..", "..", "..", "lib", name)]  # as the package installs them
    for place in places:
        if place and os.path.exists(place):
            return place
    raise FileNotFoundError(f"{name} is neither beside {here} nor in build/release; build it (ninja vramlab_policy) "
                            "or set VRAMLAB_POLICY_LIBRARY to its path.")


def _load():
    library = ctypes.CDLL(_library_file())
    session, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in [
            ("create", session, [text]),
            ("destroy", None, [session]),
            ("after_step", ctypes.c_int, [session, ctypes.POINTER(_Step), ctypes.POINTER(_Decision)]),
            ("get", ctypes.c_int, [session, text, ctypes.POINTER(ctypes.c_int64)]),
            ("set", ctypes.c_int, [session, text, ctypes.c_int64]),
            ("bounds", ctypes.c_int, [session, text] + 2 * [ctypes.POINTER(ctypes.c_int64)]),
            ("log", text, [session]),
            ("reason", text, [session]),
            ("adjustments", text, [session]),
            ("statistics", text, [session])]:
        function = getattr(library, "vramlab_session_" + name)
        function.restype, function.argtypes = result, arguments
    library.vramlab_last_error.restype = text
    return library


class Session:
    """One policy session (capi/vramlab_policy.h). `parameters`: {name: (start, low, high)}; None is left out."""

    def __init__(self, use, parameters, **options):
        self._library = _load()
        described = {"use": use, **options,
                     "parameters": {name: {key: value for key, value in zip(("start", "low", "high"), values)
                                           if value is not None}
                                    for name, values in parameters.items()}}
        self._session = self._library.vramlab_session_create(json.dumps(described).encode())
        if not self._session:
            raise ValueError(self._library.vramlab_last_error().decode())

    def __del__(self):
        if getattr(self, "_session", None):
            self._library.vramlab_session_destroy(self._session)

    def _require(self, failed):
        if failed:
            raise ValueError(self._library.vramlab_last_error().decode())

    def after_step(self, **numbers):
        """Fields of vramlab_step by name. Returns a dictionary of flags: what the program must do now."""
        decision = _Decision()
        self._require(self._library.vramlab_session_after_step(
            self._session, ctypes.byref(_Step(**numbers)), ctypes.byref(decision)))
        return {name: bool(getattr(decision, name)) for name, _ in _Decision._fields_}

    def __getitem__(self, parameter):
        value = ctypes.c_int64()
        self._require(self._library.vramlab_session_get(self._session, parameter.encode(), ctypes.byref(value)))
        return value.value

    def __setitem__(self, parameter, value):
        self._require(self._library.vramlab_session_set(self._session, parameter.encode(), value))

    def bounds(self, parameter):
        low, high = ctypes.c_int64(), ctypes.c_int64()
        self._require(self._library.vramlab_session_bounds(
            self._session, parameter.encode(), ctypes.byref(low), ctypes.byref(high)))
        return low.value, high.value

    @property
    def log(self):
        return self._library.vramlab_session_log(self._session).decode().splitlines()

    @property
    def reason(self):
        return self._library.vramlab_session_reason(self._session).decode()

    @property
    def adjustments(self):
        return json.loads(self._library.vramlab_session_adjustments(self._session))

    @property
    def statistics(self):
        return json.loads(self._library.vramlab_session_statistics(self._session))


class VramPolicy:
    """Batch and patch size toward a target usage of memory, with the calls of the published optimizer.

    `batch` and `lq` are (lowest, highest), for dual-optimizer the same as min_batch_size, max_batch_size, min_lq_size
    and max_lq_size; further options are those of `vramlab policies dual-optimizer`. `total_bytes` is what the process
    may use; by default the device's memory, or the part of it that torch.cuda.set_per_process_memory_fraction left.
    `scale` is the side of a target patch over that of its low-quality patch, for wrappers that count in targets.

    current_batch_size and current_lq_size are those of the step just done, None before they were set. After an OOM they
    are those to run at.
    """

    def __init__(self, use="dual-optimizer", batch=None, lq=None, total_bytes=None, scale=2, **options):
        self._use, self._options = use, options
        self._bounds = {"batch": batch, "lq": lq}
        for name, bounds in self._bounds.items():
            if use != "dual-optimizer":
                self._bounds[name] = bounds or {"batch": (2, 64), "lq": (32, 256)}[name]
            elif bounds:
                options[f"min_{name}_size"], options[f"max_{name}_size"] = bounds
                self._bounds[name] = None
        self._total = total_bytes or self._usable()
        self._updates = {"batch": (("update_batch_size", 1), ("set_batch_size", 1)),
                         "lq": (("update_lq_size", 1), ("set_dynamic_gt_size", scale), ("set_gt_size", scale))}
        self._wrappers = []
        self._began = time.monotonic_ns()
        self._usage = deque(maxlen=50)
        self._peak_usage = self._usage_now = self._failures = self.iteration = 0
        self.current_batch_size = self.current_lq_size = None
        self._begin({"batch": None, "lq": None})

    def _begin(self, start):
        parameters = {name: (start[name], *(self._bounds[name] or (None, None))) for name in start}
        if self._use != "dual-optimizer":
            parameters = {name: (given[1] if given[0] is None else given[0], *given[1:])
                          for name, given in parameters.items()}
        self._session = Session(self._use, parameters, **self._options)
        self.min_batch_size, self.max_batch_size = self._session.bounds("batch")
        self.min_lq_size, self.max_lq_size = self._session.bounds("lq")

    @staticmethod
    def _usable():
        total = torch.cuda.get_device_properties(0).total_memory
        read = getattr(torch.cuda, "get_per_process_memory_fraction", None)  # from PyTorch 2.8 on
        return int(total * read()) if read else total

    def set_current_parameters(self, batch_size, lq_size):
        """Says at which sizes the program runs. Without it the policy stays silent."""
        if self.iteration == 0:
            self._begin({"batch": batch_size, "lq": lq_size})
        elif (self._session["batch"], self._session["lq"]) != (batch_size, lq_size):
            self._session["batch"], self._session["lq"] = batch_size, lq_size
        self.current_batch_size, self.current_lq_size = batch_size, lq_size

    def set_target_parameters(self, batch_size, lq_size):
        """The sizes that are wanted in the end: the policy never goes beyond them. Before the first step."""
        if self.iteration > 0:
            raise RuntimeError("set_target_parameters comes before the first step")
        for name, target in (("batch", batch_size), ("lq", lq_size)):
            low, high = self._session.bounds(name)
            self._bounds[name] = (low, max(low, min(high, target)))
        self._begin({"batch": self.current_batch_size, "lq": self.current_lq_size})

    def set_dynamic_wrappers(self, dataloader=None, dataset=None):
        """Whom to tell of a change: update_batch_size or set_batch_size is called where it exists, and update_lq_size,
        or set_dynamic_gt_size or set_gt_size with the side of the target patch."""
        self._wrappers = [wrapper for wrapper in (dataloader, dataset) if wrapper is not None]

    def start_monitoring_period(self):
        """Resets the device's peak counter. Once, before the first step."""
        torch.cuda.reset_peak_memory_stats()

    def update_vram_monitoring(self):
        """After a step that succeeded. Returns (change of batch, change of lq); None = no change.

        Wrappers have been told of it. Without them the program applies it itself, from current_batch_size and
        current_lq_size, which stay those of the step just done; set_current_parameters is needed only if it runs at
        other sizes. Nothing changes while set_current_parameters was not called.
        """
        if self.current_batch_size is None:
            if self.iteration == 0 and not self._usage:
                logger.warning("nothing is adjusted: set_current_parameters was not called")
            self._note_usage(torch.cuda.memory_stats())
            return None, None
        return self._tell(self._after_step(False))

    def handle_oom_recovery(self, new_batch_size=None, new_lq_size=None):
        """After a step that ran out of memory. Returns the sizes to run at: the policy's, or the given ones."""
        before = self._after_step(True)
        if new_batch_size is not None or new_lq_size is not None:
            self._session["batch"] = new_batch_size or self._session["batch"]
            self._session["lq"] = new_lq_size or self._session["lq"]
        self._tell(before)
        self.current_batch_size, self.current_lq_size = sizes = self._session["batch"], self._session["lq"]
        return sizes

    def get_vram_stats(self):
        """What the policy knows of itself: peak_usage, avg_usage, current_usage, adjustments and more."""
        own = {"peak_usage": self._peak_usage, "avg_usage": sum(self._usage) / max(1, len(self._usage)),
               "current_usage": self._usage_now, "oom_recovery_count": self._failures,
               "adjustments": len(self.adjustments)}
        sizes = {"current_batch_size": self._session["batch"], "current_lq_size": self._session["lq"]}
        known = self._session.statistics
        return {**own, **known, **sizes} if self.iteration == 0 else {**own, **sizes, **known}

    @property
    def adjustments(self):
        """Every change so far, as dictionaries: iteration, from, to, reason."""
        return self._session.adjustments

    @property
    def reason(self):
        """Why the last step changed something, or did not; empty if nothing was evaluated."""
        return self._session.reason

    def _note_usage(self, stats):
        self._usage_now = stats["allocated_bytes.all.current"] / self._total
        self._usage.append(stats["allocated_bytes.all.peak"] / self._total)
        self._peak_usage = max(self._peak_usage, self._usage[-1])

    def _after_step(self, oom):
        """Asks the policy; returns the sizes of the step just done."""
        if self.current_batch_size is None:
            raise RuntimeError("set_current_parameters comes first")
        before = self._session["batch"], self._session["lq"]
        self.current_batch_size, self.current_lq_size = before
        stats = torch.cuda.memory_stats()
        self.iteration += 1
        self._failures += oom
        self._note_usage(stats)
        decision = self._session.after_step(
            iteration=self.iteration, time_ns=time.monotonic_ns() - self._began, total=self._total, oom=int(oom),
            allocated=stats["allocated_bytes.all.current"], peak_allocated=stats["allocated_bytes.all.peak"],
            reserved=stats["reserved_bytes.all.current"], peak_reserved=stats["reserved_bytes.all.peak"],
            alloc_retries=stats["num_alloc_retries"], allocator_ooms=stats["num_ooms"])
        for line in self._session.log:
            logger.log(logging.WARNING if line.startswith("warning: ") else logging.INFO, line)
        if decision["empty_cache"]:
            torch.cuda.empty_cache()
        if decision["reset_peak"]:
            torch.cuda.reset_peak_memory_stats()
        if decision["end_run"]:
            raise RuntimeError("the policy ends the run: " + self._session.reason)
        return before

    def _tell(self, before):
        """Tells the wrappers what changed since `before`; returns the changes."""
        changes = [self._session[name] - old for name, old in zip(("batch", "lq"), before)]
        for name, change in zip(("batch", "lq"), changes):
            for wrapper in self._wrappers if change else []:
                for call, factor in self._updates[name]:
                    if hasattr(wrapper, call):
                        getattr(wrapper, call)(factor * self._session[name])
                        break
        return tuple(change or None for change in changes)


class TrainingAutomations:
    """The policy as a training framework holds it: automations["DynamicBatchSizeOptimizer"].

    `options`: the framework's options as a dictionary with the section `training_automations`, or the path of a YAML
    file with it. Without the section `DynamicBatchSizeOptimizer` a dictionary gives no automation. `more` goes to
    VramPolicy and counts before the section: profile="blind", total_bytes=….
    """

    def __init__(self, options, **more):
        self.automations = {}
        name = "DynamicBatchSizeOptimizer"
        if isinstance(options, (str, os.PathLike)):
            self.automations[name] = VramPolicy(options_file=os.fspath(options), **more)
        elif name in (options.get("training_automations") or {}):
            self.automations[name] = VramPolicy(training_automations=options["training_automations"], **more)
