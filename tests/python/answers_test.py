"""What Python gets from the library is what the program prints; policies in Python take part in its simulations.

usage: answers_test.py, or pytest answers_test.py. VRAMLAB_LIBRARY and VRAMLAB name the library and the program; by
default those of a build in the source tree.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILDS = [os.path.join(ROOT, "build", preset) for preset in ("release", "dev")]
PROGRAM = os.environ.get("VRAMLAB") or next(filter(os.path.exists, (os.path.join(one, "vramlab") for one in BUILDS)))
sys.path.insert(0, os.path.join(ROOT, "python"))

import vramlab  # noqa: E402

BERT = "tests/data/recorded/bert.pickle.gz"
MODEL = "models/superres-rrdb6.json"
SCENARIO = "scenarios/ratchet.json"


def program(*words, given=None):
    """The JSON that the program prints."""
    done = subprocess.run([PROGRAM, *words, "--json", "-"], cwd=ROOT, input=given, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def short(policies=("fixed",), iterations=60, phases=(), **more):
    """A small scenario: a sample of the batch takes 1000 MiB of 24000."""
    return {"version": 1, "kind": "training", "name": "short", "device": {"total": "24000MiB", "context": 0},
            "workload": {"model": {"kind": "linear", "fixed": 0, "per_sample": "1000MiB", "parameters": {"batch": [1, 64]},
                                   "step_time": {"floor_ms": 100}},
                         "iterations": iterations, "start": {"batch": 4}, "phases": list(phases)},
            "policies": [{"use": name} for name in policies], **more}


class Case(unittest.TestCase):
    def setUp(self):
        before = os.getcwd()
        os.chdir(ROOT)
        self.addCleanup(os.chdir, before)
        registered = dict(vramlab.policy._known)
        self.addCleanup(lambda: (vramlab.policy._known.clear(), vramlab.policy._known.update(registered)))
        self.folder = self.enter(tempfile.TemporaryDirectory())

    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def equal(self, answer, *words, **more):
        """`answer` is what the program prints, keys in the same order."""
        self.assertEqual(json.dumps(answer, indent=2, ensure_ascii=False),
                         json.dumps(json.loads(program(*words, **more)), indent=2, ensure_ascii=False))

    def refused(self, text, work, kind=vramlab.Error):
        with self.assertRaises(kind) as caught:
            work()
        self.assertIn(text, str(caught.exception))


class AnswerTest(Case):
    def test_whatif(self):
        answer = vramlab.whatif(BERT, conf=["", "expandable_segments:True"], capacity=[6 << 30, "2GiB"])
        self.equal(answer, "whatif", BERT, "--alloc-conf", "", "--alloc-conf", "expandable_segments:True",
                   "--capacity", str(6 << 30), "--capacity", "2GiB")
        self.assertEqual([row.fits for row in answer.rows], [True, True, False, False])
        self.assertEqual(answer.rows[0].peak_allocated_bytes, answer["rows"][0]["peak_allocated_bytes"])
        self.assertIn("alloc-conf", str(answer))

    def test_explain_takes_text_a_file_and_an_error(self):
        file = "docs/examples/oom-neighbour.txt"
        answer = vramlab.explain(file)
        self.equal(answer, "explain", file)
        self.assertEqual(answer.cause, "other processes")
        with open(file) as opened:
            text = opened.read()
        self.assertEqual(vramlab.explain(text), answer)
        self.assertEqual(vramlab.explain(RuntimeError(text)), answer)
        self.equal(answer, "explain", "-", given=text)
        self.assertEqual(str(answer).splitlines()[0], vramlab.explain(text).text.splitlines()[0])

    def test_fit_and_predict(self):
        output = os.path.join(self.folder, "model.json")
        recorded = "tests/data/recorded/lstm_fit"
        fitted = vramlab.fit(recorded + ".pickle.gz", output)  # the marks lie beside it
        other = os.path.join(self.folder, "other.json")
        program("fit", recorded + ".pickle.gz", "--marks", recorded + ".marks.json", "-o", other, "--name", "model")
        with open(output) as one, open(other) as two:
            self.assertEqual(one.read(), two.read())
        name = fitted.parameters[0]
        answer = vramlab.predict(output, at={name: fitted.range[name][1]}, gpu="a10-24gb")
        self.equal(answer, "predict", output, "--set", f"{name}={fitted.range[name][1]}", "--gpu", "a10-24gb")
        self.equal(vramlab.predict(MODEL, at={"batch": 8, "lq": 96}, limit=12 << 30, largest="batch"), "predict", MODEL,
                   "--set", "batch=8", "--set", "lq=96", "--limit", str(12 << 30), "--largest", "batch")

    def test_the_further_options_reach_the_program(self):
        recorded, output = "tests/data/recorded/lstm_fit.pickle.gz", os.path.join(self.folder, "steps.json")
        self.refused("is given twice", lambda: vramlab.ask("fit", recorded, "--param=batch=8", "--param=batch=9", "-o",
                                                           output))
        self.refused("steps=8", lambda: vramlab.fit(recorded, output, steps=8))
        self.refused("steps['batch']='8'", lambda: vramlab.fit(recorded, output, steps={"batch": "8"}))
        self.refused("steps['batch']=0", lambda: vramlab.fit(recorded, output, steps={"batch": [8, 0]}))
        self.refused("2 values", lambda: vramlab.fit(recorded, output, steps={"batch": [8, 8, 8], "seq": [1, 1]}))
        self.refused("is not a rank", lambda: vramlab.fit(recorded, output, rank="2/2"))
        self.refused("several ranks", lambda: vramlab.predict(MODEL, world=8))
        self.refused("world=0", lambda: vramlab.predict(MODEL, world=0))
        self.equal(vramlab.whatif(BERT, conf="", details=True), "whatif", BERT, "--alloc-conf", "", "--details")
        self.refused("nowhere", lambda: vramlab.whatif(BERT, conf="", mark="nowhere"))

    def test_compare_and_verify(self):
        answer = vramlab.compare(SCENARIO, policies=["fixed", "predictive"])
        self.equal(answer, "compare", SCENARIO, "--policies", "fixed,predictive")
        self.assertEqual(answer.best, "predictive")
        with open(SCENARIO) as file:
            document = json.load(file)
        self.assertEqual(vramlab.compare(document, policies=["fixed", "predictive"]), answer)
        recording = "tests/data/oracle/default_1.json.gz"
        self.equal(vramlab.verify(recording), "verify", recording)
        self.equal(vramlab.ask("gpus"), "gpus")
        self.assertEqual(vramlab.ask("policies")[0].name, "fixed")

    def test_further_policies_join_those_of_a_scenario(self):
        answer = vramlab.compare(short(), policies=["fixed", {"use": "aimd", "adjustment_frequency": 5}])
        self.assertEqual([one.label for one in answer.policies if one.label != "oracle"], ["fixed", "aimd"])

    def test_a_sweep_leaves_signals_alone(self):
        sweep = [{"vary": "/workload/start/batch", "over": [2, 4]}]
        before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
        answer = vramlab.compare(short(["fixed", "aimd"], sweep=sweep), threads=2)
        self.assertEqual([signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)], before)
        self.assertEqual([list(run.at.values())[0] for run in answer.runs], [2, 4])

    def test_nothing_reaches_the_streams_of_the_program(self):
        code = ("import vramlab\n"
                f"vramlab.whatif({BERT!r}, capacity='6GiB')\nvramlab.compare({SCENARIO!r}, policies='fixed')\n"
                "try: vramlab.whatif('none.pickle')\nexcept vramlab.Error: pass\n"
                "try: vramlab.ask('validate-device')\nexcept vramlab.Error: pass\n")
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_threads_ask_at_once(self):
        answers = [None] * 4

        def ask(number):
            answers[number] = vramlab.predict(MODEL, at={"batch": 2 + number % 2, "lq": 96})

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(answers[:2], answers[2:])
        self.assertEqual([one.parameters.batch for one in answers], [2, 3, 2, 3])

    def test_frames(self):
        table = mock.Mock(side_effect=lambda rows: rows)
        with mock.patch.dict(sys.modules, {"pandas": mock.Mock(json_normalize=table)}):
            rows = vramlab.whatif(BERT, conf="", capacity=["6GiB", "2GiB"]).frame()
            self.assertEqual([row["fits"] for row in rows], [True, False])
            rows = vramlab.compare(short(["fixed", "aimd"])).frame()
            self.assertEqual([row["label"] for row in rows][:2], ["fixed", "aimd"])
            self.assertEqual(rows[0]["ooms"], 0)
            self.assertEqual(len(vramlab.predict(MODEL).frame()), 1)
            self.assertEqual(vramlab.ask("gpus").frame()[0]["id"], vramlab.ask("gpus")[0].id)
        with mock.patch.dict(sys.modules, {"pandas": None}):
            self.refused("pip install pandas", vramlab.predict(MODEL).frame)

    def test_bad_input(self):
        self.refused("none.pickle", lambda: vramlab.whatif("none.pickle"))
        self.refused("snapshot: none is given", lambda: vramlab.whatif([]))
        self.refused("capacity=-1", lambda: vramlab.whatif(BERT, capacity=-1))
        self.refused("capacity=nan", lambda: vramlab.whatif(BERT, capacity=float("nan")))
        self.refused("12 gigs", lambda: vramlab.whatif(BERT, limit="12 gigs"))
        self.refused("expandable_segment", lambda: vramlab.whatif(BERT, conf="expandable_segment:True"))
        self.refused("rtx", lambda: vramlab.whatif(BERT, gpu="rtx-4091-24gb"))
        self.refused("--by", lambda: vramlab.whatif(BERT, by="frames"))
        self.refused("--depth", lambda: vramlab.whatif(BERT, depth=-1))
        self.refused("conf=3.5", lambda: vramlab.whatif(BERT, conf=3.5))
        self.refused("threads=-1", lambda: vramlab.whatif(BERT, threads=-1))
        self.refused("at['batch']=nan", lambda: vramlab.predict(MODEL, at={"batch": float("nan")}))
        self.refused("at=8", lambda: vramlab.predict(MODEL, at=8))
        self.refused("bach", lambda: vramlab.predict(MODEL, at={"bach": 8}))
        self.refused("must be the path", lambda: vramlab.predict(None))
        self.refused("is empty", lambda: vramlab.explain(" \n "))
        self.refused("missing.txt", lambda: vramlab.explain("missing.txt"))
        self.refused("no folder", lambda: vramlab.fit(BERT, "/none/model.json", parameters={"batch": 8}))
        self.refused("none.json", lambda: vramlab.compare("none.json"))
        self.refused("scenario", lambda: vramlab.compare({"kind": float("nan")}))
        self.refused("/iterations", lambda: vramlab.compare(short(iterations=-1)))
        self.refused("fixd", lambda: vramlab.compare(short(), policies="fixd"))
        self.refused("names no policy", lambda: vramlab.compare(short(), policies=[{}]))
        self.refused("seeds=0", lambda: vramlab.compare(short(), seeds=0))
        self.refused("no CUDA", lambda: vramlab.ask("compare", SCENARIO, "--device", "cuda"))
        self.refused("no CUDA", lambda: vramlab.ask("validate-device"))
        self.refused("not a verb", lambda: vramlab.ask("hold-card-memory"))
        self.refused("Did you mean", lambda: vramlab.ask("whatiff"))
        self.refused("Words are texts", lambda: vramlab.ask("gpus", b"x"))
        with mock.patch.dict(os.environ, {"VRAMLAB_LIBRARY": "/proc/version"}):
            from vramlab import answers
            answers.library.cache_clear()
            self.addCleanup(answers.library.cache_clear)
            self.refused("cannot be used", lambda: vramlab.ask("gpus"))


class PolicyTest(Case):
    def compare(self, *names, **more):
        answer = vramlab.compare(short(**more), policies=list(names), threads=2)
        return {one.label: one for one in answer.get("policies", [])} if "policies" in answer else answer

    def test_a_tuner_decides_as_its_twin_in_the_program(self):
        @vramlab.policy.tuner("grows", bounds={"target": (0.1, 1)})
        class Grows:
            """Grows by one while the peak is below the target."""

            def __init__(self, target=0.75, every=10):
                self.target, self.every, self.asked = target, every, 0

            def decide(self, question):
                self.asked += 1
                memory = question.observation.memory
                if question.observation.iteration % self.every or question.result != "ok":
                    return None
                low, high = question.parameters.batch
                if memory.peak_allocated < self.target * memory.total:
                    return vramlab.policy.move({"batch": 1}, f"{memory.peak_allocated} of {memory.total}", reset_peak=True)
                return vramlab.policy.move(reason=f"stays between {low} and {high}")

            def statistics(self):
                return {"asked": self.asked}

        found = self.compare("fixed", "grows", {"use": "grows", "every": 5, "label": "faster"})
        self.assertEqual([one["iteration"] for one in found["grows"].adjustments], [10, 20, 30, 40, 50, 60])
        self.assertEqual(found["grows"].final.batch, 10)
        self.assertEqual(found["grows"].statistics.asked, 60)
        self.assertEqual(found["faster"].final.batch, 16)
        listed = [one for one in vramlab.ask("policies") if one.name == "grows"]
        self.assertEqual([option["key"] for option in listed[0].options], ["target", "every"])
        self.refused("0.1 to 1", lambda: self.compare({"use": "grows", "target": 2}))
        self.refused("tarjet", lambda: self.compare({"use": "grows", "tarjet": 0.5}))
        again = vramlab.compare(short(["grows"], sweep=[{"vary": "/workload/start/batch", "over": [1, 2, 3, 4]}]), threads=2)
        self.assertEqual([run.policies[0].metrics.ooms for run in again.runs], [0, 0, 0, 0])

    def test_a_fault_ends_the_run_of_that_policy_alone(self):
        @vramlab.policy.tuner("breaks")
        class Breaks:
            def __init__(self, how="raises"):
                self.how = how

            def decide(self, question):
                if question.observation.iteration < 7:
                    return None
                return {"raises": lambda: 1 // 0, "nan": lambda: vramlab.policy.move({"batch": float("nan")}),
                        "names": lambda: vramlab.policy.move({"bach": 1}), "huge": lambda: vramlab.policy.move({"batch": 2**60}),
                        "beyond": lambda: vramlab.policy.move({"batch": 1000}), "tuple": lambda: (1, 2),
                        "infinite": lambda: {"change": {"batch": float("inf")}}}[self.how]()

        entries = [{"use": "breaks", "how": how, "label": how} for how in
                   ("raises", "nan", "names", "huge", "beyond", "tuple", "infinite")]
        found = self.compare("fixed", *entries)
        self.assertTrue(found["fixed"].finished)
        for how, text in (("raises", "ZeroDivisionError"), ("nan", "whole number"), ("names", "bach"),
                          ("huge", "no parameter can need"), ("tuple", "(1, 2)"), ("infinite", "JSON")):
            self.assertFalse(found[how].finished)
            self.assertIn(text, json.dumps(found[how]), how)
        self.assertIn("answers_test.py:", json.dumps(found["raises"]))
        self.assertEqual(found["beyond"].adjustments[0]["to"]["batch"], 64)  # moved into its bounds, as with plugins

    def test_an_exception_in_init_and_ctrl_c(self):
        @vramlab.policy.tuner("refuses")
        class Refuses:
            def __init__(self, how="error"):
                if how == "error":
                    raise vramlab.Error("how: is never right.")
                if how == "stops":
                    raise KeyboardInterrupt
                raise ValueError(how)

            def decide(self, question):
                return None

        self.refused("how: is never right", lambda: self.compare("refuses"))
        found = self.compare("fixed", {"use": "refuses", "how": "odd"})
        self.assertIn("ValueError: odd", json.dumps(found["refuses"]))
        with self.assertRaises(KeyboardInterrupt):
            self.compare({"use": "refuses", "how": "stops"})

    def test_phases_and_saved_states(self):
        heard = []

        @vramlab.policy.tuner("listens")
        class Listens:
            def decide(self, question):
                heard.append(question.observation.iteration)

            def phase(self, question):
                heard.append((question.name, question.begins))

            def save(self):
                return str(len(heard))

            def load(self, state):
                heard.append("loaded " + state)

        self.compare("listens", iterations=6, phases=[{"name": "validation", "every": 3, "set": {"batch": 2}}],
                     faults={"restart": {"after": 5, "checkpoint_every": 2, "takes_s": 1}})
        self.assertIn(("validation", True), heard)
        self.assertIn(("validation", False), heard)
        self.assertTrue(any(str(one).startswith("loaded") for one in heard), heard)

    def test_a_searcher(self):
        @vramlab.policy.searcher("halves")
        class Halves:
            depth = {"steps": 3}

            def __init__(self, start=512):
                self.start = start

            def decide(self, question):
                if question.last is None:
                    return vramlab.policy.probe(min(self.start, question.high), "begin high")
                if question.last.outcome == "ok":
                    return vramlab.policy.found(question.last.batch, "it fits", largest_good=question.last.batch)
                if question.last.batch == question.low:
                    return vramlab.policy.none_fits("nothing fits")
                return vramlab.policy.probe(question.last.batch // 2, "half")

        answer = vramlab.compare("scenarios/find-sr.json", policies=["model", "halves"])
        found = {one.label: one for one in answer.policies}
        self.assertEqual(found["halves"].metrics.batch, 8)  # 12 is the largest that fits
        self.assertEqual(found["halves"].metrics.edge_batch, 12)

    def test_a_composer(self):
        told = []

        @vramlab.policy.composer("pairs")
        class Pairs:
            window = 8

            def decide(self, question):
                longest = max(question.samples[one][3] for one in question.waiting)
                batch = question.waiting[:min(2 if longest < 512 else 1, question.most)]
                return vramlab.policy.run(batch, f"{len(batch)} of {question.left}", likely=1 << 30)

            def told(self, question):
                told.append((len(question.batch), question.result))

        answer = vramlab.compare("scenarios/epoch-lengths.json", policies=["dense", "pairs"])
        found = {one.label: one for one in answer.policies}
        self.assertTrue(found["pairs"].finished, found["pairs"])
        self.assertEqual({size for size, _ in told}, {1, 2})

        @vramlab.policy.composer("takes-what-is-gone")
        class Gone:
            def decide(self, question):
                return vramlab.policy.run([0, 0])

        answer = vramlab.compare("scenarios/epoch-lengths.json", policies=["dense", "takes-what-is-gone"])
        found = {one.label: one for one in answer.policies}
        self.assertTrue(found["dense"].finished)
        self.assertFalse(found["takes-what-is-gone"].finished)

    # Three jobs of 6, 5 and 4 GiB on a card of 10: the first and the last fit together.
    QUEUE = {"version": 1, "kind": "jobs", "name": "three", "cards": [{"total": "10GiB"}], "policies": [{"use": "job-queue"}],
             "jobs": [{"name": "a", "need": "6GiB", "duration_s": 100}, {"name": "b", "need": "5GiB", "duration_s": 100},
                      {"name": "c", "need": "4GiB", "duration_s": 100}]}

    def queue(self, *names, **more):
        answer = vramlab.compare({**self.QUEUE, **more}, policies=list(names), threads=2)
        return {one.label: one for one in answer.policies}

    def test_an_admitter(self):
        asked = []

        @vramlab.policy.admitter("greedy")
        class Greedy:
            """Starts whoever fits, oldest first."""

            def __init__(self, margin=0):
                self.margin = margin

            def decide(self, question):
                asked.append(question.event)
                if question.event != "examine":
                    return None
                for one in question.waiting:
                    for number, card in enumerate(question.cards):
                        if one.demand.need + self.margin <= card.free:
                            return vramlab.policy.start(one.job, [number], f"{card.free} bytes are free")
                return vramlab.policy.wait("nobody fits")

            def statistics(self):
                return {"asked": len(asked)}

        best_effort = {"use": "job-queue", "profile": "best-effort", "safety_margin_mb": 0, "label": "twin"}
        found = self.queue(best_effort, "greedy", {"use": "greedy", "margin": 2 << 30, "label": "careful"})
        self.assertEqual([one.started_s for one in found["greedy"].jobs], [0, 100, 0])
        self.assertEqual(found["greedy"].metrics, found["twin"].metrics)
        self.assertEqual([one.started_s for one in found["careful"].jobs], [0, 100, 200])
        self.assertEqual(set(asked), {"submitted", "examine"})

    def test_an_admitter_hears_of_waits_and_failures(self):
        heard = []

        @vramlab.policy.admitter("halves-batches")
        class Halves:
            rules = {"wait_timeout_s": 30}

            def decide(self, question):
                if question.event == "oom":
                    heard.append(("oom", question.batch, question.attempts))
                    return vramlab.policy.requeue("again, smaller", batch=question.batch // 2)
                if question.event == "deadline":
                    heard.append(("deadline", question.job, question.now_ns))
                    return vramlab.policy.fail("waited too long")
                if question.event == "submitted" and question.demand.need > question.cards[0].total:
                    return vramlab.policy.refuse(f"{question.demand.need} bytes fit nowhere")
                for one in question.waiting:
                    if question.event == "examine" and not question.running:
                        return vramlab.policy.start(one.job, [0])

        jobs = [{"name": "grows", "need": "1GiB", "per_sample": "1GiB", "use": "1GiB",
                 "use_per_sample": "2GiB", "batch": 8, "duration_s": 100},
                {"name": "late", "need": "1GiB", "duration_s": 100}, {"name": "huge", "need": "11GiB", "duration_s": 1}]
        found = self.queue("halves-batches", jobs=jobs)["halves-batches"]
        self.assertEqual([one.state for one in found.jobs], ["done", "timed_out", "refused"])
        self.assertEqual(found.jobs[0].batch, 4)
        self.assertEqual(heard[0], ("oom", 8, 1))
        self.assertEqual(heard[1][:2], ("deadline", 1))
        self.assertIn("waited too long", found.jobs[1].reason)
        self.assertIn("fit nowhere", found.jobs[2].reason)

    def test_a_wrong_admitter_ends_its_own_run(self):
        @vramlab.policy.admitter("wrong")
        class Wrong:
            def __init__(self, how="raises"):
                self.how = how

            def decide(self, question):
                if question.event != "examine" or not question.waiting:
                    return None
                start = vramlab.policy.start
                return {"raises": lambda: 1 // 0, "job": lambda: start(7, [0]), "card": lambda: start(0, [3]),
                        "none": lambda: start(0, []), "two": lambda: start(0, [0, 1]), "twice": lambda: start(0, [0, 0]),
                        "batch": lambda: start(0, [0], batch=0), "variant": lambda: start(0, [0], variant=2),
                        "endless": lambda: vramlab.policy.to_back(question.waiting[0].job), "word": lambda: {"action": "go"},
                        "missing": lambda: {"action": "start"}, "nan": lambda: start(float("nan"), [0])}[self.how]()

        ways = {"raises": "ZeroDivisionError", "job": "job 7", "card": "card 3", "none": "one node", "two": "2 different cards for a job that takes 1", "twice": "card twice",
                "batch": "batch 0", "variant": "variant 2", "endless": "without an end", "word": "go",
                "missing": "job", "nan": "whole number"}
        found = self.queue({"use": "job-queue", "label": "right"}, *({"use": "wrong", "how": how, "label": how} for how in ways),
                           cards=[{"total": "10GiB", "count": 2}])
        self.assertTrue(found["right"].finished)
        for how, text in ways.items():
            self.assertFalse(found[how].finished, how)
            self.assertIn(text, found[how].ended_early, how)

        @vramlab.policy.admitter("no-rule")
        class NoRule:
            rules = {"wait_timeout": 5}

            def decide(self, question):
                return None

        self.refused("is no rule", lambda: self.queue("no-rule"))
        NoRule.rules = {"poll_s": -1}
        self.refused("/rules/poll_s", lambda: self.queue("no-rule"))
        self.refused("colour", lambda: vramlab.policy.requeue(colour=3))

    def test_bad_classes(self):
        tuner = vramlab.policy.tuner
        self.refused("already", lambda: tuner("fixed")(type("A", (), {"decide": lambda self, question: None})))
        self.refused("a method decide", lambda: tuner("a")(type("A", (), {})))
        self.refused("a class", lambda: tuner("a")(lambda question: None))
        self.refused("no name", lambda: tuner(""))
        self.refused("needs a default", lambda: tuner("a")(type("A", (), {
            "__init__": lambda self, target: None, "decide": lambda self, question: None})))
        self.refused("JSON", lambda: tuner("a")(type("A", (), {
            "__init__": lambda self, target=float("nan"): None, "decide": lambda self, question: None})))
        self.refused("no option", lambda: tuner("a", bounds={"x": (0, 1)})(type("A", (), {
            "decide": lambda self, question: None})))
        self.assertEqual(vramlab.policy._known, {})


if __name__ == "__main__":
    unittest.main()
