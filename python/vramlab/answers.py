"""What the program vramlab answers, asked through its library: no process is started.

Each function takes what the verb of its name takes and returns that verb's JSON, as a dictionary whose keys are
attributes as well; `print(answer)` shows what the program would have shown.
"""

import ctypes
import functools
import json
import os
from ctypes import c_char_p, c_int, c_void_p
from typing import Any, Dict, Iterable, List, Mapping, Optional, Union

from . import policy as own_policies
from ._library import Error, find_library, load_library, size, whole

Path = Union[str, "os.PathLike[str]"]
Size = Union[int, str]

_FUNCTIONS: Dict[str, Any] = {
    "ask": (c_void_p, [c_char_p, c_void_p]),
    "answer_destroy": (None, [c_void_p]),
    "answer_code": (c_int, [c_void_p]),
    "answer_json": (c_char_p, [c_void_p]),
    "answer_text": (c_char_p, [c_void_p]),
    "answer_error": (c_char_p, [c_void_p]),
    **own_policies.FUNCTIONS,
}


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    return load_library(find_library("libvramlab.so", "vramlab_answers", "VRAMLAB_LIBRARY"), _FUNCTIONS)


class Record(Dict[str, Any]):
    """A dictionary whose keys are attributes as well: row.fits is row["fits"]."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r} here: {', '.join(self) or 'nothing'}") from None


class _Shown:
    """How an answer is shown: as the program shows it, or as a table of pandas."""

    text: str = ""  # what the program would have printed
    code: int = 0  # its exit code: 1 where an expectation or a verification did not hold

    def __str__(self) -> str:
        return self.text

    def frame(self) -> Any:
        """The rows of the answer as a pandas.DataFrame: one a case, policy, message or point."""
        try:
            import pandas
        except ImportError:
            raise Error("frame() needs pandas, which is not installed: pip install pandas.") from None
        return pandas.json_normalize(_rows(self))


class Answer(_Shown, Record):
    """The JSON of one answer."""


class Answers(_Shown, List[Any]):
    """The JSON of an answer that is a list, such as that of `policies`."""


def _rows(answer: Any) -> List[Any]:
    if isinstance(answer, list):
        return answer
    if "policies" in answer:  # compare
        return [{"label": one["label"], **one["metrics"]} for one in answer["policies"]]
    if "axes" in answer:  # of a sweep
        return [{**run["at"], "label": one["label"], **one["metrics"]} for run in answer["runs"]
                for one in run["policies"]]
    for key in ("rows", "messages"):
        if answer.get(key):
            return list(answer[key])
    return [answer]


def ask(verb: str, *words: str, texts: Optional[Mapping[str, str]] = None) -> Any:
    """What `vramlab VERB WORDS... --json -` answers, for verbs without a function here: ask("gpus").

    texts: what stands for scenario files of these names; "-" is standard input.
    """
    question = {"words": [verb, *words], "texts": dict(texts or {})}
    try:
        described = json.dumps(question).encode()
    except (TypeError, UnicodeEncodeError) as error:
        raise Error(f"{verb}: {error}. Words are texts.") from None
    lib = library()
    with own_policies.handed_over(lib) as policies:
        handle = lib.vramlab_ask(described, policies)
    if not handle:
        raise MemoryError("no memory for an answer of vramlab")
    try:
        code = lib.vramlab_answer_code(handle)
        if code not in (0, 1):
            raise Error(lib.vramlab_answer_error(handle).decode(errors="replace").rstrip("\n"))
        found = json.loads(lib.vramlab_answer_json(handle) or b"{}", object_hook=Record)
        answer: Any = Answers(found) if isinstance(found, list) else Answer(found)
        answer.code, answer.text = code, lib.vramlab_answer_text(handle).decode(errors="replace")
    finally:
        lib.vramlab_answer_destroy(handle)
    return answer


# ---- From arguments to words

def _many(name: str, given: Any) -> List[Any]:
    """`given` as a list: it may be one thing, several, or None."""
    if given is None:
        return []
    if isinstance(given, (str, bytes, int, float, os.PathLike)):
        return [given]
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise Error(f"{name}={given!r}: give one, or a list.")
    return list(given)


def _path(name: str, given: Any) -> str:
    try:
        path = os.fspath(given)
    except TypeError:
        raise Error(f"{name}={given!r}: must be the path of a file.") from None
    if not isinstance(path, str) or not path or "\0" in path:
        raise Error(f"{name}={given!r}: must be the path of a file.")
    return os.path.join(".", path) if path.startswith("-") else path


def _size(name: str, given: Any) -> str:
    return given if isinstance(given, str) else str(size(name, given))


def _point(name: str, given: Optional[Mapping[str, int]]) -> List[str]:
    if given is not None and not isinstance(given, Mapping):
        raise Error(f"{name}={given!r}: must be a dictionary such as {{'batch': 8}}.")
    return [f"{key}={whole(f'{name}[{key!r}]', value, -2**62, 2**62)}" for key, value in (given or {}).items()]


def _options(**given: Any) -> List[str]:
    """Words of options: None is left out, True stands alone, a list is repeated."""
    words = []
    for name, value in given.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            for one in value if isinstance(value, list) else [value]:
                if not isinstance(one, (str, int)):
                    raise Error(f"{name}={one!r}: must be a text.")
                words += [f"{option}={one}"] if one != "" else [option, ""]
    return words


def _paths(name: str, given: Any) -> List[str]:
    return [_path(f"{name}", one) for one in _many(name, given)]


def _file(name: str, given: Optional[Path]) -> Optional[str]:
    return None if given is None else _path(name, given)


def _some(name: str, given: Any) -> List[str]:
    paths = _paths(name, given)
    if not paths:
        raise Error(f"{name}: none is given.")
    return ["--", *paths]


# ---- The verbs

def _ask(verb: str, *words: str, texts: Optional[Mapping[str, str]] = None) -> Answer:
    answer = ask(verb, *words, texts=texts)
    assert isinstance(answer, Answer), f"{verb} of one thing answers an object"
    return answer


def whatif(snapshot: Any, *, conf: Any = None, gpu: Any = None, capacity: Any = None, limit: Any = None,
           at: Optional[Mapping[str, int]] = None, marks: Any = None, smallest: bool = False, oom: Optional[Path] = None,
           by: str = "frame", depth: Optional[int] = None, torch_version: Optional[str] = None,
           export: Optional[Path] = None, report: Optional[Path] = None, threads: int = 0,
           picture: Optional[Path] = None, folded: Optional[Path] = None, details: bool = False,
           mark: Optional[str] = None, recompute: Any = None, every: Optional[int] = None,
           part: Optional[str] = None, backend: Any = None) -> Answer:
    """Whether a recorded program would fit under other allocator settings or on another card.

        vramlab.whatif("snapshot.pickle", conf="expandable_segments:True", capacity="24GiB").rows[0].fits

    snapshot: of torch.cuda.memory._dump_snapshot; one, or one a rank. conf: as PYTORCH_ALLOC_CONF, "" is the
    default; gpu: a card of ask("gpus"); capacity, limit: sizes of a card and of what may be reserved. Each one or
    several; there is a row for every combination. at={"batch": 16}, with marks, asks for other parameters than the
    recorded ones, and part="batch=2" for the step in such parts. mark, a label, asks who holds the memory there (--at).
    recompute="model.py:403", every=2: as if these calls were computed again in backward. backend: other allocators,
    "bfc". The options are those of `vramlab help whatif`.
    """
    return _ask("whatif", *_options(
        alloc_conf=_many("conf", conf), gpu=_many("gpu", gpu),
        capacity=[_size("capacity", one) for one in _many("capacity", capacity)],
        limit=[_size("limit", one) for one in _many("limit", limit)], set=_point("at", at),
        marks=_paths("marks", marks), smallest=bool(smallest), oom=_file("oom", oom), by=by, depth=depth,
        torch_version=torch_version, export=_file("export", export), report=_file("report", report),
        jobs=whole("threads", threads, 0, 1024), picture=_file("picture", picture), folded=_file("folded", folded),
        details=bool(details), at=mark, recompute=_many("recompute", recompute), every=every, part=part,
        backend=_many("backend", backend)), *_some("snapshot", snapshot))


def advise(recording: Path, *, capacity: Any = None, gpu: Optional[str] = None, limit: Any = None,
           conf: Optional[str] = None, only: Any = None, times: Optional[Path] = None,
           host_bandwidth: Optional[float] = None, at: Optional[Mapping[str, int]] = None, batch: Optional[str] = None,
           torch_version: Optional[str] = None, report: Optional[Path] = None, threads: int = 0) -> Answer:
    """What to compute again in backward, or keep in host memory, so that a recorded program fits a card.

        answer = vramlab.advise("snapshot.pickle", capacity="12GiB")
        answer.front[answer.best].pytorch

    recording: a snapshot, or a model of fit with at={"batch": 16}; batch names the parameter of a model that may be cut
    into parts. capacity, gpu, limit: the card, and what may be reserved. only: "recompute", "offload", "optimizer",
    "parts", one or several. times: of the recorder's second pass.
    """
    return _ask("advise", *_options(
        capacity=[_size("capacity", one) for one in _many("capacity", capacity)], gpu=gpu,
        limit=[_size("limit", one) for one in _many("limit", limit)], alloc_conf=conf, only=_many("only", only),
        times=_file("times", times), host_bandwidth=None if host_bandwidth is None else str(host_bandwidth),
        set=_point("at", at), batch=batch, torch_version=torch_version, report=_file("report", report),
        jobs=whole("threads", threads, 0, 1024)), *_some("recording", recording))


def explain(message: Union[Path, BaseException]) -> Answer:
    """Why memory ran out: of the text of an out-of-memory error, the error itself, or a file with one in it.

    A text of one line that names a file is that file.
    """
    if isinstance(message, BaseException):
        message = str(message)
    if isinstance(message, str) and ("\n" in message or " " in message.strip()) and not os.path.exists(message):
        return _ask("explain", "-", texts={"-": message})
    return _ask("explain", "--", _path("message", message))


def _beside(snapshots: List[str], ending: str) -> List[str]:
    """The files that a recorder wrote beside snapshots; none if one of them has none."""
    found = []
    for snapshot in snapshots:
        stem = snapshot[:-3] if snapshot.endswith(".gz") else snapshot
        found.append(os.path.splitext(stem)[0] + ending)
    return found if all(map(os.path.exists, found)) else []


def _steps(given: Optional[Mapping[str, Any]]) -> List[str]:
    if given is not None and not isinstance(given, Mapping):
        raise Error(f"steps={given!r}: must be a dictionary such as {{'batch': [8, 8, 16, 16]}}.")
    words = []
    for key, values in (given or {}).items():
        name = f"steps[{key!r}]"
        if isinstance(values, str):
            raise Error(f"{name}={values!r}: must be a list of whole numbers.")
        words.append(f"{key}=" + ",".join(str(whole(name, one, 1, 2**62)) for one in _many(name, values)))
    return words


def fit(snapshot: Any, output: Path, *, marks: Any = None, parameters: Optional[Mapping[str, int]] = None,
        steps: Optional[Mapping[str, Any]] = None, rank: Any = None, times: Optional[Path] = None,
        name: Optional[str] = None, about: Optional[str] = None) -> Answer:
    """Makes a model of recorded steps and writes it to the file `output`, for `predict` and for scenarios.

        vramlab.fit("run.pickle", "model.json")

    marks and times are by default the files that the recorder wrote beside the snapshot; without marks, `parameters`
    are those of every step, or `steps` those of each, {"batch": [8, 8, 16, 16]}. rank: which process each snapshot
    is, "1/2" for rank 1 of 2; by default as their files say.
    """
    snapshots = _some("snapshot", snapshot)
    files = _paths("marks", marks)
    if marks is None and parameters is None and steps is None:
        files = _beside(snapshots[1:], ".marks.json")
    if times is None and len(snapshots) == 2:
        times = next(iter(_beside(snapshots[1:], ".times.json")), None)
    return _ask("fit", *_options(marks=files, param=_point("parameters", parameters), steps=_steps(steps),
                                rank=_many("rank", rank), output=_path("output", output), times=_file("times", times),
                                name=name, about=about), *snapshots)


def predict(model: Path, *, at: Optional[Mapping[str, int]] = None, gpu: Optional[str] = None,
            limit: Optional[Size] = None, conf: Optional[str] = None, largest: Optional[str] = None,
            against: Optional[Path] = None, world: Optional[int] = None, backend: Optional[str] = None) -> Answer:
    """Memory and time of a step of a model: vramlab.predict("model.json", at={"batch": 16}).peak_reserved_bytes.

    Parameters that `at` does not name are in the middle of what was recorded. largest="batch" looks for the largest
    that fits; against=FILE gives the errors against measured points; world=8 asks a model of several ranks for 8.
    """
    return _ask("predict", *_options(set=_point("at", at), gpu=gpu, limit=None if limit is None else _size("limit", limit),
                                    alloc_conf=conf or None, largest=largest, against=_file("against", against), backend=backend,
                                    world=None if world is None else whole("world", world, 1, 65536)),
               "--", _path("model", model))


def compare(scenario: Union[Path, Mapping[str, Any]], *, policies: Any = None, plugins: Any = None, seeds: int = 1,
            metric: Optional[str] = None, results: Optional[Path] = None, picture: Optional[Path] = None,
            traces: Optional[Path] = None, report: Optional[Path] = None, threads: int = 0) -> Answer:
    """Runs the policies of a scenario, side by side: vramlab.compare("scenarios/ratchet.json").best.

    scenario: a file, or a dictionary with what such a file holds. policies: which of them, by label; a name of
    `vramlab.policy` or an entry such as {"use": "aimd", "label": "mine"} joins those of the scenario.
    """
    words = _options(plugin=_paths("plugins", plugins), seeds=whole("seeds", seeds, 1, 1000), metric=metric,
                     results=_file("results", results), picture=_file("picture", picture),
                     trace_dir=_file("traces", traces), report=_file("report", report),
                     jobs=whole("threads", threads, 0, 1024))
    file = "scenario" if isinstance(scenario, Mapping) else _path("scenario", scenario)
    texts = {}
    if isinstance(scenario, Mapping):
        texts[file] = _json_text(scenario)
    labels, added = _chosen(policies)
    if added:
        texts[file] = _with_policies(texts.get(file), file, added)
    if labels:
        words += _options(policies=",".join(labels))
    return _ask("compare", *words, "--", file, texts=texts)


def _json_text(scenario: Mapping[str, Any]) -> str:
    try:
        return json.dumps(scenario, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Error(f"scenario: cannot be written as JSON: {error}.") from None


def _chosen(policies: Any) -> Any:
    """Labels, and the entries among them that the scenario does not have."""
    labels, added = [], []
    for one in policies if isinstance(policies, (list, tuple)) else _many("policies", policies):
        if isinstance(one, Mapping):
            if not isinstance(one.get("use"), str):
                raise Error(f"policies: {one!r} names no policy. Write {{'use': 'aimd'}}.")
            entry = {"label": " ".join(filter(None, (one["use"], one.get("profile")))), **one}
            added.append(entry)
            labels.append(entry["label"])
        elif isinstance(one, str):
            labels.append(one)
            if own_policies.is_own(one):
                added.append({"use": one, "label": one})
        else:
            raise Error(f"policies: {one!r} is neither a label nor an entry such as {{'use': 'aimd'}}.")
        if not isinstance(labels[-1], str) or not labels[-1] or "," in labels[-1]:
            raise Error(f"policies: {labels[-1]!r} is no label; it is a text without a comma.")
    return labels, added


def _with_policies(text: Optional[str], file: str, added: List[Dict[str, Any]]) -> str:
    """The scenario with further policies; those that it has already, by label, stay as they are."""
    if text is None:
        try:
            with open(file, encoding="utf-8") as opened:
                text = opened.read()
        except (OSError, UnicodeDecodeError) as error:
            raise Error(f"{file}: cannot be read: {error}.") from None
    try:
        document = json.loads(text)
        known = document.setdefault("policies", [])
        labels = {one.get("label", one.get("use")) for one in known}
        known += [one for one in added if one["label"] not in labels]
        return json.dumps(document)
    except (ValueError, AttributeError, TypeError):
        return text  # the library says what is wrong with it


def verify(recording: Any, *, torch_version: Optional[str] = None) -> Answer:
    """How exactly the simulator repeats what a recorded allocator did; code is 1 where it does not."""
    return _ask("verify", *_options(torch_version=torch_version), *_some("recording", recording))
