"""Batches composed by predicted memory, for torch.utils.data.DataLoader."""

from types import TracebackType
from typing import Any, Dict, Iterator, List, Optional, Sequence, Type

from ._composer import Composed, Composer
from ._library import MOST_BYTES, Error, described, listed, whole
from ._memory import is_out_of_memory, let_go, requested_bytes
from .tuner import Tuner

try:
    from torch.utils.data import Sampler
except ModuleNotFoundError:
    raise Error("PyTorch is not installed; BatchSampler is one of its samplers.") from None

_MOST_TOKENS = 1 << 40


class BatchStep:
    """The step over one batch: a context manager.

    An out-of-memory error inside does not leave it: the batch's samples come again, in smaller pieces. `failed` is True
    then, and the gradients of that step are not whole.
    """

    def __init__(self, sampler: "BatchSampler", batch: Composed) -> None:
        self._sampler, self.batch = sampler, batch
        self.failed = False
        self.optimizer_steps = False  # after the block: the effective batch is whole
        self.effective = 0  # its samples

    def __enter__(self) -> "BatchStep":
        self._sampler._begin()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> bool:
        self.failed = is_out_of_memory(error)
        failure = 1 if self.failed else 2 if error is not None else 0
        if error is not None and self.failed:
            let_go(error)
        if error is None or isinstance(error, Exception):
            following = self._sampler._end(failure, error)
            self.optimizer_steps, self.effective = bool(following.steps), following.effective
        return self.failed


