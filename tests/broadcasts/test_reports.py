"""Reports of broadcasts: their parameters, rows, order and pages (broadcasts.md section 4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.client import error
from kit.mailings import Mailing, a_mailing, bounced, clicked, shown
from kit.world import Team, world
from pillarbox.broadcasts.reports import wire
from pillarbox.timeline.rules import EventKind

FIRST = "b2Zmc2V0OjA"
STARTED = datetime(2026, 10, 6, 11, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return STARTED + timedelta(seconds=seconds)


Place = tuple[str, Path]


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database and a folder for tests that each have a team of their own."""
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("reports")
    databases.drop(url)


@asynccontextmanager
async def a_team(place: Place) -> AsyncIterator[Team]:
    async with world(*place, started=False) as pillarbox:
        yield await pillarbox.team()


REFUSED = [
    ({}, "missing_required_parameter", "Missing `type` parameter."),
    ({"type": ""}, "validation_error", "`type`"),
    ({"type": "read"}, "validation_error", "`type`"),
    ({"type": "opened", "bounce_type": "permanent"}, "validation_error", "`bounce_type`"),
    ({"type": "bounced", "bounce_type": "Permanent"}, "validation_error", "`bounce_type`"),
    ({"type": "bounced", "bounce_type": ""}, "validation_error", "`bounce_type`"),
    ({"type": "sent", "email": "a" * 255}, "validation_error", "`email`"),
    ({"type": "sent", "email": "a\0"}, "validation_error", "`email`"),
    ({"type": "sent", "limit": "0"}, "validation_error", "`limit`"),
    ({"type": "sent", "limit": "101"}, "validation_error", "`limit`"),
    ({"type": "sent", "after": "!!!"}, "validation_error", "`after`"),
    ({"type": "sent", "before": "!!!"}, "validation_error", "`before`"),
    ({"type": "sent", "after": FIRST, "before": FIRST}, "validation_error", "`after`"),
    ({"type": "sent", "after": "b2Zmc2V0Oi0x"}, "validation_error", "`after`"),
    ({"type": "sent", "after": f"{uuid4()}"}, "validation_error", "`after`"),
    ({"type": "sent", "after": "b2Zmc2V0OjA="}, "validation_error", "`after`"),
    ({"type": "sent", "after": "b2Zmc2V0O"}, "validation_error", "`after`"),
    ({"type": "sent", "after": "é"}, "validation_error", "`after`"),
]


@pytest.mark.parametrize(("params", "name", "says"), REFUSED)
async def test_what_is_wrong_is_named(place: Place, params: dict[str, str], name: str, says: str) -> None:
    """Section 9, point 12: a missing `type`, `bounce_type` with `opened`, the cursor `!!!`, and the like."""
    async with a_team(place) as team:
        made = await a_mailing(team)
        answer = await team.http.get(f"/broadcasts/{made.id}/recipients", params=params)
        assert error(answer)[:2] == (422, name)
        assert says in answer.json()["message"]


async def test_the_id_of_a_broadcast_is_checked(place: Place) -> None:
    async with a_team(place) as team:
        for route in ("recipients?type=sent", "clicked-links"):
            assert error(await team.get(f"/broadcasts/tides/{route}"))[:2] == (422, "invalid_parameter")
            unknown = await team.get(f"/broadcasts/{uuid4()}/{route}")
            assert (unknown.status_code, unknown.json()["message"]) == (404, "Broadcast not found")


async def test_parameters_come_before_the_broadcast(place: Place) -> None:
    """The order of checks: a query that is wrong is 422 whatever the id names."""
    async with a_team(place) as team:
        assert (await team.get(f"/broadcasts/{uuid4()}/recipients")).status_code == 422


@pytest.mark.parametrize("status", ["draft", "scheduled"])
async def test_a_broadcast_that_has_not_begun_has_empty_reports(place: Place, status: str) -> None:
    async with a_team(place) as team:
        made = await a_mailing(team, status=status)
        empty = {"object": "list", "has_more": False, "data": []}
        assert [await made.report(type=kind) for kind in wire.TYPES] == [empty] * len(wire.TYPES)
        assert await made.links() == empty


def addresses(*names: str) -> list[str]:
    """Addresses that no other test has."""
    return [f"{name}.{uuid4().hex[:6]}@orchard.example" for name in names]


