"""Whatever the API accepts can be written: what it cannot, it refuses with the contract's answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kit.clock import START
from pillarbox.emails.outgoing import OutgoingEmail
from pillarbox.emails.requests import parse
from pillarbox.emails.wire import SendEmail
from pillarbox.kernel.wire.json_body import decode
from pillarbox.kernel.wire.problems import Problem
from pillarbox.mail.message import parse as messages
from pillarbox.mail.message.address import parse_mailbox
from pillarbox.mail.message.compose import OutgoingFile, OutgoingMessage, compose
from pillarbox.smtp import message_fields

HIDDEN = "=?utf-8?Q?a=0D=0AX-Evil:_1?="
PIECES = (
    *(HIDDEN, "=?utf-8?B?DQpYOiAx?=", "=?", "?=", "=0D=0A", "%0d%0a", "\r\n", "\r", "\n", "\t", "\0", "\x7f"),
    *("\x85", "\u2028", "\u202e", "\ud800", "\udfff", "é", "\U0001f4e6", " ", "  ", '"', "\\", "<", ">", "@"),
    *(",", ";", ":", "(", ")", "'", ".", "a", "A9", "x" * 80, "y" * 999, "mailto:", "https://h.example/u"),
)
TEXT = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
NAMES = st.one_of(
    st.sampled_from(("List-Unsubscribe", "List-Unsubscribe-Post", "List-Id", "References", "In-Reply-To")),
    st.sampled_from(("X-Note", "Reply-To", "Content-Type", "Feedback-ID", "Precedence", "x-note")),
    TEXT,
)
MAILBOX = st.one_of(
    st.just("a@harbor.example"),
    TEXT.map(lambda name: f"{name} <a@harbor.example>"),
    TEXT.map(lambda local: f"{local}@harbor.example"),
    TEXT.map(lambda domain: f"a@{domain}.example"),
)
KIND = st.one_of(
    st.just("text/plain"),
    TEXT,
    st.tuples(TEXT, TEXT).map(lambda pair: f"text/plain; {pair[0]}={pair[1]}"),
    TEXT.map(lambda value: f'text/plain; charset="{value}"'),
    st.sampled_from((f"text/plain; charset={HIDDEN}", "message/rfc822", "multipart/mixed")),
)
FILE = st.fixed_dictionaries(
    {"content": st.just("aGk=")},
    optional={"filename": TEXT, "content_type": KIND, "content_id": TEXT, "inline_content_id": TEXT},
)
TAG = st.fixed_dictionaries({"name": TEXT, "value": TEXT})

OPTIONS = {
    "from": MAILBOX,
    "to": st.one_of(MAILBOX, st.lists(MAILBOX, min_size=1, max_size=2)),
    "cc": st.lists(MAILBOX, max_size=2),
    "bcc": st.lists(MAILBOX, max_size=2),
    "reply_to": st.lists(MAILBOX, max_size=2),
    "subject": TEXT,
    "html": TEXT,
    "text": TEXT,
    "headers": st.dictionaries(NAMES, TEXT, max_size=3),
    "attachments": st.lists(FILE, max_size=2),
    "tags": st.lists(TAG, max_size=2),
}
"""One strategy for each field that is written into a message or stands beside it."""

RIGHT: dict[str, Any] = {"from": "a@harbor.example", "to": "b@quay.example", "subject": "x", "text": "x"}


def test_every_field_of_a_request_has_its_strategy() -> None:
    elsewhere = {"scheduled_at", "topic_id", "template"}
    assert {field.encode_name for field in msgspec.structs.fields(SendEmail)} == OPTIONS.keys() | elsewhere


def wrong_in_one_field() -> st.SearchStrategy[dict[str, Any]]:
    """A right request but for one field or two: otherwise nearly all would be refused for another reason."""
    one = st.sampled_from(sorted(OPTIONS)).flatmap(lambda name: st.tuples(st.just(name), OPTIONS[name]))
    return st.lists(one, min_size=1, max_size=2).map(lambda changes: RIGHT | dict(changes))


@given(wrong_in_one_field())
@example(RIGHT | {"attachments": [{"content": "aGk=", "content_id": HIDDEN}], "html": "x"})
@example(RIGHT | {"attachments": [{"content": "aGk=", "content_type": f"text/plain; charset={HIDDEN}"}]})
@example(RIGHT | {"attachments": [{"content": "aGk=", "filename": HIDDEN}]})
@example(RIGHT | {"subject": HIDDEN})
@example(RIGHT | {"headers": {"List-Id": HIDDEN}})
@settings(max_examples=150, deadline=None)
def test_what_the_api_accepts_composes(body: dict[str, Any]) -> None:
    written(accepted_of(lambda: parse.outgoing(decode(json.dumps(body).encode()), START)))


WRITTEN = st.sampled_from(("Subject", "Reply-To", "To", "Cc", "List-Id", "X-Note"))


@given(st.lists(st.tuples(WRITTEN, TEXT)), KIND, TEXT)
@example([], "text/plain", HIDDEN)
@settings(max_examples=60, deadline=None)
def test_what_submission_accepts_composes(fields: list[tuple[str, str]], kind: str, cid: str) -> None:
    head = "".join(f"{name}: {text}\r\n" for name, text in fields)
    raw = (
        f"From: a@harbor.example\r\n{head}MIME-Version: 1.0\r\n"
        "Content-Type: multipart/related; boundary=b\r\n"
        "\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>x</p>\r\n"
        f"--b\r\nContent-Type: {kind}\r\nContent-ID: <{cid}>\r\n"
        "Content-Disposition: inline\r\n\r\nx\r\n--b--\r\n"
    ).encode("utf-8", "surrogatepass")
    envelope = [parse_mailbox("b@quay.example")]
    read = messages.parse(raw)
    written(accepted_of(lambda: parse.outgoing(message_fields.fields(read, envelope), START, is_letter=True)))


@pytest.mark.parametrize("name", ["content_id", "inline_content_id"])
def test_a_content_id_that_hides_a_line_end_is_refused(name: str) -> None:
    with pytest.raises(Problem) as refused:
        parse.outgoing(RIGHT | {"attachments": [{"content": "aGk=", name: HIDDEN}]}, START)
    assert (refused.value.status, refused.value.name) == (422, "validation_error")
    assert f"attachments[0].{name}" in refused.value.message


def accepted_of(read: Callable[[], OutgoingEmail]) -> OutgoingEmail | None:
    """What the API makes of it, or None where it refuses; nothing else may happen."""
    try:
        return read()
    except Problem as problem:
        return refused(problem)


def refused(problem: Problem) -> None:
    assert 400 <= problem.status < 500


def written(accepted: OutgoingEmail | None) -> None:
    """Composed twice: as it came in, and from the texts that are kept of it."""
    if accepted is None:
        return
    files = [OutgoingFile(a.filename, a.content_type, a.data or b"", a.cid) for a in accepted.attachments]
    kept = [parse_mailbox(text) for text in accepted.to_texts]
    for to in (accepted.to, kept):
        compose(
            OutgoingMessage(
                sender=parse_mailbox(accepted.sender_text or ""),
                to=to,
                cc=accepted.cc,
                reply_to=accepted.reply_to,
                subject=accepted.subject or "",
                date=START,
                message_id="<a@harbor.example>",
                seed=b"seed",
                html=accepted.html,
                text=accepted.text,
                headers=accepted.headers,
                attachments=files,
            )
        )
    names = [file.filename for file in files]
    for value in (accepted.sender_text, *accepted.to_texts, *names, accepted.html or ""):
        value.encode()  # or no database could take it
