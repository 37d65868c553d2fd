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

The policies are those that `vramlab compare` runs on a simulated card, in the same machine code:
libvramlab_policy.so, found in VRAMLAB_POLICY_LIBRARY, beside this file, in build/release, or where it is installed. Needs PyTorch and
nothing else.
"""

import ctypes
import json
import os
import time

import torch


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
            ("reason", text, [session]),
            ("adjustments", text, [session]),
            ("statistics", text, [session])]:
        function = getattr(library, "vramlab_session_" + name)
        function.restype, function.argtypes = result, arguments
    library.vramlab_last_error.restype = text
    return library


class Session:
    """One policy session (capi/vramlab_policy.h). `parameters`: {name: (start, low, high)}."""

    def __init__(self, use, parameters, **options):
        self._library = _load()
        described = {"use": use, **options,
                     "parameters": {name: dict(zip(("start", "low", "high"), values))
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

    `batch` and `lq` are (lowest, highest); further options are those of `vramlab policies dual-optimizer`.
    `total_bytes` is what the process may use; by default the device's memory, or the part of it that
    torch.cuda.set_per_process_memory_fraction left.
    """

    def __init__(self, use="dual-optimizer", batch=(2, 64), lq=(32, 256), total_bytes=None, **options):
        self._use, self._options = use, options
        self._bounds = {"batch": batch, "lq": lq}
        self._total = total_bytes or self._usable()
        self._session = None
        self._wrappers = []
        self._iteration = 0
        self._began = time.monotonic_ns()
        self.current_batch_size = self.current_lq_size = None

    @staticmethod
    def _usable():
        total = torch.cuda.get_device_properties(0).total_memory
        read = getattr(torch.cuda, "get_per_process_memory_fraction", None)  # from PyTorch 2.8 on
        return int(total * read()) if read else total

    def set_current_parameters(self, batch_size, lq_size):
        """Says at which sizes the program runs. The first call begins the session."""
        if self._session is None:
            sizes = {"batch": batch_size, "lq": lq_size}
            parameters = {name: (sizes[name], *self._bounds[name]) for name in sizes}
            self._session = Session(self._use, parameters, **self._options)
        elif (self._session["batch"], self._session["lq"]) != (batch_size, lq_size):
            self._session["batch"], self._session["lq"] = batch_size, lq_size
        self.current_batch_size, self.current_lq_size = batch_size, lq_size

    def set_target_parameters(self, batch_size, lq_size):
        """The sizes that are wanted in the end: the policy never goes beyond them. Before set_current_parameters."""
        if self._session is not None:
            raise RuntimeError("set_target_parameters comes before set_current_parameters")
        for name, target in (("batch", batch_size), ("lq", lq_size)):
            low, high = self._bounds[name]
            self._bounds[name] = (low, max(low, min(high, target)))

    def set_dynamic_wrappers(self, dataloader=None, dataset=None):
        """Whom to tell of a change: update_batch_size and update_lq_size are called where they exist."""
        self._wrappers = [wrapper for wrapper in (dataloader, dataset) if wrapper is not None]

    def start_monitoring_period(self):
        """Resets the device's peak counter. Once, before the first step."""
        torch.cuda.reset_peak_memory_stats()

    def update_vram_monitoring(self):
        """After a step that succeeded. Returns (change of batch, change of lq); None = no change.

        Without wrappers the program applies them itself and says so with set_current_parameters; until then
        current_batch_size and current_lq_size are the sizes of the step just done.
        """
        return self._after_step(False)

    def handle_oom_recovery(self, new_batch_size=None, new_lq_size=None):
        """After a step that ran out of memory. Returns the sizes to run at: the policy's, or the given ones."""
        self._after_step(True)
        if new_batch_size is not None or new_lq_size is not None:
            self.set_current_parameters(new_batch_size or self._session["batch"], new_lq_size or self._session["lq"])
        sizes = self._session["batch"], self._session["lq"]
        self.current_batch_size, self.current_lq_size = sizes
        return sizes

    def get_vram_stats(self):
        """What the policy knows of itself: peak_usage, avg_usage, current_usage, adjustments and more."""
        return self._session.statistics

    @property
    def adjustments(self):
        """Every change so far, as dictionaries: iteration, from, to, reason."""
        return self._session.adjustments

    @property
    def reason(self):
        """Why the last step changed something, or did not; empty if nothing was evaluated."""
        return self._session.reason

    def _after_step(self, oom):
        if self._session is None:
            raise RuntimeError("set_current_parameters comes first")
        before = self._session["batch"], self._session["lq"]
        self.current_batch_size, self.current_lq_size = before
        stats = torch.cuda.memory_stats()
        self._iteration += 1
        decision = self._session.after_step(
            iteration=self._iteration, time_ns=time.monotonic_ns() - self._began, total=self._total, oom=int(oom),
            allocated=stats["allocated_bytes.all.current"], peak_allocated=stats["allocated_bytes.all.peak"],
            reserved=stats["reserved_bytes.all.current"], peak_reserved=stats["reserved_bytes.all.peak"],
            alloc_retries=stats["num_alloc_retries"], allocator_ooms=stats["num_ooms"])
        if decision["empty_cache"]:
            torch.cuda.empty_cache()
        if decision["reset_peak"]:
            torch.cuda.reset_peak_memory_stats()
        if decision["end_run"]:
            raise RuntimeError("the policy ends the run: " + self._session.reason)
        changes = [self._session[name] - old for name, old in zip(("batch", "lq"), before)]
        self._tell(changes)
        return tuple(change or None for change in changes)

    def _tell(self, changes):
        for name, change in zip(("batch", "lq"), changes):
            for wrapper in self._wrappers if change else []:
                update = getattr(wrapper, f"update_{name}_size", None)
                if update is not None:
                    update(self._session[name])
        if self._wrappers and any(changes):
            self.current_batch_size, self.current_lq_size = self._session["batch"], self._session["lq"]