async def everything(team: Team) -> Mailing:
    """Ada opens twice and follows three links, Bo complains and leaves, Cy bounces, Di is suppressed."""
    made = await a_mailing(
        team,
        [f"{name}.{uuid4().hex[:6]}@orchard.example" for name in ("ada", "bo", "cy", "di")],
        started=STARTED,
    )
    tides, berths = "https://harbor.example/tides", "https://harbor.example/berths"
    await made.happens(
        (0, EventKind.SENT, after(1), None),
        (0, EventKind.DELIVERED, after(2), None),
        (0, EventKind.OPENED, after(60), None),
        (0, EventKind.OPENED, after(70), None),
        (0, EventKind.CLICKED, after(80), clicked(tides, after(80))),
        (0, EventKind.CLICKED, after(81), clicked(berths, after(81))),
        (0, EventKind.CLICKED, after(82), clicked(tides, after(82))),
        (1, EventKind.SENT, after(1.5), None),
        (1, EventKind.DELIVERED, after(1.7), None),
        (1, EventKind.CLICKED, after(90), clicked(berths, after(90))),
        (1, EventKind.COMPLAINED, after(95), None),
        (1, EventKind.UNSUBSCRIBED, after(96), None),
        (2, EventKind.SENT, after(0.5), None),
        (2, EventKind.DELIVERED, after(0.7), None),
        (2, EventKind.BOUNCED, after(3), bounced("Transient")),
        (3, EventKind.SUPPRESSED, after(0.1), None),
    )
    return made


async def test_a_recipient_is_listed_under_all_that_happened_to_it(place: Place) -> None:
    """The order is the time of its first event; `count`, `bounce_type` and links where the type has them."""
    async with a_team(place) as team:
        made = await everything(team)
        ada, bo, cy, di = (copy.address for copy in made.copies)
        expected = {
            "sent": [cy, ada, bo],
            "delivered": [cy, bo, ada],
            "opened": [ada],
            "clicked": [ada, bo],
            "bounced": [cy],
            "complained": [bo],
            "unsubscribed": [bo],
            "suppressed": [di],
        }
        assert {kind: shown((await made.report(type=kind))["data"]) for kind in wire.TYPES} == expected
        [opened] = (await made.report(type="opened"))["data"]
        assert list(opened.items()) == [
            ("id", FIRST),
            ("contact_id", str(made.copies[0].contact_id)),
            ("email", ada),
            ("count", 2),
        ]
        first, second = (await made.report(type="clicked"))["data"]
        assert list(first) == ["id", "contact_id", "email", "count", "clicked_links"]
        assert (first["count"], second["count"], second["id"]) == (3, 1, "b2Zmc2V0OjE")
        assert first["clicked_links"] == [
            {"url": "https://harbor.example/tides", "clicks": 2},
            {"url": "https://harbor.example/berths", "clicks": 1},
        ]
        [soft] = (await made.report(type="bounced"))["data"]
        assert list(soft.items())[2:] == [("email", cy), ("bounce_type", "transient")]
        assert shown((await made.report(type="bounced", bounce_type="transient"))["data"]) == [cy]
        assert (await made.report(type="bounced", bounce_type="permanent"))["data"] == []


async def test_the_links_that_were_followed(place: Place) -> None:
    """By clicks, then by URL; a recipient counts once for each link."""
    async with a_team(place) as team:
        made = await everything(team)
        assert await made.links() == {
            "object": "list",
            "has_more": False,
            "data": [
                {"id": FIRST, "url": "https://harbor.example/berths", "clicks": 2, "unique_clicks": 2},
                {"id": "b2Zmc2V0OjE", "url": "https://harbor.example/tides", "clicks": 2, "unique_clicks": 1},
            ],
        }
        one = await made.links(limit=1)
        assert (one["has_more"], [row["id"] for row in one["data"]]) == (True, [FIRST])
        two = await made.links(limit=1, after=FIRST)
        assert (two["has_more"], [row["id"] for row in two["data"]]) == (False, ["b2Zmc2V0OjE"])
        assert await made.links(after=FIRST) == two
        assert await made.links(before="b2Zmc2V0OjE") == {**one, "has_more": False}
        for cursor in (wire.cursor(2), wire.cursor(10**14)):
            for name in ("after", "before"):
                assert (await made.links(**{name: cursor}))["data"] == []
        for params in ({"after": "!!!"}, {"limit": 0}):
            answer = await team.http.get(f"/broadcasts/{made.id}/clicked-links", params=params)
            assert error(answer)[:2] == (422, "validation_error")


