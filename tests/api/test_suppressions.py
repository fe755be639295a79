"""Suppressions over the API (suppressions.md; its section 7 says what must be covered)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from kit.client import error, sending_key
from kit.manual_world import clock_of, manual_world
from kit.reports import about, bounce, came_back, token_of
from kit.webhooks import hook
from kit.world import Team, World

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
KEYS = ["id", "email", "origin", "source_id", "created_at"]
NOT_FOUND = (404, "not_found", "Suppression not found")


Place = tuple[str, Path]


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database and a folder for tests that each have teams of their own."""
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("suppressions")
    databases.drop(url)


async def add(team: Team, email: str) -> str:
    made = await team.post("/suppressions", {"email": email})
    assert made.status_code == 201, made.text
    assert list(made.json()) == ["object", "id"]
    assert made.json()["object"] == "suppression"
    return str(made.json()["id"])


async def listed(team: Team, query: str = "") -> list[str]:
    """The addresses of the list, the newest first."""
    answer = await team.get(f"/suppressions{query}")
    assert answer.status_code == 200, answer.text
    return [item["email"] for item in answer.json()["data"]]


async def bounced(here: World, team: Team, address: str = "gone@quay.example") -> str:
    """An email to this address that came back for good."""
    email = await team.send(to=address)
    await here.turn()
    await came_back(here, await token_of(here, email), bounce(about(address)))
    return email


# The list ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["kim@orchard.example", "KIM@Orchard.EXAMPLE", "  Kim@Orchard.Example "])
async def test_case_and_blanks_are_one_entry(place: Place, text: str) -> None:
    """Section 7, point 1: and any spelling of it finds the entry, as its id does."""
    async with manual_world(*place) as here:
        team = await here.team()
        first = await add(team, " kim@ORCHARD.example")
        assert await add(team, text) == first
        assert await listed(team) == ["kim@orchard.example"]
        by_id = await team.get(f"/suppressions/{first}")
        for name in (text, first.upper(), "kim%40orchard.example", "%20Kim@orchard.example%09"):
            found = await team.http.get(f"/suppressions/{name}")
            assert (found.status_code, found.json()) == (200, by_id.json()), name


async def test_an_entry_as_it_is_shown(place: Place) -> None:
    """Section 1, and section 7, point 9: `source_id` is there and null."""
    async with manual_world(*place) as here:
        team = await here.team()
        made = await add(team, "kim@orchard.example")
        found = (await team.get("/suppressions/kim@orchard.example")).json()
        assert list(found) == ["object", *KEYS]
        assert ISO.fullmatch(found["created_at"])
        assert UUID(made).version == 7
        assert found == {
            "object": "suppression",
            "id": made,
            "email": "kim@orchard.example",
            "origin": "manual",
            "source_id": None,
            "created_at": found["created_at"],
        }
        page = (await team.get("/suppressions")).json()
        assert list(page) == ["object", "has_more", "data"]
        [item] = page["data"]
        assert list(item) == KEYS, "no `object` in items"
        assert item == {key: found[key] for key in KEYS}


async def test_tags_of_an_address_make_another_address(place: Place) -> None:
    async with manual_world(*place) as here:
        team = await here.team()
        assert await add(team, "kim+news@orchard.example") != await add(team, "kim@orchard.example")
        assert (await team.get("/suppressions/kim+news@orchard.example")).status_code == 200
        assert (await team.get("/suppressions/kim%2Bother@orchard.example")).status_code == 404


async def test_a_domain_that_is_not_ascii_is_compared_by_its_a_labels(place: Place) -> None:
    async with manual_world(*place) as here:
        team = await here.team()
        made = await add(team, "Kim@Bücher.Example")
        for text in ("kim@xn--bcher-kva.example", "KIM@BÜCHER.example", "kim@bu\u0308cher.example"):
            assert await add(team, text) == made
            assert (await team.get(f"/suppressions/{text}")).json()["id"] == made
        assert await listed(team) == ["kim@bücher.example"], "as it was given first, in lower case"
        email = await team.send(to=["kim@xn--bcher-kva.example"])
        await here.turn()
        assert (await team.email(email))["last_event"] == "suppressed"
        assert (await team.call("DELETE", "/suppressions/kim@xn--bcher-kva.example")).json()["id"] == made


