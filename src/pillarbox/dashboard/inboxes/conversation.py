"""The messages of a thread: the newest at the end, older ones folded, with what is known of the sender."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.dashboard import pages
from pillarbox.dashboard.emails.mail_frame import mail_frame
from pillarbox.dashboard.emails.received_page import VerdictLine, verdict_lines
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.inboxes.inbox_frame import HERE, ONE, inbox_frame, thread_path
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import has_text, t, translated
from pillarbox.inboxes.threads.changes import found as stored_thread
from pillarbox.inboxes.threads.recent_changes import digest_of_thread, newest_message
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.people.audit import Act
from pillarbox.people.membership import members

THREAD: Final = f"{ONE}/threads/{{thread_id}}"
MESSAGE: Final = f"{THREAD}/emails/{{message_id}}"
SHOWN_MESSAGES: Final = 15
"""Messages of a page, beside the newest of them."""

LONGEST_OPEN: Final = 20_000
LONGEST_FOLDED: Final = 3_000
"""Octets of a message's text on the page; all of it stands on the page of the email."""

SNIPPET: Final = 120
HEIGHTS: Final = ((300, "short"), (1500, "middle"))
"""Up to so many characters of its text, a mail gets a frame of this height; others a tall one."""

TRUST_TONES: Final = {"trusted": "good", "known": "info", "suspicious": "bad"}
NAMED_DETAILS: Final = ("name", "shown", "domain", "looks_like", "contains", "filename", "code")
"""Names in the detail of a reason whose values the page shows, as far as they are texts."""

MOST_SEARCHED: Final = 200_000
"""Characters of the HTML in which pictures are looked for."""

_PICTURE: Final = re.compile(r"<img\b([^<>]*+)", re.IGNORECASE)
_FROM_ELSEWHERE: Final = re.compile(r"\bsrc\s*+=\s*+[\"']?+\s*+(?:https?:)?//", re.IGNORECASE)


class ConversationMessage(NamedTuple):
    """A message as the page shows it. `text` are its own words, `whole` all of it where it quotes something.
    `height` is that of the frame of its HTML, None for a message without HTML."""

    message: Mapping[str, Any]
    text: str | None
    whole: str | None
    is_cut: bool
    snippet: str
    is_open: bool
    height: str | None
    files: Sequence[Mapping[str, Any]]
    has_remote: bool

    @property
    def is_inbound(self) -> bool:
        return bool(self.message["direction"] == "inbound")


class SenderTrust(NamedTuple):
    """The level of trust in a message. Each reason is a sentence, with the names in question."""

    level: str
    tone: str
    reasons: Sequence[tuple[str, Sequence[str]]]


