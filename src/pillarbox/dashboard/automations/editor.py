"""The editor: the graph as a picture, one step's form beside it, and a form around both.

Each button sends the whole form. What is typed goes into the draft that the form carries, and then the button
does its part. Saving asks the API, and says whether somebody else was quicker.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pillarbox.automations.changes import AutomationChanges, ChangedMeanwhile, edition_of
from pillarbox.automations.graphs.graph import MAIL_EVENTS, StepType
from pillarbox.automations.graphs.wire import AutomationStep
from pillarbox.automations.overview import views
from pillarbox.automations.wire import ChangedAutomation
from pillarbox.dashboard.automations.automation_list import HERE
from pillarbox.dashboard.automations.automation_page import ONE, here_of, segment_names
from pillarbox.dashboard.automations.drafts import (
    LARGEST,
    LARGEST_PACKED,
    NEW,
    DraftError,
    GraphDraft,
    draft_of,
    outcomes_of,
    unpacked,
)
from pillarbox.dashboard.automations.graph_image import MOST_INLINE
from pillarbox.dashboard.automations.graph_svg import DrawnLine, DrawnStep, drawn
from pillarbox.dashboard.automations.step_fields import FieldError, config_of, fields_of, typed_fields
from pillarbox.dashboard.automations.step_words import OPERATORS, words_of
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.pages import size
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

NEW_PATH: Final = f"{HERE}/new"
EDIT: Final = f"{ONE}/edit"
LARGEST_FORM: Final = LARGEST_PACKED + 600_000
CHOICES: Final = 100
"""Of templates, segments and topics the newest so many are offered."""

EXAMPLES: Final = {
    "variable": "{{event.plan}}",
    "name": "{{event.name}}",
    "property": "{{event.seats}}",
}
"""Fields that are read when a step begins, as hints show them."""

KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}", re.ASCII)
_PLACE: Final = re.compile(r"`(steps|connections)\[(\d{1,3})\]")
_NAMED: Final = re.compile(r"[Ss]tep `([^`]+)`")


@dataclass(slots=True)
class EditorState:
    """The draft, the place of the open step, and what was typed there where it has no place in the draft."""

    draft: GraphDraft
    open: int | None = None
    typed: Mapping[str, Any] | None = None
    typed_key: str | None = None
    problem: str | None = None
    status: int = 200
    is_conflict: bool = False


@screen(NEW_PATH, title="automation.new", words="automation.new.words", right=Right.USE)
async def new(visit: Visit) -> Reply[Html]:
    """Show the editor with a graph of one trigger."""
    draft = GraphDraft("")
    return await editor_page(visit, EditorState(draft, draft.add("trigger")))


@screen(EDIT, title="automation.edit", right=Right.USE, query={"step": int})
async def edit(visit: Visit) -> Reply[Html]:
    """Show the editor with the newest graph."""
    view = await views.view_of(visit.db, visit.request.uuid("automation_id"))
    if view.octets > LARGEST:
        text = t("automation.too_large", size=size(view.octets), limit=size(LARGEST))
        return await visit.draw("automations/too_large.html", here=here_of(visit), text=text, name=view.name)
    document = await visit.get(f"/automations/{view.id}")
    step = visit.request.query.text("step")
    place = int(step) if step and step.isdecimal() and len(step) < 4 else None
    state = EditorState(draft_of(document, edition_of(view.name, view.status, view.version)))
    state.open = place if place is not None and place < len(state.draft.steps) else None
    return await editor_page(visit, state)


@act(NEW_PATH, title="automation.new", back=NEW_PATH, records=Act.AUTOMATION_CREATED, limit=LARGEST_FORM)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Do what the pressed button says with a graph that is not stored yet."""
    state = worked_on(form)
    if state.status != 200 or form.get("do") != "save":
        return await editor_page(visit, state)
    draft = state.draft
    body = {"name": draft.name, "steps": draft.steps, "connections": draft.connections}
    visit.acts_on(None, name=draft.name)
    try:
        answer = await visit.post("/automations", body)
    except Problem as problem:
        return await editor_page(visit, refused(state, problem))
    return visit.to(f"{HERE}/{answer['id']}", done="automation_created")


@act(EDIT, title="automation.edit", back=HERE, records=Act.AUTOMATION_CHANGED, limit=LARGEST_FORM)
async def change(visit: Visit, form: Form) -> Reply[Html]:
    """Do what the pressed button says; with `save` the graph is stored as a new version."""
    automation_id = visit.request.uuid("automation_id")
    heading = await views.heading_of(visit.db, automation_id)
    state = worked_on(form)
    if state.status != 200 or form.get("do") not in ("save", "overwrite"):
        return await editor_page(visit, state)
    visit.acts_on(str(automation_id), name=state.draft.name)
    try:
        is_forced = form.get("do") == "overwrite"
        await save(visit, state.draft, state.draft.octets, is_forced=is_forced, was=heading.status)
    except ChangedMeanwhile:
        state.is_conflict = True
        return await editor_page(visit, refused(state, None))
    except Problem as problem:
        return await editor_page(visit, refused(state, problem))
    done = "automation_saved_disabled" if heading.status == "enabled" else "automation_saved"
    return visit.to(here_of(visit), done=done)


