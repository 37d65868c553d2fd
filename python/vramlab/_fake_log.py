"""What a fake card heard, as a memory snapshot: the form that PyTorch's _dump_snapshot writes, with made-up addresses and
times that only count. Needs no PyTorch."""

import json
import pickle
import sys
from typing import Any, Dict, List, Optional, Tuple

BLOCK = 512  # bytes to which PyTorch rounds every request (allocator rule R2.1)
FIRST_ADDRESS = 0x7F0000000000
FIRST_TIME = 1_000_000  # µs; each entry and each mark is one later


class Supplied:
    """What was put in under one name, as the file tells it."""

    def __init__(self, how: str, source: str) -> None:
        self.how, self.source = how, source
        self.allocations = self.now = self.most = 0


class Log:
    """Entries of one card's history and the marks of its steps. `laws` says what an operation allocates within."""

    def __init__(self, laws: Any, card: str, total: int, stacks: bool = False) -> None:
        self.laws, self.card, self.total, self.stacks = laws, card, total, stacks
        self.entries: List[Dict[str, Any]] = []
        self.marks: List[Dict[str, Any]] = []
        self.empty_caches: List[int] = []
        self.supplied: Dict[str, Supplied] = {}
        self.allocated = self.peak = self.reserved = self.peak_reserved = 0
        self._address, self._time = FIRST_ADDRESS, FIRST_TIME
        self._live: Dict[Any, Tuple[int, int]] = {}  # by number of a storage, or by name of what was supplied
        self._frames: Dict[Any, Any] = {}
        self._known_stacks: Dict[Any, List[Any]] = {}
        self._temporaries = 0
        self._added: Optional[Tuple[Any, int, int]] = None  # a sum of gradients: its number and size, and the first of the two

    # --- What the fake card tells ---

    def operation(self, name: str, arguments: Any, named: Any, outputs: Any, born: List[Tuple[Any, int]], where: str,
                  numbers: Optional[List[int]] = None) -> None:
        """An operation with the storages that its outputs brought: (number, bytes) each, in order. where: "forward",
        "backward", or "again" for a forward that runs again in backward. numbers: the storages of its tensors."""
        self._settle()
        if name == "aten.add.Tensor" and where == "backward" and len(born) == 1 and numbers and len(numbers) == 2 and \
                arguments[1] == arguments[2] and numbers[0]:
            self._added = (*born[0], numbers[0])
            return
        left = list(born)
        temporaries: List[Tuple[Any, str]] = []
        for action in self.laws.within(name, arguments, named, outputs, [size for _, size in born], where != "forward"):
            if action[0] == "output":
                if left:
                    self._allocate(*left.pop(0))
            elif action[0] == "output_of_size":  # not the first one
                place = next((place for place, (_, size) in enumerate(left) if size == action[1]), None)
                if place is not None:
                    self._allocate(*left.pop(place))
            elif action[0] == "keep":
                if action[1] not in self._live:
                    self._supply(action[1], action[2], action[3])
            elif action[0] == "temporary":
                self._temporaries += 1
                number = ("temporary", self._temporaries)
                if action[1]:
                    self._supply(number, action[1], action[2])
                    temporaries.append((number, action[2]))
            elif action[0] == "free":  # the latest temporary
                self._return(*temporaries.pop())
        for number, size in left:
            self._allocate(number, size)
        while temporaries:
            self._return(*temporaries.pop())

    def died(self, number: Any) -> None:
        if self._added and self._added[2] == number and number in self._live:
            # gradients that meet are added in place where nothing else holds the first; fake tensors always make a third
            self._live[self._added[0]] = self._live.pop(number)
            self._added = None
            return
        self._settle()
        if number in self._live:
            self._free(number)

    def _settle(self) -> None:
        if self._added:
            number, size, _ = self._added
            self._added = None
            self._allocate(number, size)

    def empty_cache(self) -> None:
        self._settle()
        if not self.empty_caches or self.empty_caches[-1] != len(self.entries):
            self.empty_caches.append(len(self.entries))
        self.reserved = self.allocated

    def reset_peak(self) -> None:
        self.peak, self.peak_reserved = self.allocated, self.reserved

    def mark(self, phase: str, label: str, params: Optional[Dict[str, Any]] = None, oom: bool = False) -> None:
        self._settle()
        self.marks.append({"t_us": self._tick(), "phase": phase, "label": label, "params": dict(params or {}), "oom": oom})

    # --- Entries ---

    def _tick(self) -> int:
        self._time += 1
        return self._time

    def _supply(self, number: Any, size: int, part: str) -> None:
        known = self.supplied.setdefault(part, Supplied(*self.laws.origin(part)))
        known.allocations += 1
        known.now += size
        known.most = max(known.most, known.now)
        self._allocate(number, size, f"{known.how}: {part}")

    def _return(self, number: Any, part: str) -> None:
        self.supplied[part].now -= self._live[number][1]
        self._free(number)

    def _allocate(self, number: Any, size: int, said: str = "") -> None:
        if size == 0:
            return  # PyTorch asks for nothing then
        block = -(-size // BLOCK) * BLOCK
        self._live[number] = (self._address, size)
        self._enter("alloc", self._address, size, said)
        self._address += block
        self.allocated += block
        self.peak = max(self.peak, self.allocated)
        self.reserved = max(self.reserved, self.allocated)
        self.peak_reserved = max(self.peak_reserved, self.reserved)

    def _free(self, number: Any) -> None:
        address, size = self._live.pop(number)
        self._enter("free_requested", address, size)
        self._enter("free_completed", address, size)
        self.allocated -= -(-size // BLOCK) * BLOCK

    def _enter(self, action: str, address: int, size: int, said: str = "") -> None:
        entry: Dict[str, Any] = {"action": action, "addr": address, "size": size, "stream": 0, "time_us": self._tick()}
        if self.stacks:
            entry["frames"] = self._stack(said)
        self.entries.append(entry)

    def _stack(self, said: str) -> List[Any]:
        """The frames of the program, with what was supplied in front: it has no line of its own."""
        frame: Any = sys._getframe(2)
        here = __file__.rsplit("_fake_log", 1)[0] + "_fake"
        key = [("(made without a card)", 0, said)] if said else []
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith(here):
                key.append((code.co_filename, frame.f_lineno, code.co_name))
            frame = frame.f_back
        whole = tuple(key)
        if whole not in self._known_stacks:
            self._known_stacks[whole] = [self._frames.setdefault(one, dict(zip(("filename", "line", "name"), one))) for one in whole]
        return self._known_stacks[whole]

    # --- Files ---

    def snapshot(self, torch_version: str) -> Dict[str, Any]:
        parts = [{"name": name, "how": one.how, "source": one.source, "allocations": one.allocations, "bytes": one.most}
                 for name, one in sorted(self.supplied.items())]
        empties = [place for place in self.empty_caches if place < len(self.entries)]
        made = {"card": self.card, "total_memory": self.total, "torch": torch_version, "empty_caches": empties, "parts": parts}
        return {"segments": [], "device_traces": [self.entries], "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""},
                "external_annotations": [], "made_without_card": json.dumps(made)}

    def write(self, file: Any, torch_version: str) -> None:
        pickle.dump(self.snapshot(torch_version), file)
