"""Drafts: new messages and replies that are written, saved, sent or discarded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.dashboard.emails.send_form import split_addresses
from pillarbox.dashboard.frame.form_keys import form_key, key_after, new_key
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.times import local_text
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.inboxes.conversation import MESSAGE, message_path
from pillarbox.dashboard.inboxes.inbox_frame import FOLDERS, HERE, ONE, inbox_frame, inbox_path, thread_path
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.inboxes.sending.recipients import InboxAddresses, MessageAddressees, reply
from pillarbox.inboxes.threads.recent_changes import digest_of_inboxes
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Conflict, Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

NEW: Final = f"{ONE}/new-message"
DRAFTS: Final = f"{ONE}/drafts"
DRAFT: Final = f"{DRAFTS}/{{draft_id}}"
FIELDS: Final = ("to", "cc", "bcc", "subject", "text", "html")
LISTS: Final = ("to", "cc", "bcc")
LARGEST_FORM: Final = 2 * 1024 * 1024
LONGEST_QUOTE: Final = 100_000
"""Characters of a message that stand in the draft of its answer."""


@screen(DRAFTS, title="drafts.title", query={"after": str, "before": str, "done": str})
async def index(visit: Visit) -> Reply[Html]:
    """Show the drafts of the inbox that were not sent."""
    frame = await inbox_frame(visit, beside_list=True)
    digest = await digest_of_inboxes(visit.db, UUID(frame.inbox["id"]))
    page = await list_page(visit, f"{inbox_path(visit)}/drafts", f"{frame.here}/drafts")
    return await visit.draw(
        "inboxes/drafts.html",
        frame=frame,
        folders=FOLDERS,
        drafts=page.rows,
        paging=page.paging,
        digest=digest,
        here=frame.here,
    )


@screen(NEW, title="draft.new", right=Right.USE, query={"to": str})
async def new(visit: Visit) -> Reply[Html]:
    """Show an empty message."""
    return await _new_page(visit, {"to": visit.request.query.text("to") or ""}, new_key(visit))


@act(NEW, title="draft.save", back=HERE, records=Act.INBOX_DRAFT_SAVED, limit=LARGEST_FORM)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Store a new draft."""
    try:
        draft = await _created(visit, form)
    except Problem as problem:
        return await _new_page(visit, _typed(form), key_after(visit, form, problem), problem)
    return visit.to(f"{_here(visit)}/drafts/{draft['id']}", done="draft_saved")


@act(f"{NEW}/send", title="draft.send", back=HERE, records=Act.INBOX_MAIL_SENT, limit=LARGEST_FORM)
async def create_and_send(visit: Visit, form: Form) -> Reply[Html]:
    """Store a new draft and send it. Where it cannot be sent it stays a draft."""
    try:
        draft = await _created(visit, form)
    except Problem as problem:
        return await _new_page(visit, _typed(form), key_after(visit, form, problem), problem)
    return await _sent(visit, draft["id"])


