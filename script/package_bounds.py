"""Writes requirements/package.txt: what the wheel depends on, bounded by the pins.

Tests run with the pins, so a pin is the lower bound. The upper bound is the one of runtime.in where it names
one, else the next major version; packages of data, whose versions are dates, have none.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

DATA = {"tzdata", "publicsuffixlist"}
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\d+)((?:\.\w+)*)")
HEAD = "# Made by script/pin: the bounds follow from runtime.in and the pins of runtime.txt.\n"


def bounds(wanted: str, pinned: str) -> str:
    """The text of the file, from the texts of runtime.in and runtime.txt."""
    pins: dict[str, re.Match[str]] = {}
    for found in filter(None, map(PIN.match, pinned.splitlines())):
        # One that differs by the version of Python is pinned twice: what the older one gets is first.
        pins.setdefault(found[1], found)
    lines = [line.strip() for line in wanted.splitlines() if line.strip() and not line.startswith("#")]
    return HEAD + "".join(f"{bound(line, pins)}\n" for line in sorted(lines))


def bound(line: str, pins: dict[str, re.Match[str]]) -> str:
    name = re.split(r"[<>=!~ ]", line)[0]
    found = pins[name]
    least = f"{name}>={found[2]}{found[3]}"
    if name in DATA:
        return least
    own = line.removeprefix(name).strip()
    return f"{least},{own or f'<{int(found[2]) + 1}'}"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    text = bounds(*((folder / name).read_text(encoding="utf-8") for name in ("runtime.in", "runtime.txt")))
    (folder / "package.txt").write_text(text, encoding="utf-8")