async def test_walking_pages_forward_and_back(place: Place) -> None:
    """Section 9, point 12. Two recipients of one instant stand in the order of their addresses."""
    async with a_team(place) as team:
        made = await a_mailing(
            team, [f"w{n}.{uuid4().hex[:6]}@orchard.example" for n in range(7)], started=STARTED
        )
        await made.happens(*((n, EventKind.SENT, after(1 + n // 2), None) for n in (3, 2, 1, 0, 6, 5, 4)))
        all_of_them = [copy.address for copy in made.copies]
        whole = await made.report(type="sent")
        assert (shown(whole["data"]), whole["has_more"]) == (all_of_them, False)
        ids = [row["id"] for row in whole["data"]]
        assert ids == [wire.cursor(n) for n in range(7)]
        pages, cursor = [], None
        while True:
            page = await made.report(type="sent", limit=3, **({"after": cursor} if cursor else {}))
            pages.append(shown(page["data"]))
            if not page["has_more"]:
                break
            cursor = page["data"][-1]["id"]
        assert pages == [all_of_them[:3], all_of_them[3:6], all_of_them[6:]]
        back = await made.report(type="sent", limit=3, before=ids[6])
        assert (shown(back["data"]), back["has_more"]) == (all_of_them[3:6], True)
        back = await made.report(type="sent", limit=3, before=ids[2])
        assert (shown(back["data"]), back["has_more"]) == (all_of_them[:2], False)
        assert (await made.report(type="sent", before=ids[0]))["data"] == []
        for name in ("after", "before"):
            beyond = await made.report(type="sent", **{name: wire.cursor(7)})
            assert (beyond["data"], beyond["has_more"]) == ([], False)


async def test_the_filter_finds_a_part_of_the_address(place: Place) -> None:
    """In any case of letters; positions are those of the list that was asked for."""
    async with a_team(place) as team:
        made = await a_mailing(
            team, ["nun@Quay.example".lower(), "mo_on@pier.example", "moon@quay.example"], started=STARTED
        )
        await made.happens(*((n, EventKind.SENT, after(n), None) for n in range(3)))

        async def found(email: str) -> list[tuple[str, str]]:
            rows = (await made.report(type="sent", email=email))["data"]
            return [(row["id"], row["email"]) for row in rows]

        assert await found("QUAY") == [(FIRST, "nun@quay.example"), ("b2Zmc2V0OjE", "moon@quay.example")]
        assert await found("o_o") == [(FIRST, "mo_on@pier.example")]
        assert await found("%") == []
        assert len(await found("")) == 3
        page = await made.report(type="sent", email="quay", limit=1)
        assert (page["has_more"], shown(page["data"])) == (True, ["nun@quay.example"])


async def test_a_contact_that_is_gone_has_no_id(place: Place) -> None:
    """Nor is it mistaken for another one that has its address now."""
    async with a_team(place) as team:
        made = await a_mailing(team, [f"gone.{uuid4().hex[:6]}@orchard.example"], started=STARTED)
        await made.happens((0, EventKind.SENT, after(1), None))
        [copy] = made.copies
        for again in (False, True):
            answer = await team.call("DELETE", f"/contacts/{copy.address}")
            assert answer.status_code == 200
            if again:
                assert (await team.post("/contacts", {"email": copy.address})).status_code == 201
            [row] = (await made.report(type="sent"))["data"]
            assert (row["contact_id"], row["email"]) == (None, copy.address)
            if not again:
                assert (await team.post("/contacts", {"email": copy.address})).status_code == 201


async def test_reports_are_of_one_team_and_one_broadcast(place: Place) -> None:
    async with a_team(place) as team:
        made, other = await everything(team), await a_mailing(team, ["x@orchard.example"], started=STARTED)
        stranger = await team.world.team("Quay")
        assert (await stranger.get(f"/broadcasts/{made.id}/recipients?type=sent")).status_code == 404
        assert (await stranger.get(f"/broadcasts/{made.id}/clicked-links")).status_code == 404
        assert (await other.report(type="sent"))["data"] == (await other.links())["data"] == []
