"""Several processes share the cards of a machine: each asks a gate before it takes memory.

The gate is a file. Who holds its lock reads it, lets the policy decide for all that wait, and writes it anew beside the
old one, which it then replaces in one step: a process that is killed at any moment, or a full disk, leaves a whole file.
A job whose process is gone leaves the queue at the next look of any other.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import math
import os
import time
from ctypes import byref, c_uint32
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Type

from ._library import Error, Handle, described, listed, nanoseconds, size, whole
from ._library import path as path_of

_FORMAT = "vramlab-gate-1"


class GateError(Error):
    """The gate's file cannot be used; the text says which, and what to do."""


class JobRefused(Error):
    """The job can never run on these cards, or has failed for good; the text is the policy's reason."""


class JobTimeout(Error, TimeoutError):
    """The job has waited as long as it may; the text is the policy's reason."""


def _start_of(pid: int) -> Optional[int]:
    """When the process began, in ticks since the machine did (proc(5), field 22); None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _boot() -> str:
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    return ""


def _pid_space() -> str:
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


class _Nvml(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def read_cards() -> List[List[int]]:
    """[total, used] bytes of each card as nvidia-smi has them, without a CUDA context. Raises Error without a driver."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        raise Error("there is no NVIDIA driver to ask for cards: give JobGate(..., cards=[bytes, ...]).") from None
    count, cards = ctypes.c_uint(), []
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(byref(count)):
        raise Error("the NVIDIA driver does not answer (nvmlInit): give JobGate(..., cards=[bytes, ...]).")
    try:
        for number in range(count.value):
            device, memory = ctypes.c_void_p(), _Nvml()
            failed = nvml.nvmlDeviceGetHandleByIndex_v2(number, byref(device))
            if failed or nvml.nvmlDeviceGetMemoryInfo(device, byref(memory)):
                raise Error(f"the NVIDIA driver does not say what memory card {number} has.")
            cards.append([memory.total, memory.used])
    finally:
        nvml.nvmlShutdown()
    return cards


def _variant(one: Any) -> Dict[str, Any]:
    if not isinstance(one, dict):
        raise Error(f"variants: {one!r}: give each as {{'name': ..., 'need': bytes, 'per_sample': bytes}}.")
    return {str(key): str(value) if key == "name" else size(f"variants: {key}", value) for key, value in one.items()}


class Job:
    """A job that may use its cards: a context manager; it leaves at the end of the block, or when its process is gone.

    `cards`: their numbers; `need`: bytes promised on each; `batch`, `accumulation` and `variant`: how it is to run.
    """

    def __init__(self, gate: "JobGate", number: int, found: Dict[str, Any]) -> None:
        self._gate, self._number = gate, number
        self._set(found)

    def _set(self, found: Dict[str, Any]) -> None:
        self.cards: List[int] = found["cards"]
        self.need: int = found["need"]
        self.batch: int = found["batch"]
        self.accumulation: int = found["accumulation"]
        self.variant: str = found["variant"]
        self.reason: str = found["reason"]

    def report(self, used: int) -> None:
        """Says what the process really holds on each of its cards (torch.cuda.memory_reserved() and its context)."""
        self._gate._act(lambda queue: queue.call("used", self._number, size("used", used)))

    def ran_out(self) -> "Job":
        """After an out-of-memory error, its memory freed: waits to be admitted again, with more or at a smaller batch.

        Raises JobRefused where the policy gives it up, and JobTimeout as `admit` does.
        """
        now = time.monotonic_ns
        self._gate._act(lambda queue: queue.call("out_of_memory", self._number, now()))
        self._set(self._gate._wait(self._number))
        return self

    def leave(self) -> None:
        """The job is over. More than once does no harm."""
        if self._number >= 0:
            self._gate._leave(self._number)
            self._number = -1

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.leave()


