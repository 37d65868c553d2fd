"""Recording without a card: the laws and the file of it without PyTorch, and the whole where PyTorch is installed.

usage: fake_test.py VRAMLAB
"""

import importlib.util
import json
import os
import pickle
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "python"))

from vramlab import Error  # noqa: E402
from vramlab._fake import StandIns  # noqa: E402
from vramlab._fake_kernels import attention_kernel  # noqa: E402
from vramlab._fake_laws import Laws  # noqa: E402
from vramlab._fake_log import Log  # noqa: E402
from vramlab._fake_reduce import buffers  # noqa: E402
from vramlab.record import _stand_ins, record  # noqa: E402

H200 = 132  # multiprocessors


def tensor(kind, *shape, strides=None):
    return ("T", kind, shape, strides)


def arguments(*given):
    return ("L", *given)


def run(vramlab, *words, code=0):
    done = subprocess.run([vramlab, *words], capture_output=True, text=True)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def reductions():
    # sums over rows of bfloat16, as an H200 recorded them (PyTorch 2.11): GPT-2 and a task mix
    for rows, columns, buffer, counters in [(1024, 768, 6291456, 24), (2048, 3072, 50331648, 96), (1536, 2304, 28311552, 72),
                                            (6895, 384, 21233664, 12), (10180, 2048, 138412032, 64), (1568, 512, 6553600, 16)]:
        assert buffers((rows, columns), None, [0], 2, 4, H200) == (buffer, counters), (rows, columns)
    assert buffers((256, 768), None, [0], 2, 4, H200) is None
    assert buffers((196, 8, 1536), None, [0, 1], 2, 4, H200) == (19660800, 48)


def laws():
    within = Laws((9, 0), H200).within
    # GPT-2 at (4, 256) and a decoder whose heads share keys, at (2, 128)
    shape = (4, 12, 256, 64)
    query = tensor("bfloat16", *shape)
    name = "aten._scaled_dot_product_cudnn_attention_backward.default"
    found = list(within(name, arguments(query, query, query), (), (), [1572864] * 3))
    assert found[-1][:2] == ("temporary", 3195136), found
    shared = tensor("bfloat16", 2, 4, 128, 64)
    query = tensor("bfloat16", 2, 16, 128, 64)
    found = list(within(name, arguments(query, query, shared), (), (), [524288, 131072, 131072]))
    assert found[-1][:2] == ("temporary", 2113792), found
    # patches of a vision transformer, batch 4 at 128 pixels
    found = list(within("aten.convolution.default", arguments(tensor("bfloat16", 4, 3, 128, 128), tensor("bfloat16", 512, 3, 16, 16), None,
                                                              ("L", 16, 16)), (), ("L", tensor("bfloat16", 4, 512, 8, 8)), [262144]))
    assert found[-1][:2] == ("temporary", 3407888), found
    assert attention_kernel((9, 0), "torch.bfloat16", 64, False, {"cudnn": True, "flash": True, "efficient": True}) == "cudnn"
    assert attention_kernel((8, 9), "torch.bfloat16", 64, False, {"cudnn": True, "flash": True, "efficient": True}) == "flash"
    assert attention_kernel((8, 9), "torch.float32", 64, True, {"cudnn": True, "flash": True, "efficient": True}) == "efficient"


