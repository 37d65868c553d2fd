"""Gives the memory of real training runs to the policies through the C interface: every decision must be the recorded one.

The recordings (tests/data/policy-runs) are of PyTorch training on an H100 limited to 12 GiB.

usage: policy_test.py LIBRARY FOLDER_OF_RECORDINGS
"""

import gzip
import json
import os
import sys
import types

os.environ["VRAMLAB_POLICY_LIBRARY"] = sys.argv[1]
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "python"))

counters = {}
calls = []
sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(
    memory_stats=lambda: counters,
    empty_cache=lambda: calls.append("empty_cache"),
    reset_peak_memory_stats=lambda: calls.append("reset_peak"),
    get_device_properties=lambda device: types.SimpleNamespace(total_memory=85017493504),
    get_per_process_memory_fraction=lambda: 0.5))

from vramlab_policy import Session, VramPolicy  # noqa: E402: needs the pretended torch


class Wrapper:
    def __init__(self):
        self.batch = self.lq = None

    def update_batch_size(self, size):
        self.batch = size

    def update_lq_size(self, size):
        self.lq = size


def replay(recording):
    """Returns the changes that the policy made, and those that were recorded."""
    policy = VramPolicy(profile=recording["profile"], adjustment_frequency=recording["frequency"],
                        target_vram_usage=recording["target"], safety_margin=recording["margin"],
                        batch=tuple(recording["batch_bounds"]), lq=tuple(recording["lq_bounds"]),
                        total_bytes=recording["cap_bytes"])
    first = recording["rows"][0]
    loader = Wrapper()
    policy.set_current_parameters(first["batch"], first["lq"])
    policy.set_dynamic_wrappers(loader)
    policy.start_monitoring_period()
    made, recorded = [], []
    for row in recording["rows"]:
        counters.update({"allocated_bytes.all.current": row["allocated"], "allocated_bytes.all.peak": row["peak_allocated"],
                         "reserved_bytes.all.current": row["reserved"], "reserved_bytes.all.peak": row["peak_reserved"],
                         "num_alloc_retries": row["retries"], "num_ooms": row["ooms"]})
        if row["oom"]:
            batch, lq = policy.handle_oom_recovery()
            change = batch - row["batch"], lq - row["lq"]
        else:
            change = tuple(delta or 0 for delta in policy.update_vram_monitoring())
        made.append(change)
        recorded.append((row["db"], row["dl"]))
        if change[0]:
            assert loader.batch == row["batch"] + change[0]
        if change[1]:
            assert loader.lq == row["lq"] + change[1]
    changes = [change for change in made if change != (0, 0)]
    assert len(policy.adjustments) == len(changes)
    last = policy.adjustments[-1]["to"]
    assert (policy.current_batch_size, policy.current_lq_size) == (last["batch"], last["lq"])
    assert policy.get_vram_stats()["adjustments"] == len(changes)
    return made, recorded


def refusal(work):
    try:
        work()
    except (ValueError, RuntimeError) as error:
        return str(error)
    raise AssertionError("nothing was refused")


def check_refusals():
    space = {"batch": (8, 2, 64), "lq": (96, 32, 256)}
    assert "dual-optimizer" in refusal(lambda: Session("dual-optimiser", space))
    assert "safety_margin" in refusal(lambda: Session("dual-optimizer", space, safety_margn=0.1))
    assert "out of range" in refusal(lambda: Session("fixed", {"batch": (1, 2, 64)}))
    assert "above" in refusal(lambda: Session("fixed", {"batch": (3, 4, 2)}))
    session = Session("fixed", space)
    assert "batch" in refusal(lambda: session["bach"])
    numbers = dict(iteration=1, time_ns=0, allocated=1, peak_allocated=1, reserved=1, peak_reserved=1, alloc_retries=0,
                   allocator_ooms=0, oom=0)
    assert "0 bytes" in refusal(lambda: session.after_step(total=0, **numbers))
    session["batch"] = 1000
    assert session["batch"] == 64
    assert "first" in refusal(VramPolicy().update_vram_monitoring)
    assert VramPolicy()._total == 85017493504 // 2

    policy = VramPolicy()
    policy.set_target_parameters(16, 128)
    policy.set_current_parameters(8, 96)
    policy._session["lq"] = 256
    assert policy._session["lq"] == 128
    assert "before" in refusal(lambda: policy.set_target_parameters(16, 128))


def main():
    expected = {"settled_from_12_128": 2, "peak_from_12_128": 53, "blind_from_8_96": 101}
    for name, changes in expected.items():
        with gzip.open(os.path.join(sys.argv[2], name + ".json.gz")) as file:
            made, recorded = replay(json.load(file))
        assert made == recorded, name
        assert sum(change != (0, 0) for change in made) == changes, name
    assert "reset_peak" in calls
    check_refusals()
    print("every decision of the three recorded runs is met")


main()
