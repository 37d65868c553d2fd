"""As much of torch as vramlab_recorder.py uses: an allocator that writes the history that PyTorch would."""

import pickle
import sys
import time


class _OutOfMemoryError(RuntimeError):
    pass


class _Memory:
    def __init__(self):
        self.entries = None
        self.next = 0x7F0000000000
        self.live = {}
        self.held = self.peak = 0

    def _record_memory_history(self, enabled="all", context="all", max_entries=sys.maxsize):
        if enabled is None:
            self.entries = None
        elif self.entries is None:
            self.entries = []

    def alloc(self, size):
        block = (size + 511) // 512 * 512
        address = self.next
        self.next += block
        self.live[address] = size
        self.held += block
        self.peak = max(self.peak, self.held)
        self._enter("segment_alloc", address, block)
        self._enter("alloc", address, size)
        return address

    def free(self, address):
        size = self.live.pop(address)
        self.held -= (size + 511) // 512 * 512
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
    def empty_cache():
        pass

    @classmethod
    def reset_peak_memory_stats(cls):
        cls.memory.peak = cls.memory.held

    @classmethod
    def memory_allocated(cls):
        return cls.memory.held

    @classmethod
    def max_memory_allocated(cls):
        return cls.memory.peak

    max_memory_reserved = max_memory_allocated

    @staticmethod
    def get_device_name():
        return "stub"

    @staticmethod
    def mem_get_info():
        return (7 << 30, 8 << 30)


cuda = _Cuda()
