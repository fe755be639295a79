"""Checks answers of the API against the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import jsonschema_rs


class OpenApiDocument:
    """What `/openapi.json` says, and whether an answer is so."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._validators: dict[str, jsonschema_rs.Validator] = {}

    def operation(self, method: str, path: str) -> dict[str, Any]:
        """Return what the document says of a route, by the pattern of its path."""
        found: dict[str, Any] = self.document["paths"][path][method.lower()]
        return found

    def response(self, method: str, path: str, status: int) -> dict[str, Any]:
        """Return what the document says of one status of a route."""
        return self.resolved(self.operation(method, path)["responses"][str(status)])

    def resolved(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return the value that a `$ref` leads to."""
        while "$ref" in value:
            found: Any = self.document
            for part in value["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            value = found
        return value

    def faults(self, method: str, path: str, answer: httpx.Response) -> list[str]:
        """Return how an answer differs from the document: status, media type, headers, body, order of
        the keys."""
        responses = self.operation(method, path)["responses"]
        if str(answer.status_code) not in responses:
            return [f"{answer.status_code} is not documented"]
        described = self.response(method, path, answer.status_code)
        media = answer.headers["content-type"].partition(";")[0]
        shown = described["content"].get(media, described["content"].get("*/*"))
        if shown is None:
            return [f"{media} is not documented"]
        faults = self._header_faults(described["headers"], answer)
        if media == "application/json" and shown:
            body = answer.json()
            faults += [str(error) for error in self.errors(shown["schema"], body)]
            faults += self.disorder(shown["schema"], body, "$")
        return faults

    def _header_faults(self, described: dict[str, Any], answer: httpx.Response) -> list[str]:
        headers = {name: self.resolved(header) for name, header in described.items()}
        lacking = [
            name for name, one in headers.items() if one.get("required") and name not in answer.headers
        ]
        known = {*headers, *STANDING}
        return [f"header {name} is missing" for name in lacking] + [
            f"header {name} is not documented" for name in answer.headers if name not in known
        ]

    def errors(self, schema: dict[str, Any], body: Any) -> list[str]:
        """Return why a body is not what a schema says; formats count."""
        name = repr(schema)
        if name not in self._validators:
            self._validators[name] = validator_of(schema, self.document["components"]["schemas"])
        return [
            f"{error.instance_path}: {error.message}" for error in self._validators[name].iter_errors(body)
        ]

    def disorder(self, schema: dict[str, Any], body: Any, where: str) -> list[str]:
        """Return where the keys of an object stand in another order than in the document."""
        schema = self.resolved(schema)
        for choice in schema.get("anyOf", ()):
            if not self.errors(choice, body):
                return self.disorder(choice, body, where)
        if isinstance(body, list) and "items" in schema:
            return [fault for item in body for fault in self.disorder(schema["items"], item, f"{where}[]")]
        if not isinstance(body, dict) or "properties" not in schema:
            return []
        order = [name for name in schema["properties"] if name in body]
        faults = [] if order == [*body] else [f"{where}: {[*body]} instead of {order}"]
        for name in order:
            faults += self.disorder(schema["properties"][name], body[name], f"{where}.{name}")
        return faults


def validator_of(schema: dict[str, Any], schemas: Mapping[str, Any]) -> jsonschema_rs.Validator:
    """Return what checks a value by a schema of the document; formats count. It is compiled with those
    schemas alone that this one names: all of them take longer than the rest of a test."""
    used: dict[str, Any] = {}
    wanted = names_in(schema)
    while wanted:
        name = wanted.pop()
        if name not in used:
            used[name] = schemas[name]
            wanted |= names_in(schemas[name])
    whole = {**schema, "components": {"schemas": used}}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def names_in(value: Any) -> set[str]:
    """Return the names of the schemas that a part of the document refers to."""
    if isinstance(value, list):
        return set().union(*map(names_in, value))
    if not isinstance(value, dict):
        return set()
    named = value.get("$ref")
    own = {named.removeprefix(REFERENCE)} if isinstance(named, str) else set()
    return own.union(*map(names_in, value.values()))


REFERENCE = "#/components/schemas/"

STANDING = frozenset(
    (
        *("content-type", "content-length", "server", "cache-control", "x-content-type-options"),
        *("date", "connection", "transfer-encoding", "accept-ranges", "content-disposition"),
        *("cross-origin-opener-policy", "cross-origin-resource-policy"),
        *("content-security-policy", "referrer-policy", "x-robots-tag", "x-frame-options", "set-cookie"),
        *("etag", "vary"),
    )
)
"""Headers that every answer may carry, or that belong to pages and files."""
