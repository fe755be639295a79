"""Complaints: whose mail they are about, and what follows (BNC-05, BNC-06; suppressions.md 3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.manual_world import manual_world
from kit.reports import about, bounce, came_back, complaint, token_of
from kit.webhooks import hook
from kit.world import Team, World
from pillarbox.mail.reports.verp import VerpSigner
from pillarbox.receiving.reports.return_path import FEEDBACK_PER_SECOND, ReportOutcome, TooManyReports


async def suppressed(team: Team) -> list[tuple[str, str, str]]:
    rows = await team.db.source.fetch("SELECT * FROM suppressions WHERE team_id = $1 ORDER BY id", team.id)
    return [(row["address"], row["origin"], str(row["source_id"])) for row in rows]


def enclosed(token: str, *headers: str) -> str:
    """Our mail as the reporter encloses it."""
    return "\n".join([f"Return-Path: <{token}@send.harbor.example>", *headers, "Subject: Berth 12"])


async def test_a_complaint_at_the_feedback_address_is_found_by_the_enclosed_mail(pillarbox: World) -> None:
    """BNC-05: event, metric, suppression with its origin, webhooks; a repetition changes nothing."""
    team = await pillarbox.team()
    email = await team.send()
    await pillarbox.turn()
    made = await hook(team, "email.complained", "suppression.added")
    raw = complaint(original=enclosed(await token_of(pillarbox, email)))
    assert await came_back(pillarbox, "", raw) is ReportOutcome.RECORDED
    assert await came_back(pillarbox, "", raw) is ReportOutcome.UNCHANGED
    assert await team.kinds(email) == ["queued", "sent", "delivered", "complained"]
    assert await suppressed(team) == [("ada@quay.example", "complaint", email)]
    told, added = await made.payloads()
    assert (told["type"], told["data"]["to"]) == ("email.complained", ["ada@quay.example"])
    assert added["data"]["origin"] == "complaint"
    assert await team.db.value("SELECT sum(complained) FROM metric_increments WHERE team_id = $1") == 1
    again = await team.send()
    await pillarbox.turn()
    assert await team.kinds(again) == ["queued", "suppressed"]


@pytest.mark.parametrize(
    ("fields", "recipients", "complains"),
    [
        ("Feedback-Type: abuse\nOriginal-Rcpt-To: <bob@quay.example>", 2, "bob@quay.example"),
        ("Feedback-Type: fraud\nOriginal-Rcpt-To: <[redacted]@quay.example>", 1, "ada@quay.example"),
        ("Feedback-Type: opt-out\nRemoval-Recipient: ADA@QUAY.EXAMPLE", 2, "ada@quay.example"),
        ("Feedback-Type: virus", 1, "ada@quay.example"),
        ("Feedback-Type: other", 1, "ada@quay.example"),
        ("Feedback-Type: abuse", 2, None),
        ("Feedback-Type: abuse\nOriginal-Rcpt-To: <cid@dock.example>", 2, None),
        ("Feedback-Type: not-spam\nOriginal-Rcpt-To: <ada@quay.example>", 1, None),
        ("Feedback-Type: auth-failure", 1, None),
        ("Feedback-Type: something-new", 1, None),
    ],
)
async def test_whom_a_complaint_is_from(
    pillarbox: World, fields: str, recipients: int, complains: str | None
) -> None:
    """BNC-05: the recipient that it names, or the only one; `not-spam` is none. Nobody is guessed."""
    team = await pillarbox.team()
    email = await team.send(to=["ada@quay.example", "bob@quay.example"][:recipients])
    await pillarbox.turn()
    token = await token_of(pillarbox, email)
    outcome = await came_back(pillarbox, "", complaint(fields, enclosed(token)))
    assert (outcome is ReportOutcome.RECORDED) == (complains is not None)
    assert [row[0] for row in await suppressed(team)] == ([complains] if complains else [])
    found = [e["recipient"] for e in await team.events(email) if e["event"] == "complained"]
    assert found == ([complains] if complains else [])


async def test_one_recipient_cannot_complain_another_onto_the_list(pillarbox: World) -> None:
    """docs/decisions/0021: the complaint is recorded, but and suppresses nobody whom it may not be from."""
    team = await pillarbox.team()
    email = await team.send(to=["ada@quay.example", "bob@quay.example"])
    await pillarbox.turn()
    raw = complaint(
        "Feedback-Type: abuse\nOriginal-Rcpt-To: <bob@quay.example>",
        enclosed(await token_of(pillarbox, email)),
    )
    assert await came_back(pillarbox, "", raw, sender="ada@quay.example") is ReportOutcome.RECORDED
    assert await suppressed(team) == []
    assert (await team.kinds(email)).count("complained") == 1


async def test_a_complaint_may_come_to_the_return_path_itself(pillarbox: World) -> None:
    """BNC-05: everything in it is blacked out; its own address says which mail it was."""
    team = await pillarbox.team()
    email = await team.send()
    await pillarbox.turn()
    token = await token_of(pillarbox, email)
    assert await came_back(pillarbox, token, complaint(original="Subject: XXXX")) is ReportOutcome.RECORDED
    assert [row[1] for row in await suppressed(team)] == ["complaint"]


async def test_what_anybody_can_quote_proves_nothing(pillarbox: World) -> None:
    """BNC-06: Message-ID, addresses and a made-up token; and a bounce at the feedback address."""
    team = await pillarbox.team()
    email = await team.send()
    await pillarbox.turn()
    stored = await team.email(email)
    real = pillarbox.app.need(VerpSigner).read(await token_of(pillarbox, email))
    assert real is not None
    forged = VerpSigner([b"another key of thirty-two bytes."]).token(*real)
    quoted = enclosed(forged, f"Message-ID: {stored['message_id']}", "To: ada@quay.example")
    fields = "Feedback-Type: abuse\nOriginal-Rcpt-To: <ada@quay.example>"
    assert await came_back(pillarbox, "", complaint(fields, quoted)) is ReportOutcome.UNSIGNED
    assert await came_back(pillarbox, forged, complaint(fields, quoted)) is ReportOutcome.UNSIGNED
    token = await token_of(pillarbox, email)
    report = bounce(about("ada@quay.example"), original=enclosed(token))
    assert await came_back(pillarbox, "", report) is ReportOutcome.NOT_A_REPORT
    assert await team.kinds(email) == ["queued", "sent", "delivered"]
    assert await suppressed(team) == []


async def test_a_true_token_among_forged_ones_counts_and_once(pillarbox: World) -> None:
    """BNC-06: hundreds of guesses in one report hide nothing and add nothing."""
    team = await pillarbox.team()
    email = await team.send()
    await pillarbox.turn()
    guesses = [f"X-Trace: b-{'a' * 52}{number:04d}".replace("0", "a") for number in range(300)]
    raw = complaint(
        original=enclosed("b-" + "a" * 56, *guesses, f"X-From: {await token_of(pillarbox, email)}")
    )
    assert await came_back(pillarbox, "", raw) is ReportOutcome.RECORDED
    assert len(await suppressed(team)) == 1


async def test_a_complaint_about_a_mail_that_we_still_try_to_deliver_shows_that_it_arrived(
    pillarbox: World,
) -> None:
    """BNC-04: `complained` is counted among the delivered, and the mail does not go out again."""
    team = await pillarbox.team()
    email = await team.send()
    raw = complaint()
    assert await came_back(pillarbox, await token_of(pillarbox, email), raw) is ReportOutcome.RECORDED
    await pillarbox.turn()
    assert await team.kinds(email) == ["queued", "sent", "delivered", "complained"]
    assert await team.db.value("SELECT count(*) FROM deliveries WHERE team_id = $1") == 0


async def test_after_a_bounce_there_is_no_complaint_and_after_a_complaint_no_bounce(pillarbox: World) -> None:
    """BNC-04: one final outcome; suppression keeps its first cause."""
    team = await pillarbox.team()
    first, second = await team.send(to="ada@quay.example"), await team.send(to="bob@quay.example")
    await pillarbox.turn()
    for email, reports in (
        (first, [bounce(about("ada@quay.example")), complaint()]),
        (second, [complaint(), bounce(about("bob@quay.example"))]),
    ):
        token = await token_of(pillarbox, email)
        outcomes = [await came_back(pillarbox, token, raw) for raw in reports]
        assert outcomes == [ReportOutcome.RECORDED, ReportOutcome.UNCHANGED]
    assert [row[:2] for row in await suppressed(team)] == [
        ("ada@quay.example", "bounce"),
        ("bob@quay.example", "complaint"),
    ]


async def test_the_feedback_address_takes_only_so_many_a_second(database_url: str, tmp_path: Path) -> None:
    """BNC-06: beyond that the sender is told to come again."""
    junk = complaint(original="Subject: nothing of ours")
    async with manual_world(database_url, tmp_path) as pillarbox:
        for _ in range(FEEDBACK_PER_SECOND):
            assert await came_back(pillarbox, "", junk, seconds=0) is ReportOutcome.UNSIGNED
        with pytest.raises(TooManyReports):
            await came_back(pillarbox, "", junk, seconds=0)
        assert await came_back(pillarbox, "", junk, seconds=1) is ReportOutcome.UNSIGNED
