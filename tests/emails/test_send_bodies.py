"""`emails.requests.parse` reads bodies by hand, which is faster than by the struct (docs/decisions/0162).

The fields that it reads are those that `wire.SendEmail` declares. It takes and refuses what the
OpenAPI document allows and forbids.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from kit.brought import ROUTES
from kit.openapi_document import OpenApiDocument
from pillarbox.emails import wire
from pillarbox.emails.requests import parse
from pillarbox.kernel.http.openapi import document
from pillarbox.kernel.wire.problems import NotFound, Problem

NOW = datetime(2026, 10, 3, 8, 15, tzinfo=UTC)
DOCUMENT = OpenApiDocument(document(ROUTES))
SHAPES: dict[str, type[msgspec.Struct]] = {
    "": wire.SendEmail,
    "attachments": wire.AttachmentIn,
    "tags": wire.TagIn,
    "template": wire.TemplateIn,
}
"""The struct of a body, and those of its parts by the field that holds them."""

SCHEMA = {"$ref": "#/components/schemas/SendEmail"}

UNDECLARED = {("", "react")}
"""SDKs make html of it. Beside a template it is refused as html is."""

MAIL = {
    "from": "Harbor <notes@harbor.example>",
    "to": ["ada@quay.example"],
    "subject": "Berth 12",
    "html": "<p>Ready</p>",
    "text": "Ready",
    "cc": "cy@quay.example",
    "bcc": ["bo@quay.example"],
    "reply_to": "a@quay.example",
    "headers": {"X-Berth": "12"},
    "tags": [{"name": "kind", "value": "berth"}],
    "scheduled_at": "in 1 hour",
    "topic_id": str(uuid4()),
    "attachments": [{"content": "aGk=", "filename": "plan.txt", "content_id": "plan"}],
}
OF_A_TEMPLATE = {"to": "ada@quay.example", "template": {"id": "welcome", "variables": {"NAME": "Ada"}}}
BY_URL = {**MAIL, "attachments": [{"path": "https://quay.example/plan.txt", "inline_content_id": "plan"}]}

TEXTS = {
    "from": "Harbor <notes@harbor.example>",
    "to": "ada@quay.example",
    "cc": "ada@quay.example",
    "bcc": "ada@quay.example",
    "reply_to": "ada@quay.example",
    "scheduled_at": "in 1 hour",
    "topic_id": str(uuid4()),
    "content": "aGk=",
    "content_type": "text/plain",
    "path": "https://quay.example/plan.txt",
}
"""A text that means something, for fields where not every one does."""

# Names --------------------------------------------------------------------------------------------


class WatchedObject(dict[str, Any]):
    """An object that notes which of its members are looked at."""

    def __init__(self, members: dict[str, Any], place: str, seen: set[tuple[str, str]]) -> None:
        super().__init__(members)
        self._place = place
        self._seen = seen

    def get(self, name: str, default: Any = None) -> Any:
        self._seen.add((self._place, name))
        return super().get(name, default)

    def __getitem__(self, name: str) -> Any:
        self._seen.add((self._place, name))
        return super().__getitem__(name)


def watched(body: dict[str, Any], seen: set[tuple[str, str]]) -> WatchedObject:
    """The body; it and the objects in it are watched."""

    def inside(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [inside(name, item) for item in value]
        return WatchedObject(value, name, seen) if name in SHAPES and isinstance(value, dict) else value

    return WatchedObject({name: inside(name, value) for name, value in body.items()}, "", seen)


def test_the_fields_that_are_read_are_those_that_are_declared() -> None:
    seen: set[tuple[str, str]] = set()
    for body in (MAIL, BY_URL, OF_A_TEMPLATE):
        try:
            parse.outgoing(watched(body, seen), NOW)
        except NotFound:
            assert "template" in body
    declared = {
        (place, field.encode_name)
        for place, shape in SHAPES.items()
        for field in msgspec.structs.fields(shape)
    }
    assert seen == declared | UNDECLARED


# Values -------------------------------------------------------------------------------------------

Place = tuple[str | int, ...]

BODIES: list[tuple[dict[str, Any], list[Place]]] = [
    (MAIL, [(name,) for name in MAIL if name not in ("html", "text")]),
    ({**MAIL, "text": ""}, [("html",)]),
    ({**MAIL, "html": ""}, [("text",)]),
    (MAIL, [("tags", 0, "name"), ("tags", 0, "value")]),
    (MAIL, [("attachments", 0, name) for name in ("content", "filename", "content_type", "content_id")]),
    (BY_URL, [("attachments", 0, name) for name in ("path", "inline_content_id")]),
    (OF_A_TEMPLATE, [("template",), ("template", "id"), ("template", "variables")]),
]
"""Each field, with a body in which it counts."""

CONDITIONAL = {
    *[(name,) for name in ("from", "subject", "html", "text", "template")],
    *[("attachments", 0, name) for name in ("content", "path")],
}
"""Fields that may be null only beside others that these bodies do not have."""


def test_each_field_is_in_a_body() -> None:
    named = {(place[0] if len(place) > 1 else "", place[-1]) for _, places in BODIES for place in places}
    assert named == {
        (holder, field.encode_name)
        for holder, shape in SHAPES.items()
        for field in msgspec.structs.fields(shape)
    }


@pytest.mark.parametrize(
    ("body", "place"), [pytest.param(body, one, id=str(one)) for body, places in BODIES for one in places]
)
def test_a_value_is_taken_where_the_document_allows_it(body: dict[str, Any], place: Place) -> None:
    wrong = []
    for value in values_of(place):
        changed = replaced(body, place, value)
        is_allowed = not DOCUMENT.errors(SCHEMA, changed) and not (value is None and place in CONDITIONAL)
        refusal = refusal_of(changed)
        if is_allowed != (refusal is None):
            wrong.append(f"{repr(value)[:60]}: {refusal or 'taken'}")
    assert not wrong, "\n".join(wrong)


def values_of(place: Place) -> Iterator[Any]:
    """A value of each type of JSON, and values at the limits that the document names and beyond them."""
    name = str(place[-1])
    text = TEXTS.get(name, "a")
    yield from (None, 5, 1.5, True, {}, [], [5], [None], {"a": 5}, {"a": None}, text, [text])
    whole = schema_of(place)
    for schema in map(DOCUMENT.resolved, (whole, *whole.get("anyOf", ()))):
        for length in limits(schema, "maxLength"):
            yield text.ljust(length, " " if name == "scheduled_at" else "a")
        for length in limits(schema, "maxItems"):
            yield [MAIL[name][0] if name in ("tags", "attachments") else text] * length
        for length in limits(schema, "maxProperties"):
            yield {f"X-{number}": "a" for number in range(length)}
        for length in limits(schema.get("additionalProperties", {}), "maxLength"):
            yield {"X-Berth": "a" * length}


def limits(schema: dict[str, Any], word: str) -> tuple[int, ...]:
    """The most that is allowed, and one more."""
    return (schema[word], schema[word] + 1) if word in schema else ()


def schema_of(place: Place) -> dict[str, Any]:
    """What the document says of a field."""
    found = DOCUMENT.resolved(SCHEMA)
    for step in place:
        if isinstance(step, int):
            found = found["items"]
        else:
            kinds = map(DOCUMENT.resolved, (found, *found.get("anyOf", ())))
            found = next(kind["properties"][step] for kind in kinds if "properties" in kind)
        found = DOCUMENT.resolved(found)
    return found


def replaced(body: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    """The body with another value in this place."""
    whole = copy.deepcopy(body)
    holder: Any = whole
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    return whole


def refusal_of(body: dict[str, Any]) -> str | None:
    """Why the body is refused; None where it is taken. There is no template."""
    try:
        parse.outgoing(body, NOW)
    except NotFound:
        return None
    except Problem as problem:
        return problem.message
    return None
