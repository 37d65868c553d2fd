"""As much of torch as the recorder and the package vramlab use: an allocator with a limit and counters, which writes the
history that PyTorch would; tensors that are cut; a sampler and a loader of batches.
"""

import pickle
import sys
import time
import types


class _OutOfMemoryError(RuntimeError):
    pass


class _Memory:
    def __init__(self):
        self.entries = None
        self.next = 0x7F0000000000
        self.live = {}
        self.cached = 0  # bytes freed and not given back
        self.limit = 8 << 30
        self.fraction = 1.0
        self.counters = {"allocated": [0, 0], "reserved": [0, 0], "retries": 0, "ooms": 0}
        self.calls = []

    def _count(self, name, change):
        counter = self.counters[name]
        counter[0] += change
        counter[1] = max(counter)

    @property
    def held(self):
        return self.counters["allocated"][0]

    def reset(self, limit):
        """An empty card on which a program may use `limit` bytes."""
        self.__init__()
        self.limit = limit

    def _record_memory_history(self, enabled="all", context="all", max_entries=sys.maxsize):
        if enabled is None:
            self.entries = None
        elif self.entries is None:
            self.entries = []

    def alloc(self, size):
        block = (size + 511) // 512 * 512
        if self.held + block > self.limit * self.fraction:
            self.counters["ooms"] += 1
            raise _OutOfMemoryError(f"CUDA out of memory. Tried to allocate {block / 2**20:.2f} MiB. Of the allocated memory "
                                    f"{self.held / 2**20:.2f} MiB is allocated by PyTorch.")
        fresh = max(0, block - self.cached)
        self.cached = max(0, self.cached - block)
        if self.held + self.cached + block > self.limit:
            self.counters["retries"] += 1
        self._count("allocated", block)
        self._count("reserved", fresh)
        address = self.next
        self.next += block
        self.live[address] = size
        self._enter("segment_alloc", address, block)
        self._enter("alloc", address, size)
        return address

    def free(self, address):
        size = self.live.pop(address)
        block = (size + 511) // 512 * 512
        self._count("allocated", -block)
        self.cached += block
        self._enter("free_requested", address, size)
        self._enter("free_completed", address, size)

    def _enter(self, action, address, size):
        if self.entries is not None:
            self.entries.append({"action": action, "addr": address, "size": size, "stream": 0,
                                 "time_us": time.time_ns() // 1000})

    def _dump_snapshot(self, name):
        segments = [{"device": 0, "address": a, "total_size": (s + 511) // 512 * 512, "allocated_size": s,
                     "active_size": s, "requested_size": s, "stream": 0, "segment_type": "small",
                     "segment_pool_id": (0, 0), "is_expandable": False, "frames": [],
                     "blocks": [{"address": a, "size": (s + 511) // 512 * 512, "requested_size": s,
                                 "state": "active_allocated", "frames": []}]} for a, s in self.live.items()]
        with open(name, "wb") as file:
            pickle.dump({"segments": segments, "device_traces": [self.entries]}, file)


class _Cuda:
    OutOfMemoryError = _OutOfMemoryError
    memory = _Memory()

    @staticmethod
    def init():
        pass

    @staticmethod
    def synchronize():
        pass

    @staticmethod
    def memory_allocated():
        return memory.held

    @staticmethod
    def max_memory_allocated():
        return memory.counters["allocated"][1]

    max_memory_reserved = max_memory_allocated

    @staticmethod
    def get_device_name():
        return "stub"

    @staticmethod
    def mem_get_info():
        return (7 << 30, 8 << 30)

    @staticmethod
    def memory_stats(device=None):
        counters = memory.counters
        return {"allocated_bytes.all.current": counters["allocated"][0], "allocated_bytes.all.peak": counters["allocated"][1],
                "reserved_bytes.all.current": counters["reserved"][0], "reserved_bytes.all.peak": counters["reserved"][1],
                "num_alloc_retries": counters["retries"], "num_ooms": counters["ooms"]}

    @staticmethod
    def reset_peak_memory_stats(device=None):
        memory.calls.append("reset_peak")
        for name in ("allocated", "reserved"):
            memory.counters[name][1] = memory.counters[name][0]

    @staticmethod
    def empty_cache():
        memory.calls.append("empty_cache")
        memory._count("reserved", -memory.cached)
        memory.cached = 0

    @staticmethod
    def set_per_process_memory_fraction(fraction, device=None):
        memory.calls.append(f"fraction {fraction:.3f}")
        memory.fraction = fraction

    @staticmethod
    def current_device():
        return 0

    @staticmethod
    def get_device_properties(device):
        return types.SimpleNamespace(total_memory=memory.limit)


cuda = _Cuda()
memory = cuda.memory


class Tensor:
    """Rows that can be cut, and nothing else."""

    def __init__(self, rows):
        self.rows = list(rows)

    @property
    def shape(self):
        return (len(self.rows),)

    def __getitem__(self, where):
        return Tensor(self.rows[where])


class Used:
    """`with torch.Used(size):` memory that a step takes and frees."""

    def __init__(self, size):
        self.size = size

    def __enter__(self):
        self.address = memory.alloc(self.size)

    def __exit__(self, *error):
        memory.free(self.address)


class _Sampler:
    pass


class _DataLoader:
    """Fetches `ahead` batches before the one at work, as workers make it."""

    def __init__(self, dataset, batch_sampler, ahead=0, collate_fn=list):
        self.dataset, self.batch_sampler, self.ahead, self.collate = dataset, batch_sampler, ahead, collate_fn

    def __iter__(self):
        numbers, fetched = iter(self.batch_sampler), []
        while True:
            while numbers is not None and len(fetched) <= self.ahead:
                batch = next(numbers, None)
                if batch is None:
                    numbers = None
                else:
                    fetched.append(batch)
            if not fetched:
                return
            yield self.collate([self.dataset[number] for number in fetched.pop(0)])


utils = types.ModuleType("torch.utils")
utils.data = types.ModuleType("torch.utils.data")
utils.data.Sampler, utils.data.DataLoader = _Sampler, _DataLoader
sys.modules["torch.utils"], sys.modules["torch.utils.data"] = utils, utils.data


class _Hooks(types.ModuleType):
    """Hooks for all modules, or all optimizers; `run` calls them as PyTorch would, and `forward` those around a forward."""

    def __init__(self, name, register):
        super().__init__(name)
        self.hooks, self.after = [], []
        setattr(self, register, self._add)

    def register_module_forward_hook(self, hook, always_call):
        self.after.append(hook)
        return types.SimpleNamespace(remove=lambda: self.after.remove(hook))

    def forward(self, module, work):
        for hook in self.hooks:
            hook(module, ())
        try:
            work()
        finally:
            for hook in self.after:
                hook(module, (), None)

    def _add(self, hook):
        self.hooks.append(hook)
        return types.SimpleNamespace(remove=lambda: self.hooks.remove(hook))

    def run(self, *inputs):
        for hook in self.hooks:
            hook(None, inputs) if "module" in self.__name__ else hook(None, (), {})


nn = types.SimpleNamespace(modules=types.SimpleNamespace(module=_Hooks("module", "register_module_forward_pre_hook")))
optim = types.SimpleNamespace(optimizer=_Hooks("optimizer", "register_optimizer_step_post_hook"))
