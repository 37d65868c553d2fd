"""Which kernels a card would take, and the functions that would ask it: they are replaced while a program is recorded."""

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Tuple

NO_DEVICE = "vramlab_no_card"  # an accelerator by name only


def no_accelerator(t: Any) -> None:
    """Autograd's engine takes the streams of the accelerator that PyTorch was built for, and asks the driver for them. One
    that Python alone registers comes first, and no tensor lies on it. There is no way back in one process."""
    if t._C._get_privateuse1_backend_name() != "privateuseone":
        return
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    _setup_privateuseone_for_python_backend(NO_DEVICE)


def attention_kernel(capability: Tuple[int, int], dtype: str, head: int, masked: bool, enabled: Dict[str, bool],
                     grouped: bool = False) -> str:
    """Which kernel scaled_dot_product_attention takes (PyTorch 2.11, aten/src/ATen/native/transformers/cuda/sdp_utils.cpp):
    cuDNN first on capability 9.0 and 10.0, then flash, then memory-efficient, then the plain one."""
    half = dtype in ("torch.float16", "torch.bfloat16")
    if half and capability in ((9, 0), (10, 0)) and head % 8 == 0 and head <= 128 and enabled["cudnn"]:
        return "cudnn"
    if half and capability >= (8, 0) and head <= 256 and not masked and enabled["flash"]:
        return "flash"
    if enabled["efficient"] and not grouped:
        return "efficient"
    return "math"


