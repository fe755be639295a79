"""A draft as steps: content, audience, when and how fast, A/B test, review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.broadcasts.plans.plan import VARIANT_NAMES
from pillarbox.broadcasts.plans.progress import LONG, SOON, audience_within
from pillarbox.broadcasts.plans.wire import BroadcastAudience
from pillarbox.broadcasts.preview.checks import checks
from pillarbox.dashboard.broadcasts.broadcast_list import HERE, choices_of, name_of
from pillarbox.dashboard.broadcasts.content_form import ContentForm, revision_of, shown_content
from pillarbox.dashboard.broadcasts.plan_form import FIELDS_OF_VARIANT, HOURS, time_and_unit
from pillarbox.dashboard.editor.link_report import parts_of_broadcast, report_of
from pillarbox.dashboard.emails.email_details import LEVEL_TONES
from pillarbox.dashboard.frame.code_samples import ApiExample
from pillarbox.dashboard.frame.times import zone
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.dashboard.texts.number_format import number
from pillarbox.domains.senders import Senders
from pillarbox.kernel.http.request import Html, Reply

STEPS: Final = ("content", "audience", "pace", "test", "review")
FILLED: Final[Mapping[str, str]] = {
    "has_canary": "",
    "has_speed": "",
    "has_hours": "",
    "canary_percent": "5",
    "canary_time": "1",
    "canary_unit": "hours",
    "per_hour": "1000",
    "start": "9",
    "end": "18",
    "percent": "20",
    "winner_by": "opens",
    "test_time": "4",
    "test_unit": "hours",
    "count": "0",
}
"""The values that the forms of a plan propose."""


class VariantFields(NamedTuple):
    """One variant as the form shows it."""

    number: int
    letter: str
    fields: Mapping[str, str]


async def draft_page(
    visit: Visit,
    broadcast: Mapping[str, Any],
    *,
    status: int,
    problem: str | None,
    step: str | None,
    typed: Any,
) -> Reply[Html]:
    """Show a step of a draft; `typed` is what its form had where it was refused."""
    chosen = step or visit.request.query.text("step") or "content"
    chosen = chosen if chosen in STEPS else "content"
    here = f"{HERE}/{broadcast['id']}"
    plan = await visit.get(f"/broadcasts/{broadcast['id']}/plan", shown=chosen in ("pace", "test", "review"))
    values: dict[str, Any] = {}
    if chosen == "content":
        values = {"given": typed if isinstance(typed, ContentForm) else shown_content(broadcast)}
        values["revision"] = revision_of(broadcast)
        values["first_contact"] = await first_contact(visit, broadcast["segment_id"])
    elif chosen in ("pace", "test"):
        values = {"fields": plan_fields(plan, typed if isinstance(typed, Form) else None)}
        values["variants"] = variant_fields(plan, typed if isinstance(typed, Form) else None)
        values["properties"] = await text_properties(visit)
        values["hours"] = HOURS
    if chosen in ("audience", "review"):
        values["audience"] = await _audience(visit, UUID(broadcast["id"]))
        values["segments"] = await choices_of(visit, "/segments")
        values["topics"] = await choices_of(visit, "/topics")
    if chosen == "review":
        noted = await checks(visit.db, visit.request.use(Senders), UUID(broadcast["id"]))
        values["links"] = await report_of(visit, parts_of_broadcast(broadcast, plan))
        values |= {"links_act": f"{here}/links", "links_here": f"{here}?step=review"}
        values |= {"noted": noted, "level_tones": LEVEL_TONES, "plan_lines": plan_lines(plan)}
    return await visit.draw(
        "broadcasts/draft.html",
        status=status,
        problem=problem,
        broadcast=broadcast,
        name=name_of(broadcast["name"], broadcast["subject"]),
        here=here,
        step=chosen,
        following=(*STEPS, "review")[STEPS.index(chosen) + 1],
        steps=step_tabs(here),
        plan=plan,
        **values,
    )


async def _audience(visit: Visit, broadcast_id: UUID) -> BroadcastAudience | None:
    """Return who gets the broadcast now; None where counting takes long, and nobody has asked for it."""
    visit.calls.append(ApiExample("GET", f"/broadcasts/{broadcast_id}/audience", {}, None))
    seconds = LONG if visit.request.query.text("count") else SOON
    return await audience_within(visit.db, broadcast_id, visit.request.at, seconds)


def step_tabs(here: str) -> list[tuple[str, str, None]]:
    """Return the steps of the draft at this address, as tabs."""
    return [(f"{here}?step={one}", f"{at}. {t(f'broadcast.{one}')}", None) for at, one in enumerate(STEPS, 1)]


async def first_contact(visit: Visit, segment_id: str | None) -> str:
    """Return the address of a contact of the segment, for a test copy."""
    if segment_id is None:
        return ""
    listed = (await visit.get(f"/segments/{segment_id}/contacts", shown=False, limit=1))["data"]
    return str(listed[0]["email"]) if listed else ""


async def text_properties(visit: Visit) -> dict[str, str]:
    """Return the properties of contacts that may hold a zone, for a select field."""
    listed = (await visit.get("/contact-properties", shown=False, limit=100))["data"]
    return {entry["key"]: entry["key"] for entry in listed if entry["type"] == "string"}


def plan_fields(plan: Mapping[str, Any], form: Form | None) -> dict[str, str]:
    """Return the fields of the plan's forms: as they were typed, or as the plan is."""
    fields = {**FILLED, "time_zone": str(zone()), "property": ""}
    if form is not None:
        return {**fields, **{name: value for name, value in form.fields if not name.endswith("html")}}
    canary, hours, test = plan["canary"], plan["hours"], plan["ab_test"]
    if canary:
        amount, unit = time_and_unit(canary["minutes"])
        fields |= {"has_canary": "on", "canary_percent": str(canary["percent"])}
        fields |= {"canary_time": str(amount), "canary_unit": unit}
    if plan["per_hour"]:
        fields |= {"has_speed": "on", "per_hour": str(plan["per_hour"])}
    if hours:
        fields |= {"has_hours": "on", "start": str(hours["start"]), "end": str(hours["end"])}
        fields |= {"time_zone": hours["time_zone"], "property": hours["property"] or ""}
    if test:
        amount, unit = time_and_unit(test["minutes"])
        fields |= {"count": str(len(test["variants"])), "percent": str(test["percent"])}
        fields |= {"winner_by": test["winner_by"], "test_time": str(amount), "test_unit": unit}
    return fields


