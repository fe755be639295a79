"""One automation: its graph with the runs at each step, its runs, and what is done to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from pillarbox.automations.changes import AutomationChanges, ChangedMeanwhile, edition_of
from pillarbox.automations.overview import views
from pillarbox.automations.overview.outline_queries import StepCount
from pillarbox.automations.overview.views import AutomationView, GraphOutline
from pillarbox.automations.runs.reading import STATUSES
from pillarbox.automations.wire import ChangedAutomation
from pillarbox.dashboard.automations.automation_list import HERE
from pillarbox.dashboard.automations.graph_image import (
    picture_file,
    picture_on,
    policy,
    states_of,
    taken_of,
    with_state,
)
from pillarbox.dashboard.automations.graph_svg import DrawnLine, DrawnStep
from pillarbox.dashboard.automations.step_words import detail_of
from pillarbox.dashboard.frame.code_samples import ApiExample
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screens import act, download, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import HEADERS, Form
from pillarbox.dashboard.texts import NAMES, t, use_language
from pillarbox.dashboard.texts.number_format import number
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.audit import Act

ONE: Final = f"{HERE}/{{automation_id}}"
ROWS: Final = 50
"""Steps that a page lists."""

PICTURE_KEPT: Final = "private, max-age=3600"
SEGMENTS_NAMED: Final = 20
"""So many segments of a graph are shown by their names."""


@screen(ONE, title="automation.title", query={"from": int, "done": str})
async def show(visit: Visit) -> Reply[Html]:
    return await automation_page(visit)


@screen(
    f"{ONE}/runs",
    title="automation.runs",
    query={"status": str, "after": str, "before": str, "done": str},
)
async def runs(visit: Visit) -> Reply[Html]:
    """Show the runs of an automation, the newest first, all or those of a state."""
    automation_id, here = visit.request.uuid("automation_id"), here_of(visit)
    automation = await views.heading_of(visit.db, automation_id)
    status = visit.request.query.text("status")
    status = status if status in STATUSES else None
    digest = await views.digest_of_automations(visit.db, automation_id)
    page = await list_page(visit, f"/automations/{automation_id}/runs", f"{here}/runs", status=status)
    subjects = await views.subjects_of(visit.db, [UUID(row["id"]) for row in page.rows])
    counts = (await views.run_counts(visit.db, [automation_id], views.MOST_OF_ONE))[automation_id]
    return await visit.draw(
        "automations/runs.html",
        digest=digest,
        automation=automation,
        here=here,
        runs=page.rows,
        subjects={str(key): subject for key, subject in subjects.items()},
        paging=page.paging,
        counts=counts,
        limit=views.MOST_OF_ONE,
        only=status or "",
        statuses=STATUSES,
    )


@download(
    f"{ONE}/picture",
    title="automation.graph",
    query={"version": int, "states": str, "taken": str, "seen": str, "language": str},
)
async def show_picture(visit: Visit) -> Reply[Html]:
    """Show the graph of a version as an image: with the states of a run, or with figures where `seen` is
    given."""
    automation_id, query = visit.request.uuid("automation_id"), visit.request.query
    if (code := query.text("language")) in NAMES:
        use_language(code, None)
    heading = await views.heading_of(visit.db, automation_id)
    asked = query.text("version")
    number = version_number(asked) if asked else heading.version
    version = await views.version_of(visit.db, automation_id, number)
    graph = await views.outlined(version.steps, version.connections)
    counts: Mapping[int, StepCount] = {}
    if query.text("seen"):
        most_counted = views.runs_counted(len(graph.steps))
        counts = await views.step_counts(visit.db, automation_id, version.version, most_counted)
    steps = _drawn_steps(graph, await details_of(visit, graph), counts)
    if states := states_of(query.text("states") or "", len(steps)):
        steps = [with_state(step, state) for step, state in zip(steps, states, strict=True)]
    taken = taken_of(query.text("taken") or "", len(graph.connections))
    lines = [DrawnLine(*line, is_taken) for line, is_taken in zip(graph.connections, taken, strict=True)]
    body = await picture_file(t("automation.graph_of", name=heading.name), steps, lines)
    headers = {"content-security-policy": policy()}
    if asked:
        headers["cache-control"] = PICTURE_KEPT
    return Reply(body, 200, {**HEADERS, **headers}, "image/svg+xml")


@download(f"{ONE}/json", title="automation.json", query={"version": int})
async def save_json(visit: Visit) -> Reply[Html]:
    """Save the automation as a file that can be read in again."""
    automation_id = visit.request.uuid("automation_id")
    asked = visit.request.query.text("version")
    text = await views.graph_json(visit.db, automation_id, version_number(asked) if asked else None)
    return visit.save(f"automation-{automation_id}.json", text, "application/json")


@act(f"{ONE}/status", title="automation.switch", back=HERE, records=Act.AUTOMATION_CHANGED)
async def switch(visit: Visit, form: Form) -> Reply[Html]:
    """Enable or disable the automation. It is enabled only as the page has shown it."""
    status = "disabled" if form.get("status") == "disabled" else "enabled"
    visit.acts_on(visit.request.param("automation_id"), status=status)
    try:
        if status == "enabled":
            await _enable(visit, form.get("base"))
        else:
            await visit.patch(api_of(visit), {"status": status})
    except NotFound:
        raise
    except ChangedMeanwhile as changed:
        return await automation_page(visit, status=changed.status, problem=t("automation.changed"))
    except Problem as problem:
        return await automation_page(visit, status=problem.status, problem=problem.message)
    return visit.to(here_of(visit), done=f"automation_{status}")


async def _enable(visit: Visit, base: str) -> None:
    wanted = parse(ChangedAutomation, {"status": "enabled"})
    changes = visit.request.use(AutomationChanges)
    async with visit.change() as db:
        await changes.change(db, visit.request.uuid("automation_id"), wanted, edition=base)


@act(f"{ONE}/stop", title="automation.stop", back=HERE, records=Act.AUTOMATION_STOPPED)
async def stop(visit: Visit, _: Form) -> Reply[Html]:
    """Disable the automation and cancel its runs."""
    await visit.post(f"{api_of(visit)}/stop")
    return visit.to(here_of(visit), done="automation_stopped")


@act(f"{ONE}/duplicate", title="automation.duplicate", back=HERE, records=Act.AUTOMATION_CREATED)
async def duplicate(visit: Visit, _: Form) -> Reply[Html]:
    """Create a copy that is disabled, and show it."""
    visit.acts_on(None)
    answer = await visit.post(f"{api_of(visit)}/duplicate")
    return visit.to(f"{HERE}/{answer['id']}", done="automation_created")


@act(f"{ONE}/delete", title="automation.delete", back=HERE, records=Act.AUTOMATION_DELETED)
async def delete(visit: Visit, form: Form) -> Reply[Html]:
    """Delete the automation, if its name was typed."""
    heading = await views.heading_of(visit.db, visit.request.uuid("automation_id"))
    if form.get("typed_name").strip() != heading.name.strip():
        return await automation_page(visit, status=422, problem=t("automation.typed_wrong"))
    visit.acts_on(visit.request.param("automation_id"), name=heading.name)
    await visit.delete(api_of(visit))
    return visit.to(HERE, done="automation_deleted")


async def automation_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    """Show the screen of one automation."""
    automation_id = visit.request.uuid("automation_id")
    digest = await views.digest_of_automations(visit.db, automation_id)
    view = await views.view_of(visit.db, automation_id)
    visit.calls.append(ApiExample("GET", f"/automations/{automation_id}", {}, None))
    most_counted = views.runs_counted(len(view.graph.steps))
    counts = await views.step_counts(visit.db, automation_id, view.version, most_counted)
    totals = (await views.run_counts(visit.db, [automation_id], views.MOST_OF_ONE))[automation_id]
    details = await details_of(visit, view.graph)
    start = start_of(visit, len(details))
    counted = next(iter(counts.values()), None)
    return await visit.draw(
        "automations/one.html",
        status=status,
        problem=problem,
        digest=digest,
        automation=view,
        edition=edition_of(view.name, view.status, view.version),
        here=here_of(visit),
        picture=await picture_on(
            here_of(visit),
            view.version,
            t("automation.graph_of", name=view.name),
            _drawn_steps(view.graph, details, counts),
            [DrawnLine(*connection) for connection in view.graph.connections],
            seen=digest,
        ),
        steps=_rows(view, details, counts)[start : start + ROWS],
        start=start,
        pages=pages_of(len(details)),
        rows=ROWS,
        totals=totals,
        limit=views.MOST_OF_ONE,
        counted=counted,
        is_part=counted is not None and sum(totals.values()) > most_counted,
        statuses=STATUSES,
    )


async def details_of(visit: Visit, graph: GraphOutline) -> list[str]:
    """Return what each step does in few words."""
    names = await segment_names(
        visit, [str((step.config or {}).get("segment_id")) for step in graph.steps if step.type == SEGMENT]
    )
    return [detail_of(step, names) for step in graph.steps]


SEGMENT: Final = "add_to_segment"


async def segment_names(visit: Visit, ids: Sequence[str]) -> Mapping[str, str]:
    """Return the names of these segments by their ids, of the first `SEGMENTS_NAMED` that exist."""
    names = {}
    for segment_id in [one for one in dict.fromkeys(ids) if well_formed(one)][:SEGMENTS_NAMED]:
        try:
            segment = await visit.find(f"/segments/{segment_id}", shown=False)
        except Problem:
            continue
        if segment is not None:
            names[segment_id] = segment["name"]
    return names


def pages_of(count: int) -> list[tuple[int, int]]:
    """Return the first and the last place of each page of a list of steps, where it has several."""
    return [(one, min(one + ROWS, count)) for one in range(0, count, ROWS)] if count > ROWS else []


def start_of(visit: Visit, count: int) -> int:
    """Return the first place of the page of steps that the address names."""
    asked = visit.request.query.text("from") or ""
    start = int(asked) if asked.isdecimal() and len(asked) < 4 else 0
    return start // ROWS * ROWS if start < count else 0


def _drawn_steps(
    graph: GraphOutline, details: Sequence[str], counts: Mapping[int, StepCount]
) -> list[DrawnStep]:
    ends = ended_at(graph, counts)
    figures = [figures_of(counts.get(place), ends.get(place, 0)) for place in range(len(details))]
    return [
        DrawnStep(
            kind=step.type,
            key=step.key,
            detail=details[position],
            figures=figures[position],
            tone=_tone(counts.get(position)),
            href=f"#step-{position}",
            title=f"{t('automation.type.' + step.type)}: {step.key}. {figures[position]}",
        )
        for position, step in enumerate(graph.steps)
    ]


def ended_at(graph: GraphOutline, counts: Mapping[int, StepCount]) -> Mapping[int, int]:
    """Return how many runs came to an end of the graph at each step: no connection leads on there."""
    followed = {(source, outcome) for source, _, outcome in graph.connections}
    ends = {}
    for position, count in counts.items():
        match graph.steps[position].type:
            case "condition":
                ways = {"condition_met": count.met, "condition_not_met": count.unmet}
            case "wait_for_event":
                ways = {"event_received": count.came, "timeout": count.late}
            case _:
                ways = {"default": count.passed}
        without_a_way = count.passed - sum(ways.values())
        ends[position] = without_a_way + sum(
            runs for way, runs in ways.items() if (position, way) not in followed
        )
    return ends


def figures_of(count: StepCount | None, ended: int) -> str:
    """Return the figures of a step in a line."""
    if count is None:
        return ""
    parts = [t("automation.figure.reached", count=number(count.reached))]
    for name, value in (("waiting", count.waiting), ("failed", count.failed), ("ended", ended)):
        if value:
            parts.append(t(f"automation.figure.{name}", count=number(value)))
    return " · ".join(parts)


def _tone(count: StepCount | None) -> str:
    if count is None:
        return "quiet"
    return "bad" if count.failed else "info" if count.waiting else "good" if count.reached else "quiet"


def _rows(
    view: AutomationView, details: Sequence[str], counts: Mapping[int, StepCount]
) -> list[dict[str, Any]]:
    """Return the steps for the table that says what the picture shows."""
    ways, ends = leading(view.graph), ended_at(view.graph, counts)
    return [
        {
            "position": position,
            "key": step.key,
            "type": step.type,
            "detail": details[position],
            "ways": ways.get(position, []),
            "count": counts.get(position),
            "ended": ends.get(position, 0),
        }
        for position, step in enumerate(view.graph.steps)
    ]


def leading(graph: GraphOutline) -> Mapping[int, list[tuple[str, int, str]]]:
    """Return where each step leads: outcome, position and key of the next step."""
    ways: dict[int, list[tuple[str, int, str]]] = {}
    for source, target, outcome in graph.connections:
        ways.setdefault(source, []).append((outcome, target, graph.steps[target].key))
    return ways


def version_number(text: str) -> int:
    """Return the number of a version that an address or a form names; 404 where there can be none of it."""
    if not text.isdecimal() or not 0 < int(text[:10]) < 2**31:
        raise NotFound("Version")
    return int(text[:10])


def here_of(visit: Visit) -> str:
    """Return the address of the automation's screen."""
    return f"{HERE}/{visit.request.uuid('automation_id')}"


def api_of(visit: Visit) -> str:
    """Return the automation's path of the API."""
    return f"/automations/{visit.request.uuid('automation_id')}"