class Kernels:
    def __init__(self, session: Any) -> None:
        self.session = session
        self.torch = t = session.torch
        self._applying = False
        aten = t.ops.aten
        self.substitutes: Dict[Any, Any] = {
            aten._cudnn_rnn.default: self._rnn,
            aten._cudnn_rnn_backward.default: self._rnn_backward,
            aten._scaled_dot_product_cudnn_attention.default: self._cudnn_attention,
        }

    def _is_fake(self, one: Any) -> bool:
        return isinstance(one, self.session.FakeTensor)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        t = self.torch
        replaced: List[Tuple[Any, str, Any]] = [
            (t.nn.functional, "scaled_dot_product_attention", self._attend),
            (t._VF, "lstm", self._recurrent("lstm", 2)), (t._VF, "gru", self._recurrent("gru", 3)),
            (t, "_cudnn_rnn_flatten_weight", self._flatten), (t.utils, "swap_tensors", self._swap),
            (t.nn.Module, "_apply", lambda module, *more, **others: self._apply(module, *more, **others)),
        ]
        before = [(place, name, getattr(place, name)) for place, name, _ in replaced]
        self.before = {name: value for _, name, value in before}
        tensor: Dict[str, Any] = {"data_ptr": lambda one: self._data_ptr(one), "numpy": lambda one, **more: self._numpy(one, **more),
                                  "pin_memory": lambda one, *more: one, "is_pinned": lambda one, *more: False}
        for place, name, value in replaced:
            setattr(place, name, value)
        own = {name: vars(t.Tensor)[name] for name in tensor if name in vars(t.Tensor)}
        for name, value in tensor.items():
            setattr(t.Tensor, name, value)
        try:
            yield
        finally:
            for name in tensor:
                if name in own:
                    setattr(t.Tensor, name, own[name])
                else:
                    delattr(t.Tensor, name)
            for place, name, value in before:
                setattr(place, name, value)

    # --- Tensors ---

    def _data_ptr(self, tensor: Any) -> int:
        if not self._is_fake(tensor):
            return int(self.torch._C.TensorBase.data_ptr(tensor))
        return (self.session.number_of(tensor) << 44) + tensor.storage_offset() * tensor.element_size()

    def _numpy(self, tensor: Any, **more: Any) -> Any:
        if self._is_fake(tensor):
            value = self.session.value_of(tensor)
            if value is None:
                given = self.session.stand_ins.value("reads the values of a tensor")
                value = self.torch.full(tuple(tensor.shape), given, dtype=tensor.dtype)
            tensor = value
        return self.torch._C.TensorBase.numpy(tensor, **more)

    def _swap(self, first: Any, second: Any) -> Any:
        if self._is_fake(first) or self._is_fake(second):  # remembered by weak references, which a swap refuses
            self.session.fake.fake_tensor_converter.meta_converter.tensor_memo.clear()
        return self.before["swap_tensors"](first, second)

    def _apply(self, module: Any, *more: Any, **others: Any) -> Any:
        """A parameter that two modules share goes to the card once, and stays shared."""
        apply = self.before["_apply"]
        if self._applying:
            return apply(module, *more, **others)
        first: Dict[int, Tuple[Any, str]] = {}
        shared = []
        for one in module.modules():
            for name, parameter in one._parameters.items():
                if parameter is not None and first.setdefault(id(parameter), (one, name)) != (one, name):
                    shared.append((one, name, *first[id(parameter)]))
        for one, name, _, _ in shared:
            one._parameters[name] = None
        self._applying = True
        try:
            return apply(module, *more, **others)
        finally:
            self._applying = False
            for one, name, owner, own in shared:
                one._parameters[name] = owner._parameters[own]

    # --- Attention ---

    def _attend(self, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
                scale: Optional[float] = None, enable_gqa: bool = False) -> Any:
        t = self.torch
        if not self._is_fake(query) or query.fake_device.type != "cuda":
            return self.before["scaled_dot_product_attention"](query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                                                               enable_gqa=enable_gqa)
        aten = t.ops.aten
        if t.is_autocast_enabled("cuda"):
            kind = t.get_autocast_dtype("cuda")
            query, key, value = (one.to(kind) if one.is_floating_point() else one for one in (query, key, value))
            if attn_mask is not None and attn_mask.is_floating_point():
                attn_mask = attn_mask.to(kind)
        grad = t.is_grad_enabled() and any(one.requires_grad for one in (query, key, value))
        backends = t.backends.cuda
        enabled = {"cudnn": backends.cudnn_sdp_enabled(), "flash": backends.flash_sdp_enabled(),
                   "efficient": backends.mem_efficient_sdp_enabled()}
        kind = attention_kernel(self.session.capability, str(query.dtype), query.shape[-1], attn_mask is not None, enabled,
                                key.shape[-3] != query.shape[-3])
        mask = attn_mask
        if mask is not None and mask.dtype == t.bool and kind != "math":
            least = t.zeros((), dtype=query.dtype, device=query.device)
            mask = t.where(mask, least, t.full((), float("-inf"), dtype=query.dtype, device=query.device))
        if kind == "cudnn":
            return aten._scaled_dot_product_cudnn_attention(query, key, value, mask, grad, dropout_p, is_causal, False, scale=scale)[0]
        if kind == "flash":
            return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
        if kind == "efficient":
            if mask is not None:
                mask = mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
            return aten._scaled_dot_product_efficient_attention(query, key, value, mask, grad, dropout_p, is_causal, scale=scale)[0]
        return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale,
                                                       enable_gqa=enable_gqa)[0]

    def _cudnn_attention(self, query: Any, key: Any, value: Any, *more: Any, **others: Any) -> Any:
        """PyTorch's own shape function leaves two numbers on no device."""
        t = self.torch
        batch, heads, length = query.shape[0], query.shape[1], query.shape[2]
        seed, offset = (t.empty((), dtype=t.long, device=query.device) for _ in range(2))
        shape = (batch, heads, length, value.shape[-1])
        order = sorted(range(4), key=lambda axis: query.stride(axis), reverse=True)
        output = t.empty([shape[axis] for axis in order], dtype=query.dtype, device=query.device).permute(
            [order.index(axis) for axis in range(4)])
        sums = t.empty((batch, heads, length, 1) if len(more) < 2 or more[1] else (0,), dtype=t.float, device=query.device)
        return output, sums, None, None, length, key.shape[2], seed, offset, None

    # --- Recurrent networks, as cuDNN has them ---

    def _flatten(self, weights: List[Any], stride: int, *more: Any) -> Any:
        t = self.torch
        if not self._is_fake(weights[0]):
            return self.before["_cudnn_rnn_flatten_weight"](weights, stride, *more)
        whole = t.empty(sum(one.numel() for one in weights), dtype=weights[0].dtype, device=weights[0].device)
        at = 0
        for one in weights:
            one.data = whole.narrow(0, at, one.numel()).view(one.shape)
            at += one.numel()
        return whole

    def _recurrent(self, name: str, kind: int) -> Any:
        def run(data: Any, *arguments: Any) -> Any:
            t = self.torch
            if not self._is_fake(data) or len(arguments) != 8 or not isinstance(arguments[6], bool):
                return self.before[name](data, *arguments)
            state, weights, biases, layers, dropout, train, both, batch_first = arguments
            hidden, cell = (state[0], state[1]) if name == "lstm" else (state, None)
            storage = weights[0].untyped_storage()
            size = storage.nbytes() // weights[0].element_size()
            whole = weights[0].detach().as_strided((size,), (1,), 0) if size >= sum(one.numel() for one in weights) else None
            stride = 4 if biases else 2
            output, last, last_cell, _, _ = t._cudnn_rnn(data, list(weights), stride, whole, hidden, cell, kind, hidden.shape[-1], 0,
                                                         layers, batch_first, dropout, train, both, [], None)
            return (output, last, last_cell) if name == "lstm" else (output, last)

        return run

    def _rnn(self, data: Any, weights: List[Any], stride: int, whole: Any, hidden: Any, cell: Any, kind: int, size: int, projected: int,
             layers: int, batch_first: bool, dropout: float, train: bool, both: bool, batches: List[int], state: Any) -> Any:
        t = self.torch
        ways = 2 if both else 1
        length, batch = (data.shape[1], data.shape[0]) if batch_first else (data.shape[0], data.shape[1])
        output = data.new_empty((length, batch, size * ways))
        last = hidden.new_empty((layers * ways, batch, size))
        last_cell = hidden.new_empty((layers * ways, batch, size)) if cell is not None else hidden.new_empty((0,))
        kept = self.session.log.laws.rnn_reserve(kind, length, batch, size, layers, ways, data.element_size()) if train else 0
        reserve = t.empty((kept,), dtype=t.uint8, device=data.device)
        if whole is None:
            whole = data.new_empty((sum(one.numel() for one in weights),))
        return output.transpose(0, 1) if batch_first else output, last, last_cell, reserve, whole

    def _rnn_backward(self, data: Any, weights: List[Any], stride: int, whole: Any, hidden: Any, cell: Any, *more: Any) -> Any:
        of_data = data.new_empty(data.shape)
        of_hidden = hidden.new_empty(hidden.shape)
        of_cell = cell.new_empty(cell.shape) if cell is not None else None
        flat = whole.new_empty((sum(one.numel() for one in weights),))
        parts = []
        at = 0
        for one in weights:
            parts.append(flat.narrow(0, at, one.numel()).view(one.shape))
            at += one.numel()
        return of_data, of_hidden, of_cell, parts
