"""A composer of batches and what a program does around it."""

from collections import deque
from ctypes import byref, c_int64, c_uint32, c_uint64
from typing import Any, Deque, Dict, List, NamedTuple, Optional

from ._library import Batch, BatchEnd, BatchNext, Error, Handle, OutOfMemory, sample_array
from ._memory import Cards, wanted_bytes


class Composed(NamedTuple):
    """A batch as it was composed."""
    samples: List[int]  # their numbers
    checkpointing: bool  # run it with activation checkpointing
    accumulates: bool  # it goes on with an effective batch that has begun
    oversize: bool  # one sample that alone is predicted over budget
    predicted: int  # bytes above what is allocated before it; 0: no prediction


class Composer:
    """Asks for batches, reads the card for that, and tells how they ended."""

    def __init__(self, description: bytes, samples: List[Any], total_bytes: Optional[int]) -> None:
        self._handle = Handle("composer", description, sample_array(samples), len(samples))
        self._cards = Cards(None, total_bytes)
        self.budget: Optional[int] = None
        self.most_samples: Optional[int] = None
        self._ran = 0
        self._before = 0
        self.running: Deque[Composed] = deque()

    def set_samples(self, samples: List[Any]) -> None:
        self._handle.call("samples", sample_array(samples), len(samples))

    def limit(self, budget: Optional[int], most_samples: Optional[int]) -> None:
        """What batches may take from the next one on; None: as the composer's options say."""
        if budget is not None and budget > self.total:
            raise Error(f"budget={budget}: is more than the program may use, {self.total} bytes.")
        self._handle.call("limits", budget or 0, most_samples or 0)
        self.budget, self.most_samples = budget, most_samples

    @property
    def total(self) -> int:
        """Bytes that the program may use."""
        return self._cards.totals[0]

    def begin_epoch(self, epoch: int) -> int:
        """Returns the samples of the last effective batch of the epoch before; 0 if it had ended."""
        effective = c_int64()
        self._handle.call("begin_epoch", epoch, byref(effective))
        return effective.value

    def next(self) -> Optional[Composed]:
        """The next batch; None if no sample waits. Raises OutOfMemory where the policy gives up."""
        batch = Batch()
        while True:
            self._handle.call("next", self._cards.read(self._ran), byref(batch))
            if batch.action != Batch.CLEAN_UP:
                break
            self._cards.empty_cache()
        if batch.action == Batch.EPOCH_OVER:
            return None
        if batch.action == Batch.GIVE_UP:
            raise OutOfMemory(self.reason)
        composed = Composed(batch.samples[:batch.count], bool(batch.checkpointing), bool(batch.accumulates),
                            bool(batch.oversize), batch.predicted)
        self.running.append(composed)
        return composed

    def begin(self) -> None:
        """The oldest batch that was handed out begins to run."""
        self._cards.reset_peak()
        self._before = self._cards.read(self._ran)[0].allocated

    def end(self, failure: int, error: Optional[BaseException]) -> BatchNext:
        """It ended. failure: 0, 1 (out of memory) or 2. Raises OutOfMemory after too many failures in a row."""
        batch = self.running.popleft()
        reading = self._cards.read(self._ran)[0]
        peak = wanted_bytes(error, reading.peak_allocated) if failure == 1 and error else reading.peak_allocated
        self._ran += 1
        end = BatchEnd(oom=failure, typical=self._ran > 1 and not batch.checkpointing, rise=max(0, peak - self._before),
                       peak=min(reading.peak_allocated, reading.total), total=reading.total)
        samples, following = (c_uint32 * len(batch.samples))(*batch.samples), BatchNext()
        self._handle.call("told", samples, len(batch.samples), byref(end), byref(following))
        if following.gives_up:
            raise OutOfMemory(self.reason)
        return following

    @property
    def left(self) -> int:
        left = c_uint64()
        self._handle.call("left", byref(left), None)
        return left.value

    @property
    def epoch(self) -> int:
        epoch = c_int64()
        self._handle.call("left", None, byref(epoch))
        return epoch.value

    @property
    def reason(self) -> str:
        return self._handle.text("reason")

    @property
    def statistics(self) -> Dict[str, float]:
        return self._handle.json("statistics")

    def save(self) -> str:
        return self._handle.text("save")

    def load(self, text: Any) -> None:
        if not isinstance(text, str):
            raise Error("this is not what a composer saved.")
        self._handle.call("load", text.encode())
        self.running.clear()
