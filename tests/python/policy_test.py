"""Gives the memory of real training runs to the policies through the C interface: every decision must be the recorded one.

The recordings (tests/data/policy-runs) are of PyTorch training on an H100 limited to 12 GiB and, with `predictive`, of three
other networks on an H200. Beside them, a host that was written for the published optimizer: its calls, attributes, order of
calls and options.

usage: policy_test.py LIBRARY FOLDER_OF_RECORDINGS
"""

import gzip
import json
import logging
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

from vramlab_policy import Session, TrainingAutomations, VramPolicy  # noqa: E402: needs the pretended torch


class Wrapper:
    def __init__(self):
        self.batch = self.lq = None

    def update_batch_size(self, size):
        self.batch = size

    def update_lq_size(self, size):
        self.lq = size


def replay(recording):
    """Returns the changes that the policy made, and those that were recorded."""
    options = {"profile": "profile", "target": "target_vram_usage", "margin": "safety_margin",
               "lq_granularity": "lq_granularity"}
    policy = VramPolicy(recording.get("use", "dual-optimizer"), batch=tuple(recording["batch_bounds"]),
                        lq=tuple(recording["lq_bounds"]), total_bytes=recording["cap_bytes"],
                        adjustment_frequency=recording["frequency"],
                        **{option: recording[key] for key, option in options.items() if key in recording})
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
    assert "first" in refusal(VramPolicy().handle_oom_recovery)
    assert VramPolicy()._total == 85017493504 // 2

    policy = VramPolicy()
    policy.set_target_parameters(16, 128)
    policy.set_current_parameters(8, 96)
    policy._session["lq"] = 256
    assert policy._session["lq"] == 128
    policy.set_target_parameters(16, 112)  # after set_current_parameters, too
    assert (policy.max_lq_size, policy.current_batch_size, policy.current_lq_size) == (112, 8, 96)
    read(0.34e9, 9.32e9)
    policy.update_vram_monitoring()
    assert "before" in refusal(lambda: policy.set_target_parameters(16, 128))

    assert "target_vram_usag" in refusal(lambda: VramPolicy(target_vram_usag=0.8))
    assert "no section" in refusal(lambda: VramPolicy(training_automations={}))
    assert "cannot be read" in refusal(lambda: VramPolicy(options_file="missing.yaml"))
    assert "quotes" in refusal(lambda: VramPolicy(options_file=3))
    assert "start" in refusal(lambda: Session("fixed", {"batch": (None, 2, 64)}))


TOTAL = 12_480_000_000  # with 9.32 and 0.34 GB on it the published text's 0.747 and 0.027


def read(allocated, peak):
    """What the device says after the step just done."""
    counters.update({"allocated_bytes.all.current": int(allocated), "allocated_bytes.all.peak": int(peak),
                     "reserved_bytes.all.current": int(peak), "reserved_bytes.all.peak": int(peak),
                     "num_alloc_retries": 0, "num_ooms": 0})


def host_step(automations, loader):
    """What a host does after each step: asks, adds the changes to the current sizes, cuts them to the bounds, and tells
    its loader."""
    if "DynamicBatchSizeOptimizer" not in automations.automations:
        return None
    policy = automations.automations["DynamicBatchSizeOptimizer"]
    change = policy.update_vram_monitoring()
    if any(part is not None for part in change):
        batch = policy.current_batch_size + (change[0] or 0)
        lq = policy.current_lq_size + (change[1] or 0)
        loader.update_batch_size(min(policy.max_batch_size, max(policy.min_batch_size, batch)))
        loader.update_lq_size(min(policy.max_lq_size, max(policy.min_lq_size, lq)))
    return change


def check_host(options, profile, with_wrappers, steps, expected):
    """`expected`: {iteration: (batch, lq) told to the loader} for a start at (8, 96) and unchanging readings."""
    automations = TrainingAutomations(options, profile=profile, total_bytes=TOTAL)
    policy = automations.automations["DynamicBatchSizeOptimizer"]
    loader = Wrapper()
    if with_wrappers:
        policy.set_dynamic_wrappers(loader, None)
    policy.start_monitoring_period()
    policy.set_current_parameters(8, 96)
    assert policy.get_vram_stats()["current_batch_size"] == 8
    read(0.34e9, 9.32e9)
    told = {}
    for iteration in range(1, steps + 1):
        if host_step(automations, loader) != (None, None):
            told[iteration] = loader.batch, loader.lq
    assert told == expected, told
    stats = policy.get_vram_stats()
    sizes = list(expected.values())[-1] if expected else (8, 96)
    assert (stats["current_batch_size"], stats["current_lq_size"]) == sizes
    assert stats["adjustments"] == len(policy.adjustments) == len(expected)
    assert stats["oom_recovery_count"] == 0
    return policy, stats


