"""One email: what it looks like, what became of it for each recipient, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pillarbox.dashboard import pages
from pillarbox.dashboard.emails.email_list import HERE
from pillarbox.dashboard.emails.mail_frame import mail_frame
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.tones import tone_of
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import has_text, t
from pillarbox.delivery.commands.words import reason_in_words
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem

ONE: Final = f"{HERE}/{{email_id}}"
VIEWS: Final = ("html", "text", "source", "attachments")


class EmailStep(NamedTuple):
    """One step of what happened, as the screen shows it."""

    at: str
    title: str
    tone: str
    lines: list[str]


@screen(ONE, title="email.title", query={"view": str, "done": str})
async def show(visit: Visit) -> Reply[Html]:
    return await email_page(visit)


@screen(f"{ONE}/html", title="email.title")
async def frame(visit: Visit) -> Reply[Html]:
    """Show the HTML of the email for a sandboxed frame, cleaned."""
    email = await visit.get(_api(visit), shown=False)
    return await mail_frame(visit, email["html"] or "")


@act(f"{ONE}/cancel", title="emails.cancel", back=HERE)
async def cancel(visit: Visit, _: Form) -> Reply[Html]:
    try:
        await visit.post(f"{_api(visit)}/cancel")
    except Problem as problem:
        return await email_page(visit, status=problem.status, problem=problem.message)
    return visit.to(f"{HERE}/{visit.request.param('email_id')}", done="email_canceled")


async def email_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    """Show the screen of one email."""
    email = await visit.get(_api(visit))
    events = (await visit.get(f"{_api(visit)}/events"))["data"]
    attachments = (await visit.get(f"{_api(visit)}/attachments", shown=False, limit=100))["data"]
    view = visit.request.query.text("view")
    shown = view if view in VIEWS else "html" if email["html"] else "text"
    text, is_cut = pages.beginning(email["html"] if shown == "source" else email["text"])
    return await visit.draw(
        "emails/one.html",
        status=status,
        problem=problem,
        email=email,
        subject=email["subject"] or t("email.no_subject"),
        here=f"{HERE}/{email['id']}",
        view=shown,
        text=text,
        is_cut=is_cut,
        attachments=attachments,
        entries=timeline(events),
        why=why(email, events),
    )


def timeline(events: Sequence[dict[str, Any]]) -> list[EmailStep]:
    """Return the events of an email as entries, oldest first."""
    return [
        EmailStep(event["created_at"], _title(event), tone_of(event["event"]), _lines(event))
        for event in events
    ]


def why(email: dict[str, Any], events: Sequence[dict[str, Any]]) -> str:
    """Return one paragraph that says why the email is in its state, and what to do about it."""
    state = email["last_event"]
    last = next((event for event in reversed(events) if event["event"] == state), None)
    reason = reason_in_words(last["reason"]) if last else None
    said = last["reply"] if last else None
    sentences = [t(f"why.{state}") if has_text(f"why.{state}") else ""]
    if reason:
        sentences.append(reason)
    if last and said and state in ("bounced", "failed", "delivery_delayed"):
        sentences.append(t("why.said", host=last["host"] or t("why.the_server"), reply=said))
    if has_text(f"why.{state}.do"):
        sentences.append(t(f"why.{state}.do"))
    return " ".join(sentence for sentence in sentences if sentence)


def _title(event: dict[str, Any]) -> str:
    state = t(f"state.{event['event']}") if has_text(f"state.{event['event']}") else event["event"]
    return f"{state} · {event['recipient']}" if event["recipient"] else state


def _lines(event: dict[str, Any]) -> list[str]:
    lines = []
    if event["host"]:
        lines.append(t("email.by_host", host=event["host"]))
    if event["reply"]:
        lines.append(event["reply"])
    if reason := reason_in_words(event["reason"]):
        lines.append(reason)
    if event["next_attempt_at"]:
        lines.append(t("email.next_attempt", at=event["next_attempt_at"][:16]))
    if event["uncertain"]:
        lines.append(t("email.uncertain"))
    return lines


def _api(visit: Visit) -> str:
    return f"/emails/{visit.request.param('email_id')}"