async def save(visit: Visit, draft: GraphDraft, octets: int, *, is_forced: bool, was: str) -> None:
    """Store name and graph, unless somebody has changed the automation since it was read. An enabled one is
    disabled. `octets` is about how large the graph is."""
    body: dict[str, Any] = {
        "name": draft.name,
        "steps": draft.steps,
        "connections": draft.connections,
    }
    if was == "enabled":
        body["status"] = "disabled"
    wanted = await in_thread_if_large(octets, parse, ChangedAutomation, body)
    changes = visit.request.use(AutomationChanges)
    async with visit.change() as db:
        await changes.change(
            db, visit.request.uuid("automation_id"), wanted, edition=None if is_forced else draft.base
        )


def worked_on(form: Form) -> EditorState:
    """Return the draft of a form with what was typed, after what the pressed button does; a problem where the
    typed text has no place in it."""
    try:
        draft = unpacked(form.get("draft"))
    except DraftError:
        empty = GraphDraft(form.get("name"))
        return EditorState(empty, problem=t("automation.no_draft"), status=422)
    draft.name = form.get("name").strip()
    state = EditorState(draft, _place(form.get("open"), draft))
    _take_typed(state, form)
    if state.problem is None:
        _press(state, form)
    return state


def _take_typed(state: EditorState, form: Form) -> None:
    """Put the fields of the open step into the draft."""
    if state.open is None:
        return
    step, key = state.draft.steps[state.open], form.get("key").strip()
    try:
        config = config_of(step["type"], form)
    except FieldError as refused_field:
        state.problem, state.status = str(refused_field), 422
    else:
        before, step["config"] = step["config"], config
        if state.draft.octets > LARGEST:
            step["config"] = before
            state.problem, state.status = t("automation.no_room", limit=size(LARGEST)), 422
    place = state.draft.position_of(key)
    if state.problem is None and KEY.fullmatch(key) is None:
        state.problem, state.status = t("automation.no_key"), 422
    elif state.problem is None and place not in (None, state.open):
        state.problem, state.status = t("automation.key_taken", step=key), 422
    elif state.problem is None and key != step["key"]:
        state.draft.rename(state.open, key)
    if state.problem is not None:
        state.typed, state.typed_key = typed_fields(step["type"], form), key


def _press(state: EditorState, form: Form) -> None:
    """Do what the button says: `open:2`, `add:2:timeout`, `remove:2` and so on."""
    verb, *rest = form.get("do").split(":")
    draft, place = state.draft, _place(rest[0], state.draft) if rest else None
    outcome = rest[1] if len(rest) > 1 else "default"
    if verb == "open_other":
        state.open = _place(form.get("other"), draft)
    elif verb == "trigger":
        state.open = draft.add("trigger")
    elif verb == "close":
        state.open = None
    elif place is None:
        return
    elif verb == "open":
        state.open = place
    elif verb == "add" and form.get(f"kind:{outcome}") in NEW:
        state.open = draft.add(cast(StepType, form.get(f"kind:{outcome}")), place, outcome)
    elif verb == "remove":
        draft.remove(place)
        state.open = None
    elif verb == "connect" and (target := draft.position_of(form.get(f"to:{outcome}"))) is not None:
        draft.connect(draft.steps[place]["key"], draft.steps[target]["key"], outcome)
    elif verb == "disconnect" and len(rest) > 2:
        draft.disconnect(draft.steps[place]["key"], ":".join(rest[2:]), outcome)


def refused(state: EditorState, problem: Problem | None) -> EditorState:
    """Return the same with what the API said, and the step open that it is about."""
    if problem is None:
        state.status = 409
        return state
    state.problem, state.status = problem.message, problem.status
    place, named = _PLACE.search(problem.message), _NAMED.search(problem.message)
    if place and place[1] == "steps":
        state.open = _place(place[2], state.draft)
    elif place and int(place[2]) < len(state.draft.connections):
        state.open = state.draft.position_of(state.draft.connections[int(place[2])]["from"])
    elif named:
        state.open = state.draft.position_of(named[1])
    return state