@screen(THREAD, title="conversation.title", query={"before": str, "images": str, "done": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show the newest messages of the thread."""
    return await conversation_page(visit)


@screen(f"{MESSAGE}/html", title="conversation.title", query={"images": str})
async def frame(visit: Visit) -> Reply[Html]:
    """Show the HTML of a message for a sandboxed frame, cleaned, with quotations folded."""
    message = await visit.get(message_path(visit), shown=False)
    with_remote = visit.request.query.text("images") == "all"
    return await mail_frame(visit, message["html"] or "", folds_quotes=True, with_remote=with_remote)


@act(f"{THREAD}/seen", title="threads.read", back=HERE)
async def mark_seen(visit: Visit, form: Form) -> Reply[Html]:
    """Mark the messages as read, because somebody has opened the thread."""
    await visit.patch(thread_path(visit), {"read": True})
    return visit.to(here(visit))


@act(f"{THREAD}/labels", title="conversation.labels", back=HERE, records=Act.INBOX_THREADS_CHANGED)
async def set_labels(visit: Visit, form: Form) -> Reply[Html]:
    """Add the labels that were ticked, and take off those that were not ticked any more. Who has added others
    since the page was drawn keeps them."""
    had, ticked = set(form.every("had")), set(form.every("label"))
    try:
        thread = await visit.get(thread_path(visit), shown=False)
        stays = {label["id"] for label in thread["labels"]} - (had - ticked)
        await visit.put(f"{thread_path(visit)}/labels", {"labels": sorted(stays | (ticked - had))})
    except Problem as problem:
        return await conversation_page(visit, status=problem.status, problem=problem.message)
    return visit.to(here(visit), done="thread_labels")


@act(f"{THREAD}/assignee", title="conversation.assign", back=HERE, records=Act.INBOX_THREADS_CHANGED)
async def assign(visit: Visit, form: Form) -> Reply[Html]:
    """Assign the thread to a member, or to nobody."""
    email = form.get("email")
    try:
        if email:
            await visit.put(f"{thread_path(visit)}/assignee", {"email": email})
        else:
            await visit.delete(f"{thread_path(visit)}/assignee")
    except Problem as problem:
        return await conversation_page(visit, status=problem.status, problem=problem.message)
    return visit.to(here(visit), done="thread_assigned" if email else "thread_unassigned")


async def conversation_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    """Show the thread with its messages."""
    inbox = await inbox_frame(visit)
    thread = await visit.get(thread_path(visit))
    thread_id = UUID(thread["id"])
    stored = await stored_thread(visit.db, UUID(inbox.inbox["id"]), thread_id)
    digest = await digest_of_thread(visit.db, thread_id)
    messages, older = await _messages(visit, thread_id)
    shown = [await _shown(visit, message, is_last=message is messages[-1]) for message in messages]
    inbound = _newest_inbound(messages)
    images = visit.request.query.text("images")
    return await visit.draw(
        "inboxes/conversation.html",
        status=status,
        problem=problem,
        frame=inbox,
        thread=thread,
        subject=thread["subject"] or t("email.no_subject"),
        messages=shown,
        older=older,
        newest=visit.request.query.text("before") and here(visit),
        assignee=stored.assignee,
        members=[member.email for member in await members.members(visit.db)],
        label_ids={label["id"] for label in thread["labels"]},
        digest=digest,
        verdicts=await _verdicts(visit, inbound) if inbound else [],
        trust=await _trust(visit, inbound) if inbound else None,
        images=images,
        here=here(visit),
    )


def here(visit: Visit) -> str:
    """Return the path of the screen of the thread."""
    return f"{HERE}/{visit.request.param('inbox_id')}/threads/{visit.request.param('thread_id')}"


def message_path(visit: Visit) -> str:
    """Return the path of the API for the message that the path of the screen names."""
    return f"{thread_path(visit)}/emails/{visit.request.param('message_id')}"


async def _messages(visit: Visit, thread_id: UUID) -> tuple[list[Mapping[str, Any]], str | None]:
    """Return messages of the thread, the oldest first, and the address of those before them."""
    emails, before = f"{thread_path(visit)}/emails", visit.request.query.text("before")
    newest: list[Mapping[str, Any]] = []
    if not before:
        message_id = await newest_message(visit.db, thread_id)
        if message_id is None:
            raise NotFound("Thread")
        newest = [await visit.get(f"{emails}/{message_id}", shown=False)]
        before = str(message_id)
    page = await visit.get(emails, limit=SHOWN_MESSAGES, before=before)
    messages = [*page["data"], *newest]
    if not messages:
        raise NotFound("Email")
    older = with_query(here(visit), before=messages[0]["id"]) if page["has_more"] else None
    return messages, older


async def _shown(visit: Visit, message: Mapping[str, Any], *, is_last: bool) -> ConversationMessage:
    own = message["extracted_text"] or message["text"]
    is_open = is_last or not message["read"]
    text, is_cut = pages.screen_text(own, LONGEST_OPEN if is_open else LONGEST_FOLDED)
    is_quoting = bool(message["text"]) and len(message["text"]) > len(own or "")
    whole, whole_is_cut = pages.screen_text(message["text"], LONGEST_OPEN if is_open else LONGEST_FOLDED)
    html = message["html"]
    files: Sequence[Mapping[str, Any]] = ()
    if message["attachments"]:
        path = f"{thread_path(visit)}/emails/{message['id']}/attachments"
        files = (await visit.get(path, shown=False))["data"]
    return ConversationMessage(
        message=message,
        text=text,
        whole=whole if is_quoting else None,
        is_cut=is_cut or (is_quoting and whole_is_cut),
        snippet=" ".join((own or "")[: 4 * SNIPPET].split())[:SNIPPET],
        is_open=is_open,
        height=next((name for most, name in HEIGHTS if len(own or "") <= most), "tall") if html else None,
        files=files,
        has_remote=bool(html) and has_remote_pictures(html),
    )


def has_remote_pictures(html: str) -> bool:
    """Return whether the HTML shows pictures of other servers, as far as its beginning says. Takes time in
    proportion to its length, whatever a stranger wrote."""
    pictures = _PICTURE.finditer(html[:MOST_SEARCHED])
    return any(_FROM_ELSEWHERE.search(found[1]) for found in pictures)


def _newest_inbound(messages: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return next((one for one in reversed(messages) if one["direction"] == "inbound"), None)


async def _verdicts(visit: Visit, message: Mapping[str, Any]) -> list[VerdictLine]:
    """Return what was found out about the sender of a message that came in."""
    verdicts = await visit.find(f"{thread_path(visit)}/emails/{message['id']}/verdicts")
    return [] if verdicts is None else verdict_lines(verdicts)


async def _trust(visit: Visit, message: Mapping[str, Any]) -> SenderTrust | None:
    """Return the trust of a message that came in; None where it came before the server knew trust."""
    trust = await visit.find(f"{thread_path(visit)}/emails/{message['id']}/trust")
    if trust is None:
        return None
    reasons = []
    for reason in trust["reasons"]:
        key = f"trust.{reason['code']}"
        named = [
            reason["detail"][name] for name in NAMED_DETAILS if isinstance(reason["detail"].get(name), str)
        ]
        reasons.append((t(key) if has_text(key) else translated(reason["message"]), named))
    return SenderTrust(trust["level"], TRUST_TONES.get(trust["level"], "quiet"), reasons)