@screen(DRAFT, title="draft.title", query={"done": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show a draft with the form that changes it."""
    return await draft_page(visit, visit.request.param("draft_id"))


@act(DRAFT, title="draft.save", back=HERE, records=Act.INBOX_DRAFT_SAVED, limit=LARGEST_FORM)
async def save(visit: Visit, form: Form) -> Reply[Html]:
    """Store what was written."""
    draft_id = visit.request.param("draft_id")
    try:
        await _change(visit, draft_id, form)
    except Problem as problem:
        return await _refused(visit, draft_id, problem, form)
    return visit.to(f"{_here(visit)}/drafts/{draft_id}", done="draft_saved")


@act(f"{DRAFT}/send", title="draft.send", back=HERE, records=Act.INBOX_MAIL_SENT, limit=LARGEST_FORM)
async def send(visit: Visit, form: Form) -> Reply[Html]:
    """Store what was written and send it."""
    draft_id = visit.request.param("draft_id")
    try:
        await _change(visit, draft_id, form)
    except Problem as problem:
        return await _refused(visit, draft_id, problem, form)
    return await _sent(visit, draft_id)


@act(f"{DRAFT}/discard", title="draft.discard", back=HERE, records=Act.INBOX_DRAFT_DISCARDED)
async def discard(visit: Visit, form: Form) -> Reply[Html]:
    """Delete the draft."""
    draft_id = visit.request.param("draft_id")
    draft = await visit.get(_path(visit, draft_id))
    await visit.delete(_path(visit, draft_id))
    here = _here(visit)
    back = f"{here}/threads/{draft['thread_id']}" if draft["thread_id"] else f"{here}/drafts"
    return visit.to(back, done="draft_discarded")


@act(f"{MESSAGE}/answer", title="conversation.reply", back=HERE, records=Act.INBOX_DRAFT_SAVED)
async def answer(visit: Visit, form: Form) -> Reply[Html]:
    """Begin a reply to the message. One that was begun before is shown as it is."""
    message = await visit.get(message_path(visit))
    body: dict[str, Any] = {
        "thread_id": (await visit.get(thread_path(visit), shown=False))["id"],
        "reply_to_email_id": message["id"],
        "text": quotation(message),
    }
    if form.get("to") == "all":
        body |= await _everybody(visit, message)
    draft = await visit.post(f"{inbox_path(visit)}/drafts", body)
    return visit.to(f"{_here(visit)}/drafts/{draft['id']}")


@screen(f"{MESSAGE}/forward", title="forward.title", right=Right.USE)
async def forward_form(visit: Visit) -> Reply[Html]:
    """Show the form that forwards a message."""
    return await _forward_page(visit, {}, new_key(visit))


@act(f"{MESSAGE}/forward", title="forward.title", back=HERE, records=Act.INBOX_MAIL_SENT)
async def forward(visit: Visit, form: Form) -> Reply[Html]:
    """Forward the message with its attachments."""
    body: dict[str, Any] = {name: split_addresses(form.get(name)) for name in ("to", "cc")}
    if form.get("text").strip():
        body["text"] = form.get("text")
    try:
        await visit.post(f"{message_path(visit)}/forward", body, key=form_key(visit, form))
    except Problem as problem:
        return await _forward_page(visit, _typed(form), key_after(visit, form, problem), problem)
    return visit.to(f"{_here(visit)}/threads/{visit.request.param('thread_id')}", done="message_sent")


async def draft_page(
    visit: Visit,
    draft_id: str,
    typed: Mapping[str, str] | None = None,
    *,
    status: int = 200,
    problem: str | None = None,
) -> Reply[Html]:
    """Show a draft. `typed` is what a refused form had."""
    draft = await visit.get(_path(visit, draft_id))
    if draft["email_id"] is not None:
        return visit.to(_place_of(visit, draft))
    return await _form_page(
        visit,
        {**_fields_of(draft), **(typed or {})},
        draft=draft,
        action=f"{_here(visit)}/drafts/{draft_id}",
        status=status,
        problem=problem,
    )


def quotation(message: Mapping[str, Any]) -> str:
    """Return the words of a message as they stand below an answer."""
    said = (message["extracted_text"] or message["text"] or "")[:LONGEST_QUOTE]
    lines = [f"> {line}" for line in said.splitlines()]
    head = t("draft.wrote", at=local_text(message["received_at"]), name=message["from"])
    return "\n".join(["", "", head, *lines])


async def _everybody(visit: Visit, message: Mapping[str, Any]) -> dict[str, Any]:
    """Return `to` and `cc` of an answer to all: without the addresses of the inbox, each once."""
    inbox = await visit.get(inbox_path(visit), shown=False)
    is_inbound = message["direction"] == "inbound"
    header = message
    if is_inbound:
        header = await visit.find(f"/emails/receiving/{message['id']}", shown=False) or message
    named = MessageAddressees(
        is_inbound,
        message["from"],
        to=header["to"],
        cc=message["cc"],
        reply_to=message["reply_to"],
    )
    own = InboxAddresses([inbox["email_address"], inbox["receiving_address"]])
    found = reply(named, own, to_all=True)
    return {"to": [one.text for one in found.to], "cc": [one.text for one in found.cc]}


async def _created(visit: Visit, form: Form) -> Mapping[str, Any]:
    body = {name: value for name, value in _content(form).items() if value}
    made: Mapping[str, Any] = await visit.post(f"{inbox_path(visit)}/drafts", body, key=form_key(visit, form))
    return made


async def _change(visit: Visit, draft_id: str, form: Form) -> None:
    """Store what was written. What somebody else has stored since the form was drawn is not written over."""
    seen = form.get("revision")
    if seen:
        stored = await visit.get(_path(visit, draft_id), shown=False)
        if seen != revision_of(stored) and not _says_the_same(form, stored):
            raise Conflict(t("draft.changed_meanwhile"))
    await visit.patch(_path(visit, draft_id), _content(form))


async def _sent(visit: Visit, draft_id: str) -> Reply[Html]:
    """Send the draft and show its thread; a refusal shows the draft."""
    try:
        sent = await visit.post(f"{_path(visit, draft_id)}/send")
    except Problem as problem:
        return await _refused(visit, draft_id, problem)
    visit.has_acted(sent["email_id"])
    return visit.to(f"{_here(visit)}/threads/{sent['thread_id']}", done="message_sent")


async def _refused(visit: Visit, draft_id: str, problem: Problem, form: Form | None = None) -> Reply[Html]:
    """Show what was wrong. A form that was sent twice shows where its message went; other words for a draft
    that is sent or gone meanwhile become a new message."""
    draft = await visit.find(_path(visit, draft_id), shown=False)
    if draft is not None and draft["email_id"] is None:
        typed = _typed(form) if form is not None else None
        return await draft_page(visit, draft_id, typed, status=problem.status, problem=problem.message)
    if draft is not None and (form is None or _says_the_same(form, draft)):
        return visit.to(_place_of(visit, draft))
    if form is None:
        raise problem
    return await _new_page(visit, _typed(form), new_key(visit), problem)


async def _new_page(
    visit: Visit, fields: Mapping[str, str], key: str, problem: Problem | None = None
) -> Reply[Html]:
    return await _form_page(
        visit,
        {**dict.fromkeys(FIELDS, ""), **fields},
        draft=None,
        action=f"{_here(visit)}/new-message",
        key=key,
        status=problem.status if problem else 200,
        problem=problem.message if problem else None,
    )


async def _form_page(
    visit: Visit,
    fields: Mapping[str, str],
    *,
    draft: Mapping[str, Any] | None,
    action: str,
    key: str = "",
    status: int,
    problem: str | None,
) -> Reply[Html]:
    frame = await inbox_frame(visit)
    return await visit.draw(
        "inboxes/draft.html",
        status=status,
        problem=problem,
        frame=frame,
        fields=fields,
        draft=draft,
        action=action,
        key=key,
        revision=revision_of(draft) if draft is not None else "",
        here=frame.here,
        is_reply=draft is not None and draft["thread_id"] is not None,
        has_more=bool(fields["cc"] or fields["bcc"]),
    )


async def _forward_page(
    visit: Visit, fields: Mapping[str, str], key: str, problem: Problem | None = None
) -> Reply[Html]:
    frame = await inbox_frame(visit)
    message = await visit.get(message_path(visit))
    return await visit.draw(
        "inboxes/forward.html",
        status=problem.status if problem else 200,
        problem=problem.message if problem else None,
        frame=frame,
        message=message,
        quoted=quotation(message)[:3000].strip(),
        fields={**dict.fromkeys(FIELDS, ""), **fields},
        key=key,
        here=f"{frame.here}/threads/{visit.request.param('thread_id')}",
    )


def revision_of(draft: Mapping[str, Any]) -> str:
    """Return a text that stands for what the form of a draft shows."""
    return sha256(msgspec.json.encode(_fields_of(draft))).hexdigest()


def _fields_of(draft: Mapping[str, Any]) -> dict[str, str]:
    fields = {name: "\n".join(draft[name] or ()) for name in LISTS}
    return fields | {name: draft[name] or "" for name in ("subject", "text", "html")}


def _says_the_same(form: Form, draft: Mapping[str, Any]) -> bool:
    """Return whether the form would change nothing: it was sent before."""
    return all((value or None) == (draft[name] or None) for name, value in _content(form).items())


def _typed(form: Form) -> dict[str, str]:
    return {name: form.get(name) for name in FIELDS}


def _content(form: Form) -> dict[str, Any]:
    """Return the fields of the form as the API takes them."""
    lists: dict[str, Sequence[str] | None] = {name: split_addresses(form.get(name)) for name in LISTS}
    text, html = [form.get(name).replace("\r\n", "\n") for name in ("text", "html")]
    return {
        **lists,
        "subject": form.get("subject").strip() or None,
        "text": text if text.strip() else None,
        **({"html": html} if html.strip() else {}),
    }


def _here(visit: Visit) -> str:
    return f"{HERE}/{visit.request.param('inbox_id')}"


def _path(visit: Visit, draft_id: str) -> str:
    return f"{inbox_path(visit)}/drafts/{draft_id}"


def _place_of(visit: Visit, draft: Mapping[str, Any]) -> str:
    """Return the screen of a draft that was sent: its thread."""
    if draft["thread_id"]:
        return f"{_here(visit)}/threads/{draft['thread_id']}"
    return f"{_here(visit)}?folder=sent"
