"""One run: its way through the graph, and why it waits or ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from markupsafe import Markup

from pillarbox.automations.overview import views
from pillarbox.automations.overview.outline_queries import RunDetail, StepWait
from pillarbox.automations.overview.views import GraphOutline
from pillarbox.dashboard.automations.automation_page import (
    ONE,
    ROWS,
    details_of,
    here_of,
    pages_of,
    start_of,
)
from pillarbox.dashboard.automations.graph_image import picture_on, with_state
from pillarbox.dashboard.automations.graph_svg import DrawnLine, DrawnStep
from pillarbox.dashboard.frame.json_text import indented_text
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.instants import iso_style

PASSED: Final = ("completed", "skipped")
PAYLOAD_SHOWN: Final = 20_000


@screen(f"{ONE}/runs/{{run_id}}", title="run.title", query={"from": int})
async def show(visit: Visit) -> Reply[Html]:
    automation_id, run_id = visit.request.uuid("automation_id"), visit.request.uuid("run_id")
    digest = await views.digest_of_run(visit.db, run_id)
    run = await visit.get(f"/automations/{automation_id}/runs/{run_id}")
    heading = await views.heading_of(visit.db, automation_id)
    detail = await views.run_detail(visit.db, automation_id, run_id)
    graph = await views.outlined(detail.steps, detail.connections)
    waits = await views.waits_of(visit.db, UUID(run["id"])) if run["status"] == "running" else {}
    words = await details_of(visit, graph)
    positions = {step.key: position for position, step in enumerate(graph.steps)}
    rows = [
        {
            **step,
            "position": positions[step["key"]],
            "detail": words[positions[step["key"]]],
            "wait": waits.get(positions[step["key"]]),
        }
        for step in run["steps"]
    ]
    reached = [row for row in rows if row["status"] != "pending" and row["started_at"] is not None]
    start = start_of(visit, len(reached))
    return await visit.draw(
        "automations/run.html",
        digest=digest,
        automation=heading,
        here=here_of(visit),
        run=run,
        detail=detail,
        payload=indented_text(detail.payload)[:PAYLOAD_SHOWN],
        why=reason_of(run, rows, waits),
        picture=await picture_of(visit, graph, words, rows, detail),
        reached=sorted(reached, key=lambda row: (row["started_at"], row["position"]))[start : start + ROWS],
        start=start,
        pages=pages_of(len(reached)),
        others=[row for row in rows if row not in reached],
        is_newest=detail.version == heading.version,
    )


def reason_of(
    run: Mapping[str, Any], rows: list[dict[str, Any]], waits: Mapping[int, StepWait]
) -> list[tuple[str, Mapping[str, str], str | None]]:
    """Return why the run is where it is: keys of texts, what is put into them, and a time behind the text."""
    if run["status"] == "running":
        found = [_wait_of(row, waits[row["position"]]) for row in rows if row["position"] in waits]
        return found or [("run.why.starting", {}, None)]
    if run["status"] == "failed":
        return [
            ("run.why.failed", {"step": row["key"], "problem": row["error"]["message"]}, None)
            for row in rows
            if row["error"] is not None
        ]
    return [(f"run.why.{run['status']}", {}, None)]


def _wait_of(row: Mapping[str, Any], wait: StepWait) -> tuple[str, Mapping[str, str], str | None]:
    values = {"step": row["key"]}
    if wait.reason is not None:
        return "run.why.trouble", {**values, "problem": wait.reason}, iso_style(wait.due_at)
    if wait.event_name is not None:
        return "run.why.event", {**values, "event": wait.event_name}, iso_style(wait.due_at)
    return ("run.why.delay" if wait.waiting else "run.why.due"), values, iso_style(wait.due_at)


async def picture_of(
    visit: Visit,
    graph: GraphOutline,
    words: list[str],
    in_order: list[dict[str, Any]],
    detail: RunDetail,
) -> Markup:
    """Return the graph with the states of a run's steps, and the lines that it took."""
    rows = {row["position"]: row for row in in_order}
    states = [str(rows[position]["status"]) for position in range(len(graph.steps))]
    steps = [
        with_state(
            DrawnStep(
                kind=step.type,
                key=step.key,
                detail=words[position],
                figures="",
                tone="quiet",
                href=f"#step-{position}",
                title=f"{t('automation.type.' + step.type)}: {step.key}. {t('state.' + states[position])}",
            ),
            states[position],
        )
        for position, step in enumerate(graph.steps)
    ]
    lines = [
        DrawnLine(source, target, outcome, _is_taken(rows[source], rows[target], outcome))
        for source, target, outcome in graph.connections
    ]
    label = t("run.graph_of", id=str(detail.id))
    return await picture_on(here_of(visit), detail.version, label, steps, lines, states=states)


def _is_taken(source: Mapping[str, Any], target: Mapping[str, Any], outcome: str) -> bool:
    """Return whether the run went from one step to the other."""
    if source["status"] not in PASSED or target.get("started_at") is None:
        return False
    output = source["output"] or {}
    if "result" in output:
        return outcome == ("condition_met" if output["result"] else "condition_not_met")
    if "outcome" in output:
        return bool(outcome == output["outcome"])
    return outcome == "default"
