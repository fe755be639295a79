"""What the suppression list does to mail, and what mail does to the list (suppressions.md 3 and 4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kit.brought import INVARIANTS
from kit.manual_world import clock_of
from kit.reports import about, bounce, came_back, complaint, token_of
from kit.smtp_sink import USUAL, Sink
from kit.webhooks import hook
from kit.world import Team, World
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.receiving.reports.return_path import ReportOutcome


async def suppress(team: Team, *addresses: str) -> None:
    answer = await team.post("/suppressions/batch/add", {"emails": list(addresses)})
    assert answer.status_code == 201, answer.text


async def entry(team: Team, address: str) -> dict[str, Any] | None:
    answer = await team.get(f"/suppressions/{address}")
    return dict(answer.json()) if answer.status_code == 200 else None


async def states(team: Team, email: str) -> dict[str, str]:
    """The last event of each recipient."""
    return {one["recipient"]: one["event"] for one in await team.events(email) if one["recipient"]}


async def test_the_others_get_what_one_is_spared(relayed: tuple[World, Sink]) -> None:
    """Section 7, point 6: to, cc and bcc alike; counted as suppressed, and not as sent."""
    pillarbox, sink = relayed
    team = await pillarbox.team()
    await team.domain()
    await suppress(team, "ann@quay.example", "BOB@quay.example", "cid@pier.example")
    made = await hook(team, "email.suppressed", "email.delivered")
    answer = await team.post(
        "/emails",
        {
            "from": "notes@harbor.example",
            "to": ["Ann <ANN@quay.example>", "ada@quay.example"],
            "cc": ["bob@quay.example"],
            "bcc": ["cid@pier.example"],
            "subject": "x",
            "text": "y",
        },
    )
    assert answer.status_code == 200, "the answer is the same"
    await pillarbox.turn()
    [message] = await sink.messages(1)
    assert message.recipients == ["ada@quay.example"]
    found = await states(team, answer.json()["id"])
    assert sorted(found.values()) == ["delivered", "suppressed", "suppressed", "suppressed"]
    bodies = [body["data"] for body in await made.payloads() if body["type"] == "email.suppressed"]
    assert [body["suppressed"]["reason"] for body in bodies] == ["manual"] * 3
    assert bodies[0]["suppressed"]["message"] == "The recipient was put on the suppression list."
    counted = await team.db.source.fetchrow(
        "SELECT sum(sent) AS sent, sum(suppressed) AS suppressed FROM metric_increments"
    )
    assert (counted["sent"], counted["suppressed"]) == (1, 3)


async def test_an_email_to_suppressed_people_alone_is_suppressed(relayed: tuple[World, Sink]) -> None:
    """However it is sent, nothing reaches a socket."""
    pillarbox, sink = relayed
    team = await pillarbox.team()
    await team.domain()
    await suppress(team, "ann@quay.example", "bob@quay.example")
    single = await team.send(to=["ann@quay.example"])
    double = await team.send(to=["ann@quay.example", "Bob@Quay.example"])
    body = {"from": "a@harbor.example", "to": "ann@quay.example", "subject": "x", "text": "y"}
    batch = await team.post("/emails/batch", [body, body | {"to": "ada@quay.example"}])
    first, second = [item["id"] for item in batch.json()["data"]]
    await pillarbox.turn()
    for email in (single, double, first):
        assert (await team.email(email))["last_event"] == "suppressed"
    assert (await team.email(second))["last_event"] == "delivered"
    assert [message.recipients for message in await sink.messages(1)] == [["ada@quay.example"]]


async def test_removing_an_address_lets_the_next_mail_out(relayed: tuple[World, Sink]) -> None:
    """Section 7, point 8: and what was skipped is not sent again."""
    pillarbox, sink = relayed
    team = await pillarbox.team()
    await team.domain()
    await suppress(team, "ada@quay.example")
    skipped = await team.send(subject="skipped")
    await pillarbox.turn()
    await team.call("DELETE", "/suppressions/ada@quay.example")
    sent = await team.send(subject="sent")
    await pillarbox.turn()
    assert (await team.email(skipped))["last_event"] == "suppressed"
    assert (await team.email(sent))["last_event"] == "delivered"
    [message] = await sink.messages(1)
    assert b"Subject: sent" in message.content


async def test_another_team_may_write_to_the_address(relayed: tuple[World, Sink]) -> None:
    pillarbox, _ = relayed
    team, other = await pillarbox.team(), await pillarbox.team("Quay")
    await other.domain()
    await suppress(team, "ada@quay.example")
    email = await other.send()
    await pillarbox.turn()
    assert (await other.email(email))["last_event"] == "delivered"


async def test_an_address_suppressed_after_acceptance_is_skipped(relayed: tuple[World, Sink]) -> None:
    """Section 7, point 10, and the other way round: the list counts at hand-over."""
    pillarbox, sink = relayed
    team = await pillarbox.team()
    await team.domain()
    await suppress(team, "bob@quay.example")
    late = await team.send(scheduled_at="in 1 hour", to=["Ada@quay.example"])
    free = await team.send(scheduled_at="in 1 hour", to=["bob@quay.example"])
    await suppress(team, "ada@quay.example")
    await team.call("DELETE", "/suppressions/bob@quay.example")
    clock_of(pillarbox).advance(timedelta(hours=1))
    await pillarbox.turn()
    assert (await team.email(late))["last_event"] == "suppressed"
    assert (await team.events(late))[-1]["reason"] == "manual"
    assert (await team.email(free))["last_event"] == "delivered"
    assert [message.recipients for message in await sink.messages(1)] == [["bob@quay.example"]]


async def test_a_retry_looks_at_the_list_again(relayed: tuple[World, Sink]) -> None:
    pillarbox, sink = relayed
    sink.script("RCPT", "451 4.7.1 come again")
    team = await pillarbox.team()
    await team.domain()
    email = await team.send()
    await pillarbox.turn()
    assert (await team.email(email))["last_event"] == "delivery_delayed"
    assert await entry(team, "ada@quay.example") is None, "section 7, point 7: Transient makes none"
    await suppress(team, "ada@quay.example")
    clock_of(pillarbox).advance(timedelta(hours=1))
    await pillarbox.turn()
    assert (await team.email(email))["last_event"] == "suppressed"
    await pillarbox.turn()
    assert sink.received == []


def answer(session: Any, argument: str) -> object:
    if "gone@" in argument.lower():
        return "550 5.1.1 no such user"
    return "550 5.7.1 not wanted" if "policy@" in argument else USUAL


async def test_an_address_that_is_refused_for_good_is_put_on_the_list(relayed: tuple[World, Sink]) -> None:
    """Section 7, point 7: with the email as its source; a refusal for policy says nothing of the address."""
    pillarbox, sink = relayed
    sink.script("RCPT", then=answer)
    team = await pillarbox.team()
    await team.domain()
    made = await hook(team, "suppression.added", "email.bounced")
    email = await team.send(to=["Gone@quay.example", "policy@quay.example", "ada@quay.example"])
    await pillarbox.turn()
    found = await entry(team, "gone@quay.example")
    assert found is not None
    assert (found["origin"], found["source_id"]) == ("bounce", email)
    assert await entry(team, "policy@quay.example") is None
    told = [body for body in await made.payloads() if body["type"] == "suppression.added"]
    assert [body["data"]["email"] for body in told] == ["gone@quay.example"]
    later = await team.send(to="gone@quay.example")
    await pillarbox.turn()
    assert (await team.events(later))[-1]["reason"] == "previous_bounce"
    assert (await reconcile(pillarbox.pool, 10, INVARIANTS)).gaps == []


async def test_a_complaint_puts_the_address_on_the_list(relayed: tuple[World, Sink]) -> None:
    """And a bounce that comes later does not change the entry."""
    pillarbox, _ = relayed
    team = await pillarbox.team()
    await team.domain()
    email = await team.send()
    second = await team.send()
    await pillarbox.turn()
    assert await came_back(pillarbox, await token_of(pillarbox, email), complaint()) is ReportOutcome.RECORDED
    before = await entry(team, "ada@quay.example")
    assert before is not None
    assert (before["origin"], before["source_id"]) == ("complaint", email)
    token = await token_of(pillarbox, second)
    assert await came_back(pillarbox, token, bounce(about("ada@quay.example"))) is ReportOutcome.RECORDED
    assert await entry(team, "ada@quay.example") == before
    later = await team.send()
    await pillarbox.turn()
    assert (await team.events(later))[-1]["reason"] == "previous_complaint"
    assert (await reconcile(pillarbox.pool, 10, INVARIANTS)).gaps == []


@pytest.mark.parametrize("fate", ["bounced", "complained", "suppressed", "bounced+label"])
async def test_the_simulator_puts_nobody_on_the_list(pillarbox: World, fate: str) -> None:
    team = await pillarbox.team()
    await team.domain()
    await team.send(to=f"{fate}@pillarbox.test")
    await pillarbox.turn()
    assert (await team.get("/suppressions")).json()["data"] == []
