"""What PyTorch's operations allocate within themselves on a card: what its fake tensors do not show. Each rule names its
source. Needs no PyTorch: tensors are ("T", dtype, shape, strides or None where contiguous)."""

from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from ._fake_reduce import buffers

BYTES = {"bool": 1, "uint8": 1, "int8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4, "int64": 8,
         "float64": 8, "complex64": 8, "complex128": 16}
HALF = ("float16", "bfloat16")
MIB = 1 << 20
SORTED_FROM = 3072  # indices of an embedding

CUBLAS = "cuBLAS workspace"
CUBLAS_LT = "cuBLASLt workspace"
REDUCTION = "buffers of reductions"
COPY = "contiguous copies"
ATTENTION = "cuDNN attention workspace"
FLASH = "flash attention workspace"
CONVOLUTION = "cuDNN convolution workspace"
RECURRENT = "cuDNN workspace of recurrent networks"
SORT = "buffers of scans and sorts"

PARTS: Dict[str, Tuple[str, str]] = {
    CUBLAS: ("law", "one for each thread that multiplies matrices: 32 MiB from capability 9.0 on, 8.125 MiB before (PyTorch, "
                    "aten/src/ATen/cuda/CublasHandlePool.cpp)"),
    CUBLAS_LT: ("law", "1 MiB once a product adds a bias (PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp)"),
    REDUCTION: ("law", "sums that several blocks of threads share (PyTorch, aten/src/ATen/native/cuda/Reduce.cuh)"),
    COPY: ("law", "operations that need their input in one piece copy it (PyTorch, aten/src/ATen/native)"),
    ATTENTION: ("law", "sums of the gradient of queries in single precision, and of each head's keys and values where heads share "
                       "them (recordings on an H100 and an H200, cuDNN 9.19)"),
    FLASH: ("law", "sums of the gradient of queries in single precision, rows padded to 128 and widths to 32 (PyTorch, flash_attn/"
                   "flash_api.cpp); not measured"),
    CONVOLUTION: ("assumed", "input, output and weights once more in another order; cuDNN chooses by shape, and what it chooses differs "
                             "(recordings on an H100 and an H200, cuDNN 9.19)"),
    RECURRENT: ("assumed", "fitted to an LSTM of two layers on an H200 (cuDNN 9.19); other depths and kinds go on from it"),
    SORT: ("law", "gradients of embeddings with more than 3,072 indices are sorted by row; scans copy what they add up (PyTorch, "
                  "aten/src/ATen/native/cuda/Embedding.cu, and recordings on an H200)"),
}

Action = Tuple[Any, ...]
OUTPUT: Action = ("output",)
FREE: Action = ("free",)