NO_ADDRESSES = [
    "Kim <kim@orchard.example>",
    "<kim@orchard.example>",
    "orchard.example",
    "@orchard.example",
    "kim@",
    "kim",
    " ",
    "*@orchard.example",
    "kim@*.example",
    "kim@orchard",
    "a@b.example, c@d.example",
    "kim@orchard.example\r\nBcc: x@y.example",
    "kim@[192.0.2.1]",
    "k" * 3000 + "@orchard.example",
    "kim\ud83d@orchard.example",
]


async def test_what_is_no_address_is_refused(place: Place) -> None:
    async with manual_world(*place) as here:
        for text in NO_ADDRESSES:
            team = await here.team()
            for path, body, field in (
                ("/suppressions", {"email": text}, "email"),
                ("/suppressions/batch/add", {"emails": ["a@b.example", text]}, "emails[1]"),
                ("/suppressions/batch/remove", {"emails": ["a@b.example", text]}, "emails[1]"),
            ):
                try:
                    answer = await team.post(path, body)
                except UnicodeEncodeError:
                    return
                status, name, message = error(answer)
                assert (status, name) == (422, "validation_error"), text
                assert message.startswith(f"Invalid `{field}` field. "), message
            assert await listed(team) == []


WRONG_BODIES: list[Any] = [
    ({}, "missing_required_field", "Missing `email` field."),
    ({"email": None}, "missing_required_field", "Missing `email` field."),
    ({"email": ""}, "missing_required_field", "Missing `email` field."),
    ({"email": 7}, "validation_error", "Invalid `email` field. It must be a string."),
    ({"email": ["a@b.example"]}, "validation_error", "Invalid `email` field. It must be a string."),
    ([], "validation_error", "The request body must be an object."),
]


async def test_bodies_that_are_wrong(place: Place) -> None:
    async with manual_world(*place) as here:
        for body, name, message in WRONG_BODIES:
            team = await here.team()
            assert error(await team.call("POST", "/suppressions", body)) == (422, name, message)


async def test_what_a_client_may_not_decide_is_ignored(place: Place) -> None:
    async with manual_world(*place) as here:
        team = await here.team()
        wanted = {"email": "kim@orchard.example", "origin": "bounce", "source_id": str(uuid4()), "id": "x"}
        made = (await team.post("/suppressions", wanted)).json()["id"]
        found = (await team.get(f"/suppressions/{made}")).json()
        assert (found["origin"], found["source_id"]) == ("manual", None)


async def test_adding_again_keeps_the_first_cause(place: Place) -> None:
    """Section 7, point 2."""
    async with manual_world(*place) as here:
        team = await here.team()
        email = await bounced(here, team)
        before = (await team.get("/suppressions/gone@quay.example")).json()
        assert (before["origin"], before["source_id"]) == ("bounce", email)
        told = await hook(team, "suppression.added")
        clock_of(here).advance(60)
        assert await add(team, "Gone@quay.example") == before["id"]
        batch = await team.post("/suppressions/batch/add", {"emails": ["gone@QUAY.example"]})
        assert batch.json() == {"data": [{"object": "suppression", "id": before["id"]}]}
        assert (await team.get("/suppressions/gone@quay.example")).json() == before
        assert await told.events() == []


async def test_removing_any_entry_once(place: Place) -> None:
    async with manual_world(*place) as here:
        team = await here.team()
        await bounced(here, team)
        made = await add(team, "kim@orchard.example")
        other = (await team.get("/suppressions/gone@quay.example")).json()["id"]
        done = await team.call("DELETE", "/suppressions/Gone@quay.example")
        assert (done.status_code, done.text) == (
            200,
            f'{{"object":"suppression","id":"{other}","deleted":true}}',
        )
        done = await team.call("DELETE", f"/suppressions/{made}")
        assert done.json() == {"object": "suppression", "id": made, "deleted": True}
        assert await listed(team) == []
        for gone in (made, other, "gone@quay.example"):
            assert error(await team.call("DELETE", f"/suppressions/{gone}")) == NOT_FOUND
            assert error(await team.get(f"/suppressions/{gone}")) == NOT_FOUND
        assert await add(team, "kim@orchard.example") != made, "a new entry is another one"


NOBODY = [
    "batch",
    "x",
    "@",
    "a@",
    "Kim%20<kim@orchard.example>",
    "%ff@b.example",
    "0" * 32,
]


