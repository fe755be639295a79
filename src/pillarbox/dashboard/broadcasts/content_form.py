"""The form of a broadcast's content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from hashlib import sha256
from typing import Any, Final

import msgspec

from pillarbox.dashboard.emails.send_form import split_addresses
from pillarbox.dashboard.people.page_visits import Form

CONTENT_BYTES: Final = 3 * 1024 * 1024
"""Octets of a form with a content."""

REVISION: Final = 32
"""Characters of a revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentForm:
    """The fields as they are typed."""

    name: str = ""
    sender: str = ""
    subject: str = ""
    preview_text: str = ""
    reply_to: str = ""
    html: str = ""
    text: str = ""

    def body(self) -> dict[str, Any]:
        """Return the fields of a new broadcast; empty ones are left out."""
        return {name: value for name, value in self.changes().items() if value is not None}

    def changes(self) -> dict[str, Any]:
        """Return the fields of a change; empty ones are null."""
        texts = {
            "name": self.name.strip(),
            "from": self.sender.strip(),
            "subject": self.subject.strip(),
            "preview_text": self.preview_text.strip(),
            "html": self.html if self.html.strip() else "",
            "text": self.text if self.text.strip() else "",
        }
        return {
            **{name: value or None for name, value in texts.items()},
            "reply_to": split_addresses(self.reply_to) or None,
        }


def revision_of(broadcast: Mapping[str, Any]) -> str:
    """Return a text that stands for what the form of a draft shows: all but the mail, which the editor may
    change meanwhile."""
    head = replace(shown_content(broadcast), html="", text="")
    return sha256(msgspec.json.encode(astuple(head))).hexdigest()[:REVISION]


def content_of(form: Form) -> ContentForm:
    """Return what the form holds."""
    return ContentForm(
        name=form.get("name"),
        sender=form.get("from"),
        subject=form.get("subject"),
        preview_text=form.get("preview_text"),
        reply_to=form.get("reply_to"),
        html=form.get("html").replace("\r\n", "\n"),
        text=form.get("text").replace("\r\n", "\n"),
    )


def shown_content(broadcast: Mapping[str, Any]) -> ContentForm:
    """Return the content of a broadcast as the form shows it."""
    return ContentForm(
        name=broadcast["name"] or "",
        sender=broadcast["from"],
        subject=broadcast["subject"],
        preview_text=broadcast["preview_text"] or "",
        reply_to="\n".join(broadcast["reply_to"] or ()),
        html=broadcast["html"] or "",
        text=broadcast["text"] or "",
    )
