"""The buffers of PyTorch's reductions, as its own rule has them (aten/src/ATen/native/cuda/Reduce.cuh, setReduceConfig):
where a sum is shared by several blocks of threads they meet in a buffer, and count themselves in another. fit/reductions.cpp
finds the same rule in recordings."""

from typing import List, NamedTuple, Optional, Sequence, Tuple

WARP = 32
MOST_THREADS = 512  # of a block, divided by the outputs that a thread has
VALUES = 4          # of the input that a thread loads at once (vt0)
THREADS_OF_PROCESSOR = 2048


class Axis(NamedTuple):
    size: int
    stride: int  # elements of the input
    reduced: bool


def _last_power(n: int) -> int:
    return 1 << (max(1, n).bit_length() - 1)


def _up(n: int, by: int) -> int:
    return -(-n // by)


def axes_of(shape: Sequence[int], strides: Sequence[int], reduced: Sequence[int]) -> List[Axis]:
    """As TensorIterator orders and joins them: reduced ones first, then by stride, neighbours as one where they can be."""
    listed = [Axis(size, stride, place in reduced) for place, (size, stride) in enumerate(zip(shape, strides)) if size != 1]
    listed.sort(key=lambda axis: (not axis.reduced, axis.stride))
    joined: List[Axis] = []
    for axis in listed:
        last = joined[-1] if joined else None
        if last and last.reduced == axis.reduced and last.stride * last.size == axis.stride:
            joined[-1] = Axis(last.size * axis.size, last.stride, last.reduced)
        else:
            joined.append(axis)
    return joined


def contiguous(shape: Sequence[int]) -> Tuple[int, ...]:
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


class _Config:
    def __init__(self, outputs: int, inputs: int) -> None:
        self.outputs, self.inputs = outputs, inputs
        self.step_input = self.step_output = 1
        self.width = self.height = 1
        self.vector = 1  # outputs of a thread

    def set_block(self, dim0: int, dim1: int) -> None:
        most = MOST_THREADS // self.vector
        power0 = _last_power(dim0) if dim0 < most else most
        power1 = _last_power(dim1) if dim1 < most else most
        self.width = min(power0, WARP)
        self.height = min(power1, most // self.width)
        self.width = min(power0, most // self.height)

    def split_input(self, parts: int) -> None:
        self.step_input *= parts

    def split_output(self, parts: int) -> None:
        self.step_output *= parts

    @property
    def values(self) -> int:
        return _up(self.inputs, self.step_input)


def buffers(shape: Sequence[int], strides: Optional[Sequence[int]], reduced: Sequence[int], element: int, accumulated: int,
            processors: int) -> Optional[Tuple[int, int]]:
    """Bytes of buffer and counters, or None where a sum needs neither. element, accumulated: bytes of a value of the input,
    and of what it is added up in."""
    axes = axes_of(shape, strides if strides is not None else contiguous(shape), reduced)
    first = next((place for place, axis in enumerate(axes) if not axis.reduced), len(axes))
    inputs = outputs = 1
    for axis in axes:
        inputs, outputs = (inputs * axis.size, outputs) if axis.reduced else (inputs, outputs * axis.size)
    if inputs == 0 or outputs == 0 or not axes:
        return None
    config = _Config(outputs, inputs)
    fastest_is_reduced = first == len(axes) or (first > 0 and axes[0].stride < axes[first].stride)
    fastest = axes[0].stride if fastest_is_reduced else axes[first].stride
    dim0, dim1 = (inputs, outputs) if fastest_is_reduced else (outputs, inputs)
    if fastest == 1:
        if fastest_is_reduced and dim0 > 128 and len(axes) == 1:
            dim0 //= VALUES
        elif not fastest_is_reduced:
            vector = 4
            while axes[first].size % vector:
                vector //= 2
            for place, axis in enumerate(axes):
                while place != first and axis.stride % vector:
                    vector //= 2
            config.vector = vector
            dim0 //= vector
    config.set_block(dim0, dim1)
    width, height = config.width, config.height
    if fastest_is_reduced:
        config.split_input(width)
    else:
        config.split_output(width)
    over_warps = config.values >= height * 16 or config.values >= 256
    if over_warps:
        config.split_input(height)
    else:
        config.split_output(height)
    grid = _up(outputs // config.vector, config.step_output)
    target = processors * (THREADS_OF_PROCESSOR // (width * height))
    if not over_warps or config.values < 256 or grid > target:
        return None
    blocks = max(min(_up(target, grid), _up(config.values, 16)), _up(config.values, 256))
    if blocks <= 1:
        return None
    size = accumulated * outputs * blocks
    if not fastest_is_reduced:
        size *= width * config.vector
    # a row of threads shares its outputs: PyTorch counts them once for each of its columns
    return size, 4 * grid