async def test_what_names_nothing_is_not_found(place: Place) -> None:
    async with manual_world(*place) as here:
        for name in NOBODY:
            team = await here.team()
            for method in ("GET", "DELETE"):
                assert error(await team.http.request(method, f"/suppressions/{name}")) == NOT_FOUND


async def test_the_paths_of_batches_are_no_identifiers(place: Place) -> None:
    """Section 7, point 5."""
    async with manual_world(*place) as here:
        team = await here.team()
        for path in ("/suppressions/batch/add", "/suppressions/batch/remove"):
            for method in ("GET", "DELETE", "PATCH"):
                answer = await team.http.request(method, path)
                assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
            assert error(await team.post(path, {}))[1] == "missing_required_field"
        assert (await team.post("/suppressions/batch", {})).status_code == 405


async def test_a_sending_key_may_do_nothing_here(place: Place) -> None:
    async with manual_world(*place) as here:
        team = await here.team()
        made = await add(team, "kim@orchard.example")
        sender = team.using(await sending_key(team.http))
        for method, path in (
            ("POST", "/suppressions"),
            ("GET", "/suppressions"),
            ("GET", f"/suppressions/{made}"),
            ("DELETE", "/suppressions/kim@orchard.example"),
            ("POST", "/suppressions/batch/add"),
            ("POST", "/suppressions/batch/remove"),
        ):
            assert error(await sender.call(method, path, {"email": "a@b.example"}))[:2] == (
                401,
                "restricted_api_key",
            )
        assert await listed(team) == ["kim@orchard.example"]


async def test_lists_belong_to_a_team(place: Place) -> None:
    async with manual_world(*place) as here:
        harbor, quay = await here.team(), await here.team("Quay")
        mine = await add(harbor, "kim@orchard.example")
        assert error(await quay.get("/suppressions/kim@orchard.example")) == NOT_FOUND
        assert error(await quay.call("DELETE", f"/suppressions/{mine}")) == NOT_FOUND
        both = {"emails": ["kim@orchard.example"]}
        assert (await quay.post("/suppressions/batch/remove", both)).json() == {"data": []}
        assert (await quay.post("/suppressions/batch/remove", {"ids": [mine]})).json() == {"data": []}
        assert await add(quay, "kim@orchard.example") != mine
        assert (await harbor.get(f"/suppressions/{mine}")).status_code == 200


# Pages ---------------------------------------------------------------------------------------------


async def test_pages_of_the_list_and_of_one_origin(place: Place) -> None:
    """Always in pages, the newest first; the cursors are ids of entries, of any origin."""
    async with manual_world(*place) as here:
        team = await here.team()
        addresses = [f"n{number:02}@orchard.example" for number in range(25)]
        await team.post("/suppressions/batch/add", {"emails": addresses})
        for number in range(3):
            await bounced(here, team, f"gone{number}@quay.example")
        everything = await listed(team, "?limit=100")
        assert everything == [f"gone{number}@quay.example" for number in (2, 1, 0)] + addresses[::-1]
        first = (await team.get("/suppressions")).json()
        assert (len(first["data"]), first["has_more"]) == (20, True)
        after = first["data"][-1]["id"]
        second = (await team.get(f"/suppressions?after={after}")).json()
        assert (len(second["data"]), second["has_more"]) == (8, False)
        assert [item["email"] for item in first["data"] + second["data"]] == everything
        assert await listed(team, f"?before={second['data'][0]['id']}&limit=2") == everything[18:20]
        assert await listed(team, "?origin=bounce") == everything[:3]
        assert await listed(team, "?origin=complaint") == []
        assert await listed(team, f"?origin=manual&limit=3&after={first['data'][0]['id']}") == everything[3:6]
        page = (await team.get("/suppressions?origin=bounce&limit=2")).json()
        assert page["has_more"] is True
        rest = (await team.get(f"/suppressions?origin=bounce&after={page['data'][1]['id']}")).json()
        assert ([item["email"] for item in rest["data"]], rest["has_more"]) == (everything[2:3], False)
        assert await listed(team, f"?origin=bounce&before={rest['data'][0]['id']}&limit=1") == everything[1:2]


