"""A policy that moves parameters between steps."""

import logging
from ctypes import byref, c_int64
from types import TracebackType
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Type

from ._library import Decision, Error, Handle, Phase, PolicyEnded, described, whole
from ._memory import Cards, is_out_of_memory, let_go, requested_bytes

logger = logging.getLogger("vramlab")


class TunerStep:
    """One step: a context manager. The parameters are its attributes and items: at.batch, at["batch"].

    An out-of-memory error inside is told to the policy and does not leave the block; `failed` is True then.
    """

    def __init__(self, tuner: "Tuner", point: Dict[str, int]) -> None:
        self._tuner, self.point, self.failed = tuner, point, False

    def __getattr__(self, name: str) -> int:
        try:
            return self.__dict__["point"][name]
        except KeyError:
            raise AttributeError(f"{name!r} is no parameter of this tuner: {', '.join(self.__dict__['point'])}") from None

    def __getitem__(self, name: str) -> int:
        if name not in self.point:
            raise Error(f"{name!r} is no parameter of this tuner: {', '.join(self.point)}.")
        return self.point[name]

    def __enter__(self) -> "TunerStep":
        self._tuner._begin()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> bool:
        self.failed = is_out_of_memory(error)
        if error is not None and self.failed:
            self._tuner._session.call("asked", requested_bytes(error))
            let_go(error)
        if error is None or isinstance(error, Exception):
            self._tuner._end(1 if self.failed else 2 if error is not None else 0)
        return self.failed


