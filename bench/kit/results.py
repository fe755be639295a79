"""Results with their limits, printed as text for people and as one JSON line each for programs."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.kit import machine


@dataclass(frozen=True, slots=True)
class Limit:
    """What a result must reach (`at_least`) or stay under."""

    value: float
    at_least: bool

    def ratio(self, result: float) -> float:
        """1 or more where the limit is kept."""
        if self.at_least:
            return result / self.value
        return self.value / result if result > 0 else float("inf")


def at_least(value: float) -> Limit:
    return Limit(value, True)


def at_most(value: float) -> Limit:
    return Limit(value, False)


class Report:
    """The results of one measurement. `fault` says that something is wrong and not merely slow."""

    def __init__(self, bench: str, *, short: bool, folder: Path) -> None:
        self.bench = bench
        self.short = short
        self.folder = folder
        self.missed = 0
        self.faults = 0
        self._load = os.getloadavg()[0]

    def result(self, name: str, value: float, unit: str, limit: Limit | None = None, note: str = "") -> None:
        """Print one result; its ratio is 1.00 or more where the limit is kept."""
        line: dict[str, object] = {
            "bench": self.bench,
            "figure": name,
            "value": round(value, 3),
            "unit": unit,
        }
        text = f"  {name:<58} {shown(value):>10} {unit:<11}"
        if limit is not None:
            ratio = limit.ratio(value)
            self.missed += ratio < 1
            sign = "≥" if limit.at_least else "≤"
            text += f" {sign} {shown(limit.value):<7} ratio {ratio:5.2f}{'' if ratio >= 1 else '  MISSED'}"
            line |= {"limit": limit.value, "at_least": limit.at_least, "ratio": round(ratio, 3)}
        if note:
            text += f"  ({note})"
            line["note"] = note
        print(text.rstrip(), flush=True)
        self._json({**line, "short": self.short, "load_before": self._load})

    def note(self, text: str) -> None:
        print(f"  · {text}", flush=True)

    def fault(self, text: str) -> None:
        """Something that must not be: a lost mail, an error answer, an error in the server's log."""
        self.faults += 1
        print(f"  ! {text}", flush=True)
        self._json({"bench": self.bench, "fault": text})

    def skip(self, what: str, reason: str) -> None:
        print(f"  - {what} skipped: {reason}", flush=True)
        self._json({"bench": self.bench, "skipped": what, "reason": reason})

    def _json(self, line: dict[str, object]) -> None:
        if path := os.environ.get("BENCH_JSON"):
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def shown(value: float) -> str:
    """A number as people read it."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def run(bench: str, measure: Callable[[Report], None], meaning: str | None) -> int:
    """Measure in a fresh folder; the exit status is 1 for a fault, or for a limit that a full run missed."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{bench}", description=meaning)
    parser.add_argument("--short", action="store_true", help="small amounts, to see that everything runs")
    short = parser.parse_args().short
    began = time.monotonic()
    # Without this the end by a signal would leave servers behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="pillarbox-bench-", ignore_cleanup_errors=True) as name:
        report = Report(bench, short=short, folder=Path(name))
        print(f"== {bench}{' (short)' if short else ''}", flush=True)
        for line in machine.facts(report.folder):
            report.note(line)
        measure(report)
    print(
        f"  {report.missed} limits missed, {report.faults} faults, {time.monotonic() - began:.0f} s, "
        f"load {report._load:.2f} before and {os.getloadavg()[0]:.2f} after",
        flush=True,
    )
    return 1 if report.faults or (report.missed and not short) else 0


def ended(bench: str, measure: Callable[[Report], None], meaning: str | None) -> None:
    """`run`, then leave with its status."""
    sys.exit(run(bench, measure, meaning))
