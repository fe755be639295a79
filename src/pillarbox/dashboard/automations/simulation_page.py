"""The simulation: what a run would do for a contact, beside the graph. Nothing is sent or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from markupsafe import Markup

from pillarbox.automations.changes import found
from pillarbox.automations.graphs.durations import duration
from pillarbox.automations.graphs.graph import Graph, Trigger
from pillarbox.automations.overview import views
from pillarbox.automations.simulation import simulating
from pillarbox.automations.simulation.run import SimulatedEvent, SimulatedRun, SimulationStep
from pillarbox.dashboard.automations.automation_list import HERE
from pillarbox.dashboard.automations.automation_page import ONE, details_of, here_of
from pillarbox.dashboard.automations.graph_image import picture_on, with_state
from pillarbox.dashboard.automations.graph_svg import DrawnLine, DrawnStep
from pillarbox.dashboard.frame.json_text import parsed_here
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.pages import screen_text, size
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.emails.permitted_senders import PermittedSenders
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address
from pillarbox.kernel.wire.problems import Invalid, Problem
from pillarbox.people.roles import Right

SIMULATE: Final = f"{ONE}/simulate"
LARGEST: Final = 512 * 1024
"""Octets of a graph that is simulated here; larger ones by the command."""

LARGEST_FORM: Final = 400 * 1024
MOST_EVENTS: Final = 20
LONGEST_BODY: Final = 4000
SHORT_BODY: Final = 200
BODIES: Final = 10_000
"""Characters of a mail that are shown, and of all mails before further ones are shown in short."""

LOGGED: Final = 80
"""Entries of the log on a page."""

EXAMPLE: Final = '2 days: order.paid {"amount": 5}'
FIELDS: Final = ("contact", "trigger", "payload", "then")


@screen(SIMULATE, title="simulation.title", right=Right.USE, query={"contact": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show the form."""
    contact = visit.request.query.text("contact") or visit.visitor.email
    return await simulation_page(visit, {"contact": contact, "trigger": "", "payload": "{}", "then": ""})


@act(SIMULATE, title="simulation.title", back=HERE, limit=LARGEST_FORM)
async def simulate(visit: Visit, form: Form) -> Reply[Html]:
    """Walk through the newest graph for the contact."""
    given = {name: form.get(name) for name in FIELDS}
    automation = await found(visit.db, visit.request.uuid("automation_id"))
    if automation.stored.octets > LARGEST:
        text = t("simulation.too_large", size=size(automation.stored.octets), id=str(automation.id))
        return await simulation_page(visit, given, status=422, problem=text)
    try:
        run = await _run(visit, await automation.graph(), given)
    except Problem as problem:
        return await simulation_page(visit, given, status=problem.status, problem=problem.message)
    start = form.get("from")
    is_number = start.isdecimal() and len(start) < 4
    return await simulation_page(visit, given, run=run, start=int(start) if is_number else 0)


async def _run(visit: Visit, graph: Graph, given: Mapping[str, str]) -> SimulatedRun:
    now = visit.request.at
    keys = [step.key for step in graph.triggers]
    start = graph.positions[given["trigger"] if given["trigger"] in keys else keys[0]]
    config = graph.steps[start].config
    assert isinstance(config, Trigger)
    try:
        address = email_address(given["contact"].strip())
    except NotAnAddress as wrong:
        raise Invalid(t("simulation.no_address", reason=wrong.reason)) from None
    first = await simulating.accepted(visit.db, now, config.event_name, _payload(given["payload"]))
    lines = [line.strip() for line in given["then"].splitlines() if line.strip()]
    if len(lines) > MOST_EVENTS:
        raise Invalid(t("simulation.too_many", count=MOST_EVENTS))
    later = [await _later(visit, now, line) for line in lines]
    new_id, senders = visit.request.use(Ids).new(), visit.request.use(PermittedSenders)
    return await simulating.simulated(visit.db, senders, graph, start, address, new_id, [first, *later])


async def _later(visit: Visit, now: datetime, line: str) -> SimulatedEvent:
    """Return the event of a line `2 days: order.paid {"amount": 5}`."""
    time, _, rest = line.partition(":")
    name, brace, payload = rest.partition("{")
    if not name.strip():
        raise Invalid(t("simulation.no_event", line=line[:80]))
    length = duration(time, "then").length
    return await simulating.accepted(visit.db, now + length, name.strip(), _payload(brace + payload))


def _payload(text: str) -> Mapping[str, Any]:
    try:
        payload = parsed_here(text) if text.strip() else {}
    except ValueError:
        payload = None
    if not isinstance(payload, dict):
        raise Invalid(t("simulation.no_json"))
    return payload