WRONG_QUERIES = [
    ("origin=x", "Invalid `origin` parameter. Use `bounce`, `complaint`, `manual`."),
    ("origin=", "Invalid `origin` parameter. Use `bounce`, `complaint`, `manual`."),
    ("origin=Bounce", "Invalid `origin` parameter. Use `bounce`, `complaint`, `manual`."),
    ("limit=0", "Invalid `limit` parameter. Use an integer from 1 to 100."),
    ("limit=101", "Invalid `limit` parameter. Use an integer from 1 to 100."),
    ("after=x", "Invalid `after` parameter. Use the id of an item of the list."),
    ("after=kim@orchard.example", "Invalid `after` parameter. Use the id of an item of the list."),
]


async def test_queries_that_are_wrong(place: Place) -> None:
    async with manual_world(*place) as here:
        for query, message in WRONG_QUERIES:
            team = await here.team()
            assert error(await team.get(f"/suppressions?{query}")) == (422, "validation_error", message)


# Batches -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "remove"])
async def test_sizes_of_batches(place: Place, name: str) -> None:
    """Section 7, point 3."""
    async with manual_world(*place) as here:
        team = await here.team()
        path, status = f"/suppressions/batch/{name}", 201 if name == "add" else 200
        addresses = [f"n{number}@orchard.example" for number in range(101)]
        for size, reason in ((0, "Use at least 1 item."), (101, "Use at most 100 items.")):
            answer = await team.post(path, {"emails": addresses[:size]})
            assert error(answer) == (422, "validation_error", f"Invalid `emails` field. {reason}")
            answer = await team.post("/suppressions/batch/remove", {"ids": [str(uuid4())] * size})
            assert error(answer) == (422, "validation_error", f"Invalid `ids` field. {reason}")
        assert await listed(team) == []
        if name == "remove":
            await team.post("/suppressions/batch/add", {"emails": addresses[:100]})
        for size in (1, 100):
            answer = await team.post(path, {"emails": addresses[:size]})
            assert answer.status_code == status
            assert list(answer.json()) == ["data"]
            assert len(answer.json()["data"]) == (size if name == "add" or size == 1 else 99)
        assert len(await listed(team, "?limit=100")) == (100 if name == "add" else 0)


BAD_ENTRIES: list[Any] = ["nobody", "", None, 7, ["a@b.example"]]


async def test_one_bad_address_of_a_hundred_stores_nothing(place: Place) -> None:
    """Section 7, point 3: it is named by its index."""
    async with manual_world(*place) as here:
        for bad in BAD_ENTRIES:
            team = await here.team()
            addresses: list[Any] = [f"n{number}@orchard.example" for number in range(100)]
            addresses[73] = bad
            for path in ("/suppressions/batch/add", "/suppressions/batch/remove"):
                status, name, message = error(await team.post(path, {"emails": addresses}))
                assert (status, name) == (422, "validation_error")
                assert message.startswith("Invalid `emails[73]` field. ")
            assert await listed(team) == []


async def test_duplicates_of_a_batch_are_one_result_at_the_first_place(place: Place) -> None:
    async with manual_world(*place) as here:
        team = await here.team()
        known = await add(team, "zoe@quay.example")
        body = {
            "emails": ["kim@orchard.example", "zoe@quay.example", " KIM@orchard.example", "ann@quay.example"]
        }
        answer = await team.post("/suppressions/batch/add", body)
        ids = [item["id"] for item in answer.json()["data"]]
        assert [list(item) for item in answer.json()["data"]] == [["object", "id"]] * 3
        assert ids[1] == known
        assert await listed(team) == ["ann@quay.example", "kim@orchard.example", "zoe@quay.example"]
        assert [(await team.get(f"/suppressions/{one}")).json()["email"] for one in ids] == [
            "kim@orchard.example",
            "zoe@quay.example",
            "ann@quay.example",
        ]


WRONG_ADDITIONS: list[Any] = [
    ({}, "missing_required_field", "Missing `emails` field."),
    ({"emails": None}, "missing_required_field", "Missing `emails` field."),
    ({"emails": "a@b.example"}, "validation_error", "Invalid `emails` field. It must be an array."),
]


async def test_batches_to_add_that_are_wrong(place: Place) -> None:
    async with manual_world(*place) as here:
        for body, name, message in WRONG_ADDITIONS:
            team = await here.team()
            assert error(await team.post("/suppressions/batch/add", body)) == (422, name, message)


BOTH = "Use either `emails` or `ids`, not both."
NEITHER = "Missing `emails` or `ids` field."


