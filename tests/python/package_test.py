"""The package vramlab against the stub of torch: what each class decides, refuses and survives.

usage: package_test.py, or pytest package_test.py. VRAMLAB_POLICY_LIBRARY and VRAMLAB_LIBRARY name the libraries, by default
those of a build in the source tree; VRAMLAB_TEST_PLUGINS is the folder of the plugins that tests load.
"""

import contextlib
import ctypes
import gzip
import io
import json
import logging
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDINGS = os.path.join(HERE, "..", "data", "policy-runs")
PLUGINS = os.environ.get("VRAMLAB_TEST_PLUGINS")
PATH = [os.path.join(HERE, "stub"), os.path.join(HERE, "..", "..", "python")]
sys.path[:0] = PATH

import torch  # noqa: E402: the stub
import vramlab  # noqa: E402

logging.getLogger("vramlab").setLevel(logging.CRITICAL)
MIB, GIB = 1 << 20, 1 << 30
memory = torch.cuda.memory


class Case(unittest.TestCase):
    def setUp(self):
        memory.reset(limit=GIB)

    def refused(self, text, work, kind=vramlab.Error):
        with self.assertRaises(kind) as caught:
            work()
        self.assertIn(text, str(caught.exception))


class TunerTest(Case):
    def replay(self, name):
        """The changes that the tuner makes at the readings of a recorded run, and those that were recorded."""
        with gzip.open(os.path.join(RECORDINGS, name + ".json.gz")) as file:
            recording = json.load(file)
        first = recording["rows"][0]
        options = {"frequency": "adjustment_frequency", "target": "target_vram_usage", "margin": "safety_margin",
                   "lq_granularity": "lq_granularity"}
        tuner = vramlab.Tuner(
            recording.get("use", "dual-optimizer"), profile=recording.get("profile", ""),
            total_bytes=recording["cap_bytes"],
            options={option: recording[key] for key, option in options.items() if key in recording},
            batch=(first["batch"], *recording["batch_bounds"]), lq=(first["lq"], *recording["lq_bounds"]))
        made, recorded = [], []
        for row in recording["rows"]:
            at = tuner.step()
            with at:
                memory.counters.update(allocated=[row["allocated"], row["peak_allocated"]],
                                       reserved=[row["reserved"], row["peak_reserved"]],
                                       retries=row["retries"], ooms=row["ooms"])
                if row["oom"]:
                    raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
            made.append((tuner["batch"] - at.batch, tuner["lq"] - at.lq))
            recorded.append((row["db"], row["dl"]))
        return made, recorded

    def test_decides_as_in_recorded_training(self):
        for name, changes in {"settled_from_12_128": 2, "peak_from_12_128": 53, "blind_from_8_96": 101,
                              "predictive_llama": 5, "predictive_bert": 4, "predictive_lstm": 5}.items():
            made, recorded = self.replay(name)
            self.assertEqual(made, recorded, name)
            self.assertEqual(sum(change != (0, 0) for change in made), changes, name)

    def train(self, tuner, steps, sample=10 * MIB):
        batches = []
        for at in tuner.steps(steps):
            with at:
                batches.append(at.batch)
                with torch.Used(at["batch"] * sample):
                    pass
        return batches

    def test_a_failed_step_is_told_and_comes_again_where_the_policy_wants_that(self):
        tuner = vramlab.Tuner("predictive", batch=(200, 1, 256))
        batches = self.train(tuner, 60)
        self.assertEqual(batches[0], 200)  # 1.95 GiB of 1 GiB
        self.assertGreaterEqual(len(batches), 60)
        self.assertTrue(tuner.adjustments[0]["reason"].startswith("oom"))
        self.assertLessEqual(tuner["batch"] * 10 * MIB, GIB)
        self.assertGreater(tuner["batch"], 50)
        self.assertEqual(memory.held, 0)
        self.assertIn("reset_peak", memory.calls)

    def test_goes_on_from_a_checkpoint(self):
        first, second = (vramlab.Tuner("predictive", batch=(8, 1, 256)) for _ in range(2))
        self.train(first, 30)
        second.load_state_dict(first.state_dict())
        self.assertEqual(second.point, first.point)
        self.assertEqual(self.train(second, 20), self.train(first, 20))
        self.refused("saved session", lambda: second.load_state_dict({"session": "nonsense", "iteration": 1}))
        self.refused("state_dict", lambda: second.load_state_dict(None))
        self.refused("saves nothing", vramlab.Tuner("fixed", batch=(1, 1, 2)).state_dict)

    def test_phases_and_their_failures_do_not_leave_the_loop(self):
        tuner = vramlab.Tuner("fixed", batch=(8, 1, 256))
        self.train(tuner, 2)
        with tuner.phase("validation") as phase:
            memory.alloc(2 * GIB)
        self.assertTrue(phase.failed)
        with tuner.phase("validation") as phase, torch.Used(MIB):
            pass
        self.assertFalse(phase.failed)
        self.refused("inside the phase", lambda: self.inside(tuner))
        self.refused("bach", lambda: tuner.phase("validation", follows={"bach": 4}))

    def test_a_tuner_keeps_room_for_a_phase_that_follows_the_batch(self):
        tuner = vramlab.Tuner("predictive", batch=(8, 1, 256))
        failed = []
        for number, at in enumerate(tuner.steps(200)):
            with at, torch.Used(at.batch * 10 * MIB):
                pass
            if number % 10 == 9:
                with tuner.phase("validation", follows={"batch": 2}) as phase:
                    with torch.Used(tuner["batch"] * 20 * MIB):
                        pass
                failed.append(phase.failed)
        self.assertFalse(any(failed[5:]), failed)
        self.assertLessEqual(tuner["batch"] * 20 * MIB, GIB)
        self.assertGreater(tuner["batch"], 25)

    def inside(self, tuner):
        with tuner.phase("validation"), tuner.step():
            pass

    def test_other_errors_pass_and_are_told(self):
        tuner = vramlab.Tuner("fixed", batch=(8, 1, 256))
        with self.assertRaises(ZeroDivisionError):
            with tuner.step():
                1 // 0
        self.train(tuner, 1)

    def test_several_cards(self):
        tuner = vramlab.Tuner("threshold-step", devices=[0, 1], batch=(8, 1, 256))
        self.train(tuner, 30)
        self.refused("at least one", lambda: vramlab.Tuner(devices=[], batch=(8, 1, 256)))

    def test_bad_input(self):
        self.refused('Did you mean "predictive"', lambda: vramlab.Tuner("predictiv", batch=(8, 1, 256)))
        self.refused("safety_margin", lambda: vramlab.Tuner("dual-optimizer", options={"safety_margn": 1}, batch=(8, 2, 64),
                                                             lq=(96, 32, 256)))
        self.refused("finite", lambda: vramlab.Tuner(options={"safety_margin": float("nan")}, batch=(8, 1, 256)))
        self.refused("(start, lowest, highest)", lambda: vramlab.Tuner(batch=8))
        self.refused("whole number", lambda: vramlab.Tuner(batch=(8.5, 1, 256)))
        self.refused("out of range", lambda: vramlab.Tuner(batch=(0, 1, 256)))
        self.refused("parameter", lambda: vramlab.Tuner())
        self.refused("total_bytes=-1", lambda: vramlab.Tuner(batch=(8, 1, 256), total_bytes=-1))
        self.refused("no such plugin", lambda: vramlab.Tuner(batch=(8, 1, 256), plugins=["/none.so"]))
        tuner = vramlab.Tuner("fixed", batch=(8, 1, 256))
        self.refused("bach", lambda: tuner["bach"])
        self.refused("`with at:`", lambda: list(tuner.steps(2)))

    @unittest.skipIf(PLUGINS is None, "no plugins were given")
    def test_policies_of_plugins_from_a_file_and_from_the_environment(self):
        batches = self.train(vramlab.Tuner("skeleton", batch=(8, 1, 256)), 300)
        self.assertGreater(batches[-1], 8)
        self.assertEqual(self.train(vramlab.Tuner("skeleton-twin", batch=(8, 1, 256), plugins=[os.path.join(PLUGINS, "skeleton_twin.so")]), 300), batches)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(os.path.join(PLUGINS, "skeleton_twin.so"), folder)
            with mock.patch.dict(os.environ, {"VRAMLAB_PLUGIN_PATH": folder}):
                self.assertEqual(self.train(vramlab.Tuner("skeleton-twin", batch=(8, 1, 256)), 300), batches)

    def test_a_folder_of_plugins_that_is_not_there(self):
        os.environ["VRAMLAB_PLUGIN_PATH"] = "/no/such/folder"
        try:
            self.refused("/no/such/folder", lambda: vramlab.Tuner(batch=(8, 1, 256)))
        finally:
            del os.environ["VRAMLAB_PLUGIN_PATH"]


