"""The Grafana dashboard: well formed, and it asks only for what there is."""

from __future__ import annotations

import pytest

from kit.metrics_table import documented, series_of
from kit.monitoring import dashboard, panels, queries
from kit.promql import NotPromQL, Selector, asked

OF_PROMETHEUS = {"up": frozenset[str]()}
OF_EVERY_SERIES = frozenset({"job", "instance"})


def unknown(expression: str) -> list[str]:
    """What an expression asks for that no metric of ours has: a series, or a label."""
    series = series_of(documented()) | OF_PROMETHEUS
    found = asked(expression)
    wrong = [name for name in found.names if name not in series]
    known = frozenset().union(*(series.get(name, frozenset()) for name in found.names)) | OF_EVERY_SERIES
    for selector in found.selectors:
        allowed = series.get(selector.name, frozenset()) | OF_EVERY_SERIES
        wrong += [f"{selector.name}{{{label}}}" for label in selector.labels - allowed]
    return sorted(wrong + [f"by ({label})" for label in found.grouped - known])


def test_expressions_are_read() -> None:
    found = asked('sum by (job, le) (rate(a_bucket{le="0.1", x=~"b|c"}[5m])) / on (job) max(b) > 6 * 3600')
    assert found.selectors == (
        Selector("a_bucket", frozenset({"le", "x"})),
        Selector("b", frozenset()),
    )
    assert found.grouped == {"job", "le"}
    assert found.functions == {"sum", "rate", "max"}
    with pytest.raises(NotPromQL):
        asked("a ? b")


def test_a_series_or_label_that_does_not_exist_is_found() -> None:
    assert unknown("sum by (route) (pillarbox_queue_items)") == ["by (route)"]
    assert unknown('pillarbox_queue_items{outcome="x"}') == ["pillarbox_queue_items{outcome}"]
    assert unknown("pillarbox_queue_length") == ["pillarbox_queue_length"]


def test_every_panel_asks_for_metrics_of_ours() -> None:
    wrong = {title: missing for title, query in queries() if (missing := unknown(query))}
    assert wrong == {}


def test_every_query_is_of_the_installation_that_was_chosen() -> None:
    loose = [
        (panel["title"], selector.name)
        for panel in panels()
        for target in panel["targets"]
        for selector in asked(target["expr"]).selectors
        if "job" not in selector.labels
    ]
    assert loose == []


def test_every_metric_is_on_the_dashboard() -> None:
    series = set().union(*(asked(query).names for _, query in queries()))
    shown = {name for name in documented() if any(one.startswith(name) for one in series)}
    assert documented().keys() - shown == set()


def test_the_dashboard_is_one_that_grafana_imports() -> None:
    board = dashboard()
    assert board["uid"] == "pillarbox"
    assert board["schemaVersion"] >= 36
    assert [variable["name"] for variable in board["templating"]["list"]] == ["datasource", "job"]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in panels():
        assert panel["type"] in ("timeseries", "stat")
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters))
        assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])


def test_no_panel_lies_on_another() -> None:
    taken: dict[tuple[int, int], int] = {}
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["id"]) == panel["id"]


def test_the_rows_are_read_from_top_to_bottom() -> None:
    rows = [panel["title"] for panel in dashboard()["panels"] if panel["type"] == "row"]
    assert rows == [
        "Is mail going out?",
        "What waits, and why?",
        "Who refuses?",
        "Accept: API and SMTP",
        "Webhooks",
        "Database and storage",
        "Processes",
    ]
