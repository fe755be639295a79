"""The labels of an inbox (inboxes.md section 4)."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from uuid import UUID

import pytest

from kit.inbox_rows import Inbox, an_inbox
from kit.manual_world import run_jobs
from kit.world import Team, World
from pillarbox.inboxes.labels.changes import MOST
from pillarbox.inboxes.labels.colors import PALETTE, any_color, color
from pillarbox.kernel.wire.problems import InvalidField

LABELS = "SELECT count(*) FROM inbox_labels"
ON_THREADS = "SELECT count(*) FROM inbox_thread_labels"


def refused(answer: Any, status: int, name: str, message: str = "") -> None:
    assert (answer.status_code, answer.json()["name"]) == (status, name), answer.text
    assert message in answer.json()["message"]


async def create(inbox: Inbox, name: str, **fields: Any) -> str:
    answer = await inbox.team.post(f"{inbox.url}/labels", {"name": name, **fields})
    assert answer.status_code == 201, answer.text
    assert list(answer.json()) == ["object", "id"]
    assert answer.json()["object"] == "inbox_label"
    return str(answer.json()["id"])


async def listed(inbox: Inbox) -> list[dict[str, Any]]:
    answer = (await inbox.get("/labels")).json()
    assert list(answer) == ["object", "has_more", "data"]
    assert (answer["object"], answer["has_more"]) == ("list", False)
    return list(answer["data"])


def test_colours_are_hex_in_capitals_or_older_names() -> None:
    assert color("#a1b2c3") == color("#A1B2C3") == "#A1B2C3"
    assert {name: color(name) for name in PALETTE} == dict(PALETTE)
    assert {any_color(number / 11 + 0.01) for number in range(11)} == set(PALETTE.values())
    assert any_color(0.999999) == PALETTE["mauve"]
    for wrong in ("#fff", "#12345g", "a1b2c3", "Cyan", "red", "", "#a1b2c3 ", "#\u0661b2c3d", "#A1B2C3\n"):
        with pytest.raises(InvalidField):
            color(wrong)


async def test_labels_are_made_and_listed_the_oldest_first(inbox: Inbox) -> None:
    refunds = await create(inbox, " Refunds ", color="crimson")
    late = await create(inbox, "Late", color="#a1b2c3")
    any_one = await create(inbox, "Any")
    first, second, third = await listed(inbox)
    assert list(first) == ["id", "name", "color", "created_at"]
    assert (first["id"], first["name"], first["color"]) == (refunds, "Refunds", "#E93D82")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["created_at"])
    assert (second["id"], second["color"]) == (late, "#A1B2C3")
    assert (third["id"], third["color"] in PALETTE.values()) == (any_one, True)
    assert (await inbox.get("/labels?limit=1&after=nothing")).json()["data"] == [first, second, third]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "missing_required_field"),
    ({"name": None}, "missing_required_field"),
    ({"name": " "}, "missing_required_field"),
    ({"name": 7}, "validation_error"),
    ({"name": "n" * 65}, "validation_error"),
    ({"name": "a\u0007b"}, "validation_error"),
    ({"name": "a\nb"}, "validation_error"),
    ({"name": "a", "color": "red"}, "validation_error"),
    ({"name": "a", "color": 7}, "validation_error"),
    ({"name": "a", "color": ""}, "validation_error"),
]

WRONG_CHANGES: list[dict[str, Any]] = [
    {},
    {"id": "x"},
    {"name": None},
    {"name": ""},
    {"name": " "},
    {"name": "n" * 65},
    {"name": "a\tb"},
    {"color": None},
    {"color": "red"},
    {"name": "late"},
]


async def test_what_is_wrong_is_refused_and_changes_nothing(inbox: Inbox) -> None:
    label_id = await create(inbox, "Refunds", color="lime")
    await create(inbox, "Late")
    before = await listed(inbox)
    for body, name in WRONG:
        refused(await inbox.team.post(f"{inbox.url}/labels", body), 422, name)
    for change in WRONG_CHANGES:
        answer = await inbox.team.call("PATCH", f"{inbox.url}/labels/{label_id}", change)
        refused(answer, 422, "validation_error")
    assert await listed(inbox) == before


async def test_a_label_of_64_characters_is_taken(inbox: Inbox) -> None:
    await create(inbox, "\u6e2f" * 64)
    assert [label["name"] for label in await listed(inbox)] == ["\u6e2f" * 64]


async def test_names_are_unique_without_regard_to_case(inbox: Inbox) -> None:
    await create(inbox, "Stra\u00dfe")
    second = await create(inbox, "Caf\u00e9")
    for same in ("STRASSE", "stra\u00dfe", " Strasse "):
        answer = await inbox.team.post(f"{inbox.url}/labels", {"name": same})
        refused(answer, 422, "validation_error", "already")
    refused(await inbox.team.post(f"{inbox.url}/labels", {"name": "cafe\u0301"}), 422, "validation_error")
    other = await an_inbox(inbox.team, "desk")
    await create(other, "Stra\u00dfe")
    for own in ("CAF\u00c9", "Caf\u00e9 1"):
        changed = await inbox.team.call("PATCH", f"{inbox.url}/labels/{second}", {"name": own})
        assert changed.json() == {"object": "inbox_label", "id": second}
    assert [label["name"] for label in await listed(inbox)] == ["Stra\u00dfe", "Caf\u00e9 1"]


async def test_of_labels_made_at_once_one_has_the_name(inbox: Inbox) -> None:
    made = (inbox.team.post(f"{inbox.url}/labels", {"name": name}) for name in ("Late", "LATE", "late"))
    answers = await asyncio.gather(*made)
    assert sorted(answer.status_code for answer in answers) == [201, 422, 422]
    assert len(await listed(inbox)) == 1


async def test_an_inbox_has_at_most_100(inbox: Inbox) -> None:
    for number in range(MOST - 2):
        await inbox.label(f"Label {number}")
    more = (inbox.team.post(f"{inbox.url}/labels", {"name": f"More {number}"}) for number in range(5))
    answers = await asyncio.gather(*more)
    assert sorted(answer.status_code for answer in answers) == [201, 201, 422, 422, 422]
    refused(next(one for one in answers if one.status_code == 422), 422, "validation_error", "at most 100")
    assert len(await listed(inbox)) == MOST


async def test_a_change_is_seen_on_threads(inbox: Inbox) -> None:
    thread = await inbox.thread()
    label_id = await create(inbox, "Late", color="lime")
    await thread.put_labels([label_id])
    change = {"name": "Too late", "color": "IRIS".lower()}
    changed = await inbox.team.call("PATCH", f"{inbox.url}/labels/{label_id}", change)
    assert changed.status_code == 200
    shown = {"id": label_id, "name": "Too late", "color": "#5B5BD6"}
    assert (await thread.get()).json()["labels"] == [shown]


async def test_a_deleted_label_is_on_no_thread(pillarbox: World) -> None:
    inbox = await an_inbox(await pillarbox.team())
    threads = [await inbox.thread(at=number) for number in range(3)]
    label_id, other = await create(inbox, "Late"), await create(inbox, "Refunds")
    for thread in threads:
        await thread.put_labels([label_id, other])
    url = f"{inbox.url}/labels/{label_id}"
    gone = await inbox.team.call("DELETE", url)
    assert gone.json() == {"object": "inbox_label", "id": label_id, "deleted": True}
    for thread in threads:
        assert [label["id"] for label in (await thread.get()).json()["labels"]] == [other]
    refused(await inbox.team.call("DELETE", url), 404, "not_found", "Label not found")
    refused(await inbox.team.call("PATCH", url, {"name": "x"}), 404, "not_found")
    refused(await inbox.get(f"/threads?label={label_id}"), 404, "not_found")
    await run_jobs(pillarbox)
    assert await pillarbox.pool.fetchval(ON_THREADS) == 3


async def test_labels_of_others_are_unknown(inbox: Inbox) -> None:
    label_id = await create(inbox, "Late")
    neighbour = await an_inbox(inbox.team, "desk")
    quay: Team = await inbox.team.world.team("Quay")
    change = {"name": "Mine"}
    for team, url in ((inbox.team, neighbour.url), (quay, inbox.url)):
        for method, body in (("PATCH", change), ("DELETE", None)):
            refused(await team.call(method, f"{url}/labels/{label_id}", body), 404, "not_found")
    refused(await inbox.get("/labels/x"), 405, "method_not_allowed")
    refused(
        await inbox.team.call("PATCH", f"{inbox.url}/labels/x", change),
        422,
        "invalid_parameter",
        "label_id",
    )
    unknown = f"{inbox.url}/labels/{UUID(int=1)}"
    refused(await inbox.team.call("DELETE", unknown), 404, "not_found")
    assert [label["name"] for label in await listed(inbox)] == ["Late"]
