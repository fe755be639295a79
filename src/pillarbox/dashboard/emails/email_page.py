"""One email: what it looks like, what became of it for each recipient, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.dashboard import pages
from pillarbox.dashboard.emails.email_details import (
    LEVEL_TONES,
    OPENS,
    details_of,
    header_fields,
    in_words,
    name_of,
)
from pillarbox.dashboard.emails.email_list import HERE
from pillarbox.dashboard.emails.mail_frame import mail_frame
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.times import local_text
from pillarbox.dashboard.frame.tones import tone_of
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import has_text, reason_text, t
from pillarbox.emails.permitted_senders import PermittedSenders
from pillarbox.emails.raw_mail.messages import SentMessages
from pillarbox.emails.search.recent_changes import digest_of_emails
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act
from pillarbox.suppressions import changes
from pillarbox.timeline.rules import EventDetail

ONE: Final = f"{HERE}/{{email_id}}"
VIEWS: Final = ("html", "text", "source", "headers", "raw", "attachments")
LONGEST_RAW: Final = 128 * 1024
"""Octets of the message that the page shows."""
FOLD: Final = re.compile(r"\n[ \t]+")
MOST_STEPS: Final = 200
READINGS: Final = 3
"""Times that email and events are read, until nothing changed in between."""
MOST_NAMED: Final = 3
NOT_REACHED: Final = ("bounced", "failed", "delivery_delayed", "suppressed", "complained")
SUPPRESSING: Final = ("bounced", "complained", "suppressed")


class ShownMessage(NamedTuple):
    """The beginning of a message as the page shows it, and its header fields."""

    text: str
    is_cut: bool
    is_original: bool
    fields: list[tuple[str, str]]


class EmailStep(NamedTuple):
    """One step of what happened, as the screen shows it."""

    at: str
    title: str
    tone: str
    lines: list[str]


class SuppressionNote(NamedTuple):
    """Whether an address stands on the suppression list, with the page of its entry where it does."""

    address: str
    text: str
    href: str | None


@screen(ONE, title="email.title", query={"view": str, "done": str})
async def show(visit: Visit) -> Reply[Html]:
    return await email_page(visit)


@screen(f"{ONE}/html", title="email.title")
async def frame(visit: Visit) -> Reply[Html]:
    """Show the HTML of the email for a sandboxed frame, cleaned."""
    email = await visit.get(_api(visit), shown=False)
    return await mail_frame(visit, email["html"] or "")


@act(f"{ONE}/cancel", title="emails.cancel", back=HERE, records=Act.EMAILS_CANCELED)
async def cancel(visit: Visit, _: Form) -> Reply[Html]:
    try:
        await visit.post(f"{_api(visit)}/cancel")
    except Problem as problem:
        return await email_page(visit, status=problem.status, problem=problem.message)
    return visit.to(f"{HERE}/{visit.request.param('email_id')}", done="email_canceled")


@act(f"{ONE}/reschedule", title="email.reschedule", back=HERE, records=Act.EMAILS_RESCHEDULED)
async def reschedule(visit: Visit, fields: Form) -> Reply[Html]:
    wanted = fields.get("scheduled_at").strip()
    try:
        await visit.patch(_api(visit), {"scheduled_at": wanted})
    except Problem as problem:
        return await email_page(visit, status=problem.status, problem=problem.message, typed_time=wanted)
    return visit.to(f"{HERE}/{visit.request.param('email_id')}", done="email_rescheduled")


async def email_page(
    visit: Visit, *, status: int = 200, problem: str | None = None, typed_time: str | None = None
) -> Reply[Html]:
    """Show the screen of one email. `typed_time` is what a refused form had for the time to send it at."""
    email, events, digest = await _email_and_events(visit)
    api = f"/emails/{email['id']}"
    attachments = (await visit.get(f"{api}/attachments", shown=False, limit=100))["data"]
    insights = (await visit.get(f"{api}/insights"))["insights"]
    beside = await details_of(visit, UUID(email["id"]))
    origin = beside.origin
    view = visit.request.query.text("view")
    shown = view if view in VIEWS else "html" if email["html"] else "text"
    text, is_cut = pages.screen_text(email["html"] if shown == "source" else email["text"])
    raw = await visit.get(f"{api}/raw", shown=shown == "raw")
    beginning = await _beginning(visit, UUID(email["id"])) if shown in ("raw", "headers") else None
    return await visit.draw(
        "emails/one.html",
        status=status,
        problem=problem,
        email=email,
        digest=digest,
        typed_time=typed_time,
        subject=email["subject"] or t("email.no_subject"),
        here=f"{HERE}/{email['id']}",
        view=shown,
        raw=raw,
        beginning=beginning,
        text=text,
        is_cut=is_cut,
        attachments=attachments,
        header_fields=header_fields(email, origin),
        beside=beside,
        entries=timeline(events, beside.details),
        why=why(email, events),
        notes=await suppression_notes(visit, events, beside.details),
        broadcast_name=await name_of(visit, "/broadcasts", origin.broadcast_id if origin else None),
        template_name=await name_of(visit, "/templates", origin.template_id if origin else None),
        machine_in_words=in_words,
        noted=[entry for entry in insights if entry["level"] != "ok"],
        passed=[entry for entry in insights if entry["level"] == "ok"],
        level_tones=LEVEL_TONES,
    )


async def _email_and_events(visit: Visit) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """Return the email and its events as they were at one time, and the digest that stands for that time."""
    api = _api(visit)
    for is_first in (True, *[False] * (READINGS - 1)):
        digest = await digest_of_emails(visit.db, visit.request.uuid("email_id"))
        email = await visit.get(api, shown=is_first)
        events = (await visit.get(f"{api}/events", shown=is_first))["data"]
        if digest == await digest_of_emails(visit.db, visit.request.uuid("email_id")):
            break
    return email, events, digest


async def suppression_notes(
    visit: Visit, events: Sequence[dict[str, Any]], details: Mapping[str, EventDetail]
) -> list[SuppressionNote]:
    """Return what the suppression list has for recipients who bounced, complained or are suppressed."""
    named = [event for event in failed_for(events) if event["event"] in SUPPRESSING]
    return [await _suppression_note(visit, event, details.get(event["id"])) for event in named[:MOST_NAMED]]


async def _suppression_note(
    visit: Visit, event: dict[str, Any], detail: EventDetail | None
) -> SuppressionNote:
    address = event["recipient"]
    entry = await changes.find(visit.db, email_address(address).address)
    if entry is not None:
        return SuppressionNote(address, t("why.is_suppressed"), f"/dashboard/suppressions/{entry.id}")
    if address.rpartition("@")[2].lower() in visit.request.use(PermittedSenders).simulator_domains:
        return SuppressionNote(address, t("why.simulator"), None)
    bounce = detail.bounce if detail else None
    if event["event"] == "bounced" and bounce is not None and bounce.type != "Permanent":
        return SuppressionNote(address, t("why.not_suppressed"), None)
    return SuppressionNote(address, t("why.no_longer_suppressed"), None)


async def _beginning(visit: Visit, email_id: UUID) -> ShownMessage | None:
    """Return the beginning of the message with its header fields; None where it cannot be composed."""
    messages = visit.request.use(SentMessages)
    try:
        found = await messages.beginning(visit.db, email_id, LONGEST_RAW)
    except ValueError:
        return None
    if found is None:
        return None
    text = found.octets.decode("utf-8", "replace").replace("\r\n", "\n")
    shown, is_cut = pages.screen_text(text)
    head = text.partition("\n\n")[0]
    return ShownMessage(shown or "", is_cut or found.is_cut, found.is_original, fields_of(head))


def fields_of(head: str) -> list[tuple[str, str]]:
    """Return the header fields of a message's head, unfolded, in their order."""
    fields = (line.partition(":") for line in FOLD.sub(" ", head).split("\n"))
    return [(name, value.strip()) for name, _, value in fields if name]


