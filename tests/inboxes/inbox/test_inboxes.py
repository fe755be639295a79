"""Inboxes: making, showing, naming and listing them (inboxes.md 3.1 to 3.4)."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.inboxes import create, inbox_domain, inbox_team
from kit.webhooks import hook
from kit.world import Team, World

FULL = (
    *("object", "id", "name", "email_address", "forwarding_address", "friendly_name", "unread", "drafts"),
    *("last_received", "domain_id", "receiving_address", "from_name", "created_at", "updated_at"),
)
ITEM = (
    *("id", "name", "email_address", "friendly_name", "unread", "last_received"),
    *("from_name", "created_at", "updated_at"),
)
SETTINGS = {"inbound_domain": "in.pillar.example"}

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

STORED = """
    SELECT (SELECT count(*) FROM inboxes) + (SELECT count(*) FROM directory_inboxes)
"""


async def shown(team: Team, inbox: str) -> dict[str, Any]:
    answer = await team.get(f"/inboxes/{inbox}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def refused(answer: Any, status: int, name: str, message: str = "") -> None:
    assert (answer.status_code, answer.json()["name"]) == (status, name), answer.text
    assert list(answer.json()) == ["statusCode", "message", "name"]
    assert message in answer.json()["message"]


async def test_an_inbox_is_made_and_shown(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        wanted = {
            "email_address": " Help@Harbor.example ",
            "name": " Help desk ",
            "from_name": "Mina at Harbor",
        }
        made = await team.post("/inboxes", wanted)
        assert made.status_code == 201
        assert list(made.json()) == ["object", "id"]
        assert made.json()["object"] == "inbox"
        inbox = await shown(team, made.json()["id"])
        assert tuple(inbox) == FULL
        assert inbox["id"] == made.json()["id"]
        assert (inbox["name"], inbox["email_address"]) == ("Help desk", "help@harbor.example")
        assert (inbox["from_name"], inbox["friendly_name"]) == ("Mina at Harbor", "Mina at Harbor")
        assert (inbox["forwarding_address"], inbox["receiving_address"]) == (None, None)
        assert (inbox["unread"], inbox["drafts"], inbox["last_received"]) == (0, 0, None)
        assert (await team.get(f"/domains/{inbox['domain_id']}")).json()["name"] == "harbor.example"
        assert INSTANT.fullmatch(inbox["created_at"])
        assert inbox["updated_at"] == inbox["created_at"]


async def test_without_a_name_it_has_its_address(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        nothing: list[dict[str, Any]] = [{}, {"name": None}, {"name": ""}, {"name": "  ", "from_name": " "}]
        for number, name in enumerate(nothing):
            inbox = await shown(team, await create(team, f"Help{number}@harbor.example", **name))
            assert inbox["name"] == f"help{number}@harbor.example"
            assert (inbox["from_name"], inbox["friendly_name"]) == (None, None)


@pytest.mark.parametrize("field", ["from_name", "friendly_name"])
async def test_both_names_of_the_name_that_recipients_see_are_taken(
    database_url: str, tmp_path: Path, field: str
) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        inbox_id = await create(team, **{field: "Mina"})
        inbox = await shown(team, inbox_id)
        assert (inbox["from_name"], inbox["friendly_name"]) == ("Mina", "Mina")
        changed = await team.call("PATCH", f"/inboxes/{inbox_id}", {field: "Ola"})
        assert changed.json() == {"object": "inbox", "id": inbox_id}
        inbox = await shown(team, inbox_id)
        assert (inbox["from_name"], inbox["friendly_name"]) == ("Ola", "Ola")


async def test_both_names_must_be_the_same(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        wanted = {"email_address": "help@harbor.example", "from_name": "Mina", "friendly_name": "Ola"}
        refused(await team.post("/inboxes", wanted), 422, "validation_error", "friendly_name")
        inbox_id = await create(team, from_name="Mina", friendly_name="Mina")
        change = {"from_name": None, "friendly_name": "Ola"}
        refused(await team.call("PATCH", f"/inboxes/{inbox_id}", change), 422, "validation_error")
        assert (await shown(team, inbox_id))["from_name"] == "Mina"


@pytest.mark.parametrize(
    "named", ["help@harbor.example", "HELP@Harbor.Example", "help%40harbor.example", "Help%40HARBOR.example"]
)
async def test_a_path_names_it_by_its_address_or_its_id(
    database_url: str, tmp_path: Path, named: str
) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        inbox_id = await create(team)
        assert await shown(team, named) == await shown(team, inbox_id)
        assert await shown(team, inbox_id.upper()) == await shown(team, inbox_id)
        changed = await team.call("PATCH", f"/inboxes/{named}", {"name": "Desk"})
        assert changed.json()["id"] == inbox_id
        gone = await team.call("DELETE", f"/inboxes/{named}")
        assert gone.json() == {"object": "inbox", "id": inbox_id, "deleted": True}


async def test_a_path_that_names_none_is_refused(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        inbox = await shown(team, await create(team, forwarding=True))
        below = ("", "/agent", "/labels")
        for path in below:
            refused(await team.get(f"/inboxes/desk{path}"), 422, "invalid_parameter", "`inbox_id`")
            refused(await team.get(f"/inboxes/help@@harbor{path}"), 422, "validation_error", "`inbox_id`")
            refused(
                await team.get(f"/inboxes/desk@harbor.example{path}"), 404, "not_found", "Inbox not found"
            )
            refused(await team.get(f"/inboxes/{UUID(int=1)}{path}"), 404, "not_found", "Inbox not found")
            # The receiving address is not its name.
            refused(await team.get(f"/inboxes/{inbox['receiving_address']}{path}"), 404, "not_found")


async def test_another_team_does_not_see_it(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        inbox_id = await create(team)
        other = await team.world.team("Quay")
        for named in (inbox_id, "help@harbor.example"):
            refused(await other.get(f"/inboxes/{named}"), 404, "not_found", "Inbox not found")
            refused(await other.call("PATCH", f"/inboxes/{named}", {"name": "Mine"}), 404, "not_found")
            refused(await other.call("DELETE", f"/inboxes/{named}"), 404, "not_found")
        assert (await other.get("/inboxes")).json()["data"] == []
        assert (await shown(team, inbox_id))["name"] == "help@harbor.example"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "missing_required_field"),
    ({"email_address": ""}, "missing_required_field"),
    ({"email_address": "  "}, "missing_required_field"),
    ({"email_address": None}, "missing_required_field"),
    ({"email_address": 7}, "validation_error"),
    ({"email_address": "help"}, "validation_error"),
    ({"email_address": "@harbor.example"}, "validation_error"),
    ({"email_address": ".help@harbor.example"}, "validation_error"),
    ({"email_address": "help.@harbor.example"}, "validation_error"),
    ({"email_address": "he..lp@harbor.example"}, "validation_error"),
    ({"email_address": "h\u00e9lp@harbor.example"}, "validation_error"),
    ({"email_address": "he lp@harbor.example"}, "validation_error"),
    ({"email_address": '"help"@harbor.example'}, "validation_error"),
    ({"email_address": "Help <help@harbor.example>"}, "validation_error"),
    ({"email_address": "h" * 65 + "@harbor.example"}, "validation_error"),
    ({"email_address": "help@harbor"}, "validation_error"),
    ({"email_address": "help@other.example"}, "validation_error"),
    ({"email_address": "help@sub.harbor.example"}, "validation_error"),
    ({"name": "n" * 65}, "validation_error"),
    ({"name": 7}, "validation_error"),
    ({"from_name": "n" * 79}, "validation_error"),
    ({"from_name": "Mina: Harbor"}, "validation_error"),
    ({"from_name": "Mina <mina"}, "validation_error"),
    ({"from_name": "Mina> mina"}, "validation_error"),
    ({"from_name": "Mina\r\nBcc"}, "validation_error"),
    ({"from_name": "Mina\u0007"}, "validation_error"),
    ({"from_name": "mina@other.example"}, "validation_error"),
    ({"friendly_name": "Mina (mina@other.example)"}, "validation_error"),
    ({"from_name": ["Mina"]}, "validation_error"),
    ({"forwarding": "true"}, "validation_error"),
]


async def test_what_is_wrong_is_refused_and_nothing_is_written(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        for body, name in WRONG:
            known = not body or "email_address" in body
            answer = await team.post(
                "/inboxes", body if known else {"email_address": "help@harbor.example", **body}
            )
            refused(answer, 422, name)
        assert await team.world.pool.fetchval(STORED) == 0


async def test_the_local_parts_that_are_allowed(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        for local in ("h", "h" * 64, "a.b_c%d+e-f", "0"):
            address = f"{local}@harbor.example"
            assert (await shown(team, await create(team, address)))["email_address"] == address


async def test_the_names_that_are_allowed(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        inbox_id = await create(team)
        for name in ("n" * 78, "M\u00edna \u2014 \u6e2f", "mina@harbor.example", 'Mina "the" Q'):
            assert (await team.call("PATCH", f"/inboxes/{inbox_id}", {"from_name": name})).status_code == 200
            assert (await shown(team, inbox_id))["from_name"] == name


async def test_a_forwarding_inbox_has_a_receiving_address(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        inbox = await shown(team, await create(team, forwarding=True))
        assert re.fullmatch(r"[a-z2-7]{24}@in\.pillar\.example", inbox["receiving_address"])
        assert inbox["forwarding_address"] == inbox["receiving_address"]


async def test_an_address_means_one_inbox_of_the_installation(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        await create(team)
        again = await team.post("/inboxes", {"email_address": "HELP@harbor.example"})
        refused(again, 409, "conflict")
        assert await team.world.pool.fetchval(STORED) == 2
        gone = await team.call("DELETE", "/inboxes/help@harbor.example")
        assert gone.status_code == 200
        await create(team)


async def test_of_two_that_are_made_at_once_one_is_there(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        wanted = {"email_address": "help@harbor.example"}
        answers = await asyncio.gather(*(team.post("/inboxes", wanted) for _ in range(6)))
        assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409, 409]
        assert len((await team.get("/inboxes")).json()["data"]) == 1


async def test_a_team_has_as_many_as_it_may(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, most_inboxes="2") as team:
        wanted = [{"email_address": f"help{number}@harbor.example"} for number in range(5)]
        answers = await asyncio.gather(*(team.post("/inboxes", one) for one in wanted))
        assert sorted(answer.status_code for answer in answers) == [201, 201, 403, 403, 403]
        refused(next(one for one in answers if one.status_code == 403), 403, "validation_error", "2 inboxes")


async def test_they_are_listed_the_newest_first(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        ids = [
            await create(team, f"help{number}@harbor.example", name=f"Help {number}") for number in range(3)
        ]
        page = (await team.get("/inboxes")).json()
        assert list(page) == ["object", "has_more", "data"]
        assert (page["object"], page["has_more"]) == ("list", False)
        assert [tuple(item) for item in page["data"]] == [ITEM] * 3
        assert [item["id"] for item in page["data"]] == ids[::-1]
        first = (await team.get("/inboxes?limit=2")).json()
        assert (first["has_more"], [item["id"] for item in first["data"]]) == (True, [ids[2], ids[1]])
        rest = (await team.get(f"/inboxes?limit=2&after={ids[1]}")).json()
        assert (rest["has_more"], [item["id"] for item in rest["data"]]) == (False, [ids[0]])
        newer = (await team.get(f"/inboxes?limit=1&before={ids[0]}")).json()
        assert (newer["has_more"], [item["id"] for item in newer["data"]]) == (True, [ids[1]])


async def test_a_wrong_page_is_refused(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        both = f"after={UUID(int=1)}&before={UUID(int=2)}"
        for query in ("limit=0", "limit=101", "limit=x", "after=x", "before=x", both):
            refused(await team.get(f"/inboxes?{query}"), 422, "validation_error")
        edges = [await team.get(f"/inboxes?limit={limit}") for limit in (1, 100)]
        assert [answer.status_code for answer in edges] == [200, 200]


async def test_a_change_that_changes_nothing_is_no_event(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        hooked = await hook(team, "inbox.created", "inbox.updated")
        inbox_id = await create(team, name="Help desk", from_name="Mina")
        before = await shown(team, inbox_id)
        for same in (
            {"name": " Help desk "},
            {"from_name": "Mina"},
            {"name": "Help desk", "friendly_name": "Mina"},
        ):
            assert (await team.call("PATCH", f"/inboxes/{inbox_id}", same)).status_code == 200
        assert await shown(team, inbox_id) == before
        assert await hooked.kinds() == ["inbox.created"]
        for wanted in ({"name": "Desk"}, {"from_name": ""}, {"friendly_name": "Ola"}, {"from_name": None}):
            assert (await team.call("PATCH", f"/inboxes/{inbox_id}", wanted)).status_code == 200
        after = await shown(team, inbox_id)
        assert (after["name"], after["from_name"]) == ("Desk", None)
        assert after["updated_at"] > before["updated_at"]
        assert after["created_at"] == before["created_at"]
        assert await hooked.kinds() == ["inbox.created", *["inbox.updated"] * 4]


WRONG_CHANGES: list[dict[str, Any]] = [
    {},
    {"forwarding": True},
    {"email_address": "other@harbor.example", "domain_id": str(UUID(int=1))},
    {"name": None},
    {"name": ""},
    {"name": " "},
    {"name": "n" * 65},
    {"from_name": "Mina: x"},
    {"from_name": 7},
    {"friendly_name": "mina@other.example"},
]


async def test_a_wrong_change_is_refused_and_changes_nothing(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        inbox_id = await create(team, name="Help desk", from_name="Mina")
        before = await shown(team, inbox_id)
        for change in WRONG_CHANGES:
            refused(await team.call("PATCH", f"/inboxes/{inbox_id}", change), 422, "validation_error")
        assert await shown(team, inbox_id) == before


async def test_its_address_cannot_change(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        inbox_id = await create(team)
        change = {"name": "Desk", "email_address": "other@harbor.example", "forwarding": True}
        assert (await team.call("PATCH", f"/inboxes/{inbox_id}", change)).status_code == 200
        inbox = await shown(team, inbox_id)
        assert (inbox["email_address"], inbox["receiving_address"]) == ("help@harbor.example", None)


async def test_deleting_it_twice(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        inbox_id = await create(team)
        gone = await team.call("DELETE", f"/inboxes/{inbox_id}")
        assert (gone.status_code, gone.json()) == (200, {"object": "inbox", "id": inbox_id, "deleted": True})
        refused(await team.call("DELETE", f"/inboxes/{inbox_id}"), 404, "not_found", "Inbox not found")
        refused(await team.get(f"/inboxes/{inbox_id}"), 404, "not_found")


async def test_the_keys_that_may(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        inbox_id = await create(team)
        sender = team.using(await team.key(permission="sending_access"))
        for method, path in (("GET", ""), ("POST", ""), ("GET", f"/{inbox_id}"), ("DELETE", f"/{inbox_id}")):
            refused(await sender.call(method, f"/inboxes{path}", {}), 401, "restricted_api_key")


async def test_a_body_of_a_get_is_ignored(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, **SETTINGS) as team:
        inbox_id = await create(team)
        assert (await team.call("GET", f"/inboxes/{inbox_id}", {})).status_code == 200
        assert (await team.call("GET", "/inboxes", {})).status_code == 200
        broken = await team.http.request(
            "POST", "/inboxes", content=b"{", headers={"content-type": "application/json"}
        )
        refused(broken, 400, "validation_error")


async def test_a_domain_of_another_team_has_no_inboxes_of_this_one(pillarbox: World) -> None:
    harbor, quay = await pillarbox.team(), await pillarbox.team("Quay")
    wanted = {"name": "harbor.example", "capabilities": {"receiving": "enabled"}}
    assert (await quay.post("/domains", wanted)).status_code == 201
    await inbox_domain(harbor)
    answer = await quay.post("/inboxes", {"email_address": "help@harbor.example"})
    refused(answer, 422, "validation_error", "another team")
    await create(harbor)
