"""The largest batch that fits, found by running real steps."""

import gc
import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from ._library import Error, Handle, OutOfMemory, PolicyEnded, described, whole
from ._memory import Cards, is_out_of_memory, let_go


class NoBatchFits(OutOfMemory):
    """Even the smallest batch does not fit."""


class Probe(NamedTuple):
    """One size that was tried."""
    batch: int
    outcome: str  # ok, oom, held (memory of it stays in use) or failed
    phase: str  # where it failed, else where the peak was
    peak: int  # highest allocated bytes, on the card where that is the largest share


class FoundBatch(NamedTuple):
    batch: int
    reason: str  # with the figures it rests on
    extrapolated: bool  # no probe of this size was good
    probes: List[Probe]


class _Prober:
    def __init__(self, phases: Dict[str, Callable[[int], Any]], varied: Optional[Callable[[int], Any]],
                 cards: Cards) -> None:
        self._phases, self._varied, self._cards = phases, varied, cards
        self._steps = 0
        self._built: List[int] = []  # allocated on each card before any step: what a probe is charged from

    def reading(self) -> Any:
        return self._cards.read(self._steps)

    def make_state(self, batch: int) -> None:
        """Runs one step, so that what training keeps (gradients, the optimizer's state) is there before the first probe,
        and is not taken for tensors that a failed one holds."""
        self._built = [one.allocated for one in self.reading()]
        self._run(next(iter(self._phases.values())), "", batch, 1, {"outcome": "ok"})

    def probe(self, batch: int, depth: Dict[str, Any]) -> Dict[str, Any]:
        self._clean_up()
        self._cards.reset_peak()
        start = self.reading()
        found: Dict[str, Any] = {"batch": batch, "outcome": "ok", "phase": "", "error": ""}
        fullest = 0.0
        if depth["share"] < 1:
            self._cards.use_share(depth["share"])
        phases = list(self._phases.items())
        if self._varied is not None and depth["varied_steps"] > 0:  # from fresh starts: where the first steps put
            for _ in range(depth["varied_starts"]):  # what stays decides how much fragments take later
                self._run(self._varied, phases[0][0], batch, depth["varied_steps"], found)
                self._clean_up()
        for name, step in phases[:None if depth["all_phases"] else 1]:
            self._run(step, name, batch, depth["steps"], found)
            share = max(one.peak_allocated / one.total for one in self.reading())
            if found["outcome"] == "ok" and share > fullest:
                fullest, found["phase"] = share, name
        end = self.reading()
        if depth["share"] < 1:
            self._cards.use_share(1)
        self._clean_up()
        left = self.reading()
        if found["outcome"] == "oom" and any(after.allocated > before.allocated for before, after in zip(start, left)):
            found["outcome"] = "held"
        found["cards"] = [{"start": built, "total": before.total,
                           "free": max(0, int(before.total * depth["share"]) - built),
                           "peak": min(one.peak_allocated, before.total),
                           "peak_reserved": min(one.peak_reserved, before.total),
                           "current": after.allocated if found["outcome"] == "held" else one.allocated}
                          for built, before, one, after in zip(self._built, start, end, left)]
        return found

    def _run(self, step: Callable[[int], Any], name: str, batch: int, count: int, found: Dict[str, Any]) -> None:
        for _ in range(count):
            if found["outcome"] != "ok":
                return
            self._steps += 1
            try:
                step(batch)
            except Exception as error:
                found.update(phase=name, outcome="oom" if is_out_of_memory(error) else "failed")
                if found["outcome"] == "failed":
                    found["error"] = f"{type(error).__name__}: {error}"
                let_go(error)

    def _clean_up(self) -> None:
        gc.collect()
        self._cards.empty_cache()


def find_batch(step: Callable[[int], Any], *, high: int, low: int = 1,
               phases: Optional[Dict[str, Callable[[int], Any]]] = None,
               varied: Optional[Callable[[int], Any]] = None, use: str = "model", profile: str = "",
               options: Optional[Dict[str, Any]] = None, devices: Optional[Sequence[Any]] = None,
               total_bytes: Optional[int] = None, plugins: Sequence[Any] = ()) -> FoundBatch:
    """Looks for the largest batch from `low` to `high` that fits, and returns it with its reason and probes.

        best = vramlab.find_batch(lambda batch: train_step(model, optimizer, batch), high=512).batch

    `step(batch)` runs one whole training step over that many samples, optimizer included, and keeps nothing. `phases`
    are further steps that the batch must fit, by name (validation, generation). `varied(batch)` is a training step with
    shapes as they vary in the job (lengths, image sizes): fragments then count. `use`, `profile` and `options` are those
    of `vramlab policies`. One step at `low` comes first, to make what training keeps. The steps really train: keep the weights first (copy.deepcopy of both state_dicts), or make
    model and optimizer anew. Raises NoBatchFits, or PolicyEnded where the search cannot go on, with the error of a step
    that failed for another reason than memory.
    """
    if phases is not None and not isinstance(phases, dict):
        raise Error(f"phases={phases!r}: give steps by name, as {{'validation': validate}}.")
    all_phases = {"training": step, **(phases or {})}
    for name, one in [*all_phases.items(), ("varied", varied or step)]:
        if not callable(one):
            raise Error(f"{name}: {one!r} is not a function of the batch size.")
    handle = Handle("searcher", described(use, profile, options, plugins, low=whole("low", low, 1, 2**62),
                                          high=whole("high", high, 1, 2**62)))
    prober, probes = _Prober(all_phases, varied, Cards(devices, total_bytes)), []
    prober.make_state(low)
    while True:
        answer = handle.json("next", prober.reading())
        if answer["action"] != "probe":
            break
        found = prober.probe(answer["batch"], answer)
        peak = max(found["cards"], key=lambda card: card["peak"] / card["total"])["peak"]
        probes.append(Probe(found["batch"], found["outcome"], found["phase"], peak))
        handle.call("told", json.dumps(found).encode())
    if answer["action"] == "none_fits":
        raise NoBatchFits(answer["reason"])
    if answer["action"] != "found":
        raise PolicyEnded(answer["reason"])
    return FoundBatch(answer["batch"], answer["reason"], answer["extrapolated"], probes)

