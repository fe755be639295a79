"""A body is described once: a handler parses by the struct that its route declares, which makes the OpenAPI
document too (docs/decisions/0162)."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from kit.brought import CAPTURE_ROUTES, ROUTES
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, Route, route
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire import fields
from pillarbox.kernel.wire.fields import parse

PARSERS = (fields.parse, fields.parse_value)

ELSEWHERE = {
    "POST /emails": "read by `emails.requests.parse`, which test_send_bodies compares with the struct",
    "POST /emails/batch": "its items are read as bodies of POST /emails are",
    "POST /contacts/imports": "a form is read part by part: `imports.wire.options_of` parses NewImport",
    "POST /mcp": "read by `mcp.server.message_of`: what is wrong with a message is an error of JSON-RPC",
}
"""Routes whose handlers do not parse their body, and what does."""

BY_HAND = ("json", "body", "raw")
"""What of a request holds its body."""


def test_a_handler_parses_its_body_as_what_its_route_declares() -> None:
    wrong = {
        f"{entry.method} {entry.path}": fault
        for entry in [*ROUTES, *CAPTURE_ROUTES]
        if f"{entry.method} {entry.path}" not in ELSEWHERE and (fault := fault_of(entry))
    }
    assert not wrong, "\n".join(f"{name}: {fault}" for name, fault in wrong.items())


def test_each_exception_is_still_one() -> None:
    needed = {f"{one.method} {one.path}" for one in [*ROUTES, *CAPTURE_ROUTES] if fault_of(one)}
    assert not ELSEWHERE.keys() - needed, "parse by the struct now: take them from ELSEWHERE"


def fault_of(entry: Route) -> str:
    """How the handler reads the body otherwise than as `entry.body`; "" where it does not."""
    handler = inspect.unwrap(entry.handler)
    tree = ast.parse(textwrap.dedent(inspect.getsource(handler)))
    kinds = list(parsed_kinds(tree, handler))
    if entry.body is None:
        return "it parses a body that the route does not declare" if kinds else ""
    if entry.parses_first:
        return "it parses what is parsed already" if kinds else ""
    if kinds != [entry.body]:
        parsed = ", ".join([name_of(kind) for kind in kinds]) or "nothing"
        return f"the route declares {name_of(entry.body)}, and it parses {parsed}"
    return members_read(tree)


def name_of(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


def parsed_kinds(tree: ast.AST, handler: Callable[..., Any]) -> Iterator[Any]:
    """The types that `parse` is called with, or handed on with as to a thread."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            whole = [call.func, *call.args]
            for function, kind in pairwise(whole):
                if found(function, handler) in PARSERS:
                    yield found(kind, handler)


def found(expression: ast.expr, handler: Callable[..., Any]) -> Any:
    """What a name, or a name in a module, stands for where the handler is defined."""
    match expression:
        case ast.Name():
            return handler.__globals__.get(expression.id)
        case ast.Attribute():
            return getattr(found(expression.value, handler), expression.attr, None)
    return None


def members_read(tree: ast.AST) -> str:
    """The place where a member of the body is read by hand beside the struct."""
    bodies = {
        target.id
        for line in ast.walk(tree)
        if isinstance(line, ast.Assign) and is_body(line.value)
        for target in line.targets
        if isinstance(target, ast.Name)
    }
    for place in ast.walk(tree):
        if isinstance(place, ast.Subscript | ast.Attribute):
            held = place.value
            if is_body(held) or (isinstance(held, ast.Name) and held.id in bodies):
                return f"`{ast.unparse(place)}` reads the body by hand"
    return ""


def is_body(expression: ast.expr) -> bool:
    """`request.json()`, `request.body` or `request.raw`."""
    if isinstance(expression, ast.Call):
        expression = expression.func
    match expression:
        case ast.Attribute(value=ast.Name(id="request"), attr=name):
            return name in BY_HAND
    return False


# The lint itself ----------------------------------------------------------------------------------


class Berth(msgspec.Struct):
    name: str


class Quay(msgspec.Struct):
    name: str


def toy(handler: Any, **options: Any) -> Route:
    """A route with this handler that declares a Berth."""
    handler.__dict__.pop("pillarbox_routes", None)
    route("POST", "/toys", needs=Access.PUBLIC, **{"body": Berth, **options})(handler)
    [made] = handler.__dict__["pillarbox_routes"]
    return made  # type: ignore[no-any-return]


async def by_struct(request: Request) -> Reply[Berth]:
    return Reply(parse(Berth, request.json()))


async def by_another_struct(request: Request) -> Reply[Berth]:
    return Reply(Berth(parse(Quay, request.json()).name))


async def by_hand(request: Request) -> Reply[Berth]:
    return Reply(Berth(request.json()["name"]))


async def beside_the_struct(request: Request) -> Reply[Berth]:
    body = request.json()
    berth = parse(Berth, body)
    return Reply(Berth(body.get("other", berth.name)))


async def in_a_thread(request: Request) -> Reply[Berth]:
    return Reply(await in_thread_if_large(request.size, parse, Berth, request.json()))


async def parsed_before(request: Request) -> Reply[Berth]:
    return Reply(request.wanted)


@pytest.mark.parametrize("handler", [by_struct, in_a_thread])
def test_a_struct_that_is_parsed_is_enough(handler: Any) -> None:
    assert fault_of(toy(handler)) == ""


@pytest.mark.parametrize(
    ("handler", "fault"),
    [
        (by_another_struct, "the route declares Berth, and it parses Quay"),
        (by_hand, "the route declares Berth, and it parses nothing"),
        (beside_the_struct, "`body.get` reads the body by hand"),
        (parsed_before, "the route declares Berth, and it parses nothing"),
    ],
)
def test_what_is_read_otherwise_is_named(handler: Any, fault: str) -> None:
    assert fault_of(toy(handler)) == fault


def test_a_body_that_is_parsed_first_is_that_of_the_route() -> None:
    assert fault_of(toy(parsed_before, parses_first=True)) == ""


def test_a_body_that_is_not_declared_is_not_parsed() -> None:
    assert fault_of(toy(by_struct, body=None)) == "it parses a body that the route does not declare"
