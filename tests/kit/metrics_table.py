"""The Prometheus metrics as the guide lists them, as the program defines them, as an answer shows them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from pillarbox.kernel.observability.metrics import all_numbers
from pillarbox.kernel.process.process_metrics import MeasuredProcess, ProcessMetrics

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/guide/monitoring.md"
PROGRAM = ("pillarbox.application", "pillarbox.worker", "pillarbox.kernel.process.supervisor")
"""Whoever imports these has every metric."""

ROW = re.compile(r"^\| `(pillarbox_\w+)` \| (\w+) \| ([^|]+) \| ([^|]+) \|$", re.M)
PARTS = {"histogram": ("_bucket", "_sum", "_count")}


class Described(NamedTuple):
    """A metric: its type, and the labels that it has."""

    kind: str
    labels: frozenset[str]


def documented() -> dict[str, Described]:
    """Return the table of the guide."""
    return {
        name: Described(kind, frozenset(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels, _ in ROW.findall(GUIDE.read_text())
    }


def defined() -> dict[str, Described]:
    """Return what the program may show; names as in an answer, so counters end with `_total`."""
    for module in PROGRAM:
        importlib.import_module(module)
    found = {}
    for numbers in all_numbers():
        name = numbers.name.removesuffix("_total")
        if name.startswith("pillarbox_") and not name.startswith("pillarbox_test_"):
            shown = f"{name}_total" if numbers.kind == "counter" else name
            found[shown] = Described(numbers.kind, frozenset(numbers.labels))
    for family in ProcessMetrics(lambda: [MeasuredProcess("worker", "0", 1)], ROOT).collect():
        shown = f"{family.name}_total" if family.type == "counter" else family.name
        found[shown] = Described(family.type, frozenset({"process", "index"}))
    return found


def series_of(table: dict[str, Described]) -> dict[str, frozenset[str]]:
    """Return every name of a series with its labels: histograms have three."""
    found = {}
    for name, described in table.items():
        for part in PARTS.get(described.kind, ("",)):
            found[name + part] = described.labels | ({"le"} if part == "_bucket" else set())
    return found


def shown(page: str) -> dict[str, Described]:
    """Return what an answer of `/metrics` describes; the labels are those of its samples."""
    found = {}
    for family in text_string_to_metric_families(page):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = Described(family.type, frozenset(labels))
    return found


def with_samples(page: str) -> set[str]:
    """Return the names of all series that an answer has a number for."""
    families = text_string_to_metric_families(page)
    return {sample.name for family in families for sample in family.samples}