async def editor_page(visit: Visit, state: EditorState) -> Reply[Html]:
    """Show the editor."""
    draft = state.draft
    is_new = "automation_id" not in visit.request.params
    heading = None if is_new else await views.heading_of(visit.db, visit.request.uuid("automation_id"))
    opened = None if state.open is None else draft.steps[state.open]
    names = await segment_names(
        visit,
        [str(step["config"].get("segment_id")) for step in draft.steps if step["type"] == "add_to_segment"],
    )
    details = [words_of(step["type"], step["config"], names)[:200] for step in draft.steps]
    unreached = draft.unreached()
    places = draft.nearest(state.open or 0, MOST_INLINE)
    return await visit.draw(
        "automations/edit.html",
        status=state.status,
        problem=state.problem,
        automation=heading,
        here=NEW_PATH if heading is None else here_of(visit),
        action=NEW_PATH if heading is None else f"{here_of(visit)}/edit",
        draft=draft,
        packed=draft.packed(),
        picture=_picture(state, places, details, unreached),
        places=places,
        details=details,
        open=state.open,
        opened=opened,
        key=state.typed_key if state.typed_key is not None else opened and opened["key"],
        fields=state.typed or (fields_of(opened["type"], opened["config"]) if opened else {}),
        ways=_ways(state),
        choices=await _choices(visit, draft, opened) if opened else {},
        check=_check(opened) if opened and state.problem is None and visit.request.method == "POST" else None,
        unreached=unreached,
        is_conflict=state.is_conflict,
        kinds=list(NEW),
        operators=OPERATORS,
        examples=EXAMPLES,
    )


def _picture(state: EditorState, places: list[int], details: list[str], unreached: list[str]) -> Any:
    shown = [(place, state.draft.steps[place]) for place in places]
    positions = {step["key"]: position for position, (_, step) in reversed(list(enumerate(shown)))}
    steps = [
        DrawnStep(
            kind=step["type"],
            key=step["key"],
            detail=details[place],
            figures=t("automation.unreached") if step["key"] in unreached else "",
            tone=_tone(step["key"] in unreached, is_open=place == state.open),
            href=f"#edit-{place}",
            title=f"{t('automation.edit_step', step=step['key'])}. {t('automation.type.' + step['type'])}",
        )
        for place, step in shown
    ]
    lines = [
        DrawnLine(positions[one["from"]], positions[one["to"]], one["type"])
        for one in state.draft.connections
        if one["from"] in positions and one["to"] in positions and one["from"] != one["to"]
    ]
    return drawn(t("automation.graph_of", name=state.draft.name), steps, lines)


def _tone(is_unreached: bool, *, is_open: bool) -> str:
    return f"{'warn' if is_unreached else 'quiet'}{' is-open' if is_open else ''}"


def _ways(state: EditorState) -> list[dict[str, Any]]:
    """Return what the open step leads to, for each of its outcomes."""
    if state.open is None:
        return []
    step = state.draft.steps[state.open]
    others = [
        one["key"] for one in state.draft.steps if one["type"] != "trigger" and one["key"] != step["key"]
    ]
    ways = []
    for outcome in outcomes_of(step["type"]):
        targets = state.draft.targets(state.open, outcome)
        free = [key for key in others if key not in targets]
        ways.append({"outcome": outcome, "targets": targets, "free": free})
    return ways


async def _choices(visit: Visit, draft: GraphDraft, opened: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the fields of the open step offer."""
    kind = opened["type"]
    found: dict[str, Any] = {}
    if kind in ("trigger", "wait_for_event", "condition"):
        events = (await visit.get("/events", shown=False, limit=CHOICES))["data"]
        found["events"] = [event["name"] for event in events]
        found["mail_events"] = list(MAIL_EVENTS) if kind == "wait_for_event" else []
        found["rule_fields"] = await _rule_fields(visit, draft, kind, events)
    if kind == "send_email":
        templates = (await visit.get("/templates", shown=False, limit=CHOICES))["data"]
        found["templates"] = [(entry["alias"] or entry["id"], entry["name"]) for entry in templates]
        topics = (await visit.get("/topics", shown=False, limit=CHOICES))["data"]
        found["topics"] = {topic["id"]: topic["name"] for topic in topics}
    if kind == "add_to_segment":
        segments = (await visit.get("/segments", shown=False, limit=CHOICES))["data"]
        found["segments"] = {segment["id"]: segment["name"] for segment in segments}
    return found


async def _rule_fields(visit: Visit, draft: GraphDraft, kind: str, events: list[Any]) -> list[str]:
    """Return fields that a rule of this graph may read."""
    heard = {
        step["config"].get("event_name")
        for step in draft.steps
        if step["type"] == ("wait_for_event" if kind == "wait_for_event" else "trigger")
    }
    schemas = [event["schema"] or {} for event in events if event["name"] in heard]
    fields = [f"event.{key}" for schema in schemas for key in schema]
    if kind == "condition":
        fields += [f"contact.{name}" for name in ("email", "first_name", "last_name", "unsubscribed")]
        properties = (await visit.get("/contact-properties", shown=False, limit=CHOICES))["data"]
        fields += [f"contact.properties.{entry['key']}" for entry in properties]
    return list(dict.fromkeys(fields))


def _check(step: Mapping[str, Any]) -> str | None:
    """Return what the API would say of the open step by itself."""
    try:
        parse(AutomationStep, step, "step")
    except Problem as problem:
        return problem.message
    return None


def _place(text: str, draft: GraphDraft) -> int | None:
    place = int(text) if text.isdecimal() and len(text) < 4 else None
    return place if place is not None and place < len(draft.steps) else None
