"""From a request body to an `OutgoingEmail` (emails.md section 1), field by field in the order of its
table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from pillarbox.emails.outgoing import EmailTag, OutgoingEmail, UsedTemplate
from pillarbox.emails.requests import attachment_input
from pillarbox.emails.requests.schedule import ScheduleError, parse_schedule
from pillarbox.kernel.wire.problems import Invalid, InvalidField, MissingField, NotAUuid, Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.mail.html.plain_text import text_of
from pillarbox.mail.message.address import AddressError, Mailbox, parse_mailbox
from pillarbox.mail.message.encoded_words import FORBIDDEN
from pillarbox.mail.message.headers import HeaderError, check_custom_header, is_reserved
from pillarbox.mail.placeholders.parsing import MOST, has_too_many
from pillarbox.templates.published import PublishedTemplate
from pillarbox.templates.variables import given

MOST_RECIPIENTS = 50
MOST_SUBJECT = 998
MOST_TAKEN = 1024 * 1024
"""Octets of a request whose bodies are taken without a second look, in the loop."""
MOST_BODY = 10 * 1024 * 1024
MOST_HEADERS = 50
MOST_TAGS = 50

VARIABLES = "template.variables"
NO_TEMPLATES: Mapping[str, PublishedTemplate] = {}

REMEMBERED = 8192
REMEMBERED_LENGTH = 256
_parsed = lru_cache(REMEMBERED)(parse_mailbox)
"""Senders, and recipients who get several mails, are parsed once."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}", re.ASCII)


class MissingBody(Problem):
    status, name = 422, "missing_required_field"

    def __init__(self) -> None:
        super().__init__("Missing `html` or `text` field.")


class BodiesTooLarge(InvalidField):
    def __init__(self, field: str) -> None:
        super().__init__(field, "The bodies may have 10 MB together.")


def octets_to_read(size: int, items: Sequence[Any]) -> int:
    """Return how many of the `size` octets of a request with these items `outgoing` has to go through.

    Bodies are stored as they came, so they take no time, unless the text is made from the HTML. What the loop
    can read by itself would take half as long again in a thread.
    """
    if size > MOST_TAKEN:
        return size
    taken = 0
    for item in items:
        if isinstance(item, dict) and isinstance(text := item.get("text"), str):
            html = item.get("html")
            taken += len(text) + (len(html) if isinstance(html, str) else 0)
    return size - taken


def outgoing(
    body: object,
    now: datetime,
    templates: Mapping[str, PublishedTemplate] = NO_TEMPLATES,
    *,
    is_letter: bool = False,
    source: str | None = None,
) -> OutgoingEmail:
    """Parse one send request; raise the contract's problem for the first field that is wrong. `templates` are
    the team's that the request may name, `source` is stored with it.

    A letter is a whole message, as mail programs write it: it may be without `to`, subject and text.
    """
    if not isinstance(body, dict):
        raise Invalid("Invalid email. Use an object.")
    template = used_template(body.get("template"), templates)
    sender_text, sender = _sender(body.get("from"), template)
    to_texts, to = mailboxes("to", body.get("to"))
    if not to and not is_letter:
        raise MissingField("to")
    subject = _subject(body.get("subject"), template, may_lack=is_letter)
    cc_texts, cc = mailboxes("cc", body.get("cc"))
    bcc_texts, bcc = mailboxes("bcc", body.get("bcc"))
    reply_texts, reply_to = mailboxes("reply_to", body.get("reply_to"))
    html, text = _bodies(body, template, may_lack=is_letter)
    headers, reply_header = _headers(body.get("headers"))
    if not reply_to and reply_header is not None:
        reply_texts, reply_to = mailboxes("headers.Reply-To", reply_header)
    if not reply_to and template is not None and template.content is not None:
        reply_texts, reply_to = mailboxes("reply_to", list(template.content.reply_to or ()))
    attachments = attachment_input.read(body.get("attachments"))
    tags = _tags(body.get("tags"))
    scheduled_at = schedule(body.get("scheduled_at"), now)
    if scheduled_at is not None and scheduled_at <= now:
        scheduled_at = None  # `now`, or less than a minute ago: sent like any other mail
    topic_id = _topic(body.get("topic_id"))
    if topic_id is not None:
        _refuse_placeholders(html, text)
    if template is not None:
        template.check()
    if sender is None or subject is None:
        raise AssertionError("only a template that cannot be used leaves them open")
    return OutgoingEmail(
        sender_text=sender_text,
        sender=sender,
        to_texts=to_texts,
        to=to,
        cc_texts=cc_texts,
        cc=cc,
        bcc_texts=bcc_texts,
        bcc=bcc,
        reply_to_texts=reply_texts,
        reply_to=reply_to,
        subject=subject,
        html=html,
        text=text,
        headers=headers,
        attachments=attachments,
        tags=tags,
        scheduled_at=scheduled_at,
        topic_id=topic_id,
        template=template,
        source=source,
    )


