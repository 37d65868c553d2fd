"""What is read of a card, and what an error says about memory. PyTorch is imported on first use."""

import gc
import re
import time
import traceback
from typing import Any, Dict, List, Optional, Sequence

from ._library import Error, Step, listed, size

_UNITS = {"bytes": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = r"([\d.]+) (bytes|B|KiB|MiB|GiB|TiB)"


def torch() -> Any:
    try:
        import torch as module
    except ImportError:
        raise Error("PyTorch is not installed; this part of vramlab reads the memory of a card through it.") from None
    return module


def is_out_of_memory(error: Optional[BaseException]) -> bool:
    """PyTorch's own error, and what libraries raise for the driver's ("CUDA error: out of memory")."""
    if error is None:
        return False
    own = getattr(torch().cuda, "OutOfMemoryError", ())
    return isinstance(error, own) or (isinstance(error, RuntimeError) and "out of memory" in str(error))


def _found(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return round(float(found[1]) * _UNITS[found[2]]) if found else 0


def requested_bytes(error: BaseException) -> int:
    """The request that failed, as the message has it; 0 if it does not say."""
    return _found("Tried to allocate " + _SIZE, str(error))


def wanted_bytes(error: BaseException, peak: int) -> int:
    """What would have been allocated at least if the request had not failed."""
    text = str(error)
    allocated = _found(_SIZE + " is allocated by PyTorch", text) or _found(_SIZE + " already allocated", text)
    return max(peak, allocated + requested_bytes(error))


def let_go(error: BaseException) -> None:
    """Drops the tensors that the error's frames hold, so that the memory of the failed step is free again."""
    seen: Optional[BaseException] = error
    while seen is not None:
        traceback.clear_frames(seen.__traceback__)
        seen = seen.__cause__ or seen.__context__
    gc.collect()


class Cards:
    """The cards that a program uses, as it can read them."""

    def __init__(self, devices: Optional[Sequence[Any]] = None, total_bytes: Optional[int] = None) -> None:
        cuda = torch().cuda
        self.devices: List[Any] = listed("devices", devices) if devices is not None else [None]
        if not self.devices:
            raise Error("devices=[]: name at least one, or leave it out for the current one.")
        given = None if total_bytes is None else size("total_bytes", total_bytes)
        self.totals = [given or self._usable(cuda, device) for device in self.devices]
        self._began = time.monotonic_ns()
        self._floor: List[Dict[str, int]] = [{} for _ in self.devices]

    @staticmethod
    def _usable(cuda: Any, device: Any) -> int:
        total = _whole(cuda, device)
        read = getattr(cuda, "get_per_process_memory_fraction", None)  # from PyTorch 2.8 on
        return int(total * read(*_of(device))) if read else total

    def read(self, iteration: int, failure: int = 0) -> Any:
        """The readings of all cards, as the library takes them. failure: 0, 1 (out of memory) or 2."""
        steps = []
        for device, total, floor in zip(self.devices, self.totals, self._floor):
            stats = torch().cuda.memory_stats(*_of(device))
            peaks = {name: max(floor.get(name, 0), stats.get(f"{name}_bytes.all.peak", 0))
                     for name in ("allocated", "reserved")}
            steps.append(Step(
                iteration=iteration, time_ns=time.monotonic_ns() - self._began, total=total, oom=failure,
                allocated=stats.get("allocated_bytes.all.current", 0), peak_allocated=peaks["allocated"],
                reserved=stats.get("reserved_bytes.all.current", 0), peak_reserved=peaks["reserved"],
                alloc_retries=stats.get("num_alloc_retries", 0), allocator_ooms=stats.get("num_ooms", 0)))
        return (Step * len(steps))(*steps)

    def reset_peak(self) -> None:
        self._floor = [{} for _ in self.devices]
        for device in self.devices:
            torch().cuda.reset_peak_memory_stats(*_of(device))

    def begin_stretch(self) -> None:
        """The counters of PyTorch begin anew; what `read` gives goes on, since the last `reset_peak`."""
        for step, floor in zip(self.read(0), self._floor):
            floor.update(allocated=step.peak_allocated, reserved=step.peak_reserved)
        for device in self.devices:
            torch().cuda.reset_peak_memory_stats(*_of(device))

    def stretch_peaks(self) -> List[int]:
        """Highest allocated bytes of each card since `begin_stretch`."""
        return [torch().cuda.memory_stats(*_of(device)).get("allocated_bytes.all.peak", 0) for device in self.devices]

    def use_share(self, share: float) -> None:
        """The process may reserve this share of what it may use; an error beyond it is an out-of-memory error."""
        cuda = torch().cuda
        for device, total in zip(self.devices, self.totals):
            cuda.set_per_process_memory_fraction(min(1.0, share * total / _whole(cuda, device)), *_of(device))

    @staticmethod
    def empty_cache() -> None:
        torch().cuda.empty_cache()


def _whole(cuda: Any, device: Any) -> int:
    return cuda.get_device_properties(cuda.current_device() if device is None else device).total_memory


def _of(device: Any) -> tuple:
    return () if device is None else (device,)
