"""Every status and every operation (broadcasts.md sections 2 and 3)."""

from __future__ import annotations

from typing import Any

import pytest

from kit.broadcasts import in_status, shown
from kit.client import error
from kit.world import Team, World
from pillarbox.broadcasts.statuses import STATUSES, TRANSITIONS, becomes

SCHEDULE = {"scheduled_at": "in 1 hour"}
NAME_ALONE = (
    403,
    "validation_error",
    "Only the name of a broadcast can be changed once it is sent, queued, canceled or failed.",
)
NOT_DELETED = (403, "validation_error", "Only draft and scheduled broadcasts can be deleted.")
NOT_SENT = (403, "validation_error", "Only draft broadcasts can be sent.")
NOT_CANCELED = (403, "validation_error", "Only queued or scheduled broadcasts can be canceled.")

CALLS: dict[str, tuple[str, str, Any, tuple[int, str, str]]] = {
    "change": ("PATCH", "", {"subject": "Other tides"}, NAME_ALONE),
    "delete": ("DELETE", "", None, NOT_DELETED),
    "send": ("POST", "/send", {}, NOT_SENT),
    "schedule": ("POST", "/send", SCHEDULE, NOT_SENT),
    "cancel": ("POST", "/cancel", {}, NOT_CANCELED),
}


@pytest.mark.parametrize("status", STATUSES)
async def test_every_operation_does_what_the_table_of_states_says(pillarbox: World, status: str) -> None:
    """What a test must cover 3 and 14."""
    await try_all(await pillarbox.team(), status)


async def try_all(team: Team, status: str) -> None:
    for operation, (method, path, body, refusal) in CALLS.items():
        broadcast_id = await in_status(team, status)
        before = await shown(team, broadcast_id)
        answer = await team.call(method, f"/broadcasts/{broadcast_id}{path}", body)
        after = becomes(operation, status)  # type: ignore[arg-type]
        if after is None:
            assert error(answer) == refusal, operation
            assert await shown(team, broadcast_id) == before
        elif after == "gone":
            assert answer.json() == {"object": "broadcast", "id": broadcast_id, "deleted": True}
            gone = await team.get(f"/broadcasts/{broadcast_id}")
            assert error(gone) == (404, "not_found", "Broadcast not found")
        else:
            assert answer.status_code == 200, (operation, answer.text)
            assert (await shown(team, broadcast_id))["status"] == after


@pytest.mark.parametrize("status", STATUSES)
async def test_the_name_may_change_in_every_state_and_a_duplicate_is_a_draft(
    pillarbox: World, status: str
) -> None:
    await rename_and_duplicate(await pillarbox.team(), status)


async def rename_and_duplicate(team: Team, status: str) -> None:
    broadcast_id = await in_status(team, status)
    same = await shown(team, broadcast_id)
    body = {"name": "Tides", "subject": same["subject"], "from": same["from"], "html": same["html"]}
    answer = await team.call("PATCH", f"/broadcasts/{broadcast_id}", body)
    assert answer.json() == {"id": broadcast_id, "object": "broadcast"}
    assert await shown(team, broadcast_id) == {**same, "name": "Tides"}
    copy = await team.post(f"/broadcasts/{broadcast_id}/duplicate")
    assert (copy.status_code, copy.json()["object"]) == (201, "broadcast")
    copied = await shown(team, copy.json()["id"])
    assert (copied["name"], copied["status"]) == ("Tides (copy)", "draft")
    assert (copied["scheduled_at"], copied["sent_at"]) == (None, None)
    left = ("id", "name", "status", "created_at", "scheduled_at", "sent_at")
    assert {k: v for k, v in copied.items() if k not in left} == {
        k: v for k, v in same.items() if k not in left
    }


def test_the_table_names_states_alone() -> None:
    for operation, changes in TRANSITIONS.items():
        assert set(changes) <= set(STATUSES), operation
        assert set(changes.values()) <= {*STATUSES, "gone"}, operation