def schedule(value: object, now: datetime) -> datetime | None:
    """Return the instant that `scheduled_at` means; None where the field is absent (emails.md 1.5)."""
    if value is None or value == "":
        return None
    return instant(string(value, "scheduled_at"), now)


def instant(text: str, now: datetime) -> datetime:
    """Return the instant that the text of a `scheduled_at` means."""
    try:
        return parse_schedule(text, now)
    except ScheduleError as wrong:
        raise InvalidField("scheduled_at", str(wrong)) from None


def string(value: object, field: str) -> str:
    """Return the value, where it is a string."""
    if not isinstance(value, str):
        raise InvalidField(field, "Use a string.")
    return value


def _sender(value: object, template: UsedTemplate | None) -> tuple[str, Mailbox | None]:
    if value is None or value == "":
        if template is None:
            raise MissingField("from")
        if template.content is None:
            return "", None
        value = template.content.sender
        if value is None:
            raise MissingField("from")
    return _mailbox("from", value)


def _mailbox(field: str, value: object) -> tuple[str, Mailbox]:
    if not isinstance(value, str):
        raise InvalidField(field, "Use a string.")
    try:
        return value.strip(), _parsed(value) if len(value) <= REMEMBERED_LENGTH else parse_mailbox(value)
    except AddressError as wrong:
        raise InvalidField(field, wrong.reason) from None


def mailboxes(field: str, value: object) -> tuple[Sequence[str], Sequence[Mailbox]]:
    """Return the addresses of a field, as they were given and as they go on the wire."""
    if value is None or value == "" or value == []:
        return (), ()
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list):
        raise InvalidField(field, "Use a string or an array of strings.")
    if len(items) > MOST_RECIPIENTS:
        raise InvalidField(field, f"Use at most {MOST_RECIPIENTS} addresses.")
    if len(items) == 1:
        text, mailbox = _mailbox(field, items[0])
        return (text,), (mailbox,)
    texts, found = zip(*[_mailbox(field, item) for item in items], strict=True)
    return texts, found


def _subject(value: object, template: UsedTemplate | None, *, may_lack: bool) -> str | None:
    if value is None or value == "":
        if may_lack:
            return ""
        if template is None:
            raise MissingField("subject")
        if template.content is None:
            return None
        value = template.content.subject
        if value is None:
            raise MissingField("subject")
    return subject_text(value)


def subject_text(value: object) -> str:
    """Return a subject that can be written; raise where it cannot."""
    if not isinstance(value, str):
        raise InvalidField("subject", "Use a string.")
    if len(value) > MOST_SUBJECT:
        raise InvalidField("subject", f"Use at most {MOST_SUBJECT} characters.")
    if FORBIDDEN.search(value):
        raise InvalidField("subject", "Line breaks and control characters are not allowed.")
    return value


def _bodies(
    body: Mapping[str, Any], template: UsedTemplate | None, *, may_lack: bool
) -> tuple[str | None, str | None]:
    html, text = body.get("html"), body.get("text")
    for field, value in (("html", html), ("text", text)):
        if value is not None and not isinstance(value, str):
            raise InvalidField(field, "Use a string.")
    if template is not None:
        if any(value is not None for value in (html, text, body.get("react"))):
            raise Invalid("Use either `template` or `html` and `text`, not both.")
        return None, None
    if not html and not text:
        if may_lack:
            return None, None
        raise MissingBody
    check_size(html, text)
    if text is None and isinstance(html, str):
        return html, text_of(html) or None
    return (str(html) if html else None), (str(text) if text else None)


