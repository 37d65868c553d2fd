"""What torch.cuda answers where there is no card: stand-ins for the time of a recording, put back at its end."""

import contextlib
import types
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from ._memory import torch


class Facts(NamedTuple):
    """What decides kernels and their workspaces; total in bytes, as the program's catalogue of cards has it."""

    name: str
    total: int
    capability: Tuple[int, int]
    processors: int  # multiprocessors, as the maker's data sheet says


CARDS = {
    "a10g-24gb": Facts("NVIDIA A10G", 22587 << 20, (8, 6), 80),
    "a100-40gb": Facts("NVIDIA A100 40GB", 42_298_834_944, (8, 0), 108),
    "a100-80gb": Facts("NVIDIA A100 80GB", (7914 << 30) // 100, (8, 0), 108),
    "h100-80gb": Facts("NVIDIA H100 80GB HBM3", 85_017_493_504, (9, 0), 132),
    "h200-141gb": Facts("NVIDIA H200", 150_109_880_320, (9, 0), 132),
    "l4-24gb": Facts("NVIDIA L4", (2203 << 30) // 100, (8, 9), 58),
    "l40s-48gb": Facts("NVIDIA L40S", (4439 << 30) // 100, (8, 9), 142),
    "rtx-3090-24gb": Facts("NVIDIA GeForce RTX 3090", 24124 << 20, (8, 6), 82),
    "rtx-4090-24gb": Facts("NVIDIA GeForce RTX 4090", 24081 << 20, (8, 9), 128),
}


class Stream:
    """A stream of the card; everything on it is over at once."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self.cuda_stream = self.stream_id = 0
        self.device_index = 0

    def query(self) -> bool:
        return True

    def _nothing(self, *arguments: Any, **more: Any) -> None:
        return None

    synchronize = wait_event = wait_stream = record_event = _nothing

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *arguments: Any) -> None:
        return None


class Event:
    def __init__(self, *arguments: Any, **more: Any) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        return 0.0

    def _nothing(self, *arguments: Any, **more: Any) -> None:
        return None

    record = wait = synchronize = _nothing


@contextlib.contextmanager
def _nothing_around(*arguments: Any, **more: Any) -> Iterator[None]:
    yield


class Card:
    """The card that a program is told it has. `counters` gives allocated, peak and reserved bytes, and takes resets."""

    def __init__(self, name: str, total: int, capability: Tuple[int, int], processors: int, counters: Any) -> None:
        self.name, self.total, self.capability, self.processors, self.counters = name, total, capability, processors, counters

    def properties(self, *arguments: Any) -> Any:
        return types.SimpleNamespace(name=self.name, total_memory=self.total, major=self.capability[0], minor=self.capability[1],
                                     multi_processor_count=self.processors, is_integrated=0, is_multi_gpu_board=0,
                                     max_threads_per_multi_processor=2048, warp_size=32, L2_cache_size=50 << 20,
                                     regs_per_multiprocessor=65536, shared_memory_per_block_optin=232448)

    def statistics(self, *arguments: Any) -> Dict[str, int]:
        counters = self.counters
        names = {"allocated_bytes": (counters.allocated, counters.peak), "active_bytes": (counters.allocated, counters.peak),
                 "requested_bytes": (counters.allocated, counters.peak), "reserved_bytes": (counters.reserved, counters.peak_reserved)}
        found = {f"{name}.{pool}.{kind}": value for name, pair in names.items() for pool in ("all", "small_pool", "large_pool")
                 for kind, value in zip(("current", "peak"), pair)}
        return {**found, "num_alloc_retries": 0, "num_ooms": 0}

    def answers(self) -> Dict[str, Any]:
        t = torch()
        state = t.zeros(16, dtype=t.uint8)
        counters = self.counters
        nothing = lambda *arguments, **more: None  # noqa: E731
        return {
            "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0, "is_initialized": lambda: True,
            "init": nothing, "_lazy_init": nothing, "_lazy_call": nothing, "set_device": nothing, "synchronize": nothing,
            "empty_cache": lambda *a, **m: counters.empty_cache(), "ipc_collect": nothing,
            "memory_allocated": lambda *a: counters.allocated, "max_memory_allocated": lambda *a: counters.peak,
            "memory_reserved": lambda *a: counters.reserved, "max_memory_reserved": lambda *a: counters.peak_reserved,
            "reset_peak_memory_stats": lambda *a: counters.reset_peak(), "reset_max_memory_allocated": lambda *a: counters.reset_peak(),
            "memory_stats": self.statistics, "mem_get_info": lambda *a: (self.total - counters.reserved, self.total),
            "get_device_properties": self.properties, "get_device_capability": lambda *a: self.capability,
            "get_device_name": lambda *a: self.name, "is_bf16_supported": lambda *a, **m: self.capability >= (8, 0),
            "manual_seed": nothing, "manual_seed_all": nothing, "seed": nothing, "seed_all": nothing, "initial_seed": lambda: 0,
            "get_rng_state": lambda *a: state.clone(), "set_rng_state": nothing, "get_rng_state_all": lambda: [state.clone()],
            "set_rng_state_all": nothing, "device": _nothing_around, "device_of": _nothing_around, "stream": _nothing_around, "current_stream": Stream,
            "default_stream": Stream, "Stream": Stream, "Event": Event, "is_current_stream_capturing": lambda: False,
            "set_per_process_memory_fraction": nothing, "get_per_process_memory_fraction": lambda *a: 1.0,
        }

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        t = torch()
        answers = self.answers()
        places: List[Tuple[Any, str, Any]] = []
        for module in (t.cuda, t.cuda.memory, t.cuda.random):
            places += [(module, name, answer) for name, answer in answers.items() if hasattr(module, name)]
        accelerator = getattr(t, "accelerator", None)
        if accelerator is not None:
            device = t.device("cuda", 0)
            more = {"is_available": lambda: True, "current_accelerator": lambda *a, **m: t.device("cuda"), "device_count": lambda: 1,
                    "current_device_index": lambda: 0, "current_device_idx": lambda: 0, "synchronize": answers["synchronize"],
                    "empty_cache": answers["empty_cache"], "memory_allocated": answers["memory_allocated"],
                    "current_stream": lambda *a: Stream(device)}
            places += [(accelerator, name, answer) for name, answer in more.items() if hasattr(accelerator, name)]
        before = [(module, name, getattr(module, name)) for module, name, _ in places]
        for module, name, answer in places:
            setattr(module, name, answer)
        try:
            yield
        finally:
            for module, name, answer in before:
                setattr(module, name, answer)
