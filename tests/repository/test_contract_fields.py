"""The contract names every route of the API, every field of a body or answer, and every field of an event.

Where one fails: write the route (`METHOD /path`) or the field into the page of its resource, in the same
commit as the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kit.brought import ROUTES, WEBHOOKS
from kit.openapi_document import OpenApiDocument
from pillarbox.kernel.http.openapi import document

CONTRACT = Path(__file__).parents[2] / "docs" / "contract"

PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted(CONTRACT.glob("*.md"))}

FOR_PEOPLE = (
    *("/login", "/logout", "/confirm", "/set-up", "/password", "/account", "/team", "/invitation"),
    *("/dashboard", "/design", "/assets", "/docs", "/llms.txt", "/language"),
    *("/scripts", "/favicon.ico", "/oauth/authorize/{authorization}"),
)
"""Pages and their parts; docs/guide/people.md says what they do."""

DESCRIPTION = OpenApiDocument(document(ROUTES, "https://mail.harbor.example", WEBHOOKS))


def unnamed(path: str) -> str:
    """Return a path or a text with all parameters of paths alike."""
    return re.sub(r"\{[^}/\s]*\}", "{}", path)


UNNAMED = {name: unnamed(text) for name, text in PAGES.items()}


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in DESCRIPTION.document["paths"].items():
        if not path.startswith(FOR_PEOPLE):
            for method, operation in item.items():
                yield method.upper(), path, operation


def pages_of(method: str, path: str, pages: dict[str, str]) -> list[str]:
    """Return the pages that name the route: the path ends there, and the method stands in the same line."""
    place = re.compile(re.escape(unnamed(path)) + r"(?![\w/{])")
    return [
        name
        for name, text in pages.items()
        if any(place.search(line) and re.search(rf"\b{method}\b", line) for line in text.splitlines())
    ]


def words_of(names: list[str]) -> set[str]:
    """Return the words of these pages, of those that they refer to, and of the conventions."""
    texts = [PAGES[name] for name in names]
    referred = {name for text in texts for name in re.findall(r"[\w-]+\.md", text)} & PAGES.keys()
    return {
        word
        for text in [*texts, *(PAGES[name] for name in referred), PAGES["conventions.md"]]
        for word in re.findall(r"\w[\w-]*", text)
    }


def fields_of(schema: Any, seen: set[str]) -> Iterator[str]:
    """Yield the names of all properties of a schema, at any depth."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        if schema["$ref"] not in seen:
            seen.add(schema["$ref"])
            yield from fields_of(DESCRIPTION.resolved(schema), seen)
        return
    for name, below in schema.get("properties", {}).items():
        yield name
        yield from fields_of(below, seen)
    for key in ("items", "additionalProperties", "anyOf", "oneOf", "allOf"):
        below = schema.get(key)
        for part in below if isinstance(below, list) else [below]:
            yield from fields_of(part, seen)


def bodies_of(operation: dict[str, Any]) -> Iterator[Any]:
    """Yield the schemas of the body and of all answers that are no errors."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        yield content.get("schema")
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            for content in DESCRIPTION.resolved(response).get("content", {}).values():
                yield content.get("schema")


def test_the_contract_names_every_route() -> None:
    missing = [f"{method} {path}" for method, path, _ in operations() if not pages_of(method, path, UNNAMED)]
    assert missing == []


def test_the_contract_names_every_field_of_bodies_and_answers() -> None:
    missing = []
    for method, path, operation in operations():
        names = pages_of(method, path, UNNAMED)
        fields = {name for schema in bodies_of(operation) for name in fields_of(schema, set())}
        missing += [f"{method} {path}: {name} ({names})" for name in sorted(fields - words_of(names))]
    assert missing == []


def test_the_contract_names_every_field_of_events() -> None:
    missing = []
    for kind, item in DESCRIPTION.document["webhooks"].items():
        names = [name for name, text in PAGES.items() if kind in text]
        content = item["post"]["requestBody"]["content"]["application/json"]
        fields = set(fields_of(content["schema"], set()))
        missing += [f"{kind}: {name}" for name in sorted(fields - words_of(names))]
    assert missing == []


def test_a_field_or_route_that_is_missing_is_found() -> None:
    assert pages_of("GET", "/topics/{topic_id}", UNNAMED) == ["topics.md"]
    assert pages_of("GET", "/topics/{topic_id}/counts", UNNAMED) == []
    assert "default_subscription" in words_of(["topics.md"])
    assert "colour_of_the_topic" not in words_of(["topics.md"])