class SamplerTest(Case):
    LENGTHS = [40 + 37 * i % 400 for i in range(300)]

    def epoch(self, loader, sampler, per_token=512 * 1024 // 100):
        """Every sample trained on, in order; the largest share of the memory; how many batches failed."""
        trained, failed, sizes = [], 0, []
        for batch in loader:
            with sampler.step() as step:
                longest = max(length for _, length in batch)
                with torch.Used(longest * len(batch) * per_token):
                    sizes.append(len(batch))
                trained += [number for number, _ in batch]
            failed += step.failed
        return trained, failed, sizes

    def loader(self, sampler, **more):
        return torch.utils.data.DataLoader(list(enumerate(self.LENGTHS)), batch_sampler=sampler, **more)

    def test_every_sample_once_in_batches_that_grow_to_the_memory(self):
        sampler = vramlab.BatchSampler(self.LENGTHS)
        self.assertIsInstance(sampler, torch.utils.data.Sampler)
        for epoch in range(3):
            trained, failed, sizes = self.epoch(self.loader(sampler), sampler, per_token=20000)
            self.assertEqual(sorted(trained), list(range(300)))
            self.assertEqual(failed, 0)
            self.assertEqual(sampler.epoch, epoch)
        self.assertGreater(max(sizes), 60)
        self.assertEqual(memory.held, 0)

    def test_a_batch_that_fails_comes_again_in_halves(self):
        sampler = vramlab.BatchSampler(self.LENGTHS, use="planned-batches",
                                       options={"batch_size": 64, "guardian": True})
        trained, failed, sizes = self.epoch(self.loader(sampler), sampler, per_token=60000)
        self.assertEqual(sorted(trained), list(range(300)))
        self.assertGreater(failed, 0)
        self.assertEqual(max(sizes), 32)

    def test_a_loader_that_fetches_ahead_loses_nothing(self):
        sampler = vramlab.BatchSampler(self.LENGTHS, use="planned-batches",
                                       options={"batch_size": 64, "guardian": True})
        trained = []
        for _ in range(2):
            trained += self.epoch(self.loader(sampler, ahead=3), sampler, per_token=60000)[0]
        for batch in sampler._rest():
            with sampler.step():
                trained += batch
        self.assertEqual(sorted(trained), sorted(2 * list(range(300))))

    def test_effective_batches(self):
        sampler = vramlab.BatchSampler(self.LENGTHS, target_batch=50, options={"batch_size": 16})
        steps = []
        for _ in self.loader(sampler):
            with sampler.step() as step:
                pass
            if step.optimizer_steps:
                steps.append(step.effective)
        self.assertEqual(steps, [50] * 6)
        self.refused("num_workers=0", lambda: list(self.loader(
            vramlab.BatchSampler(self.LENGTHS, target_batch=50), ahead=2)))

    def test_goes_on_from_a_checkpoint_in_the_middle_of_an_epoch(self):
        first = vramlab.BatchSampler(self.LENGTHS)
        trained = []
        for count, batch in enumerate(self.loader(first)):
            with first.step():
                trained += [number for number, _ in batch]
            if count == 5:
                state = json.loads(json.dumps(first.state_dict()))
                break
        second = vramlab.BatchSampler(self.LENGTHS)
        second.load_state_dict(state)
        rest, _, _ = self.epoch(self.loader(second), second)
        self.assertEqual(sorted(trained + rest), list(range(300)))
        whole, _, _ = self.epoch(self.loader(second), second)
        self.assertEqual(sorted(whole), list(range(300)))
        self.assertEqual(second.epoch, 1)
        self.refused("samples", lambda: vramlab.BatchSampler([1, 2]).load_state_dict(state))

    def test_a_sample_that_fits_nowhere_ends_with_a_reason(self):
        sampler = vramlab.BatchSampler([100, 100])
        self.refused("1 sample", lambda: self.epoch_of_too_large(sampler), vramlab.OutOfMemory)

    def epoch_of_too_large(self, sampler):
        for _ in self.loader(sampler):
            with sampler.step():
                memory.alloc(2 * GIB)

    def test_a_budget_from_outside_holds_from_the_next_batch_on(self):
        sampler = vramlab.BatchSampler(self.LENGTHS)
        peaks = {None: [], 300 * MIB: []}
        for epoch in range(2):
            for batch in self.loader(sampler):
                with sampler.step(), torch.Used(20000 * len(batch) * max(length for _, length in batch)):
                    pass
                peaks[sampler.budget].append(memory.counters["allocated"][1])
            sampler.budget = 300 * MIB
        self.assertGreater(max(peaks[None]), 500 * MIB)
        self.assertLessEqual(max(peaks[300 * MIB]), 300 * MIB)
        self.assertGreater(max(peaks[300 * MIB]), 200 * MIB)
        sampler.budget, sampler.most_samples = None, 3
        _, _, sizes = self.epoch(self.loader(sampler), sampler)
        self.assertEqual(max(sizes), 3)
        self.assertIsNone(sampler.budget)

    def test_wrong_budgets_are_refused_and_change_nothing(self):
        sampler = vramlab.BatchSampler(self.LENGTHS)
        sampler.budget = 100 * MIB
        for value, text in ((-1, "budget=-1"), (0, "budget=0"), (float("nan"), "whole number"), (2.5, "whole number"),
                            (True, "whole number"), ("1GiB", "whole number"), (GIB + 1, "more than the program may use"),
                            (1 << 61, "out of range")):
            self.refused(text, lambda value=value: setattr(sampler, "budget", value))
        for value in (-1, 0, float("nan"), 1 << 63):
            self.refused("most_samples", lambda value=value: setattr(sampler, "most_samples", value))
        self.assertEqual((sampler.budget, sampler.most_samples), (100 * MIB, None))
        planned = vramlab.BatchSampler(self.LENGTHS, use="planned-batches", options={"batch_size": 8})
        self.refused("obeys none", lambda: setattr(planned, "budget", 100 * MIB))
        planned.most_samples = 4
        self.assertEqual(max(map(len, self.handed_out(planned))), 4)

    def test_a_tuner_moves_the_budget(self):
        tuner = vramlab.Tuner("threshold-step", budget=(200, 100, 900),
                              options={"step": 50, "adjustment_frequency": 2, "target_vram_usage": 0.5, "safety_margin": 0.05})
        sampler = vramlab.BatchSampler(self.LENGTHS * 3, tuner=tuner)
        self.assertEqual(sampler.budget, 200 * MIB)
        loader = torch.utils.data.DataLoader(list(enumerate(self.LENGTHS * 3)), batch_sampler=sampler)
        held = []
        for batch in loader:
            budget = sampler.budget
            with sampler.step(), torch.Used(20000 * len(batch) * max(length for _, length in batch)):
                pass
            held.append((memory.counters["allocated"][1], budget))
            self.assertEqual(sampler.budget, tuner["budget"] * MIB)
        self.assertTrue(all(peak <= budget for peak, budget in held), held)
        self.assertGreater(len(tuner.adjustments), 3)
        self.assertTrue(450 <= tuner["budget"] <= 650, tuner.point)  # peaks of half of 1 GiB, somewhat below the budget
        self.refused("tuner of this sampler", lambda: setattr(sampler, "budget", MIB))

    def test_a_failed_batch_is_told_to_both(self):
        tuner = vramlab.Tuner("aimd", batch_size=(64, 1, 64))
        sampler = vramlab.BatchSampler(self.LENGTHS, use="planned-batches", options={"batch_size": 64, "guardian": True},
                                       tuner=tuner)
        trained, failed, sizes = self.epoch(self.loader(sampler), sampler, per_token=150000)
        self.assertEqual(sorted(trained), list(range(300)))
        self.assertGreater(failed, 0)
        self.assertIn("oom", json.dumps(tuner.adjustments))
        self.assertLess(tuner["batch_size"], 64)
        self.refused("one parameter", lambda: vramlab.BatchSampler([1], tuner=vramlab.Tuner("fixed", batch=(1, 1, 2))))
        self.refused("one parameter", lambda: vramlab.BatchSampler([1], tuner="predictive"))

    def test_bad_input(self):
        self.refused("lengths[1]=-1", lambda: vramlab.BatchSampler([1, -1]))
        self.refused("no sample", lambda: vramlab.BatchSampler([]))
        self.refused("tasks has 1", lambda: vramlab.BatchSampler([1, 2], tasks=["a"]))
        self.refused("tokens[0]=0", lambda: vramlab.BatchSampler([1], tokens=[0]))
        self.refused("images[0]", lambda: vramlab.BatchSampler([1], images=[float("nan")]))
        self.refused("/tasks", lambda: vramlab.BatchSampler(range(9), tasks=list("abcdefghi")))
        sampler = vramlab.BatchSampler([1, 2, 3])
        self.refused("no batch to run", sampler.step)
        next(iter(sampler))
        self.refused("drop()", lambda: next(iter(sampler)))
        self.assertEqual(sampler.drop(), 1)
        self.assertEqual(sorted(sum(self.handed_out(sampler), [])), [0, 1, 2])

    def handed_out(self, sampler):
        for batch in sampler:
            with sampler.step():
                yield batch


class _Parameter:
    def __init__(self):
        self.grad = None


class _Gradient:
    """A number with the calls of a gradient."""

    def __init__(self, value):
        self.value = value

    def detach(self):
        return self

    def to(self, device, copy):
        return _Gradient(self.value)

    def copy_(self, other):
        self.value = other.value


class _Module:
    def __init__(self):
        self.parameter = _Parameter()

    def parameters(self):
        return [self.parameter]

    def __call__(self, rows):
        return rows


class GuardTest(Case):
    def test_halves_until_it_fits_and_the_shares_add_up(self):
        guard = vramlab.OomGuard()
        seen = []

        @guard
        def step(rows, factor):
            with torch.Used(len(rows.rows) * 100 * MIB):
                seen.append((rows.rows, guard.share, factor))
            return sum(rows.rows)

        self.assertEqual(step(torch.Tensor(range(8)), factor=3), [28])
        self.assertEqual(step(torch.Tensor(range(20)), factor=3), [45, 145])  # 20 fail
        self.assertAlmostEqual(sum(share for _, share, _ in seen[1:]), 1)
        self.assertEqual([row for rows, _, _ in seen[1:] for row in rows], list(range(20)))
        self.assertEqual(memory.held, 0)

    def test_cuts_fields_lists_and_dictionaries_alike(self):
        guard = vramlab.OomGuard()
        sizes = []

        def step(batch, rows, names):
            with torch.Used(len(names) * 300 * MIB):
                sizes.append((batch["x"].shape[0], rows[1].shape[0], len(names)))

        guard.run(step, {"x": torch.Tensor("abcd"), "scale": 2}, [torch.Tensor("abcd"), torch.Tensor("efgh")], list("abcd"))
        self.assertEqual(sizes, [(2, 2, 2), (2, 2, 2)])

    def test_gradients_of_a_failed_piece_are_taken_back(self):
        model = _Module()
        guard = vramlab.OomGuard(model)
        parameter = model.parameter

        @guard
        def step(rows):
            parameter.grad = _Gradient((parameter.grad.value if parameter.grad else 0) + len(rows))
            with torch.Used(len(rows) * 300 * MIB):
                pass

        step(list(range(8)))
        self.assertEqual(parameter.grad.value, 8)
        self.assertEqual(guard.failures, 3)  # 8, and both 4; 2 fit

    def test_gives_up_with_a_reason_and_can_be_used_again(self):
        guard = vramlab.OomGuard(halvings=2)
        step = guard(lambda rows: memory.alloc(2 * GIB))
        self.refused("after 2 halvings", lambda: step([1] * 8), vramlab.OutOfMemory)
        self.assertEqual(guard(len)([1] * 8), [8])

    def test_keeps_the_limit(self):
        guard = vramlab.OomGuard(keep_limit=True)
        sizes = []

        @guard
        def step(rows):
            with torch.Used(len(rows) * 300 * MIB):
                sizes.append(len(rows))

        step([0] * 4)
        step([0] * 4)
        self.assertEqual(sizes, [2] * 4)
        self.assertEqual(guard.failures, 1)

    def test_a_guard_takes_a_module_or_nothing(self):
        with self.assertRaisesRegex(vramlab.Error, r"model: a module of PyTorch is expected, .* got 5\."):
            vramlab.OomGuard(5)

    def test_other_errors_pass_and_leave_nothing_behind(self):
        guard = vramlab.OomGuard()
        with self.assertRaises(ZeroDivisionError):
            guard(lambda rows: 1 // 0)([1, 2])
        self.assertEqual(guard(len)([1] * 8), [8])
        self.refused("no argument has samples", lambda: guard(len)(3))
        self.refused("inside another", lambda: guard(lambda rows: guard(len)(rows))([1]))

    def test_catches_as_a_context_manager(self):
        guard = vramlab.OomGuard()
        with guard:
            memory.alloc(2 * GIB)
        self.assertTrue(guard.failed)
        with guard:
            pass
        self.assertFalse(guard.failed)


class FindBatchTest(Case):
    @staticmethod
    def step(batch):
        with torch.Used(100 * MIB), torch.Used(batch * 10 * MIB):
            pass

    def test_finds_the_largest_that_fits(self):
        for use in ("binsearch", "doubling-bisect"):
            found = vramlab.find_batch(self.step, high=512, use=use)
            self.assertLessEqual(found.batch * 10 + 100, 1024)
            self.assertGreaterEqual(found.batch, 64)
            self.assertEqual({probe.outcome for probe in found.probes}, {"ok", "oom"})
        self.assertEqual(memory.held, 0)
        self.assertLessEqual(vramlab.find_batch(self.step, high=512).batch, 92)
        self.assertEqual(vramlab.find_batch(self.step, high=20).batch, 20)

    def test_what_training_keeps_is_not_held_by_a_failed_probe(self):
        kept = []  # an optimizer's state: made by the first step that is not refused

        def step(batch):
            with torch.Used(batch * 10 * MIB):
                if not kept:
                    kept.append(torch.Used(300 * MIB).__enter__())
                with torch.Used(batch * 30 * MIB):
                    pass
        found = vramlab.find_batch(step, high=64, use="bucket-bisect")  # begins at 32, which fails
        self.assertEqual([probe.outcome for probe in found.probes[:1]], ["oom"])
        self.assertEqual(found.batch, 18)  # 300 + 18 · 40 = 1,020 of 1,024 MiB

    def test_every_phase_must_fit(self):
        def validate(batch):
            with torch.Used(batch * 40 * MIB):
                pass
        found = vramlab.find_batch(self.step, high=512, use="binsearch", phases={"validation": validate})
        self.assertLessEqual(found.batch, 25)

    def test_shapes_that_vary_count_within_the_share_that_an_answer_may_use(self):
        varied = []
        vramlab.find_batch(self.step, high=512, varied=lambda batch: varied.append(batch))
        self.assertGreater(len(varied), 1)
        fractions = [call for call in memory.calls if call.startswith("fraction")]
        self.assertIn("fraction 1.000", fractions[-1:])
        self.assertLess(min(fractions), "fraction 1")

    def test_ends_that_are_no_answer(self):
        self.refused("", lambda: vramlab.find_batch(lambda batch: memory.alloc(2 * GIB), high=8), vramlab.NoBatchFits)
        self.refused("bad shape", lambda: vramlab.find_batch(self.broken, high=8), vramlab.PolicyEnded)

    @staticmethod
    def broken(batch):
        raise ValueError("bad shape")

    def test_bad_input(self):
        self.refused("high=0", lambda: vramlab.find_batch(self.step, high=0))
        self.refused("no size to try", lambda: vramlab.find_batch(self.step, low=9, high=8))
        self.refused("not a function", lambda: vramlab.find_batch(3, high=8))
        self.refused("binsearch", lambda: vramlab.find_batch(self.step, high=8, use="binsearc"))


PROCESS = """
import sys, time
sys.path[:0] = {path!r}
import vramlab
gate = vramlab.JobGate({gate!r}, cards=[10 << 30], options={{"safety_margin_mb": 0}}, poll=0.02)
{work}
"""


class GateTest(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "cards.gate")

    def tearDown(self):
        self.folder.cleanup()

    def gate(self, **more):
        options = {"cards": [10 * GIB], "options": {"safety_margin_mb": 0}, "poll": 0.02, **more}
        return vramlab.JobGate(self.path, **options)

    def process(self, work):
        return subprocess.Popen([sys.executable, "-c", PROCESS.format(path=PATH, gate=self.path, work=work)],
                                stdout=subprocess.PIPE, text=True)

    def read(self):
        with open(self.path) as file:
            return file.read()

    def change(self, key, value):
        state = json.loads(self.read())
        state[key] = value
        with open(self.path, "w") as file:
            json.dump(state, file)

    def holder(self, need=8):
        process = self.process(f"job = gate.admit({need} << 30, name='holder')\nprint(job.cards, flush=True)\ntime.sleep(60)")
        self.assertEqual(process.stdout.readline(), "[0]\n")
        return process

    def end(self, process):
        process.kill()
        process.wait()
        process.stdout.close()

    def test_admits_waits_and_leaves(self):
        gate = self.gate()
        with gate.admit(6 * GIB, name="first", batch=8) as job:
            self.assertEqual((job.cards, job.need, job.batch, job.accumulation), ([0], 6 * GIB, 8, 1))
            self.refused("second", lambda: gate.admit(6 * GIB, name="second", timeout=0.1), vramlab.JobTimeout)
            self.assertEqual([one["name"] for one in gate.jobs()], ["first"])
            self.assertEqual(gate.admit(4 * GIB).cards, [0])
        self.assertEqual([one["need"] for one in gate.jobs()], [4 * GIB])
        self.refused("", lambda: gate.admit(11 * GIB), vramlab.JobRefused)

    def test_a_killed_process_frees_its_place(self):
        process = self.holder()
        gate = self.gate()
        self.refused("", lambda: gate.admit(8 * GIB, timeout=0.1), vramlab.JobTimeout)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with gate.admit(8 * GIB, timeout=30) as job:
            self.assertEqual(job.cards, [0])
        self.assertEqual(gate.jobs(), [])
        self.end(process)

    def test_a_killed_waiter_is_forgotten(self):
        holder = self.holder()
        waiter = self.process("gate.admit(9 << 30, name='waiter')")
        gate = self.gate()
        while [one["name"] for one in gate.jobs()] != ["holder", "waiter"]:
            time.sleep(0.02)
        self.end(waiter)
        self.assertEqual([one["name"] for one in gate.jobs()], ["holder"])
        self.end(holder)

    def test_processes_at_once_never_exceed_the_card_and_all_get_their_turn(self):
        work = ("for turn in range(5):\n with gate.admit(4 << 30, timeout=60):\n"
                "  print('+', flush=True); running = sum(job['need'] for job in gate.jobs() if job['state'] == 'runs')\n"
                "  assert running <= 10 << 30, running\n  time.sleep(0.01)")
        processes = [self.process(work) for _ in range(5)]
        for process in processes:
            self.assertEqual(process.communicate(timeout=120)[0].count("+"), 5)
            self.assertEqual(process.returncode, 0)
        self.assertEqual(self.gate().jobs(), [])

    def test_degrades_where_the_policy_may(self):
        gate = self.gate(options={"safety_margin_mb": 0, "degrade": "degrade-first"})
        with gate.admit(6 * GIB), gate.admit(0, per_sample=GIB, batch=8) as job:
            self.assertEqual((job.batch, job.accumulation, job.need, job.variant), (4, 2, 4 * GIB, ""))
            self.assertEqual(gate.jobs()[1]["demand"]["batch"], 8)
        small = {"name": "checkpointing", "need": 2 * GIB, "per_sample": 0}
        with gate.admit(6 * GIB), gate.admit(0, per_sample=GIB, batch=8, variants=[small]) as job:
            self.assertEqual((job.batch, job.need, job.variant), (8, 2 * GIB, "checkpointing"))

    def test_a_job_that_ran_out_waits_again_with_more(self):
        gate = self.gate()
        with gate.admit(4 * GIB) as job:
            job.report(5 * GIB)
            self.assertEqual(gate.jobs()[0]["used"], 5 * GIB)
            self.assertEqual(job.ran_out().need, 6 * GIB)

    def test_strangers_count(self):
        gate = self.gate(foreign=lambda card: 5 * GIB)
        self.refused("", lambda: gate.admit(6 * GIB, timeout=0.05), vramlab.JobTimeout)
        self.assertEqual(gate.admit(5 * GIB).cards, [0])

    # A process may leave the gate before it gives its memory back: then nobody is admitted to it yet.
    def test_what_a_job_still_holds_when_it_leaves_is_a_strangers(self):
        held, admitted = [8 * GIB], []
        with mock.patch("vramlab.gate.read_cards", lambda: [(10 * GIB, held[0])]):
            gate = self.gate(cards=None)
            waiter = threading.Thread(target=lambda: admitted.append(gate.admit(8 * GIB, timeout=30)))
            held[0] = 0
            with gate.admit(8 * GIB):
                held[0] = 8 * GIB
                waiter.start()
                while len(gate.jobs()) < 2:
                    time.sleep(0.01)
            self.assertEqual([one["state"] for one in gate.jobs()], ["waits"])
            held[0] = 0
            waiter.join()
        self.assertEqual([job.cards for job in admitted], [[0]])

    def test_a_full_disk_is_an_error_and_loses_no_job(self):
        gate = self.gate()
        job = gate.admit(4 * GIB, name="kept")
        before = self.read()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        try:
            self.refused("cards.gate", lambda: gate.admit(1 * GIB), vramlab.GateError)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.assertEqual(self.read(), before)
        self.assertEqual([one["name"] for one in gate.jobs()], ["kept"])
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        try:
            self.refused("as it was before", job.leave, vramlab.GateError)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.assertEqual(gate.jobs(), [])  # it left as soon as that could be written
        job.leave()
        job.leave()
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["cards.gate", "cards.gate.lock"])

    def test_bad_input(self):
        with self.gate().admit(GIB):
            self.refused("other cards", lambda: self.gate(cards=[9 * GIB]), vramlab.GateError)
        self.assertEqual(self.gate(cards=[9 * GIB]).admit(9 * GIB).cards, [0])  # with no job left it is a new one
        os.unlink(self.path)
        self.refused("job-queue", lambda: self.gate(use="job-queu"))
        self.refused("poll", lambda: self.gate(poll=0))
        self.refused("admits by phase", lambda: self.gate(options={"per_phase": True}))
        self.refused("enforces promises", lambda: self.gate(options={"enforce_promise": True}))
        self.refused("cards[0]=-1", lambda: self.gate(cards=[-1]))
        gate = self.gate()
        self.refused("need=-1", lambda: gate.admit(-1))
        self.refused("/need", lambda: gate.admit())
        self.refused("cards=2", lambda: gate.admit(GIB, cards=2))
        self.refused("timeout", lambda: gate.admit(GIB, timeout=float("nan")))
        self.assertEqual(gate.jobs(), [])
        with open(self.path, "w") as file:
            file.write('{"format": "vramlab-')
        self.refused("is not the file of a gate", gate.jobs, vramlab.GateError)
        self.refused("No such file", lambda: vramlab.JobGate("/no/folder/gate", cards=[GIB]), vramlab.GateError)

    def test_a_file_from_before_a_restart_of_the_machine_holds_no_jobs(self):
        self.gate().admit(8 * GIB)
        self.change("boot", "another")
        self.assertEqual(self.gate().jobs(), [])

    def test_processes_of_another_container_are_refused(self):
        self.gate().admit(8 * GIB)
        self.change("pid_space", "pid:[1]")
        self.refused("PID namespace", self.gate, vramlab.GateError)


class WrongTypesTest(Case):
    """What is no list, no path or no name is said as such, whatever class it is given to."""

    def test_in_every_class(self):
        tuner, sampler = vramlab.Tuner, vramlab.BatchSampler
        batch = {"batch": (1, 1, 8)}
        for text, work in (
                ("options=[1]", lambda: tuner(options=[1], **batch)), ("options='step=1'", lambda: tuner(options="step=1", **batch)),
                ("option 3", lambda: tuner(options={3: 1}, **batch)), ("plugins='/x.so'", lambda: tuner(plugins="/x.so", **batch)),
                ("plugins=3: must be the path", lambda: tuner(plugins=[3], **batch)),
                ("devices=3", lambda: tuner(devices=3, **batch)), ("parameter", lambda: tuner(**batch)[0]),
                ("'bach' is no parameter", lambda: tuner(**batch).step()["bach"]),
                ("follows=['batch']", lambda: tuner(**batch).phase("v", follows=["batch"])),
                ("phase(None)", lambda: tuner(**batch).phase(None)),
                ("lengths=None", lambda: sampler(None)), ("tasks: 3", lambda: sampler([1, 2], tasks=["a", 3])),
                ("phases=[1]", lambda: vramlab.find_batch(print, high=4, phases=[1])),
                ("path=None", lambda: vramlab.JobGate(None, cards=[GIB])), ("cards=3", lambda: vramlab.JobGate("x", cards=3)),
                ("foreign=3", lambda: vramlab.JobGate("x", cards=[GIB], foreign=3)),
                ("highest budget=4096", lambda: sampler([1], tuner=tuner("fixed", budget=(512, 1, 4096)))),
                ("lowest budget=0", lambda: sampler([1], tuner=tuner("fixed", budget=(512, 0, 1024)))),
                ("lowest batch_size=-1", lambda: sampler([1], tuner=tuner("fixed", batch_size=(1, -1, 8))))):
            with self.subTest(text):
                self.refused(text, work)
        self.assertEqual(sampler(one for one in (3, 2)).epoch, 0)
        with tempfile.TemporaryDirectory() as folder:
            gate = vramlab.JobGate(os.path.join(folder, "gate"), cards=[GIB])
            for variants in (3, "fp16", ["fp16"], [None], [[1]], float("nan")):
                self.refused("variants", lambda variants=variants: gate.admit(need=1, variants=variants))
            self.assertEqual(gate.jobs(), [])


class InterfaceTest(Case):
    """The sessions of the C interface beyond what the five classes ask of them."""

    def session(self, use="predictive", **described):
        from vramlab._library import Handle
        parameters = {"batch": {"start": 8, "low": 1, "high": 256}}
        return Handle("session", json.dumps({"use": use, "parameters": parameters, **described}).encode())

    def told(self, session, iteration, *cards, oom=0):
        """The session after a step at which each of `cards` had (peak, total) bytes; its decision."""
        from vramlab._library import Decision, Step
        steps = [Step(iteration=iteration, allocated=0, peak_allocated=peak, reserved=peak, peak_reserved=peak, total=total,
                      oom=oom) for peak, total in cards]
        decision = Decision()
        session.call("after_cards", (Step * len(steps))(*steps), len(steps), ctypes.byref(decision))
        return decision

    def value(self, session, name="batch"):
        number = ctypes.c_int64()
        session.call("get", name.encode(), ctypes.byref(number))
        return number.value

    def bounds(self, session, name):
        from vramlab._library import library
        low, high = ctypes.c_int64(), ctypes.c_int64()
        function = library().vramlab_session_bounds
        function.argtypes = [ctypes.c_void_p, ctypes.c_char_p] + 2 * [ctypes.POINTER(ctypes.c_int64)]
        failed = function(session._pointer, name, ctypes.byref(low), ctypes.byref(high))
        return None if failed else (low.value, high.value)

    def grown(self, session, first, last):
        for iteration in range(first, last):
            self.told(session, iteration, (self.value(session) * 10 * MIB, GIB))
        return self.value(session)

    def test_a_new_process_is_what_a_loaded_session_is(self):
        plain, restarted, loaded = (self.session() for _ in range(3))
        for session in (plain, restarted):
            self.grown(session, 1, 20)
        loaded.call("load", plain.text("save").encode())
        restarted.call("new_process")
        seen = {}
        for session in (plain, restarted, loaded):  # the first step of a process takes more than the others
            seen[session] = []
            for iteration in range(20, 60):
                peak = self.value(session) * 10 * MIB + (200 * MIB if iteration == 20 else 0)
                self.told(session, iteration, (peak, GIB))
                seen[session].append((self.value(session), session.text("reason")))
        self.assertEqual(seen[restarted], seen[loaded])
        self.assertNotEqual(seen[restarted], seen[plain])

    def test_several_cards_by_the_fullest_or_by_their_sum(self):
        reasons = {}
        for rule in ("fullest", "sum"):
            session = self.session("threshold-step", cards=rule, adjustment_frequency=1)
            self.told(session, 1, (GIB // 10, GIB), (9 * GIB // 10, GIB))
            reasons[rule] = session.text("reason")
        self.assertIn("0.900", reasons["fullest"])
        self.assertIn("0.500", reasons["sum"])
        self.refused("sums", lambda: self.session(cards="sums"))

    def test_options_as_training_frameworks_have_them(self):
        parameters = {"batch": {}, "lq": {}}
        section = {"DynamicBatchSizeOptimizer": {"max_batch_size": 32, "min_lq_size": 64}}
        session = self.session("dual-optimizer", parameters=parameters, training_automations=section, max_lq_size=128)
        self.assertEqual([self.bounds(session, name) for name in (b"batch", b"lq")], [(2, 32), (64, 128)])
        self.assertIsNone(self.bounds(session, b"bach"))
        file = os.path.join(HERE, "..", "..", "docs", "examples", "dual-optimizer-advanced.yaml")
        session = self.session("dual-optimizer", parameters=parameters, options_file=file)
        self.assertEqual([self.bounds(session, name) for name in (b"batch", b"lq")], [(2, 32), (64, 192)])
        self.refused("missing.yaml", lambda: self.session("dual-optimizer", parameters=parameters, options_file="missing.yaml"))

    def test_readings_that_cannot_be_are_refused_and_change_nothing(self):
        session = self.session()
        for text, change in (("total", {"cards": [(1, 0)]}), ("peak_allocated", {"cards": [(2**64 - 5, GIB)]}),
                             ("allowed", {"cards": [(1, GIB)], "oom": 7}), ("cards", {"cards": []})):
            with self.assertRaises(vramlab.Error):
                self.told(session, 1, *change.pop("cards"), **change)
        self.refused("iteration", lambda: self.told(session, -1, (1, GIB)))
        self.assertEqual(self.value(session), 8)
        self.assertEqual(session.json("adjustments"), [])

    def test_null_is_an_error_in_every_function(self):
        from vramlab import _library
        lib = _library.library()
        for name, (result, arguments) in _library._FUNCTIONS.items():
            if name.endswith("destroy") or name == "last_error":
                continue
            zero = [0 if one in (ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64) else None for one in arguments]
            found = getattr(lib, "vramlab_" + name)(*zero)
            self.assertTrue(found in (None, b"") or result is ctypes.c_int and found != 0, name)


@unittest.skipIf(PLUGINS is None, "no plugins were given")
class PluginFamiliesTest(Case):
    """A plugin of VRAMLAB_PLUGIN_PATH has every built-in policy once more, as NAME-twin."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        shutil.copy(os.path.join(PLUGINS, "twins.so"), folder.name)
        environment = mock.patch.dict(os.environ, {"VRAMLAB_PLUGIN_PATH": folder.name})
        environment.start()
        self.addCleanup(environment.stop)
        self.folder = folder.name

    def twins(self, work, use):
        results = []
        for name in (use, use + "-twin"):
            memory.reset(limit=GIB)
            results.append(work(name))
        self.assertEqual(*results)
        return results[0]

    def test_tuners(self):
        def batches(use):
            tuner, taken = vramlab.Tuner(use, batch=(8, 1, 256)), []
            for at in tuner.steps(100):
                with at, torch.Used(at.batch * 10 * MIB):
                    taken.append(at.batch)
            return taken
        self.assertGreater(self.twins(batches, "predictive")[-1], 8)

    def test_composers_with_the_guardian(self):
        def batches(use):
            sampler = vramlab.BatchSampler(range(10, 300), use=use, options={"batch_size": 64, "guardian": True})
            taken = []
            for batch in sampler:
                with sampler.step(), torch.Used(len(batch) * 30 * MIB):
                    taken.append(batch)
            return taken
        self.assertEqual(sorted(sum(self.twins(batches, "planned-batches"), [])), list(range(290)))

    def test_searchers(self):
        def found(use):
            return vramlab.find_batch(FindBatchTest.step, high=512, use=use)
        self.assertGreater(self.twins(lambda use: found(use).batch, "model"), 64)

    def test_admitters(self):
        def degraded(use):
            gate = vramlab.JobGate(os.path.join(self.folder, use), cards=[10 * GIB], use=use,
                                   options={"safety_margin_mb": 0, "degrade": "degrade-first"})
            with gate.admit(6 * GIB), gate.admit(0, per_sample=GIB, batch=8) as job:
                return job.batch, job.accumulation
        self.assertEqual(self.twins(degraded, "job-queue"), (4, 2))


@contextlib.contextmanager
def trainers():
    """Lightning and transformers, as far as their callbacks go."""
    callback = type("Callback", (), {})
    lightning = types.SimpleNamespace(Callback=callback)
    with mock.patch.dict(sys.modules, {"lightning": types.SimpleNamespace(pytorch=lightning), "lightning.pytorch": lightning,
                                       "transformers": types.SimpleNamespace(TrainerCallback=callback)}):
        yield callback


class DocumentTest(Case):
    """Every example of docs/python.md runs as it stands there."""

    def names(self):
        def train_step(batch):
            with torch.Used(batch * 10 * MIB):
                pass

        class Loss:
            def __init__(self, size):
                self.size = size

            def __mul__(self, factor):
                return self

            __truediv__ = __mul__

            def backward(self):
                with torch.Used(self.size):
                    pass

        lengths = [10 + i % 90 for i in range(200)]
        rows = torch.Tensor(range(200))
        return {
            "vramlab": vramlab, "DataLoader": torch.utils.data.DataLoader, "train_step": train_step, "lengths": lengths,
            "dataset": lengths, "pad": list, "train_on": lambda batch: train_step(len(batch) * max(batch) // 100 + 1),
            "sum_of_losses": lambda batch: Loss(MIB), "model": _Module(), "batches": [(rows, rows)] * 2,
            "loss_of": lambda output, targets: Loss(targets.shape[0] * 10 * MIB),
            "optimizer": types.SimpleNamespace(step=lambda: None, zero_grad=lambda: None),
            "images_of": lambda batch: torch.Tensor(range(batch)), "targets_of": lambda batch: torch.Tensor(range(batch)),
            "path": os.path.join(self.folder, "cards.gate"), "train": lambda batch, accumulation: train_step(batch),
            "build": lambda: memory.alloc(MIB), "Trainer": lambda callbacks: callbacks, "torch": torch}

    def put_files(self):
        """What the examples read: a recording with its marks, and a scenario."""
        recorded = os.path.join(HERE, "..", "data", "recorded")
        shutil.copy(os.path.join(recorded, "bert.pickle.gz"), "snapshot.pickle")
        with vramlab.record("run") as recorder:
            memory.alloc(MIB)
            recorder.built()
            for batch in (2, 2, 4, 4, 8, 8):
                with recorder.step(batch=batch), torch.Used(batch * MIB):
                    pass
        with open("queue.json", "w") as file:
            json.dump({"version": 1, "kind": "jobs", "name": "two", "cards": [{"total": "10GiB"}],
                       "policies": [{"use": "job-queue", "label": "job-queue"}],
                       "jobs": [{"need": "6GiB", "duration_s": 9}, {"need": "5GiB", "duration_s": 9}]}, file)
        with open("scenario.json", "w") as file:
            json.dump({"version": 1, "kind": "training", "name": "short", "device": {"total": "24000MiB", "context": 0},
                       "workload": {"model": {"kind": "linear", "fixed": 0, "per_sample": "1000MiB",
                                              "parameters": {"batch": [1, 64]}, "step_time": {"floor_ms": 100}},
                                    "iterations": 50, "start": {"batch": 4}},
                       "policies": [{"use": "fixed"}]}, file)

    def test_examples(self):
        with open(os.path.join(HERE, "..", "..", "docs", "python.md")) as file:
            blocks = re.findall(r"^```python\n(.*?)^```$", file.read(), re.S | re.M)
        self.assertEqual(len(blocks), 15)
        for block in blocks:
            with self.subTest(block.splitlines()[0]), tempfile.TemporaryDirectory() as self.folder:
                memory.reset(limit=GIB)
                lines = [line for line in block.splitlines() if line]
                self.assertLessEqual(len(lines), 9, "in under ten lines")
                names, before = self.names(), os.getcwd()
                os.chdir(self.folder)
                self.put_files()
                memory.reset(limit=GIB)
                try:
                    with mock.patch("vramlab.gate.read_cards", lambda: [[80 * GIB, GIB]]), trainers(), \
                            contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(block, "docs/python.md", "exec"), names)
                finally:
                    os.chdir(before)
                if "gate" in names:
                    self.assertEqual((names["job"].batch, names["job"].cards), (32, [0]))
                    with open(names["path"]) as file:
                        self.assertEqual(json.load(file)["queue"]["jobs"], [])
                if "found" in names:
                    self.assertLessEqual(names["found"].batch, 102)
                    self.assertGreaterEqual(names["found"].batch, 80)
                if "batch" in getattr(names.get("tuner"), "point", {}):
                    self.assertGreater(names["tuner"]["batch"], 60)
                elif "tuner" in names:
                    self.assertEqual(names["sampler"].budget, names["tuner"]["budget"] << 20)
                if "Greedy" in names:
                    self.assertEqual([one.state for one in names["answer"].policies[1].jobs], ["done", "done"])
                answer = names.get("answer", {})
                batches = {one.label: one.get("final", {}).get("batch") for one in answer.get("policies", [])}
                if "Careful" in names:
                    self.assertIn(batches["careful"], (21, 22))  # 21 of 24 samples are below 0.9, 22 are above
                elif "Greedy" not in names and batches:
                    self.assertIn("mine", batches)
                if "rows" in answer:
                    self.assertEqual([row.fits for row in answer.rows], [True, True])
                if "guard" in names:
                    self.assertGreater(names["guard"].failures, 0)


class RecordTest(Case):
    def times(self, name):
        with open(name + ".times.json") as file:
            return json.load(file)["rows"]

    def test_steps_after_the_recording_are_timed(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "run")
            with vramlab.record(name) as recorder:
                recorder.built()
                for saved in (False, True):
                    for batch in (2, 2, 4, 4, 4):
                        with recorder.step(batch=batch), torch.Used(batch * MIB):
                            time.sleep(0.002)
                    if not saved:
                        recorder.save(name)
                with self.assertRaises(ZeroDivisionError):  # a step that fails has no time
                    with recorder.step(batch=2):
                        1 // 0
            with open(name + ".marks.json") as file:
                marks = json.load(file)["marks"]
            self.assertEqual(len([mark for mark in marks if mark["phase"] == "step"]), 5)
            self.assertEqual([mark["mem_get_info"] for mark in marks], [[7 << 30, 8 << 30]] * len(marks))
            rows = self.times(name)
        self.assertEqual([(row["batch"], len(row["step_ms"])) for row in rows], [(2, 1), (4, 2)])
        self.assertEqual([row["peak_allocated"] for row in rows], [2 * MIB, 4 * MIB])
        self.assertGreaterEqual(min(rows[0]["step_ms"] + rows[1]["step_ms"]), 2)

    def test_a_full_disk_leaves_what_was_there(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "run")
            for file in ("run.pickle", "run.marks.json"):
                with open(os.path.join(folder, file), "w") as before:
                    before.write("before")
            limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

            def recorded():
                with vramlab.record(name) as recorder:
                    recorder.built()
                    for batch in range(1, 20):
                        with recorder.step(batch=batch), torch.Used(batch * MIB):
                            pass
                    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))

            try:
                self.refused("run: ", recorded)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
                signal.signal(signal.SIGXFSZ, handler)
            self.assertEqual(sorted(os.listdir(folder)), ["run.marks.json", "run.pickle"])
            with open(name + ".pickle") as file:
                self.assertEqual(file.read(), "before")

    def test_names_of_modules_stand_for_stacks(self):
        class Linear:
            def named_modules(self):
                return [("", self)]

        class Net:
            parts = [Linear(), Linear()]

            def named_modules(self):
                return [("", self), ("head", self.parts[0]), ("tail", self.parts[1])]

            def forward(self):
                for part, size in zip(self.parts, (3, 5)):
                    time.sleep(0.001)  # times of a history are in microseconds
                    torch.nn.modules.module.forward(part, lambda: kept.append(memory.alloc(size * MIB)))
                    time.sleep(0.001)
                    kept.append(memory.alloc(MIB))

        kept, net = [], Net()
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "run")
            with vramlab.record(name, modules=True, golden=True):
                torch.nn.modules.module.forward(net, net.forward)
                with self.assertRaises(ZeroDivisionError):
                    torch.nn.modules.module.forward(net.parts[0], lambda: 1 // 0)
                time.sleep(0.001)
                memory.alloc(7 * MIB)
            self.assertEqual((torch.nn.modules.module.hooks, torch.nn.modules.module.after), ([], []))
            self.assertEqual(sorted(os.listdir(folder)), ["run.marks.json", "run.pickle.gz"])
            answer = vramlab.whatif(name + ".pickle.gz", conf="")
            by_class = vramlab.whatif(name + ".pickle.gz", conf="", by="module")
            self.refused("modules", lambda: vramlab.record(name, modules=True, stacks=True).__enter__())
        self.assertEqual([one.bytes // MIB for one in answer.peak], [7, 5, 3, 2])
        self.assertEqual([one.frames[0] for one in answer.peak][1:], ["Linear tail", "Linear head", "Net (whole)"])
        self.assertEqual([one.bytes // MIB for one in by_class.peak], [8, 7, 2])

    def test_times_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "run")
            with vramlab.record(name, only_times=True) as recorder:
                recorder.built()
                for _ in range(3):
                    with recorder.step(batch=3), torch.Used(3 * MIB):
                        pass
            self.assertEqual(os.listdir(folder), ["run.times.json"])
            self.assertEqual(len(self.times(name)[0]["step_ms"]), 2)
            with vramlab.record(name + "-of-nothing", only_times=True):
                pass
            self.assertEqual(os.listdir(folder), ["run.times.json"])
            self.refused("only_times", lambda: vramlab.record(name, only_times=True, golden=True).__enter__())

    def test_a_golden_recording_is_compressed(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "run")
            with self.assertRaises(ZeroDivisionError):
                with vramlab.record(name, golden=True) as recorder:
                    recorder.built()
                    with recorder.step(batch=2):
                        memory.free(memory.alloc(MIB))
                    1 // 0  # what was recorded is kept
            self.assertEqual(sorted(os.listdir(folder)), ["run.marks.json", "run.pickle.gz"])
            with open(name + ".marks.json") as file:
                self.assertEqual(json.load(file)["marks"][-1]["params"], {"batch": 2})
        self.refused(folder, lambda: vramlab.record(name).__enter__())

    def test_a_golden_recordings_stacks_are_cut_to_the_projects_frames(self):
        from vramlab.record import _cut_stacks
        site = "/venv/lib/python3.12/site-packages/"
        frames = [{"filename": site + "torch/nn/modules/module.py", "line": 1, "name": "_call_impl"},
                  {"filename": site + "transformers/models/llama/modeling_llama.py", "line": 64, "name": "forward"},
                  {"filename": "/home/me/train.py", "line": 7, "name": "<module>"},
                  {"filename": os.path.dirname(os.__file__) + "/runpy.py", "line": 9, "name": "run_path"},
                  {"filename": "Module.cpp", "line": 3, "name": "PyEval"}]
        optimizer = [{"filename": site + "torch/optim/adam.py", "line": 5, "name": "step"}, frames[2]]
        trace = [{"action": "alloc", "addr": 1, "size": 2, "stream": 0, "time_us": i, "frames": list(one)}
                 for i, one in enumerate((frames, frames, optimizer))]
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "run.pickle")
            with open(file, "wb") as opened:
                pickle.dump({"segments": [], "device_traces": [trace]}, opened)
            _cut_stacks(file)
            with open(file, "rb") as opened:
                first, second, third = pickle.load(opened)["device_traces"][0]
        self.assertEqual(first["frames"], frames[1:3])
        self.assertIs(first["frames"], second["frames"])
        self.assertEqual(third["frames"], optimizer)

    def test_callbacks_record_what_runs_between_begin_and_end(self):
        from vramlab.record import lightning_callback, trainer_callback
        with tempfile.TemporaryDirectory() as folder, trainers() as base:
            for make, begin, end in ((lightning_callback, "on_fit_start", "on_exception"),
                                     (trainer_callback, "on_train_begin", "on_train_end")):
                callback = make(os.path.join(folder, begin), golden=True)
                self.assertIsInstance(callback, base)
                getattr(callback, begin)(*[None] * (2 if "fit" in begin else 3))
                for _ in range(2):
                    torch.nn.modules.module.run(torch.Tensor(range(6)))
                    torch.optim.optimizer.run()
                getattr(callback, end)(None, None, None)
                self.assertEqual(torch.optim.optimizer.hooks, [])
                with open(os.path.join(folder, begin + ".marks.json")) as file:
                    steps = [mark for mark in json.load(file)["marks"] if mark["phase"] == "step"]
                self.assertEqual([mark["params"] for mark in steps], 2 * [{"size0": 6}])

    def test_a_program_runs_again_for_its_times(self):
        program = ("import sys, torch\nweights = torch.memory.alloc(1 << 20)\n"
                   "for size in (2, 2, 4, 4):\n torch.nn.modules.module.run(torch.Tensor(range(size)))\n"
                   " with torch.Used(size << 20): pass\n torch.optim.optimizer.run()\nsys.exit(0)\n")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "train.py"), "w") as file:
                file.write(program)
            command = [sys.executable, "-m", "vramlab.record", "-o", "run", "--times", "train.py"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, PATH))})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(os.listdir(folder)), ["run.marks.json", "run.pickle", "run.times.json", "train.py"])
            rows = self.times(os.path.join(folder, "run"))
        self.assertEqual([(row["size0"], len(row["step_ms"])) for row in rows], [(2, 1), (4, 1)])

    def test_a_program_as_it_is(self):
        program = ("import sys, torch\nassert sys.argv[1:] == ['--epochs', '1'], sys.argv\n"
                   "weights = torch.memory.alloc(1 << 20)\n"
                   "for size in (2, 2, 4, 4):\n torch.nn.modules.module.run(torch.Tensor(range(size)))\n"
                   " with torch.Used(size << 20): pass\n torch.optim.optimizer.run()\n")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "train.py"), "w") as file:
                file.write(program)
            done = subprocess.run([sys.executable, "-m", "vramlab.record", "-o", "run", "train.py", "--epochs", "1"],
                                  cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, PATH))},
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "run.marks.json")) as file:
                marks = json.load(file)["marks"]
        self.assertEqual([mark["params"] for mark in marks if mark["phase"] == "step"],
                         [{"size0": size} for size in (2, 2, 4, 4)])
        self.assertEqual([mark["label"] for mark in marks if mark["phase"] == "other"], ["start", "built"])


if __name__ == "__main__":
    unittest.main()
