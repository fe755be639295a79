"""What a domain must have shown before it has an inbox (inboxes.md 3.1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

from kit.inboxes import create, inbox_domain
from kit.world import Team, World, world

STATES = "UPDATE domains SET records = $3 WHERE team_id = $1 AND id = $2"
SENDING = ("spf_mx", "spf_txt", "dkim")
BOTH = {"sending": "enabled", "receiving": "enabled"}


async def a_domain(team: Team, **capabilities: str) -> str:
    wanted = {"name": "harbor.example", "capabilities": {**BOTH, **capabilities}}
    answer = await team.post("/domains", wanted)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def shows(team: Team, domain_id: str, **states: str) -> None:
    """DNS has shown this of its records; of the others nothing."""
    records = json.dumps({record: {"status": state} for record, state in states.items()})
    await team.db.run(STATES, UUID(domain_id), records)


async def asked(team: Team, **fields: Any) -> str | None:
    """Why there is no inbox; None where there is one, which is deleted again."""
    answer = await team.post("/inboxes", {"email_address": "help@harbor.example", **fields})
    if answer.status_code == 201:
        await team.call("DELETE", f"/inboxes/{answer.json()['id']}")
        return None
    assert (answer.status_code, answer.json()["name"]) == (422, "validation_error"), answer.text
    return str(answer.json()["message"])


async def test_it_must_have_shown_who_sends_and_who_receives(database_url: str, tmp_path: Path) -> None:
    settings = {"require_verified_domain": "always", "inbound_domain": "in.pillar.example"}
    async with world(database_url, tmp_path, started=False, **settings) as pillarbox:
        team = await pillarbox.team()
        domain_id = await a_domain(team)
        sent = dict.fromkeys(SENDING, "verified")
        assert "DKIM and SPF" in str(await asked(team))
        for missing in SENDING:
            for state in ("pending", "failed", "not_started"):
                await shows(team, domain_id, **{**sent, missing: state, "receiving": "verified"})
                assert "DKIM and SPF" in str(await asked(team))
                assert "DKIM and SPF" in str(await asked(team, forwarding=True))
        for state in ("not_started", "failed"):
            await shows(team, domain_id, **sent, receiving=state)
            assert "MX" in str(await asked(team))
            assert await asked(team, forwarding=True) is None
        for state in ("pending", "verified"):
            await shows(team, domain_id, **sent, receiving=state)
            assert await asked(team) is None
            assert await asked(team, forwarding=True) is None


async def test_receiving_must_be_enabled_but_where_mail_is_forwarded(
    database_url: str, tmp_path: Path
) -> None:
    async with world(database_url, tmp_path, started=False, inbound_domain="in.pillar.example") as pillarbox:
        team = await pillarbox.team()
        await a_domain(team, receiving="disabled")
        assert "receiving is not enabled" in str(await asked(team))
        assert await asked(team, forwarding=True) is None


async def test_without_an_inbound_domain_nothing_is_forwarded(pillarbox: World) -> None:
    team = await pillarbox.team()
    await inbox_domain(team)
    assert "`forwarding`" in str(await asked(team, forwarding=True))
    assert await asked(team, forwarding=False) is None


async def test_where_dns_is_not_asked_nothing_needs_to_be_shown(database_url: str, tmp_path: Path) -> None:
    settings = {"require_verified_domain": "never", "inbound_require_dns": "false"}
    async with world(database_url, tmp_path, started=False, **settings) as pillarbox:
        team = await pillarbox.team()
        await a_domain(team)
        assert await asked(team) is None


async def test_an_address_in_a_name_is_of_a_verified_domain(database_url: str, tmp_path: Path) -> None:
    settings = {"require_verified_domain": "always"}
    async with world(database_url, tmp_path, started=False, **settings) as pillarbox:
        team = await pillarbox.team()
        await inbox_domain(team)
        await team.post("/domains", {"name": "quay.example"})
        inbox_id = await create(team, from_name="mina@Harbor.Example.")
        for name in (
            "mina@quay.example",
            "Mina, ola@other.example",
            "mina@harbor",
            "a@harbor.example b@c.example",
            "mina(desk)@quay.example",
            "'mina'@quay.example",
            '"mina"@quay.example',
            "mina\N{FULLWIDTH COMMERCIAL AT}quay.example",
            "mina\N{SMALL COMMERCIAL AT}quay.example",
        ):
            answer = await team.call("PATCH", f"/inboxes/{inbox_id}", {"from_name": name})
            assert (answer.status_code, answer.json()["name"]) == (422, "validation_error"), name
        for name in ("Mina @ Harbor", "@Harbor", "help@harbor.example (Mina)"):
            answer = await team.call("PATCH", f"/inboxes/{inbox_id}", {"from_name": name})
            assert answer.status_code == 200, name
