"""Templates (templates.md 1 to 4): the seven routes, versions, variables and refusals."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from kit.client import error
from kit.manual_world import clock_of, manual_world
from kit.world import Team
from templates.conftest import Place

DATABASE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00")
WANTED: dict[str, Any] = {
    "name": "Order shipped",
    "alias": "order-shipped",
    "from": "Harbor <orders@harbor.example>",
    "subject": "Order {{{ORDER_NO}}} is on its way",
    "html": "<p>Hi {{{CUSTOMER|friend}}}, {{{COUNT}}} item(s) left today.</p>",
    "variables": [
        {"key": "ORDER_NO", "type": "string"},
        {"key": "CUSTOMER", "type": "string", "fallback_value": "there"},
        {"key": "COUNT", "type": "number", "fallback_value": 1},
    ],
}
FULL = [
    *("object", "id", "current_version_id", "name", "alias", "from", "subject", "reply_to", "html", "text"),
    *("variables", "created_at", "updated_at", "status", "published_at", "has_unpublished_versions"),
]
ITEM = ["id", "name", "status", "published_at", "created_at", "updated_at", "alias"]
VARIABLE = ["id", "key", "type", "fallback_value", "created_at", "updated_at"]
MISSING = (404, "not_found", "Template not found")
VALIDATION = (422, "validation_error")


@asynccontextmanager
async def a_team(place: Place) -> AsyncIterator[Team]:
    async with manual_world(*place) as pillarbox:
        yield await pillarbox.team()


async def made(team: Team, **fields: Any) -> str:
    wanted = {"name": "Plain", "html": "<p>Hello</p>", **fields}
    answer = await team.post("/templates", {key: value for key, value in wanted.items() if value is not ...})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def shown(team: Team, name: str) -> dict[str, Any]:
    answer = await team.get(f"/templates/{name}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def changed(team: Team, named: str, /, **fields: Any) -> dict[str, Any]:
    """A second later."""
    clock_of(team.world).advance(1)
    answer = await team.call("PATCH", f"/templates/{named}", fields)
    assert answer.status_code == 200, answer.text
    return await shown(team, named)


async def published(team: Team, name: str) -> dict[str, Any]:
    """A second later."""
    clock_of(team.world).advance(1)
    answer = await team.post(f"/templates/{name}/publish")
    assert answer.status_code == 200, answer.text
    return await shown(team, name)


async def test_a_template_is_created_read_and_listed_in_the_order_of_the_contract(place: Place) -> None:
    """templates.md 4 too: a list item ends with `alias`."""
    async with a_team(place) as team:
        created = await team.post("/templates", WANTED)
        assert created.status_code == 201
        template_id = created.json()["id"]
        assert created.text == f'{{"id":"{template_id}","object":"template"}}'
        template = await shown(team, template_id)
        assert list(template) == FULL
        assert all(list(variable) == VARIABLE for variable in template["variables"])
        assert [(one["key"], one["type"], one["fallback_value"]) for one in template["variables"]] == [
            ("ORDER_NO", "string", None),
            ("CUSTOMER", "string", "there"),
            ("COUNT", "number", 1),
        ]
        assert '"fallback_value":1,' in (await team.get("/templates/order-shipped")).text
        assert template | {"variables": [], "current_version_id": ""} == {
            "object": "template",
            "id": template_id,
            "current_version_id": "",
            "name": "Order shipped",
            "alias": "order-shipped",
            "from": "Harbor <orders@harbor.example>",
            "subject": "Order {{{ORDER_NO}}} is on its way",
            "reply_to": None,
            "html": WANTED["html"],
            "text": None,
            "variables": [],
            "created_at": template["created_at"],
            "updated_at": template["created_at"],
            "status": "draft",
            "published_at": None,
            "has_unpublished_versions": True,
        }
        assert DATABASE.fullmatch(template["created_at"])
        await made(team, name=" Second \n")
        listed = (await team.get("/templates")).json()
        assert list(listed) == ["object", "has_more", "data"]
        assert [one["name"] for one in listed["data"]] == ["Second", "Order shipped"]
        assert all(list(one) == ITEM for one in listed["data"])
        first = (await team.get("/templates?limit=1")).json()
        assert (first["has_more"], len(first["data"])) == (True, 1)


async def test_a_template_is_known_by_its_alias_in_every_route(place: Place) -> None:
    """templates.md 4; another team may have the same alias."""
    async with a_team(place) as team:
        other = await team.world.team("Quay")
        theirs = await made(other, alias="order-shipped")
        template_id = await made(team, **WANTED)
        assert (await shown(team, "order-shipped"))["id"] == template_id
        assert (await team.call("PATCH", "/templates/order-shipped", {"name": "New"})).json() == {
            "id": template_id,
            "object": "template",
        }
        assert (await team.post("/templates/order-shipped/publish")).json()["id"] == template_id
        copy_id = (await team.post("/templates/order-shipped/duplicate")).json()["id"]
        assert copy_id not in (template_id, theirs)
        gone = await team.call("DELETE", "/templates/order-shipped")
        assert gone.text == f'{{"object":"template","id":"{template_id}","deleted":true}}'
        assert error(await team.get("/templates/order-shipped")) == MISSING
        assert error(await team.get(f"/templates/{template_id}")) == MISSING
        assert (await shown(other, "order-shipped"))["id"] == theirs
        assert await made(team, alias="order-shipped") != template_id


async def test_unknown_templates_are_404_everywhere(place: Place) -> None:
    async with a_team(place) as team:
        for name in ("unknown", str(uuid4()), "a%20b", "x" * 300, "%00", "Order-Shipped"):
            for method, path in (
                ("GET", ""),
                ("PATCH", ""),
                ("DELETE", ""),
                ("POST", "/publish"),
                ("POST", "/duplicate"),
            ):
                answer = await team.call(method, f"/templates/{name}{path}", {})
                assert error(answer) == MISSING or name == "%00", (name, method, path, answer.text)
                assert answer.status_code < 500


async def test_what_is_published_stays_until_the_draft_is_published(place: Place) -> None:
    """templates.md 1."""
    async with a_team(place) as team:
        template_id = await made(team, **WANTED)
        first = await shown(team, template_id)
        live = await published(team, template_id)
        assert (live["status"], live["has_unpublished_versions"]) == ("published", False)
        assert live["current_version_id"] == first["current_version_id"]
        assert live["updated_at"] == first["updated_at"]
        assert DATABASE.fullmatch(live["published_at"])
        drafted = await changed(team, template_id, subject="Your order {{{ORDER_NO}}} left the harbour")
        assert (drafted["status"], drafted["has_unpublished_versions"]) == ("published", True)
        assert drafted["current_version_id"] != live["current_version_id"]
        assert drafted["published_at"] == live["published_at"]
        assert drafted["updated_at"] > live["updated_at"]
        assert drafted["html"] == WANTED["html"]
        again = await changed(team, template_id, html="<p>{{{ORDER_NO}}}</p>")
        assert again["current_version_id"] == drafted["current_version_id"]
        assert again["subject"] == drafted["subject"]
        now = await published(team, template_id)
        assert now["current_version_id"] == drafted["current_version_id"]
        assert now["published_at"] > live["published_at"]
        versions = await team.db.value("SELECT count(*) FROM template_versions WHERE team_id = $1")
        assert versions == 2, "the one before is kept"


async def test_a_second_publication_changes_nothing(place: Place) -> None:
    """templates.md 4."""
    async with a_team(place) as team:
        template_id = await made(team)
        assert await published(team, template_id) == await published(team, template_id)


async def test_blank_html_is_not_published(place: Place) -> None:
    """templates.md 4."""
    async with a_team(place) as team:
        for html in ("", " \n\t", "\u00a0"):
            template_id = await made(team, html=html)
            answer = await team.post(f"/templates/{template_id}/publish")
            assert error(answer) == (
                *VALIDATION,
                "Invalid `html` field. HTML is required to publish a template.",
            )
            assert (await shown(team, template_id))["status"] == "draft"


async def test_name_and_alias_have_no_versions(place: Place) -> None:
    async with a_team(place) as team:
        template_id = await made(team, alias="first")
        live = await published(team, template_id)
        after = await changed(team, template_id, name="Other", alias="second")
        assert (after["name"], after["alias"], after["has_unpublished_versions"]) == (
            "Other",
            "second",
            False,
        )
        assert after["updated_at"] > live["updated_at"]
        assert error(await team.get("/templates/first")) == MISSING
        assert (await changed(team, template_id, alias=None))["alias"] is None


async def test_a_change_of_nothing_has_no_effect(place: Place) -> None:
    async with a_team(place) as team:
        template_id = await made(team, **WANTED)
        live = await published(team, template_id)
        assert await changed(team, template_id) == live
        assert await changed(team, template_id, html=WANTED["html"], name="Order shipped") == live


async def test_null_takes_optional_fields_away(place: Place) -> None:
    async with a_team(place) as team:
        template_id = await made(team, **WANTED | {"reply_to": "ann@harbor.example", "text": "Own"})
        before = await shown(team, template_id)
        assert (before["reply_to"], before["text"]) == (["ann@harbor.example"], "Own")
        nothing = {"from": None, "subject": None, "reply_to": None, "text": None}
        after = await changed(team, template_id, html="<p>Hello</p>", variables=None, **nothing)
        assert [after[key] for key in ("from", "subject", "reply_to", "text", "variables")] == [None] * 4 + [
            []
        ]
        assert (await changed(team, template_id, text=""))["text"] == ""


async def test_an_unchanged_variable_keeps_its_id(place: Place) -> None:
    async with a_team(place) as team:
        template_id = await made(team, **WANTED)
        before = {one["key"]: one for one in (await shown(team, template_id))["variables"]}
        wanted = [
            {"key": "NEW", "type": "string"},
            {"key": "COUNT", "type": "number", "fallback_value": 2},
            {"key": "ORDER_NO", "type": "string"},
            {"key": "CUSTOMER", "type": "string", "fallback_value": "there"},
        ]
        variables = (await changed(team, template_id, variables=wanted))["variables"]
        after = {one["key"]: one for one in variables}
        assert [one["key"] for one in variables] == ["NEW", "COUNT", "ORDER_NO", "CUSTOMER"]
        assert after["CUSTOMER"] == before["CUSTOMER"]
        assert after["COUNT"]["id"] == before["COUNT"]["id"]
        assert after["COUNT"]["created_at"] == before["COUNT"]["created_at"] < after["COUNT"]["updated_at"]
        assert after["COUNT"]["fallback_value"] == 2


async def test_a_copy_has_the_newest_content_and_ids_of_its_own(place: Place) -> None:
    async with a_team(place) as team:
        name = "N" * 250
        template_id = await made(team, **WANTED | {"name": name})
        await published(team, template_id)
        newest = await changed(team, template_id, subject="Newer")
        answer = await team.post(f"/templates/{template_id}/duplicate")
        assert answer.status_code == 200
        copy = await shown(team, answer.json()["id"])
        assert answer.text == f'{{"id":"{copy["id"]}","object":"template"}}'
        assert copy["name"] == "N" * 248 + " (Copy)"
        assert (copy["alias"], copy["status"], copy["published_at"]) == (None, "draft", None)
        same = ("from", "subject", "reply_to", "html", "text")
        assert [copy[key] for key in same] == [newest[key] for key in same]
        ids = {one["id"] for one in copy["variables"]}
        assert ids.isdisjoint(one["id"] for one in newest["variables"])


REFUSED: list[tuple[dict[str, Any], tuple[int, str], str]] = [
    ({"name": ...}, (422, "missing_required_field"), "Missing `name` field."),
    ({"name": ..., "html": ...}, (422, "missing_required_field"), "Missing `name` field."),
    ({"html": ...}, (422, "missing_required_field"), "Missing `html` field."),
    ({"html": None}, (422, "missing_required_field"), "Missing `html` field."),
    ({"name": " "}, (422, "missing_required_field"), "Missing `name` field."),
    ({"name": "n" * 256}, VALIDATION, "Invalid `name` field. "),
    ({"name": 7}, VALIDATION, "Invalid `name` field. "),
    ({"html": ["x"]}, VALIDATION, "Invalid `html` field. "),
    ({"alias": ""}, VALIDATION, "Invalid `alias` field. "),
    ({"alias": "-a"}, VALIDATION, "Invalid `alias` field. "),
    ({"alias": "a b"}, VALIDATION, "Invalid `alias` field. "),
    ({"alias": "a" * 101}, VALIDATION, "Invalid `alias` field. "),
    ({"alias": "a\n"}, VALIDATION, "Invalid `alias` field. "),
    ({"alias": str(uuid4())}, VALIDATION, "Invalid `alias` field. It may not have the form of a UUID."),
    ({"alias": str(uuid4()).upper()}, VALIDATION, "Invalid `alias` field. "),
    ({"from": "nobody"}, VALIDATION, "Invalid `from` field. "),
    ({"from": "{{{NAME}}} <a@harbor.example>"}, VALIDATION, "Invalid `from` field. "),
    ({"subject": "a\r\nb"}, VALIDATION, "Invalid `subject` field. "),
    ({"subject": "s" * 999}, VALIDATION, "Invalid `subject` field. "),
    ({"reply_to": "nobody"}, VALIDATION, "Invalid `reply_to` field. "),
    ({"reply_to": []}, VALIDATION, "Invalid `reply_to` field. Use at least 1 item."),
    ({"reply_to": 7}, VALIDATION, "Invalid `reply_to` field. It must be a string or an array."),
    ({"reply_to": ["a@harbor.example"] * 51}, VALIDATION, "Invalid `reply_to` field. Use at most 50 items."),
    ({"reply_to": ["a@harbor.example", 5]}, VALIDATION, "Invalid `reply_to[1]` field. It must be a string."),
    ({"text": 1}, VALIDATION, "Invalid `text` field. "),
    ({"variables": {}}, VALIDATION, "Invalid `variables` field. "),
    (
        {"subject": "{{{X}}}"},
        VALIDATION,
        "Invalid `subject` field. The variable `X` is used but not declared.",
    ),
    ({"html": "{{{ X|y }}}"}, VALIDATION, "Invalid `html` field. The variable `X` is used but not declared."),
    ({"text": "{{{x}}}"}, VALIDATION, "Invalid `text` field. The variable `x` is used but not declared."),
    ({"html": "{{{first_name}}}"}, VALIDATION, "Invalid `html` field. The variable `first_name` is used"),
    ({"html": "{{{EMAIL}}}" * 1001}, VALIDATION, "Invalid `html` field. Use at most 1000 placeholders."),
]


async def test_refusals(place: Place) -> None:
    async with a_team(place) as team:
        for fields, kind, message in REFUSED:
            wanted = {"name": "Plain", "html": "<p>Hello</p>", **fields}
            body = {key: value for key, value in wanted.items() if value is not ...}
            answer = await team.post("/templates", body)
            assert error(answer)[:2] == kind, (fields, answer.text)
            assert error(answer)[2].startswith(message), answer.text
            assert (await team.get("/templates")).json()["data"] == []


AT_ONCE: list[dict[str, Any]] = [
    {"name": 7},
    {"alias": "-"},
    {"alias": str(uuid4())},
    {"from": "nobody"},
    {"from": "{{{X}}} <a@harbor.example>"},
    {"subject": "a\nb"},
    {"reply_to": ["nobody"]},
    {"html": None},
    {"variables": [{"key": "this", "type": "string"}]},
]


async def test_what_is_wrong_in_every_template_is_told_before_one_is_looked_up(place: Place) -> None:
    """conventions section 1: fields, then resources."""
    async with a_team(place) as team:
        for fields in AT_ONCE:
            answer = await team.call("PATCH", "/templates/none", fields)
            assert error(answer)[:2] == VALIDATION, (fields, answer.text)


async def test_an_alias_is_taken_once(place: Place) -> None:
    async with a_team(place) as team:
        await made(team, alias="once")
        answer = await team.post("/templates", {"name": "Second", "html": "", "alias": "once"})
        assert error(answer) == (
            *VALIDATION,
            "Invalid `alias` field. There is a template with the alias `once` already.",
        )
        second = await made(team, alias="ONCE")
        answer = await team.call("PATCH", f"/templates/{second}", {"alias": "once"})
        assert error(answer)[:2] == VALIDATION
        assert (await shown(team, second))["alias"] == "ONCE"


async def test_large_html(place: Place) -> None:
    """templates.md 2."""
    async with a_team(place) as team:
        mib = 1024 * 1024
        template_id = await made(team, html="x" * (9 * mib))
        assert len((await shown(team, template_id))["html"]) == 9 * mib
        assert (await team.post("/templates", {"name": "L", "html": "x" * (11 * mib)})).status_code == 413
        answer = await team.call("PATCH", f"/templates/{template_id}", {"text": "y" * (2 * mib)})
        assert error(answer)[:2] == VALIDATION


async def test_a_sending_key_may_not_use_them(place: Place) -> None:
    async with a_team(place) as team:
        sender = team.using(await team.key(permission="sending_access"))
        assert (await sender.get("/templates")).status_code in (401, 403)
        assert UUID((await shown(team, await made(team)))["id"])