class BatchSampler(Sampler):
    """Composes each batch by the memory that it is predicted to take, and learns from each step.

        sampler = vramlab.BatchSampler(lengths)  # tokens of each sample of the data set
        loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=pad)
        for batch in loader:
            with sampler.step():
                train_step(batch)

    `images` and `tasks` (a name for each sample) tell samples of other kinds apart; `tokens` the positions that a sample
    takes in a padded row, where that is not its length. `target_batch`: samples of an effective batch, 0 = each batch is
    one; with it the loader must fetch no batch ahead (num_workers=0). `packs`: the collate function puts several samples
    into a row. `use`, `profile` and `options` are those of `vramlab policies`; `total_bytes` what the process may use.

    `tuner` moves what a batch may take, and is told of each step: its one parameter is "budget", the MiB that may be
    allocated at a batch's peak, or "batch_size", the samples of a batch. Without one they are set by `budget`, in bytes,
    and `most_samples`.

    Each pass over the sampler is an epoch with an order of its own. What fails after the loader has fetched its last
    batch comes first in the next pass.
    """

    def __init__(self, lengths: Sequence[int], *, images: Optional[Sequence[int]] = None,
                 tasks: Optional[Sequence[str]] = None, tokens: Optional[Sequence[int]] = None,
                 use: str = "memory-aware-sampler", profile: str = "", options: Optional[Dict[str, Any]] = None,
                 target_batch: int = 0, seed: int = 1, shuffle: bool = True, packs: bool = False,
                 total_bytes: Optional[int] = None, plugins: Sequence[Any] = (), tuner: Optional[Tuner] = None) -> None:
        moves = list(tuner.point) if isinstance(tuner, Tuner) else []
        if tuner is not None and moves not in (["budget"], ["batch_size"]):
            raise Error(f"tuner={tuner!r}: give a Tuner of one parameter, budget (in MiB) or batch_size.")
        lengths = listed("lengths", lengths)
        images, tasks, tokens = (given if given is None else listed(name, given) for name, given in
                                 (("images", images), ("tasks", tasks), ("tokens", tokens)))
        count = len(lengths)
        wrong = [one for one in tasks or () if not isinstance(one, str)]
        if wrong:
            raise Error(f"tasks: {wrong[0]!r} is no name; give a text for each sample.")
        for name, given in (("images", images), ("tasks", tasks), ("tokens", tokens)):
            if given is not None and len(given) != count:
                raise Error(f"{name} has {len(given)} entries and lengths {count}; give one a sample.")
        names = sorted(set(tasks)) if tasks is not None else ["samples"]
        number = {name: i for i, name in enumerate(names)}
        samples = []
        for i in range(count):
            length = whole(f"lengths[{i}]", lengths[i], 0, _MOST_TOKENS)
            samples.append((
                number[tasks[i]] if tasks is not None else 0,
                whole(f"images[{i}]", images[i], 0, 2**31 - 1) if images is not None else 0, length,
                whole(f"tokens[{i}]", tokens[i], 1, _MOST_TOKENS) if tokens is not None else max(1, length)))
        description = described(
            use, profile, options, plugins, tasks=names, target_batch=whole("target_batch", target_batch, 0, 2**62),
            seed=whole("seed", seed, 0, 2**62), shuffle=bool(shuffle), packs=bool(packs))
        self._composer = Composer(description, samples, total_bytes)
        self._tuner = tuner
        if tuner is not None:
            self._require_range(tuner._space[moves[0]], moves[0])
            self._obey()
        self._next_epoch = 0
        self._goes_on = False  # the pass to come finishes an epoch
        self._late = False  # batches ran when the loader had fetched the last one: some may have come back
        self._inside = False

    def __iter__(self) -> Iterator[List[int]]:
        if self._composer.running:
            raise Error(f"{len(self._composer.running)} batches were handed out and not run: use `with sampler.step():` "
                        "around each step, or `sampler.drop()` after a pass that was left.")
        if self._goes_on:  # loaded from a checkpoint
            self._goes_on = False
        else:
            if self._late:
                yield from self._rest()
            self._composer.begin_epoch(self._next_epoch)
            self._next_epoch += 1
        self._late = False
        self._obey()
        yield from self._rest()
        self._late = bool(self._composer.running)

    def _rest(self) -> Iterator[List[int]]:
        composed = self._composer.next()
        while composed is not None:
            yield composed.samples
            composed = self._composer.next()

    def step(self) -> BatchStep:
        """The step over the batch that the loader gave, to be run in a `with` block."""
        if not self._composer.running:
            raise Error("there is no batch to run: sampler.step() is for the loop over a loader with this sampler.")
        return BatchStep(self, self._composer.running[0])

    def drop(self) -> int:
        """Forgets batches that were handed out and will not run; the rest of the epoch is left. Returns how many."""
        dropped = len(self._composer.running)
        while self._composer.running:
            self._composer.begin()
            self._composer.end(2, None)
        self._late = False
        return dropped

    @property
    def budget(self) -> Optional[int]:
        """Bytes that may be allocated at a batch's peak, from the next batch on, in place of the policy's own budget and
        margin. None: as its options say."""
        return self._composer.budget

    @budget.setter
    def budget(self, value: Optional[int]) -> None:
        self._require_no_tuner("budget")
        self._composer.limit(None if value is None else whole("budget", value, 1, MOST_BYTES), self.most_samples)

    @property
    def most_samples(self) -> Optional[int]:
        """Samples that a batch may have, from the next one on. None: as many as the policy takes."""
        return self._composer.most_samples

    @most_samples.setter
    def most_samples(self, value: Optional[int]) -> None:
        self._require_no_tuner("most_samples")
        self._composer.limit(self.budget, None if value is None else whole("most_samples", value, 1, 2**62))

    def _require_no_tuner(self, name: str) -> None:
        if self._tuner is not None:
            raise Error(f"{name}: the tuner of this sampler sets what a batch may take.")

    def _require_range(self, space: Dict[str, int], name: str) -> None:
        most = self._composer.total >> 20 if name == "budget" else 1 << 40
        for end in ("low", "high"):
            whole(f"the tuner's {end}est {name}", space[end], 1, most)

    def _obey(self) -> None:
        if self._tuner is None:
            return
        [(name, value)] = self._tuner.point.items()
        if name == "budget":
            self._composer.limit(value << 20, None)
        else:
            self._composer.limit(None, value)

    @property
    def epoch(self) -> int:
        """The epoch at work, from 0."""
        return self._composer.epoch

    @property
    def statistics(self) -> Dict[str, float]:
        """What the policy knows of itself."""
        return self._composer.statistics

    def state_dict(self) -> Dict[str, Any]:
        """To be kept with a checkpoint: where the epoch stands, and what was learnt."""
        return {"composer": self._composer.save(), "next_epoch": self._next_epoch}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes on from `state_dict` of a sampler over the same samples: the next pass finishes that epoch."""
        if not isinstance(state, dict):
            raise Error("this is not the state_dict of a BatchSampler.")
        next_epoch = whole("next_epoch", state.get("next_epoch"), 0, 2**62)
        self._composer.load(state.get("composer"))
        self._next_epoch, self._goes_on = next_epoch, self._composer.left > 0

    def _begin(self) -> None:
        if self._inside:
            raise Error("a step begins inside another one; end that one first.")
        if self._tuner is not None:
            self._tuner._begin_batch()
        self._inside = True
        self._composer.begin()

    def _end(self, failure: int, error: Optional[BaseException]) -> Any:
        self._inside = False
        following = self._composer.end(failure, error)
        if self._tuner is not None:
            self._tuner._end_batch(failure, requested_bytes(error) if failure == 1 and error is not None else 0)
            self._obey()
        return following
