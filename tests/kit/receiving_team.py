"""A team that receives at harbor.example, a message for it, and the mail that it has received.

async with world(database_url, tmp_path) as pillarbox, inbound_client(pillarbox) as client:
    team = await receiving_team(pillarbox)
    assert (await client.deliver(message(), [HELP])).startswith("250")
    [found] = await received(team)
"""

from __future__ import annotations

from typing import Any

from kit.inbound_client import HOSTNAME, receiving_domain
from kit.world import Team, World
from kit.zone import Zone
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.mail.message.loop_marks import LoopMarks
from pillarbox.receiving.judging import Judge
from pillarbox.receiving.plugin import ReadingThreads
from pillarbox.receiving.receive import MessageReceiver, ReceivingRules
from pillarbox.webhooks.publish import Publisher

HELP = "help@harbor.example"


def message(*fields: str, body: str = "Where is berth 12?", sender: str = "ada@quay.example") -> bytes:
    lines = [f"From: Ada <{sender}>", f"To: {HELP}", "Subject: Berth", "Message-ID: <c81@quay.example>"]
    return "\r\n".join([*fields, *lines, "", body, ""]).encode()


async def received(team: Team) -> list[dict[str, Any]]:
    return list((await team.get("/emails/receiving")).json()["data"])


async def raw_of(team: Team, email_id: str) -> bytes:
    found = (await team.get(f"/emails/receiving/{email_id}")).json()
    return bytes((await team.world.client(None).get(found["raw"]["download_url"])).content)


async def receiving_team(pillarbox: World) -> Team:
    team = await pillarbox.team()
    await receiving_domain(team)
    return team


def receiving_of(pillarbox: World, zone: Zone, **own: Any) -> MessageReceiver:
    """Return a `MessageReceiver` of this world with other arguments."""
    app = pillarbox.app
    given: dict[str, Any] = {
        "pool": app.kit.pool,
        "clock": app.kit.clock,
        "ids": app.need(Ids),
        "blobs": app.need(BlobStore),
        "room": app.need(DiskSpace),
        "publisher": app.need(Publisher),
        "judge": Judge(zone, app.kit.clock, HOSTNAME),
        "marks": LoopMarks([b"key"]),
        "threads": app.need(ReadingThreads),
        "rules": ReceivingRules(HOSTNAME),
        **own,
    }
    return MessageReceiver(**given)