WRONG_REMOVALS: list[Any] = [
    ({}, "missing_required_field", NEITHER),
    ({"emails": None}, "missing_required_field", NEITHER),
    ({"emails": None, "ids": None}, "missing_required_field", NEITHER),
    ({"emails": ["kim@orchard.example"], "ids": [str(UUID(int=1))]}, "validation_error", BOTH),
    ({"emails": ["kim@orchard.example"], "ids": None}, "validation_error", BOTH),
    ({"ids": [str(UUID(int=1))], "emails": None}, "validation_error", BOTH),
    ({"emails": ["kim@orchard.example"], "ids": []}, "validation_error", BOTH),
    ({"ids": ["x"]}, "invalid_parameter", "The `ids[0]` must be a valid UUID."),
    ({"ids": [str(UUID(int=1)), "kim@orchard.example"]}, "invalid_parameter", None),
    ({"ids": "x"}, "validation_error", "Invalid `ids` field. It must be an array."),
    ([], "validation_error", "The request body must be an object."),
]


async def test_removals_that_are_wrong(place: Place) -> None:
    """Section 7, point 4: nothing is removed."""
    async with manual_world(*place) as here:
        for body, name, message in WRONG_REMOVALS:
            team = await here.team()
            await add(team, "kim@orchard.example")
            answer = error(await team.call("POST", "/suppressions/batch/remove", body))
            assert answer == (422, name, message or "The `ids[1]` must be a valid UUID.")
            assert await listed(team) == ["kim@orchard.example"]


async def test_removing_a_batch(place: Place) -> None:
    """Section 7, point 4: what is not on the list is left out, the rest is in the order of the request."""
    async with manual_world(*place) as here:
        team = await here.team()
        ids = {name: await add(team, f"{name}@quay.example") for name in ("ann", "bob", "cid", "dan")}
        emails = ["cid@quay.example", "nobody@quay.example", "ANN@quay.example", "cid@quay.example"]
        answer = await team.post("/suppressions/batch/remove", {"emails": emails})
        deleted = [{"object": "suppression", "id": ids[name], "deleted": True} for name in ("cid", "ann")]
        assert (answer.status_code, answer.json()) == (200, {"data": deleted})
        wanted = [ids["dan"].upper(), str(uuid4()), ids["bob"], ids["dan"], ids["ann"]]
        answer = await team.post("/suppressions/batch/remove", {"ids": wanted})
        assert [item["id"] for item in answer.json()["data"]] == [ids["dan"], ids["bob"]]
        assert list(answer.json()["data"][0]) == ["object", "id", "deleted"]
        assert await listed(team) == []


# Events --------------------------------------------------------------------------------------------


async def test_every_change_is_told_once(place: Place) -> None:
    """Section 5, webhooks.md 7.4: one event for each address, none where nothing changed."""
    async with manual_world(*place) as here:
        team = await here.team()
        told = await hook(team, "suppression.added", "suppression.removed")
        made = await add(team, "Kim@Bücher.example")
        shown = (await team.get(f"/suppressions/{made}")).json()
        emails = ["zoe@quay.example", "ann@quay.example", "kim@bücher.example"]
        await team.post("/suppressions/batch/add", {"emails": emails})
        await add(team, "ann@quay.example")
        assert (await team.post("/suppressions/batch/add", {"emails": ["x", "new@quay.example"]})).is_error
        clock_of(here).advance(5)
        await team.post("/suppressions/batch/remove", {"emails": ["no@quay.example", "kim@bücher.example"]})
        await team.call("DELETE", "/suppressions/kim@bücher.example")
        await team.call("DELETE", "/suppressions/ann@quay.example")
        bodies = await told.payloads()
        assert [(body["type"].partition(".")[2], body["data"]["email"]) for body in bodies] == [
            ("added", "kim@bücher.example"),
            ("added", "zoe@quay.example"),
            ("added", "ann@quay.example"),
            ("removed", "kim@bücher.example"),
            ("removed", "ann@quay.example"),
        ]
        assert [list(body["data"]) for body in bodies] == [KEYS] * 5
        assert bodies[0]["data"] == bodies[3]["data"] == {key: shown[key] for key in KEYS}
        assert bodies[0]["created_at"] == shown["created_at"]
        assert bodies[3]["created_at"] > bodies[3]["data"]["created_at"], "removed later than it was added"