def variant_fields(plan: Mapping[str, Any], form: Form | None) -> Sequence[VariantFields]:
    """Return the fields of four variants."""
    stored = plan["ab_test"]["variants"] if plan["ab_test"] else []
    shown = []
    for place, letter in enumerate(VARIANT_NAMES):
        if form is not None:
            fields = {name: form.get(f"{name}_{place + 1}") for name in FIELDS_OF_VARIANT}
        else:
            known = stored[place] if place < len(stored) else {}
            fields = {name: known.get(name) or "" for name in FIELDS_OF_VARIANT}
        shown.append(VariantFields(place + 1, letter, fields))
    return shown


def plan_lines(plan: Mapping[str, Any]) -> list[str]:
    """Return the plan in sentences."""
    lines = []
    if canary := plan["canary"]:
        lines.append(t("broadcast.says.canary", percent=canary["percent"], time=_time(canary["minutes"])))
    if plan["per_hour"]:
        lines.append(t("broadcast.says.speed", count=number(plan["per_hour"])))
    if hours := plan["hours"]:
        key = "broadcast.says.own_hours" if hours["property"] else "broadcast.says.hours"
        lines.append(
            t(
                key,
                start=HOURS[hours["start"]],
                end=HOURS[hours["end"]],
                zone=hours["time_zone"],
                **({"property": hours["property"]} if hours["property"] else {}),
            )
        )
    if test := plan["ab_test"]:
        lines.append(
            t(
                f"broadcast.says.test.{test['winner_by']}",
                count=len(test["variants"]),
                percent=test["percent"],
                time=_time(test["minutes"]),
            )
        )
    return lines


def _time(minutes: int) -> str:
    amount, unit = time_and_unit(minutes)
    return t(f"broadcast.time.{unit}", count=number(amount))