def check_size(html: object, text: object) -> None:
    """Raise where the bodies are larger together than they may be."""
    if _size(html) + _size(text) > MOST_BODY:
        raise BodiesTooLarge("html" if html else "text")


def _size(body: object) -> int:
    if not isinstance(body, str):
        return 0
    return len(body) if body.isascii() else len(body.encode())


def _headers(value: object) -> tuple[Sequence[tuple[str, str]], str | None]:
    """Return the custom headers that are kept, and the value of a `Reply-To` among them."""
    if value is None:
        return (), None
    if not isinstance(value, dict):
        raise InvalidField("headers", "Use an object of strings.")
    if len(value) > MOST_HEADERS:
        raise InvalidField("headers", f"Use at most {MOST_HEADERS} headers.")
    kept: dict[str, tuple[str, str]] = {}
    reply_to = None
    for name, text in value.items():
        if not isinstance(text, str):
            raise InvalidField(f"headers.{_shown(name)}", "Use a string.")
        try:
            check_custom_header(name, text)
        except HeaderError as wrong:
            raise InvalidField(f"headers.{_shown(name)}", str(wrong)) from None
        if name.lower() == "reply-to":
            reply_to = text
        elif not is_reserved(name):
            kept[name.lower()] = (name, text)
    return list(kept.values()), reply_to


def _shown(name: str) -> str:
    """Return a header name that is safe to name in a message."""
    return _CONTROL.sub("_", name)[:40].replace("`", "_")


def _tags(value: object) -> Sequence[EmailTag]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidField("tags", "Use an array of `{name, value}` objects.")
    if len(value) > MOST_TAGS:
        raise InvalidField("tags", f"Use at most {MOST_TAGS} tags.")
    return [_tag(item, f"tags[{index}]") for index, item in enumerate(value)]


def _tag(item: object, field: str) -> EmailTag:
    if not isinstance(item, dict):
        raise InvalidField(field, "Use an object with `name` and `value`.")
    return EmailTag(_tag_part(item, field, "name"), _tag_part(item, field, "value"))


def _tag_part(item: Mapping[str, Any], field: str, part: str) -> str:
    value = item.get(part)
    if value is None or value == "":
        raise MissingField(f"{field}.{part}")
    if not isinstance(value, str) or not _TAG.fullmatch(value):
        raise InvalidField(f"{field}.{part}", "Use 1 to 256 ASCII letters, digits, underscores and dashes.")
    return value


def _topic(value: object) -> UUID | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not well_formed(value):
        raise NotAUuid("topic_id")
    return UUID(value)


def _refuse_placeholders(html: str | None, text: str | None) -> None:
    """Refuse too many placeholders: with a topic each recipient's copy has a link in their place."""
    for field, body in (("html", html), ("text", text)):
        if has_too_many(body):
            raise InvalidField(field, f"Use at most {MOST} placeholders.")


def used_template(value: object, templates: Mapping[str, PublishedTemplate]) -> UsedTemplate | None:
    """Return the template that is named, with the values that are given for its variables."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InvalidField("template", "Use an object with `id` and `variables`.")
    name = value.get("id")
    if name is None or name == "":
        raise MissingField("template.id")
    if not isinstance(name, str):
        raise InvalidField("template.id", "Use the id or the alias of a template.")
    return UsedTemplate(templates.get(name), given(value.get("variables"), VARIABLES))


def template_names(items: Sequence[Any]) -> set[str]:
    """Return the ids and aliases of the templates that the items of a request use, where they can be read."""
    uses = [item.get("template") for item in items if isinstance(item, dict)]
    names = [use.get("id") for use in uses if isinstance(use, dict)]
    return {name for name in names if isinstance(name, str) and name}