def timeline(events: Sequence[dict[str, Any]], details: Mapping[str, EventDetail]) -> list[EmailStep]:
    """Return the events of an email, oldest first; of opens and clicks only the first of a recipient,
    by people and by machines."""
    shown: list[EmailStep] = []
    opened: set[tuple[str, str | None, bool]] = set()
    for event in events:
        detail = details.get(event["id"])
        mark = event["event"], event["recipient"], bool(detail and detail.machine)
        if mark in opened:
            continue
        if event["event"] in OPENS:
            opened.add(mark)
        lines = _lines(event, detail)
        shown.append(EmailStep(event["created_at"], _title(event), tone_of(event["event"]), lines))
    return shown[:MOST_STEPS]


def why(email: dict[str, Any], events: Sequence[dict[str, Any]]) -> str:
    """Return one paragraph that says why the email is in its state, and what to do about it."""
    state = email["last_event"]
    last = next((event for event in reversed(events) if event["event"] == state), None)
    reason = reason_text(last["reason"]) if last else None
    said = last["reply"] if last else None
    sentences = [t(f"why.{state}") if has_text(f"why.{state}") else ""]
    if reason and state != "complained":
        sentences.append(reason)
    if last and said and state in ("bounced", "failed", "delivery_delayed"):
        sentences.append(t("why.said", host=last["host"] or t("why.the_server"), reply=said))
    if has_text(f"why.{state}.do"):
        sentences.append(t(f"why.{state}.do"))
    sentences += [
        t(
            "why.for",
            recipient=event["recipient"],
            text=t(f"why.{event['event']}"),
            reply=event["reply"] or "–",
        )
        for event in failed_for(events)[:MOST_NAMED]
        if event is not last
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def failed_for(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last event of each recipient whom the email did not reach, or not yet."""
    latest = {
        event["recipient"]: event
        for event in events
        if event["recipient"] and event["event"] not in ("queued", "scheduled", "unsubscribed")
    }
    return [event for event in latest.values() if event["event"] in NOT_REACHED]


def _title(event: dict[str, Any]) -> str:
    state = t(f"state.{event['event']}") if has_text(f"state.{event['event']}") else event["event"]
    return f"{state} · {event['recipient']}" if event["recipient"] else state


def _lines(event: dict[str, Any], detail: EventDetail | None) -> list[str]:
    lines = []
    if event["host"]:
        lines.append(t("email.by_host", host=event["host"]))
    if event["reply"]:
        lines.append(event["reply"])
    if reason := reason_text(event["reason"]):
        lines.append(reason)
    if event["next_attempt_at"]:
        lines.append(t("email.next_attempt", at=local_text(event["next_attempt_at"])))
    if detail is not None and detail.tls:
        lines.append(t("email.tls", tls=detail.tls))
    if detail is not None and detail.machine:
        lines.append(t("email.by_machine", name=in_words(detail.machine)))
    if event["uncertain"]:
        lines.append(t("email.uncertain"))
    return lines


def _api(visit: Visit) -> str:
    return f"/emails/{visit.request.param('email_id')}"