class JobGate:
    """Admits jobs of several processes to shared cards, by the queue policy of `vramlab`.

        gate = vramlab.JobGate("cards.gate")
        with gate.admit(need=6 << 30, per_sample=200 << 20, batch=32, timeout=600) as job:
            train(batch=job.batch, accumulation=job.accumulation)

    All processes name the same file, cards, policy and options. `cards`: bytes that each card offers, by default what
    the driver says, with what others hold then seen as strangers'; `foreign(card)` may say what strangers hold. `use`,
    `profile` and `options` are those of `vramlab policies`. `poll`: seconds between looks while a job waits. Processes
    of different PID namespaces (containers) cannot see each other's ends and are refused.
    """

    def __init__(self, path: Any, *, cards: Optional[Sequence[int]] = None,
                 foreign: Optional[Callable[[int], int]] = None, use: str = "job-queue", profile: str = "", options: Optional[Dict[str, Any]] = None, poll: float = 0.25,
                 plugins: Sequence[Any] = ()) -> None:
        self._path = os.path.realpath(path_of("path", path))
        if not isinstance(poll, (int, float)) or not math.isfinite(poll) or not 0 < poll <= 3600:
            raise Error(f"poll={poll!r}: must be a number of seconds, above 0 to 3600.")
        if foreign is not None and not callable(foreign):
            raise Error(f"foreign={foreign!r}: must be a function that gives the bytes that strangers hold of a card.")
        self._poll, self._foreign, self._asks_driver = poll, foreign, cards is None
        totals = [total for total, _ in read_cards()] if cards is None else listed("cards", cards)
        self._cards = [whole(f"cards[{i}]", total, 1, 1 << 60) for i, total in enumerate(totals)]
        self._description = described(use, profile, options, plugins, cards=self._cards)
        self._abandoned: List[int] = []  # jobs that left while the file could not be written
        Handle("admitter", self._description)  # refuses a wrong one now
        with self._locked():
            pass

    def admit(self, need: int = 0, *, name: str = "", per_sample: int = 0, batch: int = 1, least_batch: int = 1,
              cards: int = 1, priority: int = 0, expected: Optional[float] = None, timeout: Optional[float] = None,
              variants: Sequence[Dict[str, Any]] = ()) -> Job:
        """Waits until the job may start.

        It takes `need` + `per_sample` · batch bytes on each of `cards` cards. With a policy that degrades it may get a
        smaller batch, with as many accumulation steps as make up for it, or one of the `variants`: other ways to run
        it, such as with checkpointing, each {"name", "need", "per_sample"}. `expected`: seconds it says it runs, for
        those behind it. `timeout`: seconds it waits at most; by default the policy's. Raises JobTimeout, or JobRefused
        for a job that can never fit.
        """
        job: Dict[str, Any] = {
            "name": str(name), "need": size("need", need), "per_sample": size("per_sample", per_sample),
            "batch": whole("batch", batch, 1, 1 << 40), "least_batch": whole("least_batch", least_batch, 1, 1 << 40),
            "cards": whole("cards", cards, 1, len(self._cards)),
            "priority": whole("priority", priority, -2**31, 2**31 - 1)}
        if variants:
            job["variants"] = [_variant(one) for one in listed("variants", variants)]
        if expected is not None:
            job["expected_ns"] = nanoseconds("expected", expected)
        if timeout is not None:
            job["patience_ns"] = max(1, nanoseconds("timeout", timeout))
        number = c_uint32()
        with self._locked() as state:
            queue = state.queue
            queue.call("submit", json.dumps(job).encode(), time.monotonic_ns(), byref(number))
            state.owners[str(number.value)] = [os.getpid(), _start_of(os.getpid())]
        return Job(self, number.value, self._wait(number.value))

    def jobs(self) -> List[Dict[str, Any]]:
        """The jobs of the queue as they stand: {"name", "state", "cards", "need", "batch", "reason", ...}."""
        with self._locked() as state:
            return json.loads(state.queue.text("save"))["jobs"]

    def _wait(self, number: int) -> Dict[str, Any]:
        try:
            while True:
                with self._locked() as state:
                    state.queue.call("examine", time.monotonic_ns())
                    found = state.queue.json("job", number)
                if found["state"] != "waits":
                    break
                time.sleep(self._poll)
        except BaseException:  # an interrupt, a full disk: nobody waits for this job any more
            with contextlib.suppress(GateError):
                self._leave(number)
            raise
        if found["state"] == "runs":
            return found
        self._leave(number)
        what = f"job {found['name'] or number}: {found['reason'] or 'it does not fit'}"
        waited = found["state"] == "failed" and found["attempts"] == 0
        raise JobTimeout(what) if waited else JobRefused(what)

    def _leave(self, number: int) -> None:
        try:
            with self._locked() as state:
                with contextlib.suppress(Error):  # another process saw that it left before, or threw the file away
                    state.queue.call("leave", number)
                self._see_strangers(state)  # what its process still holds is under no promise any more
                with contextlib.suppress(Error):  # a policy that cannot go on must not keep the job
                    state.queue.call("examine", time.monotonic_ns())
        except GateError:
            self._abandoned.append(number)
            raise

    def _act(self, work: Callable[[Handle], None]) -> None:
        with self._locked() as state:
            work(state.queue)

    @contextlib.contextmanager
    def _locked(self) -> Iterator["_State"]:
        """The state, read under the lock and written when the block ends without an error."""
        try:
            with open(self._path + ".lock", "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                state = _State(self._read(), self._description, self._path)
                before = state.text()
                for number in self._abandoned:
                    with contextlib.suppress(Error):
                        state.queue.call("leave", number)
                self._see_strangers(state)
                yield state
                if state.text() != before or not os.path.exists(self._path):
                    self._write(state.text())
                self._abandoned.clear()
        except OSError as error:
            what = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
            raise GateError(f"{error.filename or self._path}: {what}. The gate's file is as it was before.") from error

    def _read(self) -> Optional[Dict[str, Any]]:
        try:
            with open(self._path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            text = ""
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise GateError(f"{self._path}: is not the file of a gate of this version. Choose another path, or remove it "
                            "when no job of it runs.")
        return found

    def _write(self, text: str) -> None:
        beside = self._path + ".new"
        try:
            with open(beside, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise

    def _see_strangers(self, state: "_State") -> None:
        """What is held beyond all promises, or all that is held while no job runs, is a stranger's."""
        if self._foreign is not None:
            for card in range(len(self._cards)):
                state.queue.call("foreign", card, size(f"foreign({card})", self._foreign(card)))
        elif self._asks_driver:
            held = [0] * len(self._cards)
            for job in json.loads(state.queue.text("save"))["jobs"]:
                for card in job["cards"]:
                    held[card] += max(job["need"], job["used"])
            for card, (_, used) in enumerate(read_cards()):
                state.queue.call("foreign", card, max(0, used - held[card]))


class _State:
    """What the file holds: the queue, and the process of each job."""

    def __init__(self, found: Optional[Dict[str, Any]], description: bytes, path: str) -> None:
        self.queue = Handle("admitter", description)
        self.owners: Dict[str, List[Any]] = {}
        self._frame = {"format": _FORMAT, "boot": _boot(), "pid_space": _pid_space(), "policy": json.loads(description)}
        if found is None or found.get("boot") != self._frame["boot"]:
            return  # before the machine started anew: every job of it is gone
        try:
            self._take_over(found, path)
        except (KeyError, TypeError, ValueError) as error:
            raise GateError(f"{path}: is damaged ({error!r}). Remove it when no job of it runs.") from None

    def _take_over(self, found: Dict[str, Any], path: str) -> None:
        owners = dict(found["owners"])
        if owners and found["pid_space"] != self._frame["pid_space"]:
            raise GateError(f"{path}: belongs to processes of another PID namespace (container), whose end cannot be "
                            "seen from here. Use one file for each, or share the namespace.")
        alive = {number: [int(pid), start] for number, (pid, start) in owners.items() if _start_of(int(pid)) == start}
        if not alive:
            return
        if found["policy"] != self._frame["policy"]:
            raise GateError(f"{path}: is at work with other cards, policy or options: {json.dumps(found['policy'])}. All "
                            "processes give the same.")
        try:
            self.queue.call("load", json.dumps(found["queue"]).encode())
        except Error as error:
            raise GateError(f"{path}: is damaged ({error}). Remove it when no job of it runs.") from None
        for job in found["queue"]["jobs"]:
            number = str(job["id"])
            if number in alive:
                self.owners[number] = alive[number]
            else:
                self.queue.call("leave", job["id"])

    def text(self) -> str:
        queue = json.loads(self.queue.text("save"))
        here = {str(job["id"]) for job in queue["jobs"]}
        owners = {number: owner for number, owner in self.owners.items() if number in here}
        return json.dumps({**self._frame, "owners": owners, "queue": queue}, indent=1)
