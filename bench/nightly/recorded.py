"""The recorded ratios, `bench/recorded.json`: by the kind of machine, since a ratio to Postfix is another one
on another processor."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.kit import machine
from bench.nightly.judging import Seen

FILE = machine.ROOT / "bench" / "recorded.json"
CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A ratio as it was once: when, of which commit, beside which Postfix."""

    ratio: float
    low: float
    high: float
    turns: int
    date: str
    commit: str
    postfix: str


def kind_of_machine(cpuinfo: str, cores: int, python: str) -> str:
    """The key of the recorded ratios. Virtual machines often call different processors by one name, so
    family and model belong to it, and whether there is the instruction that makes RSA four times as
    fast."""
    lines = (line.partition(":") for line in cpuinfo.splitlines())
    first = {name.strip(): text.strip() for name, _, text in reversed(list(lines))}
    rsa = "with" if "avx512ifma" in first.get("flags", "").split() else "without"
    name = first.get("model name", platform.machine())
    numbers = f"family {first.get('cpu family', '?')} model {first.get('model', '?')}"
    return f"{name}, {numbers}, {rsa} AVX-512 IFMA, {cores} cores, Python {python}"


def this_machine() -> str:
    """The key of the machine and the Python that run this."""
    return kind_of_machine(CPUINFO.read_text(), os.cpu_count() or 1, platform.python_version())


def load(path: Path, kind: str) -> dict[str, Recorded]:
    """What is recorded for this kind of machine, by the names of the ratios; empty where it has no record."""
    if not path.exists():
        return {}
    machines = json.loads(path.read_text(encoding="utf-8"))
    return {name: Recorded(**found) for name, found in machines.get(kind, {}).items()}


def record(path: Path, kind: str, found: dict[str, Seen], *, date: str, commit: str, postfix: str) -> None:
    """Write these ratios over what was recorded for this kind of machine; others stay as they are."""
    machines = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    ours = machines.setdefault(kind, {})
    for name, seen in found.items():
        ratio, low, high = (round(value, 4) for value in (seen.median, seen.low, seen.high))
        ours[name] = asdict(
            Recorded(
                ratio=ratio, low=low, high=high, turns=seen.turns, date=date, commit=commit, postfix=postfix
            )
        )
    text = json.dumps(machines, ensure_ascii=False, indent=2, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")