def section(**options):
    return {"name": "my-run", "training_automations": {"enabled": True, "Other": {"a": [1]},
                                                       "DynamicBatchSizeOptimizer": options}}


def check_published_calls():
    examples = os.path.join(here, "..", "..", "docs", "examples")
    for with_wrappers in (False, True):  # `peak`: no look before iteration 25, then one every 26
        policy, stats = check_host(section(target_vram_usage=0.85), "peak", with_wrappers, 52,
                                   {25: (8, 98), 51: (8, 100)})
        assert f"{stats['peak_usage']:.1%}" == "74.7%"
        assert round(stats["current_usage"], 3) == 0.027
        assert (stats["target_usage"], stats["safety_margin"]) == (0.85, 0.05)
    check_host(section(target_vram_usage=0.78), "peak", False, 52, {})  # 0.747 lies within the band
    check_host(section(enabled=False), "blind", False, 52, {})
    check_host({"training_automations": {"enabled": False, "DynamicBatchSizeOptimizer": {}}}, "blind", False, 52, {})
    # `blind` reads 0.027 and grows at once; the file says 100 iterations between looks.
    policy, _ = check_host(os.path.join(examples, "dual-optimizer-basic.yaml"), "blind", False, 102,
                           {1: (8, 98), 102: (8, 100)})
    assert [change["iteration"] for change in policy.adjustments] == [1, 102]

    advanced = VramPolicy(options_file=os.path.join(examples, "dual-optimizer-advanced.yaml"), max_lq_size=160)
    assert (advanced.min_batch_size, advanced.max_batch_size) == (2, 32)
    assert (advanced.min_lq_size, advanced.max_lq_size) == (64, 160)  # given plainly, so not the file's 192
    older = TrainingAutomations({"training_automations": {
        "DynamicBatchSizeOptimizer": {"enabled": True, "min_batch_size": 1, "max_batch_size": 32}}})
    policy = older.automations["DynamicBatchSizeOptimizer"]
    assert (policy.min_batch_size, policy.max_batch_size, policy.min_lq_size, policy.max_lq_size) == (1, 32, 32, 256)
    assert VramPolicy(preset="rtx-4090").max_lq_size == 512
    wide = VramPolicy(batch=(1, 128))
    assert (wide.min_batch_size, wide.max_batch_size) == (1, 128)
    assert host_step(TrainingAutomations({"training_automations": {}}), None) is None
    assert host_step(TrainingAutomations({}), None) is None


class TargetDataset:
    """A wrapper that counts in target patches."""

    def set_gt_size(self, size):
        self.size = size


def check_failures_and_silence():
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append((record.levelno, record.getMessage()))
    logger = logging.getLogger("vramlab")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)

    policy = VramPolicy(profile="peak", total_bytes=TOTAL)
    read(0.34e9, 9.32e9)
    assert [policy.update_vram_monitoring() for _ in range(3)] == 3 * [(None, None)]
    assert [level for level, _ in lines] == [logging.WARNING]

    lines.clear()
    loader, dataset = Wrapper(), TargetDataset()
    policy.set_dynamic_wrappers(loader, dataset)
    policy.set_current_parameters(8, 96)
    assert policy.handle_oom_recovery() == (4, 48)
    assert (policy.current_batch_size, policy.current_lq_size) == (loader.batch, dataset.size // 2) == (4, 48)
    assert policy.handle_oom_recovery(3, 40) == (3, 40)  # the host's own sizes count
    assert (loader.batch, loader.lq, dataset.size) == (3, 40, 80)
    assert policy.get_vram_stats()["oom_recovery_count"] == 2
    assert lines[0][0] == logging.INFO and "monitoring started" in lines[0][1]
    read(12.4e9, 12.4e9)
    policy.update_vram_monitoring()
    assert lines[-1][0] == logging.WARNING and "0.994" in lines[-1][1]

    other = VramPolicy(use="aimd", total_bytes=TOTAL, adjustment_frequency=1)
    other.set_current_parameters(8, 96)
    read(0.34e9, 9.32e9)
    assert other.update_vram_monitoring() == (1, None)
    stats = other.get_vram_stats()
    assert (round(stats["peak_usage"], 3), stats["adjustments"], stats["current_batch_size"]) == (0.747, 1, 9)


def main():
    expected = {"settled_from_12_128": 2, "peak_from_12_128": 53, "blind_from_8_96": 101,
                "predictive_llama": 5, "predictive_bert": 4, "predictive_lstm": 5}
    for name, changes in expected.items():
        with gzip.open(os.path.join(sys.argv[2], name + ".json.gz")) as file:
            made, recorded = replay(json.load(file))
        assert made == recorded, name
        assert sum(change != (0, 0) for change in made) == changes, name
    assert "reset_peak" in calls
    check_refusals()
    check_published_calls()
    check_failures_and_silence()
    print("every decision of the recorded runs is met, and every published call answers")


main()
