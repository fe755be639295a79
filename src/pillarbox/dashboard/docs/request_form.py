"""The form that sends a call of the API with the rights of whoever has logged in, and shows the answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import msgspec

from pillarbox.dashboard.docs.doc_pages import Documentation
from pillarbox.dashboard.docs.reference import ApiReference, Operation, path_with
from pillarbox.dashboard.frame.json_text import indented_text
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit, right_of
from pillarbox.dashboard.people.page_visits import Form, to_confirm
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.body import ClientGone
from pillarbox.kernel.http.failures import problem_for
from pillarbox.kernel.http.openapi import IDEMPOTENCY_KEY
from pillarbox.kernel.http.rendering import problem_reply
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.http.routing import Route, RouteTable
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire.problems import Problem
from pillarbox.logs.masking import masked_response
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

HERE: Final = "/dashboard/request"
LARGEST_FORM: Final = 256 * 1024
SHOWN: Final = 32 * 1024
"""Octets of an answer that the page shows."""

CONFIRMED: Final = ("api-keys", "oauth")
"""First segments of paths whose writes ask for a recent login, as their screens do."""

MANAGERS_READ: Final = ("oauth",)
"""First segments of paths that only those who manage the team read: they show what others have."""


class RequestFormError(Exception):
    """A form whose fields are no request; the text says why."""


@dataclass(frozen=True, slots=True)
class RequestValues:
    """Contents of the form: parameters by place and name, and the body."""

    parameters: Mapping[str, str] = field(default_factory=dict)
    body: str = ""

    def get(self, place: str, name: str) -> str:
        """Return the value of a parameter."""
        return self.parameters.get(f"{place}.{name}", "")


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer as the page shows it: as text, and not all of a long one."""

    status: int
    headers: Sequence[tuple[str, str]]
    text: str | None
    is_cut: bool
    is_file: bool
    is_masked: bool
    milliseconds: int


