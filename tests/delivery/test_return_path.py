"""What receivers find when they check the envelope sender of our mail (OUT-16)."""

from __future__ import annotations

from pathlib import Path

from kit.clock import ManualClock
from kit.smtp_sink import Sink
from kit.world import world
from kit.zone import Zone
from pillarbox.mail.authentication import spf

ZONE = """
quay.example  MX 10 mx.quay.example
mx.quay.example A 127.0.0.1
"""


async def test_the_return_path_passes_spf_in_alignment_with_the_author(
    database_url: str, tmp_path: Path
) -> None:
    """By the record that the domain is asked to publish, and from this host alone (RFC 7208)."""
    async with (
        Sink() as sink,
        world(
            database_url,
            tmp_path,
            clock=ManualClock(),
            zone=Zone(ZONE),
            started=False,
            route="direct",
            remote_smtp_port=str(sink.port),
            allow_private="127.0.0.0/8",
        ) as pillarbox,
    ):
        team = await pillarbox.team()
        await team.domain()
        await team.send()
        await pillarbox.turn()
        [mail] = await sink.messages(1)
        [domain] = (await team.get("/domains")).json()["data"]
        records = (await team.get(f"/domains/{domain['id']}")).json()["records"]
        [record] = [r for r in records if r["record"] == "SPF" and r["type"] == "TXT"]
        published = Zone("mx.pillar.example A 192.0.2.1")
        published.add(f"{record['name']}.harbor.example", "TXT", record["value"])
        ours = await spf.check("192.0.2.1", "mx.pillar.example", mail.mail_from, published)
        assert (ours.result, ours.domain) == ("pass", "send.harbor.example")
        other = await spf.check("192.0.2.2", "mx.pillar.example", mail.mail_from, published)
        assert other.result == "softfail"
