"""The agent settings of an inbox (inboxes.md 3.6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kit.inbox_rows import Inbox, inbox_world

NOTHING = {"object": "inbox_agent", "instructions": None, "tone": None, "actions": []}


async def shown(inbox: Inbox) -> dict[str, Any]:
    answer = (await inbox.get("/agent")).json()
    assert list(answer) == ["object", "instructions", "tone", "actions"]
    return dict(answer)


async def change(inbox: Inbox, **fields: Any) -> Any:
    return await inbox.team.call("PATCH", f"{inbox.url}/agent", fields)


async def test_settings_that_were_never_set_are_empty(inbox: Inbox) -> None:
    assert await shown(inbox) == NOTHING


async def test_what_is_left_out_stays_and_the_id_too(inbox: Inbox) -> None:
    first = (await change(inbox, tone="concise_casual", actions=["archive", "draft_reply", "archive"])).json()
    assert list(first) == ["object", "id"]
    assert first["object"] == "inbox_agent"
    wanted = {**NOTHING, "tone": "concise_casual", "actions": ["draft_reply", "archive"]}
    assert await shown(inbox) == wanted
    assert (await change(inbox, instructions="  Be kind. ")).json() == first
    assert await shown(inbox) == {**wanted, "instructions": "Be kind."}
    assert (await change(inbox, tone=None, actions=[])).json() == first
    assert await shown(inbox) == {**NOTHING, "instructions": "Be kind."}
    assert (await change(inbox, instructions=None)).status_code == 200
    assert await shown(inbox) == NOTHING


async def test_all_actions_in_the_order_of_the_contract(database_url: str, tmp_path: Path) -> None:
    actions = ["draft_reply", "forward_thread", "add_labels", "assign_thread", "mark_as_spam", "archive"]
    actions.append("move_to_trash")
    async with inbox_world(database_url, tmp_path) as inbox:
        assert (await change(inbox, actions=actions[::-1])).status_code == 200
        assert (await shown(inbox))["actions"] == actions
        assert (await change(inbox, instructions="n" * 4000)).status_code == 200


WRONG: list[dict[str, Any]] = [
    {},
    {"other": 1},
    {"instructions": ""},
    {"instructions": "  "},
    {"instructions": "n" * 4001},
    {"instructions": 7},
    {"tone": "rude"},
    {"tone": ""},
    {"actions": None},
    {"actions": "archive"},
    {"actions": ["send"]},
    {"actions": [7]},
    {"instructions": "Fine.", "tone": "rude"},
]


async def test_what_is_wrong_is_refused_and_changes_nothing(inbox: Inbox) -> None:
    for fields in WRONG:
        answer = await change(inbox, **fields)
        assert (answer.status_code, answer.json()["name"]) == (422, "validation_error"), fields
    assert await shown(inbox) == NOTHING