def tensors_of(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        if value and value[0] == "T":
            yield value
        else:
            for one in value:
                yield from tensors_of(one)


def is_tensor(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and value[0] == "T"


def count_of(tensor: Any) -> int:
    count = 1
    for size in tensor[2]:
        count *= size
    return count


def bytes_of(tensor: Any) -> int:
    return count_of(tensor) * BYTES.get(tensor[1], 4)


def items(value: Any) -> Tuple[Any, ...]:
    """The elements of a list as the log describes it."""
    return tuple(value[1:]) if isinstance(value, tuple) and value and value[0] == "L" else ()


def temporary(size: int, part: str) -> Action:
    return ("temporary", size, part)


class Laws:
    def __init__(self, capability: Tuple[int, int], processors: int) -> None:
        self.capability, self.processors = capability, processors
        self._of: Dict[str, Callable[..., Iterator[Action]]] = {
            "aten.sum.dim_IntList": self._sum, "aten.sum.default": self._sum, "aten.mean.dim": self._sum, "aten.mean.default": self._sum,
            "aten.linalg_vector_norm.default": self._sum,
            "aten._scaled_dot_product_cudnn_attention.default": self._attention,
            "aten._scaled_dot_product_cudnn_attention_backward.default": self._attention_backward,
            "aten._scaled_dot_product_flash_attention_backward.default": self._flash_backward,
            "aten.native_dropout.default": self._dropout,
            "aten.native_layer_norm.default": self._layer_norm, "aten.native_layer_norm_backward.default": self._layer_norm_backward,
            "aten.convolution.default": self._convolution, "aten.convolution_backward.default": self._convolution_backward,
            "aten.embedding_dense_backward.default": self._embedding_backward,
            "aten._cudnn_rnn.default": self._rnn, "aten._cudnn_rnn_backward.default": self._rnn_backward,
            "aten.cumsum.default": self._scan, "aten.isin.Tensor_Tensor": self._isin,
        }
        for product in ("mm", "bmm", "baddbmm", "addmv", "mv", "dot"):
            self._of[f"aten.{product}.default"] = self._product
        self._of["aten.addmm.default"] = self._product_and_bias

    def origin(self, part: str) -> Tuple[str, str]:
        return PARTS[part]

    def within(self, name: str, arguments: Any, named: Any, outputs: Any, born: List[int], backward: bool = False) -> Iterator[Action]:
        """What happens within an operation, in order. Outputs that no rule places come first, and temporaries that none frees
        go at the end, the latest first."""
        rule = self._of.get(name)
        if rule is not None:
            yield from rule(items(arguments), outputs, born, backward)

    # --- Products of matrices ---

    def _product(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        yield from (OUTPUT for _ in born)
        size = 33_554_432 if self.capability >= (9, 0) else 8_519_680
        yield "keep", f"{CUBLAS} of {'backward' if backward else 'forward'}", size, CUBLAS

    def _product_and_bias(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        yield from self._product(arguments, outputs, born, backward)
        if arguments and is_tensor(arguments[0]) and len(arguments[0][2]) == 1:
            yield "keep", f"{CUBLAS_LT} of {'backward' if backward else 'forward'}", MIB, CUBLAS_LT

    # --- Sums ---

    def _reduced(self, tensor: Any, axes: Any) -> Iterator[Action]:
        places = [axis % max(1, len(tensor[2])) for axis in items(axes)] or list(range(len(tensor[2])))
        element = BYTES.get(tensor[1], 4)
        if not tensor[1].startswith(("float", "bfloat")):
            return
        sizes = buffers(tensor[2], tensor[3], places, element, max(4, element), self.processors)
        if sizes:
            yield temporary(sizes[0], REDUCTION)
            yield temporary(sizes[1], REDUCTION)
            yield FREE
            yield FREE

    def _sum(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        yield from (OUTPUT for _ in born)
        axes = next((one for one in arguments[1:] if isinstance(one, tuple) and one[:1] == ("L",)), ())
        yield from self._reduced(arguments[0], axes)

    def _scan(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        yield OUTPUT
        if born and arguments[0][1] == "bool":
            yield temporary(born[0], SORT)

    def _isin(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        yield OUTPUT
        if born:
            yield temporary(born[0], SORT)
            yield temporary(born[0], SORT)

    # --- Attention ---

    def _attention(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        yield ("output_of_size", 8)
        yield ("output_of_size", 8)
        yield from (OUTPUT for _ in born)
        if arguments[0][2][2] > 1:
            yield temporary(256, ATTENTION)

    def _attention_backward(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        yield from (OUTPUT for _ in born)
        _, query, key = arguments[:3]
        batch, heads, length, width = query[2]
        size = batch * heads * length * (width + 1) * 4 + 256
        if key[2][1] != heads:
            size += 2 * batch * heads * key[2][2] * width * BYTES[key[1]]
        yield temporary(size, ATTENTION)

    def _flash_backward(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        yield from (OUTPUT for _ in born)
        _, query, key = arguments[:3]
        batch, heads, length, width = query[2]
        rows = -(-length // 128) * 128
        padded = -(-width // 32) * 32 if width <= 192 else 256
        yield temporary(batch * heads * rows * 4, FLASH)
        yield temporary(batch * rows * heads * padded * 4, FLASH)
        if key[2][1] != heads:
            for _ in range(2):
                yield temporary(batch * key[2][2] * heads * width * BYTES[key[1]], FLASH)

    # --- Norms, dropout ---

    def _dropout(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        if len(born) == 2 and arguments[0][1] != "bool":
            yield ("output_of_size", born[1])  # the mask comes first

    def _layer_norm(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        if arguments[0][3] is not None:
            yield temporary(bytes_of(arguments[0]), COPY)

    def _layer_norm_backward(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        for one in (arguments[1], arguments[0]):
            if is_tensor(one) and one[3] is not None:
                yield temporary(bytes_of(one), COPY)

    # --- Convolutions: cuDNN chooses; what it takes most often ---

    @staticmethod
    def _padded(tensor: Any, axis: int) -> int:
        """Bytes with the channels padded to eight of half precision."""
        if tensor[1] not in HALF:
            return bytes_of(tensor)
        channels = tensor[2][axis]
        return bytes_of(tensor) // max(1, channels) * (-(-channels // 8) * 8)

    def _whole(self, data: Any, weight: Any, output: Any) -> int:
        pointwise = all(size == 1 for size in weight[2][2:])
        return self._padded(data, 1) + self._padded(output, 1) + (0 if pointwise else self._padded(weight, 1)) + 16

    def _convolution(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        yield from (OUTPUT for _ in born)
        data, weight = arguments[:2]
        output = next(tensors_of(outputs), None)
        if output is not None and self._moves(weight, arguments[3]):
            yield temporary(self._whole(data, weight, output), CONVOLUTION)

    @staticmethod
    def _moves(weight: Any, stride: Any) -> bool:
        pointwise = all(size == 1 for size in weight[2][2:])
        return not pointwise or any(step != 1 for step in items(stride))

    def _convolution_backward(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        grad, data, weight = arguments[:3]
        stride = arguments[4]
        wanted = [bool(one) for one in items(arguments[-1])] or [True, True, True]
        moves = self._moves(weight, stride)
        copied = grad[3] is not None
        if copied:
            yield temporary(bytes_of(grad), COPY)
        if wanted[0]:
            yield OUTPUT
            if moves:
                yield temporary(self._whole(data, weight, grad), CONVOLUTION)
                yield FREE
        if wanted[1]:
            yield OUTPUT
            size = self._whole(data, weight, grad)
            own = bytes_of(weight)
            if not moves:
                size = min(data[2][0] * own, bytes_of(data) + bytes_of(grad) + own)
            elif weight[1] not in HALF:
                size += max(own, 2 * MIB)  # parts of the sum over pixels
            yield temporary(size, CONVOLUTION)
            yield FREE
        if copied:
            yield FREE
        if len(wanted) > 2 and wanted[2]:
            yield OUTPUT
            axes = ("L", 0, *range(2, len(grad[2])))
            yield from self._reduced(grad, axes)

    # --- Gradients of embeddings: sorted by row from 3,073 indices on (PyTorch, Embedding.cu and EmbeddingBackwardKernel.cu) ---

    def _embedding_backward(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        grad, indices = arguments[:2]
        if grad[3] is not None:
            yield temporary(bytes_of(grad), COPY)
        count = count_of(indices)
        if count <= SORTED_FROM:
            yield OUTPUT
            return
        row = count * BYTES.get(indices[1], 8)
        for size in (row, row, row, 16 * count + count // 4 + 16895):
            yield temporary(size, SORT)
        yield FREE
        yield FREE
        yield OUTPUT
        for size in (row, 8, row, 1279):
            yield temporary(size, SORT)
        yield FREE
        parts = count // 10 + min(count, int(arguments[2]))  # a part has ten rows at most
        for size in (row, 8 * parts, parts * grad[2][-1] * max(4, BYTES.get(grad[1], 4))):
            yield temporary(size, SORT)

    # --- Recurrent networks: what cuDNN took for two layers of an LSTM, and how that goes on ---

    @staticmethod
    def rnn_reserve(kind: int, length: int, batch: int, hidden: int, layers: int, ways: int, element: int) -> int:
        """What cuDNN keeps for backward: the gates, cells and outputs of every layer but the last one's outputs."""
        a_layer = {2: 5, 3: 4}.get(kind, 1)
        return length * batch * hidden * ways * (layers * a_layer + layers - 1) * element + 256

    @staticmethod
    def _rnn_workspace(arguments: Any) -> int:
        data, weights = arguments[0], items(arguments[1])
        hidden = arguments[4]
        element = BYTES.get(data[1], 4)
        layers, batch, width = hidden[2]
        rows = data[2][0] * data[2][1]
        matrices = sum(count_of(one) for one in weights if len(one[2]) == 2)
        gates = max((one[2][0] for one in weights if len(one[2]) == 2), default=0)
        return (matrices + gates * width + batch * 10 * layers * width + rows * width * 11 * layers // 4) * element + 8 * batch + 256

    def _rnn(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        yield temporary(bytes_of(arguments[0]), COPY)
        for _ in born[:-1]:
            yield OUTPUT
        yield temporary(self._rnn_workspace(arguments), RECURRENT)

    def _rnn_backward(self, arguments: Any, outputs: Any, born: List[int], backward: bool) -> Iterator[Action]:
        workspace, data = self._rnn_workspace(arguments), bytes_of(arguments[0])
        state = bytes_of(arguments[4])
        for size in (state, state, data, bytes_of(arguments[6])):
            yield temporary(size, COPY)
        for _ in born[:-1]:
            yield OUTPUT
        yield temporary(workspace, RECURRENT)
        yield FREE
        yield FREE
        yield FREE
        yield temporary(data, COPY)
        yield OUTPUT
        yield temporary(workspace, RECURRENT)
