"""The OpenAPI document is made from the route table that answers."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from kit import probe_routes
from kit.brought import ROUTES, WEBHOOKS
from kit.client import http_server
from kit.openapi_document import OpenApiDocument
from pillarbox.emails.requests import parse
from pillarbox.kernel.http import openapi
from pillarbox.kernel.http.openapi import document
from pillarbox.kernel.http.routing import Access, RouteTable


def references(value: Any) -> set[str]:
    """Every `$ref` below a value."""
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*(references(child) for child in value.values()))
    if isinstance(value, list):
        return set().union(*(references(child) for child in value))
    return set()


async def test_every_route_is_in_the_document(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api, api.client() as anyone:
        document = (await anyone.get("/openapi.json")).json()
        assert document["openapi"] == "3.1.0"
        shown = {(path, method.upper()) for path, item in document["paths"].items() for method in item}
        routes = api.table.routes
        assert shown == {(path, entry.method) for entry in routes for path in (entry.path, *entry.aliases)}
        names = [op["operationId"] for item in document["paths"].values() for op in item.values()]
        assert len(names) == len(set(names))
        for entry in routes:
            operation = document["paths"][entry.path][entry.method.lower()]
            assert (operation.get("security") == []) == (entry.needs is Access.PUBLIC)
            declared = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
            assert declared == set(entry.parameters)
            assert str(entry.status) in operation["responses"]


async def test_every_reference_leads_somewhere(database_url: str) -> None:
    async with http_server(database_url) as api, api.client() as anyone:
        document = (await anyone.get("/openapi.json")).json()
        schemas = document["components"]["schemas"]
        for reference in references(document):
            assert OpenApiDocument(document).resolved({"$ref": reference})
        assert list(schemas["Error"]["properties"]) == ["statusCode", "message", "name"]
        create = document["paths"]["/api-keys"]["post"]
        assert create["responses"]["201"]["content"]["application/json"]["schema"] == {
            "$ref": "#/components/schemas/CreatedApiKey"
        }
        assert schemas["NewApiKey"]["required"] == ["name"]
        assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


async def test_answers_have_the_documented_keys(database_url: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
            body = {"name": "harbor.example", "tracking_subdomain": "links"}
            made = (await client.post("/domains", json=body)).json()
            assert list(made) == list(schemas["CreatedDomain"]["properties"])
            full = (await client.get(f"/domains/{made['id']}")).json()
            assert list(full) == list(schemas["FullDomain"]["properties"])
            keys = (await client.get("/api-keys")).json()
            assert list(keys["data"][0]) == list(schemas["ApiKeyItem"]["properties"])


def described(method: str, path: str) -> tuple[OpenApiDocument, dict[str, Any]]:
    description = OpenApiDocument(document(ROUTES, "https://mail.harbor.example", WEBHOOKS))
    return description, description.operation(method, path)


def parameter(operation: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in operation["parameters"] if one["name"] == name)
    return found


def test_what_is_said_of_requests_is_what_the_parser_asks_for() -> None:
    description, operation = described("POST", "/emails")
    assert description.document["servers"] == [{"url": "https://mail.harbor.example"}]
    send = description.resolved(operation["requestBody"]["content"]["application/json"]["schema"])
    fields = send["properties"]
    assert send["required"] == ["to"]
    assert fields["subject"]["maxLength"] == parse.MOST_SUBJECT
    assert fields["tags"]["maxItems"] == parse.MOST_TAGS
    assert [kind.get("maxItems") for kind in fields["cc"]["anyOf"]] == [None, parse.MOST_RECIPIENTS, None]
    attached = description.resolved(fields["attachments"]["items"])["properties"]
    assert {"const": False} in attached["filename"]["anyOf"]
    assert {"content_id", "inline_content_id"} <= set(attached)
    _, batch = described("POST", "/emails/batch")
    assert parameter(batch, "x-batch-validation")["schema"]["enum"] == ["strict", "permissive"]
    _, shared = described("GET", "/shared")
    assert parameter(shared, "token")["in"] == "query"
    _, events = described("GET", "/webhooks/{webhook_id}/events")
    assert parameter(events, "after")["schema"]["pattern"].startswith("^msg_")


def test_every_status_that_a_handler_gives_by_itself_is_there() -> None:
    for method, path, statuses in (
        ("POST", "/domains/claim", {"200", "201"}),
        ("GET", "/files/{token}", {"200", "206", "403", "404", "416"}),
        ("GET", "/shared", {"200", "404", "410"}),
        ("POST", "/emails", {"200", "400", "401", "403", "404", "409", "413", "415", "422", "429", "451"}),
    ):
        _, operation = described(method, path)
        assert statuses <= set(operation["responses"]), path


def test_what_may_be_left_out_is_not_required() -> None:
    description, _ = described("GET", "/domains")
    schemas = description.document["components"]["schemas"]
    for name in ("CreatedDomain", "DomainItem", "FullDomain"):
        assert set(schemas[name]["properties"]) - set(schemas[name]["required"]) == {"tracking_subdomain"}
    assert "additionalProperties" not in schemas["NewDomain"], "unknown fields of a request are ignored"


def test_one_list_alone_shows_bodies() -> None:
    """A page of a list with bodies has no bound but the one that its route gives it (inboxes.md 6.1)."""
    description = OpenApiDocument(document(ROUTES, "https://mail.harbor.example", WEBHOOKS))
    with_bodies = []
    for path, item in description.document["paths"].items():
        contents = item.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        schema = description.resolved(contents.get("application/json", {}).get("schema", {}))
        data = schema.get("properties", {}).get("data", {})
        if "items" in data:
            fields = description.resolved(data["items"]).get("properties", {})
            if fields.keys() & {"html", "text", "raw", "body", "payload", "steps", "request_body", "headers"}:
                with_bodies.append(path)
    assert with_bodies == ["/inboxes/{inbox}/threads/{thread_id}/emails"]


async def test_the_document_is_made_once_and_not_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def made(*_: Any) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return {}

    monkeypatch.setattr(openapi, "document", made)
    table, described = RouteTable([]), openapi.ApiDocument()
    assert await asyncio.gather(*(described.ready(table) for _ in range(5))) == [b"{}"] * 5
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()
