"""Who may send as whom (emails.md 1.8), the simulator addresses and the sandbox sender (section 7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kit.client import error
from kit.dumps import counts
from kit.world import Team, World, mail, world
from pillarbox.domains.senders import Senders

FORBIDDEN = (403, "validation_error")


async def refusal(team: Team, **fields: Any) -> str:
    """The message of the 403 that this send gets."""
    status, name, message = error(await team.post("/emails", mail(**fields)))
    assert (status, name) == FORBIDDEN
    return message


async def sending_key(team: Team, domain_id: str | None = None) -> Team:
    return team.using(await team.key(permission="sending_access", domain_id=domain_id))


async def test_a_key_of_one_domain_sends_from_no_other(database_url: str, tmp_path: Path) -> None:
    """Row 1, before every other row."""
    async with world(database_url, tmp_path, require_verified_domain="always") as pillarbox:
        team = await pillarbox.team()
        harbor = await team.domain("harbor.example")
        await team.domain("quay.example")
        bound = await sending_key(team, harbor)
        assert (await bound.post("/emails", mail())).status_code == 200
        wrong = "This API key is not authorized to send emails from {}."
        assert await refusal(bound, from_="a@quay.example") == wrong.format("quay.example")
        assert await refusal(bound, from_="a@nowhere.example") == wrong.format("nowhere.example")
        assert await refusal(bound, from_="a@pillarbox.test") == wrong.format("pillarbox.test")
        assert await refusal(bound, from_="a@sub.harbor.example") == wrong.format("sub.harbor.example")
        items = [mail(), mail(from_="a@quay.example")]
        status, name, message = error(await bound.post("/emails/batch", items))
        assert (status, name, message) == (*FORBIDDEN, "[1] " + wrong.format("quay.example"))
        free = await sending_key(team)
        assert (await free.post("/emails", mail(from_="a@quay.example"))).status_code == 200


async def test_the_domain_must_be_the_teams_own_and_exact(database_url: str, tmp_path: Path) -> None:
    """Rows 3 and 4: no parent, no subdomain, nobody else's, none that is not verified."""
    async with world(database_url, tmp_path, require_verified_domain="always") as pillarbox:
        team, other = await pillarbox.team(), await pillarbox.team("Other")
        await team.domain("harbor.example")
        await other.domain("foreign.example")
        added = await team.post("/domains", {"name": "new.example"})
        assert added.status_code == 201
        before = await counts(pillarbox.pool)
        for name in ("example.com", "sub.harbor.example", "foreign.example", "new.example"):
            message = await refusal(team, from_=f"Ann <ann@{name}>")
            assert message == f"The {name} domain is not verified. Add and verify it, then try again."
        assert await counts(pillarbox.pool) == before
        assert (await team.post("/emails", mail(from_="a@HARBOR.example"))).status_code == 200
        long = f"{'a' * 60}.{'b' * 60}.{'c' * 60}.example"
        assert long[:100] in await refusal(team, from_=f"a@{long}")
        assert long[:101] not in await refusal(team, from_=f"a@{long}")


@pytest.mark.parametrize(
    ("columns", "may"),
    [
        ("sending_ok = true", True),
        ("sending_ok = false", False),
        ("sending = false, receiving = true", False),
    ],
)
async def test_the_state_of_the_domain_decides(
    database_url: str, tmp_path: Path, columns: str, may: bool
) -> None:
    """Row 4: the capability, and whether the sending records hold."""
    async with world(database_url, tmp_path, require_verified_domain="always") as pillarbox:
        team = await pillarbox.team()
        await team.domain("harbor.example")
        await pillarbox.pool.execute(f"UPDATE domains SET {columns}")
        pillarbox.app.need(Senders).forget(team.id)
        answer = await team.post("/emails", mail())
        assert answer.status_code == (200 if may else 403)
        if not may:
            assert "The harbor.example domain is not verified." in error(answer)[2]


async def test_capture_needs_no_domain_but_heeds_what_the_team_switched_off(running: World) -> None:
    """Contract decision 21: on the route capture the domain need not be verified; all else is the same."""
    team = await running.team()
    assert (await team.settled(await team.send()))["last_event"] == "delivered"
    capabilities = {"sending": "disabled", "receiving": "enabled"}
    await team.post("/domains", {"name": "deaf.example", "capabilities": capabilities})
    assert "deaf.example" in await refusal(team, from_="a@deaf.example")


async def test_the_checks_come_after_the_fields(database_url: str, tmp_path: Path) -> None:
    """Conventions section 1: 422 of a field, 404 of a reference, then 403 of the sender."""
    async with world(database_url, tmp_path, require_verified_domain="always") as pillarbox:
        team = await pillarbox.team()
        bad = mail(from_="a@nowhere.example", to="nobody")
        assert error(await team.post("/emails", bad))[:2] == (422, "validation_error")
        topic = mail(from_="a@nowhere.example", topic_id="0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44")
        assert error(await team.post("/emails", topic)) == (404, "not_found", "Topic not found")
        assert await refusal(team, from_="a@nowhere.example")


