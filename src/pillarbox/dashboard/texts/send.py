"""Texts of the form that sends an email."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "send.title": "Send",
    "send.words": "new email, write, compose, test mail, try out, template",
    "send.written": "Write it",
    "send.from_template": "From a template",
    "send.lead": "For trying things out: the email goes the same way as one that is sent over the API.",
    "send.template": "Template",
    "send.choose": "Use this template",
    "send.no_templates": "No published template yet",
    "send.no_templates.text": "Publish a template first; its variables can then be filled in here.",
    "send.templates": "Templates",
    "send.variables": "Variables",
    "send.fallback": "Left empty: {value}",
    "send.from_hint": "An address of a verified domain, with or without a name.",
    "send.from_template_hint": "Left empty: that of the template.",
    "send.to_hint": "One address on each line, or several with commas between them.",
    "send.more": "Cc, Bcc and Reply-To",
    "send.html": "HTML",
    "send.text": "Text",
    "send.text_hint": "Left empty where there is HTML: made from the HTML.",
    "send.scheduled_at": "Send at",
    "send.scheduled_hint": "Left empty: at once. Otherwise “in 1 hour”, “tomorrow at 9am Europe/Berlin” or "
    "an ISO time; UTC where no zone is named.",
    "send.send": "Send",
    "send.too_long": "The bodies of that email are too long for this form: they are left out.",
    "send.no_files": "The attachments of that email are not copied.",
    "done.email_sent": "The email is accepted.",
}
