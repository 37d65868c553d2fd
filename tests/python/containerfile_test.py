"""Containerfile, where no container can be built: known instructions, files that are there, a user without rights.

usage: containerfile_test.py SOURCE_FOLDER
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

KNOWN = {"FROM", "WORKDIR", "COPY", "RUN", "ARG", "ENV", "LABEL", "USER", "ENTRYPOINT", "CMD"}


def instructions(text):
    """[(word, rest)], lines with a backslash at their end joined."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.M)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line.strip()]


def main(source):
    source = Path(source)
    stages = []
    for word, rest in instructions((source / "Containerfile").read_text()):
        assert word in KNOWN, word
        if word == "FROM":
            stages.append([])
            assert re.fullmatch(r"debian:\d+-slim( AS \w+)?", rest), rest
        stages[-1].append((word, rest))
        if word == "COPY" and "--from" not in rest:
            for name in rest.split()[:-1]:
                assert (source / name).exists(), f"COPY {name}: no such file"
        if word == "RUN":
            command = " ".join(part for part in rest.split() if not part.startswith("--mount"))
            assert subprocess.run(["sh", "-n", "-c", command], check=False).returncode == 0, command
            for script in re.findall(r"scripts/\w+", command):
                assert (source / script).exists(), script
        if word in ("ENTRYPOINT", "CMD"):
            assert re.fullmatch(r'\["[^"]+"(, "[^"]+")*\]', rest), f"{word}: not the form without a shell"
    assert len(stages) == 2
    last = [word for word, rest in stages[-1]]
    assert dict(stages[-1])["USER"] not in ("root", "0")
    assert last.index("USER") < last.index("ENTRYPOINT")
    assert not any(word == "COPY" and shlex.split(rest)[0] == "." for word, rest in stages[-1]), "sources in the last stage"
    print("Containerfile holds together")


if __name__ == "__main__":
    main(sys.argv[1])
