"""The recorder of a program that runs without a card: what vramlab.record(..., device="fake") gives."""

import contextlib
import os
from typing import Any, Dict, Iterator, Optional

from ._library import Error
from ._memory import torch
from ._fake_card import CARDS, Card
from ._fake_laws import Laws
from ._fake_log import Log


class FakeRecorder:
    """As vramlab_recorder.Recorder; there are no times to take."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.recording = True
        self.rows: Dict[str, Any] = {}
        log.mark("other", "start")

    def built(self, label: str = "built") -> None:
        self.log.mark("other", label)

    def phase(self, label: str) -> None:
        self.log.mark("other", label)

    @contextlib.contextmanager
    def step(self, **params: Any) -> Iterator[None]:
        from vramlab_recorder import _plain

        params = {name: _plain(name, value) for name, value in params.items()}
        label = " ".join(f"{name}{value}" for name, value in params.items() if isinstance(value, int))
        try:
            yield
        except Exception:  # no whole step: not to be counted into the next one
            self.log.mark("other", f"failed {label}")
            raise
        self.log.mark("step", label, params)

    def time(self, step: Any, steps: int = 4, **params: Any) -> None:
        raise Error('device="fake": nothing runs on a card, so there are no times to take.')

    save_times = time


def card_named(name: str, log: Log) -> Card:
    facts = CARDS[name]
    return Card(facts.name, facts.total, facts.capability, facts.processors, log)


def require_card(name: str) -> None:
    if name not in CARDS:
        raise Error(f"card={name!r}: is not known here; known are {', '.join(sorted(CARDS))}.")


@contextlib.contextmanager
def recording(name: str, card: str = "h100-80gb", stand_in: Optional[Dict[str, Any]] = None, stacks: bool = False) -> Iterator[Any]:
    """Runs the block on a fake card and writes name.pickle and name.marks.json at its end, after an error as well."""
    from ._fake import Session  # needs PyTorch

    facts = CARDS[card]
    log = Log(Laws(facts.capability, facts.processors), facts.name, facts.total, stacks)
    session = Session(log, facts.capability, stand_in)
    recorder = FakeRecorder(log)
    try:
        with card_named(card, log).installed(), session.running():
            yield recorder
    finally:
        write(log, name)


def write(log: Log, name: str) -> None:
    import json

    from vramlab_recorder import whole_file

    version = str(torch().__version__).split("+", 1)[0]
    with whole_file(f"{name}.pickle") as part, open(part, "wb") as file:
        log.write(file, version)
    text = json.dumps({"workload": os.path.basename(name), "marks": log.marks}, indent=1)
    with whole_file(f"{name}.marks.json") as part, open(part, "w") as file:
        file.write(text + "\n")