@screen(HERE, title="request.title", words="request.words", query={"operation": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show the form of an operation, or all operations to choose from."""
    reference = await visit.request.use(Documentation).reference(visit.request)
    slug = visit.request.query.text("operation")
    operation = _sendable(reference, slug)
    if slug and operation is None:
        return await visit.draw(
            "docs/request.html", status=404, problem=t("request.unknown"), **_nothing(reference)
        )
    if operation is None:
        return await visit.draw("docs/request.html", **_nothing(reference))
    values = _with_key(visit, operation, _first_values(reference, operation))
    return await form_page(visit, reference, operation, values)


@act(HERE, title="request.title", right=Right.VIEW, back=HERE, limit=LARGEST_FORM)
async def send(visit: Visit, form: Form) -> Reply[Html]:
    """Send the call and show its answer below the form."""
    reference = await visit.request.use(Documentation).reference(visit.request)
    operation = _sendable(reference, form.get("operation"))
    if operation is None:
        return await visit.draw(
            "docs/request.html", status=404, problem=t("request.unknown"), **_nothing(reference)
        )
    values = _typed(operation, form)
    if not _may_send(visit, operation):
        problem = t("request.not_allowed")
        return await form_page(visit, reference, operation, values, status=403, problem=problem)
    if operation.method != "GET" and form.get("confirmed") != "yes":
        problem = t("request.unconfirmed")
        return await form_page(visit, reference, operation, values, status=422, problem=problem)
    if _needs_login(operation) and not visit.visitor.is_confirmed(visit.request.at):
        return to_confirm(visit.request, visit.visitor, form, (), _address(operation))
    try:
        answer = await _answer(visit, operation, values)
    except RequestFormError as bad:
        return await form_page(visit, reference, operation, values, status=422, problem=str(bad))
    values = _with_key(visit, operation, values)
    return await form_page(visit, reference, operation, values, answer=answer)


async def form_page(
    visit: Visit,
    reference: ApiReference,
    operation: Operation,
    values: RequestValues,
    *,
    status: int = 200,
    problem: str | None = None,
    answer: ShownAnswer | None = None,
) -> Reply[Html]:
    """Show the form with these values, and the answer if there is one."""
    return await visit.draw(
        "docs/request.html",
        status=status,
        problem=problem,
        here=HERE,
        resources=reference.resources(),
        operation=operation,
        values=values,
        answer=answer,
        may_send=_may_send(visit, operation),
        changes=operation.method != "GET",
    )


def _nothing(reference: ApiReference) -> dict[str, Any]:
    """Return what the page shows where no operation is chosen."""
    return {"here": HERE, "resources": reference.resources(), "operation": None, "answer": None}


def _sendable(reference: ApiReference, slug: str | None) -> Operation | None:
    operation = reference.by_slug.get(slug or "")
    return operation if operation is not None and operation.can_be_sent else None


def _address(operation: Operation) -> str:
    return f"{HERE}?operation={operation.slug}"


def _segment(operation: Operation) -> str:
    return operation.path.split("/")[1]


def _may_send(visit: Visit, operation: Operation) -> bool:
    """Return whether the visitor's role allows the call."""
    if _segment(operation) in MANAGERS_READ:
        return visit.may(Right.MANAGE)
    return visit.may(right_of(operation.method, operation.path))


def _needs_login(operation: Operation) -> bool:
    return operation.method != "GET" and _segment(operation) in CONFIRMED


def _first_values(reference: ApiReference, operation: Operation) -> RequestValues:
    """Return the values of a form that nobody has filled in: an example of the body."""
    example = reference.body_example(operation)
    return RequestValues({}, "" if example is None else indented_text(msgspec.json.encode(example).decode()))


def _with_key(visit: Visit, operation: Operation, values: RequestValues) -> RequestValues:
    """Return the values with a new Idempotency-Key: a form that is sent twice acts once."""
    if not any(entry["name"] == IDEMPOTENCY_KEY["name"] for entry in operation.parameters):
        return values
    key = f"header.{IDEMPOTENCY_KEY['name']}"
    return RequestValues({**values.parameters, key: str(visit.request.id)}, values.body)


def _typed(operation: Operation, form: Form) -> RequestValues:
    names = [f"{entry['in']}.{entry['name']}" for entry in operation.parameters]
    return RequestValues({name: form.get(name).strip() for name in names}, form.get("body"))


# The call ------------------------------------------------------------------------------------------


async def _answer(visit: Visit, operation: Operation, values: RequestValues) -> ShownAnswer:
    """Send the call. Refusals of the API are answers too; raises RequestFormError for what is no request."""
    path = _path(visit, operation, values)
    query = {
        entry["name"]: values.get("query", entry["name"])
        for entry in operation.parameters
        if entry["in"] == "query"
    }
    headers = _headers(operation, values)
    body = (
        await in_thread_if_large(len(values.body), _json_body, values.body) if operation.body_media else None
    )
    began = time.perf_counter()
    if operation.method != "GET":
        visit.acts_on(f"{operation.method} {path}", Act.REQUEST_SENT)
    try:
        reply = await visit.ask(operation.method, path, query, body, headers)
        if operation.method != "GET":
            visit.has_acted(f"{operation.method} {path}", Act.REQUEST_SENT)
    except ClientGone:
        raise
    except Exception as failure:
        reply = problem_reply(problem_for(failure, visit.request.id))
    milliseconds = round((time.perf_counter() - began) * 1000)
    # Whoever may write sees what the answer to it holds: the link of a shared email.
    shows_secrets = visit.may(Right.MANAGE) or operation.method != "GET"
    return await _shown(reply, milliseconds, shows_secrets=shows_secrets)


def _path(visit: Visit, operation: Operation, values: RequestValues) -> str:
    """Return the path with its values; it has to mean this operation and no other."""
    given = {
        entry["name"]: values.get("path", entry["name"])
        for entry in operation.parameters
        if entry["in"] == "path"
    }
    for name, value in given.items():
        if not value:
            raise RequestFormError(t("request.missing", name=name))
    path = path_with(operation.path, {name: quote(value, safe="@:-._~") for name, value in given.items()})
    table = visit.request.use(RouteTable)
    if _route(table, operation.method, path) is not _route(table, operation.method, operation.path):
        raise RequestFormError(t("request.other_path"))
    return path


def _route(table: RouteTable, method: str, path: str) -> Route | None:
    try:
        return table.match(method, path)[0]
    except Problem:
        return None


def _headers(operation: Operation, values: RequestValues) -> list[tuple[bytes, bytes]]:
    headers = []
    for entry in operation.parameters:
        if entry["in"] == "header" and (value := values.get("header", entry["name"])):
            if not (value.isascii() and value.isprintable()):
                raise RequestFormError(t("request.no_header", name=entry["name"]))
            headers.append((entry["name"].lower().encode(), value.encode()))
    return headers


def _json_body(text: str) -> Any:
    """Return the body; None where nothing was typed."""
    if not text.strip():
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as wrong:
        raise RequestFormError(t("request.not_json", reason=str(wrong))) from None
    except RecursionError:
        raise RequestFormError(t("request.not_json", reason=t("request.too_deep"))) from None


async def _shown(reply: Reply[Any], milliseconds: int, *, shows_secrets: bool) -> ShownAnswer:
    headers = [("content-type", reply.media), *reply.headers.items()]
    if reply.streamed:
        await reply.body.aclose()
        return ShownAnswer(
            status=reply.status or 200,
            headers=headers,
            text=None,
            is_cut=False,
            is_file=True,
            is_masked=False,
            milliseconds=milliseconds,
        )
    await reply.encode()
    body = reply.body
    if not shows_secrets and reply.media.startswith("application/json"):
        body = await in_thread_if_large(len(body), masked_response, body)
    cut = body[:SHOWN]
    text = indented_text(cut.decode("utf-8", "replace")) if body else None
    return ShownAnswer(
        status=reply.status or 200,
        headers=headers,
        text=text,
        is_cut=len(body) > SHOWN,
        is_file=False,
        is_masked=body is not reply.body,
        milliseconds=milliseconds,
    )
