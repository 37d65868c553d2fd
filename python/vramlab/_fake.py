"""Runs a program without a card: its tensors on the card are PyTorch's fake ones, which have shapes and no values, and
every storage that is born or freed is told to a log (see _fake_log)."""

import contextlib
import importlib
import sys
import weakref
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ._library import Error
from ._fake_kernels import Kernels, no_accelerator
from ._memory import torch

MOST_KNOWN = 1 << 16  # elements of a tensor whose values are followed, where they do not come from data
# operations whose result follows from the shapes of what they are given
SHAPES_ALONE = ("aten::ones_like", "aten::zeros_like", "aten::full_like", "aten::new_zeros", "aten::new_ones", "aten::new_full")


class UnknownValue(Error):
    """The program reads from the card what only data could tell."""


def _place(skip: int = 1) -> Tuple[str, int, str]:
    """File, line and function of the innermost frame that is neither PyTorch's nor this package's."""
    frame: Any = sys._getframe(skip)
    here = __file__.rsplit("/", 1)[0]
    last = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
    while frame is not None:
        file = frame.f_code.co_filename
        if "/torch/" not in file and not file.startswith(here):
            return file, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back
    return last


class StandIns:
    """Values that take the place of what only data could tell, by the place that reads them.

    Keys: "*" (anywhere), the end of a file's name, with ":LINE" or ":FUNCTION" if wanted.
    """

    def __init__(self, given: Optional[Dict[str, Any]] = None) -> None:
        self._given = {"torch/amp/grad_scaler.py": 0.0, **(given or {})}

    def value(self, what: str) -> Any:
        frame: Any = sys._getframe(1)
        while frame is not None:
            found = self._of(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
            if found is not None:
                return found
            frame = frame.f_back
        if "*" in self._given:
            return self._given["*"]
        file, line, name = _place(2)
        raise UnknownValue(f"{file}:{line}: {name}() {what}, which only a card could tell: without one tensors have shapes "
                           f"and no values. Give a value to go on with (stand_in={{\"{file.rsplit('/', 1)[-1]}:{line}\": 0}}, "
                           "or --stand-in FILE:LINE=VALUE), or leave that line out of what is recorded.")

    def _of(self, file: str, line: int, name: str) -> Any:
        for key, value in self._given.items():
            if key == "*":
                continue
            end, _, rest = key.partition(":")
            if file.endswith(end) and rest in ("", str(line), name):
                return value() if callable(value) else value
        return None


class Watched:
    """One storage on the fake card."""

    __slots__ = ("number", "size", "version", "reference")

    def __init__(self, number: int, size: int, reference: Any) -> None:
        self.number, self.size, self.version, self.reference = number, size, 0, reference


def _modes() -> Any:
    """The classes of modes; PyTorch is imported on first use."""
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Dispatch(TorchDispatchMode):
        """Sees every operation below autograd. What is on the processor runs as it is; what is on the card is faked."""

        def __init__(self, session: "Session") -> None:
            super().__init__()
            self.session = session

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return self.session.dispatch(func, args, kwargs or {})

    class NoCard(FakeTensorMode):
        """Never asks for a card, though torch.cuda says that there is one."""

        @property
        def avoid_device_init(self) -> bool:
            return True

    return Dispatch, FakeTensor, NoCard


class Session:
    """The fake card of one recording. `log` hears of every operation, birth and death."""

    def __init__(self, log: Any, capability: Tuple[int, int], stand_in: Optional[Dict[str, Any]] = None) -> None:
        from torch.utils import _pytree

        t = torch()
        self.torch, self.log, self.capability, self.stand_ins = t, log, capability, StandIns(stand_in)
        dispatch, self.FakeTensor, mode = _modes()
        self.pytree = _pytree
        self.fake = mode(allow_non_fake_inputs=True, allow_fallback_kernels=False)
        self.mode = dispatch(self)
        self.on_meta = t.device("meta")
        self.has_card = t.cuda.is_available()
        self.watched: Dict[int, Watched] = {}
        self.born = 0
        self.kernels = Kernels(self)
        self._transformers: Any = None  # its module, once the program has it, and the function that is replaced
        self._asks_fake: Any = None

    @contextlib.contextmanager
    def running(self) -> Iterator["Session"]:
        t = self.torch
        from torch._subclasses import fake_tensor

        if self.has_card:
            t.empty(1, device="cuda")
        else:
            t._C._ensureCUDADeviceGuardSet()
            no_accelerator(t)
        lifted = t._C._only_lift_cpu_tensors()
        t._C._set_only_lift_cpu_tensors(True)
        asks_card, fake_tensor.init_gpu_context = fake_tensor.init_gpu_context, lambda device: None
        known = self._foreach_types()
        for one in known:
            one.append(self.FakeTensor)
        try:
            with self.kernels.installed(), t.autograd.set_multithreading_enabled(self.has_card), self.mode:
                yield self
        finally:
            for one in known:
                one.remove(self.FakeTensor)
            fake_tensor.init_gpu_context = asks_card
            if self._transformers is not None:
                self._transformers.is_fake_tensor = self._asks_fake
            t._C._set_only_lift_cpu_tensors(lifted)

    @staticmethod
    def _foreach_types() -> List[List[Any]]:
        """The lists of tensor types that optimizers take together, each list once."""
        found: List[List[Any]] = []
        for name in ("torch.optim.optimizer", "torch.utils._foreach_utils"):
            types = getattr(importlib.import_module(name), "_foreach_supported_types", None)
            if types is not None and not any(types is one for one in found):
                found.append(types)
        return found

    # --- Operations ---

    def _on_card(self, flat: List[Any]) -> bool:
        return any(isinstance(one, self.FakeTensor) for one in flat)

    def device_of(self, tensor: Any) -> Any:
        """What C++ hears. The engine of autograd would ask the card for its streams; tensors elsewhere it takes as they are.
        Where a forward runs again within backward (checkpointing), it is no engine that asks."""
        t = self.torch
        if tensor.fake_mode.in_kernel_invocation:
            return self.on_meta
        in_engine = t._C._current_graph_task_id() != -1 and not t.is_grad_enabled()
        return self.on_meta if in_engine and not self.has_card else tensor.fake_device

    def dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        t = self.torch
        if func is t.ops.prim.device.default:
            return self.device_of(args[0])
        if self._transformers is None:
            self._look_for_transformers()
        flat = self.pytree.arg_tree_leaves(*args, **kwargs)
        device = kwargs.get("device")
        if device is not None and t.device(device).type == "meta" and self._on_card(flat):
            device = t.device("cuda", 0)  # the answer of device_of comes back
            kwargs = {**kwargs, "device": device}
        to_card = device is not None and t.device(device).type == "cuda"
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        if not to_card and not self._on_card(flat):
            return func(*args, **kwargs)
        if to_card and t.device(device).index is None:
            kwargs = {**kwargs, "device": t.device("cuda", 0)}
        if func is t.ops.aten._local_scalar_dense.default:
            return self._read(func, args[0])
        if func is t.ops.aten.record_stream.default:
            return None
        if device is not None and t.device(device).type == "cpu" and func is t.ops.aten._to_copy.default:
            value = self.value_of(args[0])
            if value is not None:
                return func(value, *args[1:], **kwargs)
        value = self._follow(func, args, kwargs, flat)
        with self.fake:
            out = self._run(func, args, kwargs, value)
        self._note(func, args, kwargs, flat, out, value)
        return out

    def _look_for_transformers(self) -> None:
        """Its models go other ways for fake tensors than for those of a card."""
        module = sys.modules.get("transformers.utils.import_utils")
        if hasattr(module, "is_fake_tensor"):
            self._transformers, self._asks_fake = module, module.is_fake_tensor  # type: ignore[union-attr]
            module.is_fake_tensor = lambda tensor: False  # type: ignore[union-attr]

    def _run(self, func: Any, args: Any, kwargs: Any, value: Any) -> Any:
        from torch._subclasses.fake_tensor import DynamicOutputShapeException, UnsupportedOperatorException

        t = self.torch
        substitute = self.kernels.substitutes.get(func)
        if substitute:
            return substitute(*args, **kwargs)
        try:
            return func(*args, **kwargs)
        except DynamicOutputShapeException:
            if value is None:
                file, line, name = _place()
                raise UnknownValue(f"{file}:{line}: {name}() makes a tensor whose size depends on data ({func}), which only a card "
                                   "could tell. Give that size yourself there (a mask of fixed size, a topk), or leave it out of "
                                   "what is recorded.") from None
            known = self.pytree.tree_map(lambda one: t.empty_strided(one.shape, one.stride(), dtype=one.dtype, device="cuda:0")
                                         if isinstance(one, t.Tensor) else one, value)
            return known
        except (UnsupportedOperatorException, RuntimeError) as error:
            if not isinstance(error, UnsupportedOperatorException) and "register_fake" not in str(error):
                raise
            file, line, name = _place()
            raise UnknownValue(f"{file}:{line}: {name}() calls {func}, a kernel that says nothing of the shapes that it makes. Give it "
                               "a shape function (torch.library.register_fake), or leave it out of what is recorded.") from None

    def _note(self, func: Any, args: Any, kwargs: Any, flat: List[Any], out: Any, value: Any) -> None:
        outs = [one for one in self.pytree.tree_leaves(out) if isinstance(one, self.FakeTensor)]
        born = []
        for one in outs:
            if one.device.type != "cuda":
                continue
            storage = one.untyped_storage()
            key = storage._cdata
            if key not in self.watched:
                born.append(self._watch(storage, key))
        if func._schema.is_mutable:
            self._invalidate(func, args, kwargs)
        if value is not None:
            values = [one for one in self.pytree.tree_leaves(value) if isinstance(one, self.torch.Tensor)]
            if len(values) == len(outs):
                for one, known in zip(outs, values):
                    self._know(one, known)
        numbers: List[int] = []
        self.log.operation(str(func), self._described(args, numbers), self._described(tuple(kwargs.values()), []),
                           self._described(outs, []), [(one.number, one.size) for one in born], self._where(), numbers)

    def _where(self) -> str:
        """Whose thread would run this on a card: forward's, or backward's, where a forward may run again (checkpointing)."""
        t = self.torch
        if t._C._current_graph_task_id() == -1:
            return "forward"
        return "again" if t.is_grad_enabled() else "backward"

    def _described(self, given: Any, numbers: List[int]) -> Any:
        """As the laws read it; `numbers` gets the storage of each tensor, 0 = on the processor."""
        t = self.torch
        if isinstance(given, t.Tensor):
            numbers.append(self.number_of(given) if isinstance(given, self.FakeTensor) else 0)
            strides = None if given.is_contiguous() else tuple(given.stride())
            return "T", str(given.dtype)[6:], tuple(given.shape), strides
        if isinstance(given, (list, tuple)):
            return ("L", *(self._described(one, numbers) for one in given))
        return given if isinstance(given, (int, float, bool, str, type(None))) else str(type(given).__name__)

    def _watch(self, storage: Any, key: int) -> Watched:
        self.born += 1
        number = self.born

        def died(reference: Any) -> None:
            self.watched.pop(key, None)
            self.log.died(number)

        watched = Watched(number, storage.nbytes(), weakref.ref(storage, died))
        self.watched[key] = watched
        return watched

    def number_of(self, tensor: Any) -> int:
        found = self.watched.get(tensor.untyped_storage()._cdata)
        return found.number if found else 0

    # --- Values that do not come from data: they are followed on the processor ---

    def _know(self, tensor: Any, value: Any) -> None:
        watched = self.watched.get(tensor.untyped_storage()._cdata)
        tensor._vramlab_value = (value, watched.version if watched else 0)

    def value_of(self, tensor: Any) -> Any:
        if not isinstance(tensor, self.FakeTensor):
            return tensor if tensor.numel() <= MOST_KNOWN else None
        known = getattr(tensor, "_vramlab_value", None)
        if known is None:
            return None
        watched = self.watched.get(tensor.untyped_storage()._cdata)
        return known[0] if known[1] == (watched.version if watched else 0) else None

    def _invalidate(self, func: Any, args: Any, kwargs: Any) -> None:
        for argument, given in zip(func._schema.arguments, args):
            if argument.alias_info is not None and argument.alias_info.is_write:
                for one in self.pytree.tree_leaves(given):
                    if isinstance(one, self.FakeTensor):
                        watched = self.watched.get(one.untyped_storage()._cdata)
                        if watched:
                            watched.version += 1

    def _follow(self, func: Any, args: Any, kwargs: Any, flat: List[Any]) -> Any:
        t = self.torch
        name = func._schema.name
        if t.Tag.nondeterministic_seeded in func.tags or "empty" in name or "rand" in name or func._schema.is_mutable:
            return self._follow_mutable(func, args, kwargs, flat)
        tensors = [one for one in flat if isinstance(one, t.Tensor)]
        if name in SHAPES_ALONE and tensors and tensors[0].numel() <= MOST_KNOWN:
            return self._computed(func, args, kwargs, {id(one): t.empty(one.shape, dtype=one.dtype) for one in tensors})
        values = {id(one): self.value_of(one) for one in tensors}
        if any(value is None for value in values.values()):
            return self._absorbed(name, args, values)
        if not tensors:
            numbers = [one for one in (args[0] if args and isinstance(args[0], (list, tuple)) else [])]
            count = 1
            for one in numbers:
                count *= one
            if count > MOST_KNOWN:
                return None
            if name == "aten::arange" and any(isinstance(one, (int, float)) and abs(one) > MOST_KNOWN for one in args):
                return None
        return self._computed(func, args, kwargs, values)

    def _computed(self, func: Any, args: Any, kwargs: Any, values: Dict[int, Any]) -> Any:
        t = self.torch
        given, named = self.pytree.tree_map(lambda one: values[id(one)] if isinstance(one, t.Tensor) else one, (args, dict(kwargs)))
        if "device" in named and named["device"] is not None:
            named["device"] = "cpu"
        try:
            out = func(*given, **named)
        except Exception:  # not known, then
            return None
        if any(isinstance(one, t.Tensor) and one.numel() > MOST_KNOWN for one in self.pytree.tree_leaves(out)):
            return None
        return out

    def _follow_mutable(self, func: Any, args: Any, kwargs: Any, flat: List[Any]) -> Any:
        """An operation that writes into a whole tensor of its own: x.fill_(0), x.add_(1)."""
        t = self.torch
        if not func._schema.is_mutable or t.Tag.nondeterministic_seeded in func.tags or not args or not isinstance(args[0], self.FakeTensor):
            return None
        one = args[0]
        if one.numel() > MOST_KNOWN or one.numel() * one.element_size() != one.untyped_storage().nbytes():
            return None
        own = self.value_of(one)
        if own is None and func._schema.name in ("aten::fill_", "aten::zero_", "aten::copy_"):
            own = t.empty(one.shape, dtype=one.dtype)
        values = {id(each): self.value_of(each) for each in flat if isinstance(each, t.Tensor)}
        values[id(one)] = own.clone() if own is not None else None
        if any(value is None for value in values.values()):
            return None
        return self._computed(func, args, kwargs, values)

    def _absorbed(self, name: str, args: Any, values: Dict[int, Any]) -> Any:
        """False and x is False, True or x is True, whatever x is."""
        if name not in ("aten::bitwise_and", "aten::logical_and", "aten::bitwise_or", "aten::logical_or", "aten::mul"):
            return None
        if len(args) < 2 or not all(isinstance(one, self.torch.Tensor) for one in args[:2]):
            return None
        known = [values[id(one)] for one in args[:2]]
        value = known[0] if known[0] is not None else known[1]
        if value is None or args[0].shape != args[1].shape:
            return None
        is_or = name.endswith("_or")
        if is_or and value.dtype == self.torch.bool and bool(value.all()):
            return value.clone()
        if not is_or and not value.dtype.is_floating_point and not bool(value.any()):
            return value.to(self.torch.promote_types(args[0].dtype, args[1].dtype))
        return None

    # --- What reads the card ---

    def _read(self, func: Any, tensor: Any) -> Any:
        value = self.value_of(tensor)
        if value is not None:
            return func(value)
        given = self.stand_ins.value("reads a value of a tensor")
        kind = tensor.dtype
        return bool(given) if kind == self.torch.bool else float(given) if kind.is_floating_point else int(given)
