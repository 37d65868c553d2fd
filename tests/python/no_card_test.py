"""Programs that ran without a card, against what a card measured: the operations of real steps as PyTorch's fake tensors
told them (tests/data/no-card), through the laws and the exact allocator.

usage: no_card_test.py VRAMLAB FOLDER
"""

import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "python"))

from vramlab._fake_laws import Laws  # noqa: E402
from vramlab._fake_log import Log  # noqa: E402

LIMITS = (0.5, 0.7, 0.9, 1.05, 1.2)  # of what was measured reserved at most
BARS = {"allocated": (0.02, 0.06), "reserved": (0.05, 0.12)}  # median, 95th percentile


def described(value):
    """As the laws read it: lists of JSON are tuples."""
    return tuple(described(one) for one in value) if isinstance(value, list) else value


def play(log, operations, events, births):
    """A list is an operation: its number, whether in backward, bytes born, and how long ago the first of two gradients was
    born; a number is a death, so many births ago."""
    for event in events:
        if isinstance(event, int):
            log.died(births - event)
            continue
        name, arguments, outputs = operations[event[0]]
        born = [(births + place, size) for place, size in enumerate(event[2])]
        births += len(born)
        numbers = [births - event[3], 0] if len(event) > 3 else None
        log.operation(name, arguments, (), outputs, born, "backward" if event[1] else "forward", numbers)
    return births


def script_of(document, folder):
    """The program as a script of allocations: what ran before, then each point from an emptied cache."""
    operations = [described(one) for one in document["operations"]]
    log = Log(Laws((9, 0), 132), "NVIDIA H100 80GB HBM3", 85017493504)
    births = 0
    for events in document["before"]:
        births = play(log, operations, events, births)
    marks = []
    for point in document["points"]:
        marks.append((len(log.entries), "begin"))
        log.empty_cache()
        births = play(log, operations, point["first"], births)
        births = play(log, operations, point["again"] or point["first"], births)
        marks.append((len(log.entries), "end"))
    lines = ["op,id,bytes,stream,pool,text"]
    for place in range(len(log.entries) + 1):
        while marks and marks[0][0] == place:
            kind = marks.pop(0)[1]
            lines += ["mark,,,,,point"] if kind == "end" else ["empty_cache", "reset_peak"]
        if place < len(log.entries):
            entry = log.entries[place]
            if entry["action"] == "alloc":
                lines.append(f"alloc,{entry['addr']},{entry['size']}")
            elif entry["action"] == "free_requested":
                lines.append(f"free,{entry['addr']}")
    file = os.path.join(folder, document["program"] + ".csv")
    with open(file, "w") as opened:
        opened.write("\n".join(lines) + "\n")
    return file


def high(values):
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


def main(vramlab, data):
    right = asked = 0
    for name in sorted(one for one in os.listdir(data) if one.endswith(".json.gz")):
        document = json.loads(gzip.open(os.path.join(data, name)).read())
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([vramlab, "whatif", script_of(document, folder), "--alloc-conf", "", "--json", "-"],
                                  capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        marks = json.loads(done.stdout)["rows"][0]["marks"]
        assert len(marks) == len(document["points"]), (name, len(marks))
        own = {"allocated": [], "reserved": []}
        for mark, point in zip(marks, document["points"]):
            measured = point["measured"]
            for kind, list_of in own.items():
                list_of.append(abs(mark[f"peak_{kind}_bytes"] / measured[f"peak_{kind}"] - 1))
            for limit in LIMITS:
                room = limit * measured["peak_reserved"]
                right += (mark["peak_reserved_bytes"] <= room) == (measured["peak_reserved"] <= room)
                asked += 1
        print(f"{name:30s}" + "".join(f" {kind} {100 * statistics.median(list_of):5.2f} / {100 * high(list_of):5.2f} %"
                                      for kind, list_of in own.items()))
        for kind, list_of in own.items():
            assert statistics.median(list_of) <= BARS[kind][0] and high(list_of) <= BARS[kind][1], (name, kind, list_of)
        if name.startswith("lstm"):
            assert max(own["allocated"]) < 1e-5, own  # to some hundred bytes
    assert right >= 0.95 * asked, (right, asked)
    print(f"right about the limit: {right} of {asked}")


main(sys.argv[1], sys.argv[2])