class Tuner:
    """Moves parameters of a training loop toward a target usage of memory.

        tuner = vramlab.Tuner("predictive", batch=(8, 1, 256))
        for at in tuner.steps(1000):
            with at:
                train_step(at.batch)

    Each parameter is (start, lowest, highest). `use`, `profile` and `options` are those of `vramlab policies`;
    `devices` the cards of a workload on several; `total_bytes` what the process may use of each, by default what
    torch.cuda.set_per_process_memory_fraction left. What the policy has to say goes to the logger "vramlab".
    """

    def __init__(self, use: str = "predictive", *, profile: str = "", options: Optional[Dict[str, Any]] = None,
                 devices: Optional[Sequence[Any]] = None, total_bytes: Optional[int] = None, plugins: Sequence[Any] = (),
                 **parameters: Tuple[int, int, int]) -> None:
        space = {}
        for name, values in parameters.items():
            try:
                start, low, high = values
            except (TypeError, ValueError):
                raise Error(f"{name}={values!r}: give a parameter as (start, lowest, highest).") from None
            bounds = {"start": start, "low": low, "high": high}
            space[name] = {key: whole(f"{name}: {key}", value, -2**62, 2**62) for key, value in bounds.items()}
        if not space:
            raise Error("a tuner needs a parameter to move, e.g. batch=(8, 1, 256): start, lowest, highest.")
        self._session = Handle("session", described(use, profile, options, plugins, parameters=space))
        self._names, self._space = list(space), space
        self._cards = Cards(devices, total_bytes)
        self._iteration = 0
        self._inside = ""
        self._retry = False
        self._fresh = True  # the next step is the first of this process
        self._told = False

    @property
    def point(self) -> Dict[str, int]:
        """The parameters of the next step."""
        values = {}
        for name in self._names:
            value = c_int64()
            self._session.call("get", name.encode(), byref(value))
            values[name] = value.value
        return values

    def __getitem__(self, name: str) -> int:
        value = c_int64()
        self._session.call("get", str(name).encode(), byref(value))
        return value.value

    def __setitem__(self, name: str, value: int) -> None:
        """Says that the program itself runs at another value now; it is moved into the bounds."""
        self._session.call("set", str(name).encode(), whole(name, value, -2**62, 2**62))

    def step(self) -> TunerStep:
        """The next step, to be run in a `with` block."""
        return TunerStep(self, self.point)

    def steps(self, count: int) -> Iterator[TunerStep]:
        """`count` steps; one that failed comes again where the policy wants that."""
        last = self._iteration + whole("count", count, 0, 2**62)
        while self._retry or self._iteration < last:
            self._told = False
            yield self.step()
            if not self._told:
                raise Error("the step was not run: use `with at:` around it.")

    def phase(self, name: str, follows: Optional[Dict[str, int]] = None) -> "TunerPhase":
        """A phase of its own between two steps, to be run in a `with` block: validation, generation, saving.

        follows={"batch": 4}: it runs at four times the batch of training, whatever that is; parameters that are not
        named have values of the phase's own.
        """
        if not isinstance(name, str):
            raise Error(f"phase({name!r}): the name of a phase is a text.")
        if follows is not None and not isinstance(follows, dict):
            raise Error(f"follows={follows!r}: give factors by parameter, as {{{self._names[0]!r}: 4}}.")
        follows = follows or {}
        unknown = [one for one in follows if one not in self._names]
        if unknown:
            raise Error(f"follows={follows!r}: {unknown[0]!r} is no parameter of this tuner: {', '.join(self._names)}.")
        factors = [whole(f"follows[{one!r}]", follows.get(one, 0), 0, 2**31) for one in self._names]
        return TunerPhase(self, name, factors)

    @property
    def retry(self) -> bool:
        """Whether the next step is the failed one again."""
        return self._retry

    @property
    def reason(self) -> str:
        """Why the last step changed something, or did not; empty if nothing was evaluated."""
        return self._session.text("reason")

    @property
    def adjustments(self) -> List[Dict[str, Any]]:
        """Every change so far: {"iteration", "from", "to", "reason"}."""
        return self._session.json("adjustments")

    @property
    def statistics(self) -> Dict[str, float]:
        """What the policy knows of itself."""
        return self._session.json("statistics")

    def state_dict(self) -> Dict[str, Any]:
        """To be kept with a checkpoint. Raises Error for a policy that saves nothing."""
        session = self._session.text("save")
        if not session:
            raise Error("this policy saves nothing; a program that goes on begins with a new one.")
        return {"session": session, "iteration": self._iteration}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes on from `state_dict` of a tuner that was made alike."""
        if not isinstance(state, dict) or not isinstance(state.get("session"), str):
            raise Error("this is not the state_dict of a Tuner.")
        iteration = whole("iteration", state.get("iteration"), 0, 2**62)
        self._session.call("load", state["session"].encode())
        self._iteration, self._retry, self._fresh = iteration, False, True

    def _enter(self, what: str) -> None:
        if self._inside:
            raise Error(f"{what} begins inside {self._inside}; end that one first.")
        self._inside = what

    def _begin(self) -> None:
        self._enter("a step")
        if self._fresh:
            self._cards.reset_peak()
            self._fresh = False
        if not self._retry:
            self._iteration += 1

    def _end(self, failure: int) -> None:
        self._inside, self._told = "", True
        readings, decision = self._cards.read(self._iteration, failure), Decision()
        self._session.call("after_cards", readings, len(readings), byref(decision))
        self._obey(decision)

    def _begin_batch(self) -> None:
        """A batch of a sampler, which resets PyTorch's peaks at each; for the policy one lasts until it resets it."""
        self._begin()
        self._cards.begin_stretch()

    def _end_batch(self, failure: int, asked: int) -> None:
        if asked:
            self._session.call("asked", asked)
        self._end(failure)
        self._retry = False  # a sampler has its own rule for a failed batch

    def _obey(self, decision: Decision) -> None:
        for line in self._session.text("log").splitlines():
            logger.log(logging.WARNING if line.startswith("warning: ") else logging.INFO, line)
        if decision.empty_cache:
            self._cards.empty_cache()
        if decision.reset_peak:
            self._cards.reset_peak()
        self._retry = bool(decision.retry)
        if decision.end_run:
            raise PolicyEnded(f"the policy ends the run after step {self._iteration}: {self.reason}")

    def _tell_phase(self, name: str, follow: List[int], begins: bool, failure: int = 0, peak: int = 0,
                    asked: int = 0) -> None:
        phase = Phase(name=name.encode(), begins=begins, oom=failure, peak_allocated=peak, asked=asked)
        if any(follow):
            values = [factor * value if factor else value for factor, value in zip(follow, self.point.values())]
            phase.ran, phase.follow = (c_int64 * len(values))(*values), (c_int64 * len(follow))(*follow)
        decision = Decision()
        self._session.call("phase", byref(phase), self._cards.read(self._iteration), byref(decision))
        retry = self._retry
        self._obey(decision)
        self._retry = retry


class TunerPhase:
    """A phase between two steps: a context manager. An out-of-memory error does not leave it; see `failed`."""

    def __init__(self, tuner: Tuner, name: str, follow: List[int]) -> None:
        self._tuner, self.name, self._follow, self.failed = tuner, name, follow, False

    def __enter__(self) -> "TunerPhase":
        self._tuner._enter(f"the phase {self.name!r}")
        self._tuner._tell_phase(self.name, self._follow, begins=True)
        self._tuner._cards.begin_stretch()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> bool:
        self._tuner._inside = ""
        self.failed = is_out_of_memory(error)
        peak, asked = max(self._tuner._cards.stretch_peaks()), 0
        if error is not None and self.failed:
            asked = requested_bytes(error)
            let_go(error)
            logger.warning("the phase %r ran out of memory", self.name)
        if error is None or isinstance(error, Exception):
            failure = 1 if self.failed else 2 if error is not None else 0
            self._tuner._tell_phase(self.name, self._follow, False, failure, peak, asked)
        return self.failed