async def test_the_sandbox_sender_writes_to_simulators_and_the_team_only(
    database_url: str, tmp_path: Path
) -> None:
    """Row 2."""
    async with world(database_url, tmp_path, require_verified_domain="always") as pillarbox:
        team = await pillarbox.team(email="Owner@team.example")
        for sender in ("onboarding@resend.dev", "Acme <any+thing@pillarbox.test>"):
            await team.send(from_=sender, to="delivered@resend.dev")
            await team.send(from_=sender, to=["owner@TEAM.example", "bounced@pillarbox.test"])
            for fields in (
                {"to": "ada@quay.example"},
                {"to": "delivered@resend.dev", "cc": "ada@quay.example"},
                {"to": "delivered@resend.dev", "bcc": ["delivered@resend.dev", "ada@quay.example"]},
                {"to": "owner@sub.team.example"},
            ):
                message = await refusal(team, from_=sender, **fields)
                assert "are for testing" in message
        other = await pillarbox.team("Other", email="elsewhere@other.example")
        assert await refusal(other, from_="onboarding@resend.dev", to="owner@team.example")


async def test_reserved_recipients_are_refused_only_when_the_operator_says_so(
    database_url: str, tmp_path: Path
) -> None:
    async with world(database_url, tmp_path, reject_reserved_recipients="true") as pillarbox:
        team = await pillarbox.team()
        for field in ("to", "cc", "bcc"):
            fields = {"to": "ada@quay.example", field: ["x@quay.example", "y@example.com"]}
            status, name, message = error(await team.post("/emails", mail(**fields)))
            assert (status, name) == (422, "validation_error")
            assert message.startswith(f"Invalid `{field}` field. ")


SIMULATED = {
    "delivered@resend.dev": ["sent", "delivered"],
    "Delivered+label@pillarbox.test": ["sent", "delivered"],
    "bounced@resend.dev": ["sent", "bounced"],
    "bounced+user1@pillarbox.test": ["sent", "bounced"],
    "complained@resend.dev": ["sent", "delivered", "complained"],
    "complained+x@resend.dev": ["sent", "delivered", "complained"],
    "suppressed@pillarbox.test": ["suppressed"],
    "suppressed+x@pillarbox.test": ["sent", "bounced"],
    "whoever@resend.dev": ["sent", "bounced"],
    "deliveredx@resend.dev": ["sent", "bounced"],
}


async def test_simulator_addresses_have_their_outcomes(pillarbox: World) -> None:
    """Every row of section 7; none of them is put on the suppression list."""
    team = await pillarbox.team()
    sent = {address: await team.send(to=address) for address in SIMULATED}
    await pillarbox.turn()
    for address, kinds in SIMULATED.items():
        assert await team.kinds(sent[address]) == ["queued", *kinds], address
        assert (await team.email(sent[address]))["last_event"] == kinds[-1], address
    bounce = (await team.events(sent["bounced@resend.dev"]))[-1]
    assert bounce["bounce"]["type"] == "Permanent"
    assert bounce["reply"].startswith("550 5.1.1 ")
    assert bounce["recipient"] == "bounced@resend.dev"
    listed = (await team.events(sent["suppressed@pillarbox.test"]))[-1]
    assert listed["reason"] == "previous_bounce"
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM suppressions") == 0
    again = await team.send(to="bounced@resend.dev")
    await pillarbox.turn()
    assert await team.kinds(again) == ["queued", "sent", "bounced"]


async def test_simulated_and_real_recipients_of_one_email_have_their_own_fates(pillarbox: World) -> None:
    """Section 6: one `sent` per recipient in the history; `last_event` is the latest."""
    team = await pillarbox.team()
    email = await team.send(to=["ada@quay.example", "bounced@resend.dev"], cc="suppressed@resend.dev")
    await pillarbox.turn()
    fates = {event["recipient"]: event["event"] for event in await team.events(email)}
    assert fates == {
        None: "queued",
        "ada@quay.example": "delivered",
        "bounced@resend.dev": "bounced",
        "suppressed@resend.dev": "suppressed",
    }


async def test_suppressed_recipients_are_not_sent_to(pillarbox: World) -> None:
    """Section 6: queued, recipient on the suppression list."""
    team, other = await pillarbox.team(), await pillarbox.team("Other")
    await pillarbox.pool.execute(
        """
            INSERT INTO suppressions (team_id, id, address, origin, created_at)
            VALUES ($1, gen_random_uuid(), 'ada@quay.example', 'manual', now())
            """,
        team.id,
    )
    mine, theirs = await team.send(to="Ada <Ada@QUAY.example>"), await other.send()
    await pillarbox.turn()
    assert (await team.email(mine))["last_event"] == "suppressed"
    assert (await other.email(theirs))["last_event"] == "delivered"