async def simulation_page(
    visit: Visit,
    given: Mapping[str, str],
    *,
    run: SimulatedRun | None = None,
    start: int = 0,
    status: int = 200,
    problem: str | None = None,
) -> Reply[Html]:
    """Show the form, with the run beside it."""
    view = await views.view_of(visit.db, visit.request.uuid("automation_id"))
    details = await details_of(visit, view.graph)
    return await visit.draw(
        "automations/simulation.html",
        status=status,
        problem=problem,
        automation=view,
        here=here_of(visit),
        given=given,
        example=EXAMPLE,
        triggers=[step.key for step in view.graph.steps if step.type == "trigger"],
        awaited=_awaited(view),
        picture=await _picture(view, details, run, here_of(visit)),
        run=run,
        log=[] if run is None else _log(run, start),
        further=start + LOGGED if run is not None and len(run.happened) > start + LOGGED else None,
        ended_after=None if run is None or run.ended_at is None else span_words(run.ended_at - run.event.at),
    )


def _awaited(view: views.AutomationView) -> list[str]:
    """Return the names of the events that the graph waits for."""
    names = [
        str((step.config or {}).get("event_name"))
        for step in view.graph.steps
        if step.type == "wait_for_event"
    ]
    return list(dict.fromkeys(names))[:10]


async def _picture(
    view: views.AutomationView, details: Sequence[str], run: SimulatedRun | None, here: str
) -> Markup:
    statuses = run.statuses() if run is not None else None
    steps = []
    for position, step in enumerate(view.graph.steps):
        state = statuses[position] if statuses is not None else None
        words = t(f"state.{state}") if state else ""
        steps.append(
            DrawnStep(
                kind=step.type,
                key=step.key,
                detail=details[position],
                figures="",
                tone="quiet",
                href="#log" if run is not None else "#contact",
                title=f"{t('automation.type.' + step.type)}: {step.key}. {words}",
            )
        )
    lines = [
        DrawnLine(source, target, outcome, run is not None and _is_taken(run, source, target, outcome))
        for source, target, outcome in view.graph.connections
    ]
    if statuses is not None:
        steps = [with_state(step, state) for step, state in zip(steps, statuses, strict=True)]
    label = t("automation.graph_of", name=view.name)
    return await picture_on(here, view.version, label, steps, lines, states=statuses or ())


def _is_taken(run: SimulatedRun, source: int, target: int, outcome: str) -> bool:
    before = run.steps.get(source)
    if before is None or target not in run.steps or before.status not in ("completed", "skipped"):
        return False
    output = before.output or {}
    if "result" in output:
        return outcome == ("condition_met" if output["result"] else "condition_not_met")
    if "outcome" in output:
        return bool(outcome == output["outcome"])
    return outcome == "default"


def _log(run: SimulatedRun, start: int) -> list[dict[str, Any]]:
    """Return a part of the log as the page shows it: the first mails whole, further ones in short."""
    entries, shown = [], 0
    for step in run.happened[start : start + LOGGED]:
        entries.append(_entry(run, step, LONGEST_BODY if shown < BODIES else SHORT_BODY))
        shown += len(entries[-1]["body"] or "")
    return entries


def _entry(run: SimulatedRun, entry: SimulationStep, longest: int) -> dict[str, Any]:
    """Return one entry of the log as the page shows it."""
    step = None if entry.position is None else run.graph.steps[entry.position]
    mail, error = entry.mail, entry.error
    body = None if mail is None else screen_text(mail.text or mail.html, longest)[0]
    output = entry.output or {}
    words = "result" if "result" in output else None
    return {
        "after": span_words(entry.at - run.event.at),
        "key": entry.event if step is None else step.key,
        "type": None if step is None else step.type,
        "status": entry.status,
        "error": None if error is None else f"{error.name}: {error.message}",
        "outcome": output.get("outcome"),
        "result": None if words is None else "condition_met" if output["result"] else "condition_not_met",
        "until": None if entry.due_at is None else span_words(entry.due_at - run.event.at),
        "mail": mail,
        "body": body,
    }


def span_words(length: timedelta) -> str:
    """Return a length of time as people say it: at most two units."""
    seconds = round(length.total_seconds())
    parts = []
    units = {unit: t(f"simulation.unit.{unit}") for unit in ("d", "h", "min", "s")}
    for unit, count in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        amount, seconds = divmod(seconds, count)
        if amount:
            parts.append(f"{amount} {units[unit]}")
    return " ".join(parts[:2]) or f"0 {units['s']}"
