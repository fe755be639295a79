"""The official Python SDK's broadcasts: every method, and a mailing from its draft to its reports."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
import resend
from resend import exceptions
from typer.testing import CliRunner

from kit.served import Server, sdk_at, serving
from pillarbox.cli import program

_numbers = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("sdk-broadcasts")
    with serving(folder, processes="1") as running:
        wanted = ["domains", "trust", "harbor.example", "--create"]
        done = CliRunner().invoke(program(), [*wanted, "--data", str(folder)])
        assert done.exit_code == 0, done.output + done.stderr
        yield running
        assert running.stopped() == 0


@pytest.fixture
def sdk(server: Server) -> Iterator[Server]:
    with sdk_at(server.url):
        yield server


def a_segment(*locals: str) -> str:
    segment = str(resend.Segments.create({"name": "Crew"})["id"])
    for local in locals:
        new: Any = {
            "email": f"{local}+{next(_numbers)}@pillarbox.test",
            "first_name": local.capitalize(),
            "segments": [{"id": segment}],
        }
        resend.Contacts.create(new)
    return segment


def draft(segment: str, **fields: Any) -> str:
    new: Any = {
        "segment_id": segment,
        "from": "Harbor <news@harbor.example>",
        "subject": "{{{FIRST_NAME|Sailor}}}, the tides",
        "html": '<p>Hello</p><a href="{{{PILLARBOX_UNSUBSCRIBE_URL}}}">Leave</a>',
        "name": "Tides",
        **fields,
    }
    return str(resend.Broadcasts.create(new)["id"])


def waited(holds: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def rows(broadcast: str, kind: Any, **params: Any) -> list[Any]:
    return list(resend.Broadcasts.recipients(broadcast, {"type": kind, **params})["data"])


def test_a_mailing_from_its_draft_to_its_reports(sdk: Server) -> None:
    """The simulator delivers to one, bounces for another, and suppression keeps a third from getting any."""
    segment = a_segment("delivered", "bounced", "sent")
    [unwanted] = [
        contact["email"]
        for contact in resend.Contacts.list(segment_id=segment)["data"]
        if contact["email"].startswith("sent+")
    ]
    resend.Suppressions.add({"email": unwanted})
    broadcast = draft(segment)
    assert resend.Broadcasts.get(broadcast)["status"] == "draft"
    assert resend.Broadcasts.send({"broadcast_id": broadcast})["id"] == broadcast
    waited(lambda: resend.Broadcasts.get(broadcast)["status"] == "sent")
    waited(lambda: bool(rows(broadcast, "bounced") and rows(broadcast, "delivered")))
    waited(lambda: [row["email"] for row in rows(broadcast, "suppressed")] == [unwanted])
    assert len(rows(broadcast, "sent")) == 2
    [delivered] = rows(broadcast, "delivered")
    assert delivered["email"].startswith("delivered+")
    assert resend.Contacts.get(id=delivered["contact_id"])["email"] == delivered["email"]
    [bounced] = rows(broadcast, "bounced")
    assert (bounced["email"].startswith("bounced+"), bounced["bounce_type"]) == (True, "permanent")
    assert rows(broadcast, "bounced", bounce_type="transient") == []
    assert [row["id"] for row in rows(broadcast, "sent", email="DELIVERED")] == ["b2Zmc2V0OjA"]
    first = resend.Broadcasts.recipients(broadcast, {"type": "sent", "limit": 1})
    more: Any = {"type": "sent", "limit": 1, "after": first["data"][0]["id"]}
    assert first["has_more"]
    assert resend.Broadcasts.recipients(broadcast, more)["data"][0]["id"] == "b2Zmc2V0OjE"
    assert rows(broadcast, "opened") == rows(broadcast, "clicked") == []
    assert resend.Broadcasts.clicked_links(broadcast)["data"] == []
    assert resend.Broadcasts.clicked_links(broadcast, {"limit": 5})["has_more"] is False
    metrics: Any = {"broadcast_id": [broadcast], "dimensions": ["broadcast"], "metrics": ["sent", "bounced"]}
    [row] = resend.Emails.metrics(metrics)["data"]
    assert (row["broadcast_name"], row["sent"]) == ("Tides", len(rows(broadcast, "sent")))
    with pytest.raises(exceptions.ResendError, match="type"):
        resend.Broadcasts.recipients(broadcast, {"type": "read"})  # type: ignore[typeddict-item]
    with pytest.raises(exceptions.ResendError):
        resend.Broadcasts.remove(broadcast)


def test_a_draft_is_changed_scheduled_canceled_duplicated_and_removed(sdk: Server) -> None:
    segment = a_segment("delivered")
    broadcast = draft(segment)
    change: Any = {"broadcast_id": broadcast, "subject": "Low water", "reply_to": ["crew@harbor.example"]}
    assert resend.Broadcasts.update(change)["id"] == broadcast
    found: Any = resend.Broadcasts.get(broadcast)
    assert (found["subject"], found["reply_to"]) == ("Low water", ["crew@harbor.example"])
    assert (found["segment_id"], found["audience_id"], found["from"]) == (
        segment,
        segment,
        "Harbor <news@harbor.example>",
    )
    resend.Broadcasts.send({"broadcast_id": broadcast, "scheduled_at": "in 1 hour"})
    assert resend.Broadcasts.get(broadcast)["status"] == "scheduled"
    assert resend.Broadcasts.cancel(broadcast)["id"] == broadcast
    assert resend.Broadcasts.get(broadcast)["status"] == "draft"
    copy = resend.Broadcasts.duplicate(broadcast)["id"]
    assert resend.Broadcasts.get(copy)["name"] == "Tides (copy)"
    assert broadcast in [item["id"] for item in resend.Broadcasts.list()["data"]]
    assert len(resend.Broadcasts.list({"limit": 1})["data"]) == 1
    removed: Any = resend.Broadcasts.remove(copy)
    assert (removed["object"], removed["id"], removed["deleted"]) == ("broadcast", copy, True)
    with pytest.raises(exceptions.ResendError, match="Broadcast not found"):
        resend.Broadcasts.get(copy)


def test_by_audience_and_at_once(sdk: Server) -> None:
    """`audience_id` is the old name; `send` sends with the creation."""
    segment = a_segment("delivered")
    new: Any = {
        "audience_id": segment,
        "from": "news@harbor.example",
        "subject": "Now",
        "text": "High water",
        "send": True,
    }
    broadcast = str(resend.Broadcasts.create(new)["id"])
    waited(lambda: len(rows(broadcast, "delivered")) == 1)
    new["scheduled_at"] = "in 1 hour"
    later = str(resend.Broadcasts.create(new)["id"])
    assert resend.Broadcasts.get(later)["status"] == "scheduled"
    resend.Broadcasts.cancel(later)


def test_the_asynchronous_methods(sdk: Server) -> None:
    async def walk() -> None:
        segment = a_segment("delivered")
        new: Any = {"segment_id": segment, "from": "news@harbor.example", "subject": "Tides", "text": "Hi"}
        broadcast = (await resend.Broadcasts.create_async(new))["id"]
        change: Any = {"broadcast_id": broadcast, "name": "Tides"}
        await resend.Broadcasts.update_async(change)
        assert (await resend.Broadcasts.get_async(broadcast))["name"] == "Tides"
        await resend.Broadcasts.send_async({"broadcast_id": broadcast, "scheduled_at": "in 1 hour"})
        await resend.Broadcasts.cancel_async(broadcast)
        copy = (await resend.Broadcasts.duplicate_async(broadcast))["id"]
        listed = await resend.Broadcasts.list_async({"limit": 2})
        assert [item["id"] for item in listed["data"]] == [copy, broadcast]
        assert (await resend.Broadcasts.recipients_async(copy, {"type": "sent"}))["data"] == []
        assert (await resend.Broadcasts.clicked_links_async(copy))["data"] == []
        assert (await resend.Broadcasts.remove_async(copy))["deleted"] is True  # type: ignore[typeddict-item]

    asyncio.run(walk())
