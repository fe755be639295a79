"""The guide lists every Prometheus metric with its type, its labels and its meaning (OPS-06)."""

from __future__ import annotations

import re
from pathlib import Path

from kit.metrics_table import GUIDE, defined, documented

SOURCE = Path(__file__).parents[2] / "src"
PERSONAL = {"team", "team_id", "email", "address", "recipient", "sender", "key", "user", "path", "id"}


def test_the_guide_lists_what_the_program_shows_and_nothing_else() -> None:
    """OPS-06."""
    assert documented() == defined()


def test_a_metric_is_listed_once() -> None:
    names = re.findall(r"^\| `(pillarbox_\w+)` \| \w+ \|", GUIDE.read_text(), re.M)
    assert len(names) == len(set(names))


def test_no_label_names_a_person_a_team_or_a_key() -> None:
    labels = {label for described in defined().values() for label in described.labels}
    assert not labels & PERSONAL


def test_every_line_of_the_log_that_the_guide_explains_is_written_somewhere() -> None:
    text = GUIDE.read_text()
    events = set(re.findall(r"`([a-z_]+\.[a-z_]+)`", text)) - {"alerts.yaml"}
    written = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    assert len(events) > 10
    assert [event for event in sorted(events) if f'"{event}"' not in written] == []