def made_file(vramlab, folder):
    """A step of one product of matrices, with what it leaves: what a reader makes of the file."""
    log = Log(Laws((9, 0), H200), "NVIDIA H100 80GB HBM3", 85017493504)
    log.mark("other", "start")
    log.operation("aten.empty.memory_format", arguments(), (), ("L", tensor("float32", 1000)), [(1, 4000)], "forward")
    log.mark("other", "built")
    for step in range(3):
        a = tensor("float32", 64, 64)
        log.empty_cache()
        log.operation("aten.mm.default", arguments(a, a), (), ("L", a), [(10 + step, 16384)], "forward")
        log.died(10 + step)
        log.mark("step", f"batch{step + 1}", {"batch": step + 1})
    assert log.allocated == 4096 + 33554432, log.allocated
    # two gradients that meet: the sum takes the place of the first
    log.operation("aten.mul.Tensor", arguments(a, a), (), ("L", a), [(20, 16384)], "backward", [1, 1])
    log.operation("aten.mul.Tensor", arguments(a, a), (), ("L", a), [(21, 16384)], "backward", [1, 1])
    log.operation("aten.add.Tensor", arguments(a, a), (), ("L", a), [(22, 16384)], "backward", [20, 21])
    log.died(20)
    log.died(21)
    assert log.allocated == 4096 + 33554432 + 16384, log.allocated
    log.died(22)
    name = os.path.join(folder, "made")
    with open(name + ".pickle", "wb") as file:
        log.write(file, "2.11.0")
    with open(name + ".marks.json", "w") as file:
        json.dump({"marks": log.marks}, file)
    snapshot = pickle.load(open(name + ".pickle", "rb"))
    addresses = [entry["addr"] for entry in snapshot["device_traces"][0] if entry["action"] == "alloc"]
    assert len(set(addresses)) == len(addresses) == 7, addresses

    answer = json.loads(run(vramlab, "whatif", name + ".pickle", "--alloc-conf", "", "--json", "-"))
    made = answer["made_without_card"]
    assert made["card"] == "NVIDIA H100 80GB HBM3" and made["torch"] == "2.11.0", made
    assert [(one["name"], one["how"], one["allocations"], one["bytes"]) for one in made["parts"]] == \
        [("cuBLAS workspace", "law", 1, 33554432)], made
    assert answer["notes"][0].startswith("Made without a card"), answer["notes"]
    # 4,000 B in a small segment, and 32 MiB of their own; small blocks of 16 KiB share the first
    assert answer["rows"][0]["peak_reserved_bytes"] == 2097152 + 33554432, answer["rows"][0]
    assert answer["rows"][0]["peak_allocated_bytes"] == 4096 + 33554432 + 2 * 16384, answer["rows"][0]
    text = run(vramlab, "whatif", name + ".pickle")
    assert "Made without a card" in text and "By law: cuBLAS workspace" in text, text
    text = run(vramlab, "verify", name + ".pickle")
    assert "has no addresses to verify" in text, text
    fitted = json.loads(run(vramlab, "fit", name + ".pickle", "--marks", name + ".marks.json", "-o", name + ".json", "--json", "-"))
    assert fitted["warnings"][0].startswith("Made without a card"), fitted["warnings"]
    predicted = json.loads(run(vramlab, "predict", name + ".json", "--json", "-"))
    assert [note.split(":")[0].split(",")[0] for note in predicted["notes"]] == ["Made without a card", "By law"], predicted["notes"]


def stand_ins():
    assert StandIns({"fake_test.py:stand_ins": 3}).value("reads") == 3
    assert StandIns({"*": 0.5}).value("reads") == 0.5
    try:
        StandIns().value("reads a value of a tensor")
        raise AssertionError("not reached")
    except Error as error:
        assert "fake_test.py" in str(error) and "--stand-in FILE:LINE=VALUE" in str(error), error


def refusals(folder):
    name = os.path.join(folder, "run")
    for given, said in [({"device": "tpu"}, '"cuda", or "fake"'), ({"device": "fake", "only_times": True}, "no times"),
                        ({"device": "fake", "modules": True}, "stacks=True"), ({"device": "fake", "card": "l5"}, "l4-24gb")]:
        try:
            with record(name, **given):
                raise AssertionError("not reached")
        except Error as error:
            assert said in str(error), error
    assert _stand_ins(["train.py:40=0.5", "*=False"]) == {"train.py:40": 0.5, "*": False}
    for wrong in ("train.py", "=3", "train.py=x"):
        try:
            _stand_ins([wrong])
            raise AssertionError("not reached")
        except Error as error:
            assert "is not PLACE=VALUE" in str(error), error
    assert os.listdir(folder) == [], os.listdir(folder)


def whole(vramlab, folder):
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed here: the recording itself is not tried")
        return
    program = os.path.join(folder, "train.py")
    with open(program, "w") as file:
        file.write("import torch\nmodel = torch.nn.Linear(64, 64).cuda()\noptimizer = torch.optim.AdamW(model.parameters())\n"
                   "for batch in (2, 2, 4, 4):\n    optimizer.zero_grad()\n"
                   "    model(torch.randn(batch, 64, device='cuda')).sum().backward()\n    optimizer.step()\n")
    name = os.path.join(folder, "run")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.path.join(here, "..", "..", "python")}
    words = [sys.executable, "-m", "vramlab.record", "--device", "fake", "-o", name, program]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    answer = json.loads(run(vramlab, "whatif", name + ".pickle", "--alloc-conf", "", "--json", "-"))
    # weights, gradients, two moments of 64 x 64 and 64 floats each; two workspaces of products of matrices
    assert answer["rows"][0]["peak_allocated_bytes"] > 4 * (16384 + 512) + 2 * 33554432, answer["rows"][0]


def main(vramlab):
    reductions()
    laws()
    stand_ins()
    with tempfile.TemporaryDirectory() as folder:
        refusals(folder)
        made_file(vramlab, folder)
        whole(vramlab, folder)
    print("ok")


main(sys.argv[1])
