"""The dashboard and the alerts that the project ships, read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy/grafana/pillarbox.json"
ALERTS = ROOT / "deploy/prometheus/alerts.yaml"
JOB = "pillarbox"


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def panels() -> list[dict[str, Any]]:
    """Return the panels that show something, from top to bottom."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str]]:
    """Yield every query of a panel, with the panel's title; the dashboard's variables have values."""
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"].replace("$job", JOB).replace("$__rate_interval", "1m")
            yield panel["title"], expression


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]
