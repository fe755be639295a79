"""The form that sends an email: written here, or made from a published template."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pillarbox.dashboard.emails.email_list import HERE as EMAILS
from pillarbox.dashboard.frame.form_keys import form_key, key_after, new_key
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.emails.permitted_senders import PermittedSenders
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

HERE: Final = "/dashboard/send"
FIELDS: Final = ("from", "to", "cc", "bcc", "reply_to", "subject", "html", "text", "scheduled_at")
LISTS: Final = ("to", "cc", "bcc", "reply_to")
VARIABLE: Final = "variable."
"""The text before a variable's key in the name of its field."""
LARGEST_FORM: Final = 2 * 1024 * 1024
LONGEST_COPY: Final = 500_000
"""So many characters of an email's bodies are copied into the form."""

_NAMED_FIELD = re.compile(r"`([a-z_]+)[`.\[]")
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,10})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class SendValues:
    """Contents of the form: its fields, the template with the values of its variables, and its key.

    `key` is the Idempotency-Key: a form that is sent twice sends one email.
    """

    fields: Mapping[str, str]
    template: str
    variables: Mapping[str, str]
    key: str


@screen(
    HERE,
    title="send.title",
    words="send.words",
    right=Right.USE,
    navigation=NavigationEntry(group="email", order=24, icon="send", keys="s"),
    query={"again": str, "template": str, "to": str},
)
async def show(visit: Visit) -> Reply[Html]:
    again = visit.request.query.text("again")
    if again and well_formed(again):
        return await _again(visit, again)
    template = visit.request.query.text("template") or ""
    fields = {
        "from": "" if template else await usual_sender(visit),
        "to": visit.request.query.text("to") or visit.visitor.email,
    }
    return await form_page(visit, SendValues(fields, template, {}, new_key(visit)))


@act(HERE, title="send.title", back=HERE, records=Act.EMAILS_SENT, limit=LARGEST_FORM)
async def send(visit: Visit, form: Form) -> Reply[Html]:
    """Send the email and show it; an error shows the form with what was typed."""
    given = typed(visit, form)
    try:
        shape = await _template(visit, given.template)
        answer = await visit.post("/emails", request_body(given, shape), key=given.key)
    except Problem as problem:
        given = replace(given, key=key_after(visit, form, problem))
        return await form_page(visit, given, status=problem.status, problem=problem.message)
    visit.has_acted(answer["id"])
    return visit.to(f"{EMAILS}/{answer['id']}", done="email_sent")


def typed(visit: Visit, form: Form) -> SendValues:
    """Return what the form holds."""
    variables = {
        name.removeprefix(VARIABLE): value for name, value in form.fields if name.startswith(VARIABLE)
    }
    return SendValues(
        {name: form.get(name) for name in FIELDS},
        form.get("template"),
        variables,
        form_key(visit, form),
    )


def request_body(given: SendValues, template: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the body of `POST /emails`; empty fields are left out."""
    body: dict[str, Any] = {}
    for name in FIELDS:
        text = given.fields.get(name, "")
        if name in LISTS:
            if addresses := split_addresses(text):
                body[name] = addresses
        elif text.strip():
            body[name] = text.strip() if name != "html" else text
    if template is None:
        return body
    body.pop("html", None)
    body.pop("text", None)
    kinds = {variable["key"]: variable["type"] for variable in template["variables"]}
    values = {key: _value(text, kinds.get(key)) for key, text in given.variables.items() if text}
    body["template"] = {"id": template["id"], "variables": values}
    return body


def split_addresses(text: str) -> list[str]:
    """Return the addresses of a field, divided by lines, commas and semicolons.

    A quoted name keeps its commas; a quotation ends with its line. The text is walked through once.
    """
    parts: list[str] = []
    begin, is_quoted, is_escaped = 0, False, False
    for index, letter in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif is_quoted and letter == "\\":
            is_escaped = True
        elif letter == '"':
            is_quoted = not is_quoted
        if letter == "\n" or (letter in ",;" and not is_quoted):
            parts.append(text[begin:index])
            begin, is_quoted, is_escaped = index + 1, False, False
    return [address for part in [*parts, text[begin:]] if (address := part.strip())]


async def usual_sender(visit: Visit) -> str:
    """Return the sender of the last email, else one of a verified domain, else the one for trying out."""
    emails = (await visit.get("/emails", shown=False, limit=1))["data"]
    if emails:
        return str(emails[0]["from"])
    domains = (await visit.get("/domains", shown=False, limit=20))["data"]
    if names := [domain["name"] for domain in domains if domain["status"] == "verified"]:
        return f"hello@{names[0]}"
    simulated = sorted(visit.request.use(PermittedSenders).simulator_domains)
    return f"onboarding@{simulated[0]}" if simulated else ""


async def form_page(
    visit: Visit,
    given: SendValues,
    *,
    status: int = 200,
    problem: str | None = None,
    note: str | None = None,
) -> Reply[Html]:
    """Show the form with these values; `problem` says what was wrong with them, `note` what they lack."""
    listed = (await visit.get("/templates", shown=False, limit=100))["data"]
    published = {entry["id"]: entry["name"] for entry in listed if entry["status"] == "published"}
    try:
        template = await _template(visit, given.template)
    except NotFound as missing:
        template, problem = None, problem or missing.message
    wrong = _NAMED_FIELD.search(problem or "")
    return await visit.draw(
        "emails/send.html",
        status=status,
        problem=problem,
        note=note,
        here=HERE,
        fields={**dict.fromkeys(FIELDS, ""), **given.fields},
        key=given.key,
        templates=published,
        used_template=template,
        variables=_variables(template, given.variables),
        wrong=wrong[1] if wrong else None,
        from_template=bool(given.template) or visit.request.query.last("template") is not None,
        has_more=any(given.fields.get(name) for name in ("cc", "bcc", "reply_to")),
    )


async def _again(visit: Visit, email_id: str) -> Reply[Html]:
    """Show the form filled from a sent email."""
    email = await visit.get(f"/emails/{email_id}", shown=False)
    files = (await visit.get(f"/emails/{email_id}/attachments", shown=False, limit=1))["data"]
    html, text = email["html"] or "", email["text"] or ""
    is_long = len(html) + len(text) > LONGEST_COPY
    fields = {
        **{name: "\n".join(email[name] or ()) for name in LISTS},
        "from": email["from"],
        "subject": email["subject"],
        "html": "" if is_long else html,
        "text": "" if is_long else text,
    }
    note = t("send.too_long") if is_long else t("send.no_files") if files else None
    return await form_page(visit, SendValues(fields, "", {}, new_key(visit)), note=note)


async def _template(visit: Visit, name: str) -> Mapping[str, Any] | None:
    """Return the template of the form; None where it has none. Raises NotFound."""
    if not name:
        return None
    found: Mapping[str, Any] = await visit.get(f"/templates/{name}", shown=False)
    return found


def _variables(
    template: Mapping[str, Any] | None, values: Mapping[str, str]
) -> Sequence[tuple[str, str, object]]:
    """Return the variables of the template: key, what was typed, and the value without one."""
    if template is None:
        return ()
    return [
        (entry["key"], values.get(entry["key"], ""), entry["fallback_value"])
        for entry in template["variables"]
    ]


def _value(text: str, kind: str | None) -> str | int | float:
    """Return the value of a variable; a number stays text where it is none, so the API says so."""
    if kind != "number" or not _NUMBER.fullmatch(text.strip()):
        return text
    return float(text) if "." in text else int(text)
