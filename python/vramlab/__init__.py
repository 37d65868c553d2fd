"""Policies for the memory of GPUs beside a real PyTorch program.

Tuner         moves parameters such as the batch size toward a target usage, step by step
BatchSampler  composes batches by predicted memory and learns from each step
OomGuard      runs a step again in pieces where it ran out of memory
find_batch    looks for the largest batch that fits
JobGate       lets several processes share cards: admits them, lets them wait, makes them smaller

They decide in the same machine code that `vramlab compare` runs on a simulated card (libvramlab_policy.so), so what
a simulation shows is what a program gets. PyTorch is imported where it is used.

advise, whatif, explain, fit, predict, compare, verify   what the program of these verbs answers, from libvramlab.so
policy        policies written in Python for simulations
record        records what a program does to memory

docs/python.md shows each of them.
"""

from typing import TYPE_CHECKING, Any

from . import policy
from ._library import Error, OutOfMemory, PolicyEnded
from .answers import Answer, Answers, Record, advise, ask, compare, explain, fit, predict, verify, whatif
from .gate import GateError, Job, JobGate, JobRefused, JobTimeout
from .guard import OomGuard
from .search import FoundBatch, NoBatchFits, find_batch
from .tuner import Tuner

if TYPE_CHECKING:
    from .record import record
    from .sampler import BatchSampler

__all__ = ["Answer", "Answers", "BatchSampler", "Error", "FoundBatch", "GateError", "Job", "JobGate", "JobRefused",
           "JobTimeout", "NoBatchFits", "OomGuard", "OutOfMemory", "PolicyEnded", "Record", "Tuner", "advise", "ask",
           "compare", "explain", "find_batch", "fit", "policy", "predict", "record", "verify", "whatif"]


def __getattr__(name: str) -> Any:  # these two need PyTorch when they are imported
    if name == "BatchSampler":
        from .sampler import BatchSampler
        return BatchSampler
    if name == "record":
        from .record import record
        return record
    raise AttributeError(f"module 'vramlab' has no attribute {name!r}")
