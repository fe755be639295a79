"""The bodies of `email.*` events, key by key (webhooks.md section 7.1; contract decisions 12, 13)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from kit.manual_world import clock_of, manual_world
from kit.webhooks import hook
from kit.world import Team, World
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.suppressions import changes
from pillarbox.suppressions.changes import SuppressionCause
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rules import Bounce, ClickDetail, EventDetail, EventKind, TimelineEntry
from pillarbox.webhooks.bodies import EventSubject, WebhookBodies
from pillarbox.webhooks.dispatch.claims import DeliveryClaims
from pillarbox.webhooks.kinds import KINDS
from pillarbox.webhooks.publish import Publisher, body_of

EMAIL_KINDS = [kind for kind in KINDS if kind.startswith("email.")]
BASE = ["created_at", "email_id", "message_id", "from", "to", "subject"]
CONTENT = {
    "tags": [{"name": "kind", "value": "weekly"}, {"name": "port", "value": "west"}],
    "headers": {"X-Batch": "7", "X-Opening": "Grüße"},
}


async def happens(
    pillarbox: World,
    team: Team,
    email: str,
    kind: EventKind,
    detail: EventDetail | None = None,
    *,
    to: int = 0,
) -> None:
    """One event of one recipient, a second later."""
    clock_of(pillarbox).advance(1)
    app = pillarbox.app
    async with transaction(pillarbox.pool) as conn:
        entry = TimelineEntry(
            team_id=team.id,
            email_id=UUID(email),
            position=to,
            kind=kind,
            at=app.kit.clock.now(),
            detail=detail,
        )
        assert await app.need(Timeline).record(conn, [entry]) == [entry]


async def held(team: Team, **fields: Any) -> str:
    """An email that no engine takes: it is scheduled, and then released by hand."""
    email = await team.send(scheduled_at="in 1 hour", **fields)
    app = team.world.app
    async with transaction(team.world.pool) as conn:
        await app.need(Timeline).release(conn, team.id, [UUID(email)], app.kit.clock.now())
    return email


async def test_the_common_part_and_its_order(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, *EMAIL_KINDS)
    email = await team.send(from_="Harbor <news@harbor.example>", subject="Tide ⚓", **CONTENT)
    await pillarbox.turn()
    sent, delivered = await made.payloads()
    stored = await team.email(email)
    assert [sent["type"], delivered["type"]] == ["email.sent", "email.delivered"]
    for body in (sent, delivered):
        assert list(body) == ["type", "created_at", "data"]
        assert list(body["data"]) == [*BASE, "tags", "headers"]
        assert body["data"] == {
            "created_at": stored["created_at"].replace(" ", "T")[:23] + "Z",
            "email_id": email,
            "message_id": stored["message_id"],
            "from": "Harbor <news@harbor.example>",
            "to": ["ada@quay.example"],
            "subject": "Tide ⚓",
            "tags": {"kind": "weekly", "port": "west"},
            "headers": [{"name": "X-Batch", "value": "7"}, {"name": "X-Opening", "value": "Grüße"}],
        }


async def test_what_is_not_there_is_left_out(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "email.delivered")
    await team.send()
    await pillarbox.turn()
    [body] = await made.payloads()
    assert list(body["data"]) == BASE


async def test_sent_and_scheduled_name_everybody_and_the_rest_is_per_recipient(pillarbox: World) -> None:
    """Contract decision 13: an email to three addresses is sent once and delivered three times."""
    team = await pillarbox.team()
    made = await hook(team, *EMAIL_KINDS)
    everybody = ["ada@quay.example", "bo@quay.example", "cy@pier.example", "di@pier.example"]
    await team.send(
        to=["Ada <ada@quay.example>", "bo@quay.example"],
        cc=["cy@pier.example"],
        bcc=["di@pier.example"],
        scheduled_at="in 1 hour",
    )
    clock_of(pillarbox).advance(timedelta(hours=1))
    await pillarbox.turn()
    bodies = await made.payloads()
    published = [(body["type"], body["data"]["to"]) for body in bodies]
    assert published[0] == ("email.scheduled", everybody)
    assert published.count(("email.sent", everybody)) == 1
    assert sorted(to for kind, to in published if kind == "email.delivered") == [[one] for one in everybody]
    assert len(published) == 6
    assert len({event["id"] for event in await made.events()}) == 6


async def test_a_bounce_tells_what_the_server_said(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "email.bounced", "suppression.added")
    email = await team.send(to=["gone@pillarbox.test"])
    await pillarbox.turn()
    [body] = await made.payloads()
    assert list(body["data"]) == [*BASE, "bounce"]
    assert list(body["data"]["bounce"]) == ["diagnosticCode", "message", "subType", "type"]
    assert body["data"]["bounce"] == {
        "diagnosticCode": ["smtp; 550 5.1.1 The simulator knows no such user."],
        "message": "The recipient's mail server permanently rejected the message.",
        "subType": "NoEmail",
        "type": "Permanent",
    }
    assert body["data"]["email_id"] == email


async def test_every_other_kind_has_its_own_detail(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, *EMAIL_KINDS)
    clicked_at = clock_of(pillarbox).now()
    story: list[tuple[EventKind, EventDetail | None, dict[str, Any]]] = [
        (
            EventKind.DELIVERY_DELAYED,
            EventDetail(host="mx.quay.example", code=450, reply="450 4.2.0 later"),
            {},
        ),
        (EventKind.SENT, EventDetail(host="mx.quay.example", attempt=2), {}),
        (EventKind.DELIVERED, EventDetail(host="mx.quay.example", code=250, reply="250 ok"), {}),
        (EventKind.OPENED, None, {}),
        (
            EventKind.CLICKED,
            EventDetail(
                click=ClickDetail("203.0.113.9", "https://harbor.example/tides", clicked_at, "Mozilla/5.0")
            ),
            {
                "click": {
                    "ipAddress": "203.0.113.9",
                    "link": "https://harbor.example/tides",
                    "timestamp": iso_style(clicked_at),
                    "userAgent": "Mozilla/5.0",
                }
            },
        ),
        (EventKind.COMPLAINED, EventDetail(reason="abuse"), {}),
    ]
    email = await held(team)
    for kind, detail, _ in story:
        await happens(pillarbox, team, email, kind, detail)
    bodies = (await made.payloads())[1:]
    assert [body["type"] for body in bodies] == [f"email.{kind}" for kind, _, _ in story]
    for body, (_, _, shown) in zip(bodies, story, strict=True):
        assert list(body["data"]) == [*BASE, *shown]
        assert {name: body["data"][name] for name in shown} == shown
        assert [list(body["data"][name]) for name in shown] == [list(value) for value in shown.values()]


async def test_failures_and_suppressions_give_their_reason(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "email.failed", "email.suppressed", "email.bounced")
    email = await held(team, to=["a@quay.example", "b@quay.example", "c@quay.example", "d@quay.example"])
    await happens(pillarbox, team, email, EventKind.FAILED, EventDetail(reason="delivery_window_over"), to=0)
    await happens(
        pillarbox, team, email, EventKind.SUPPRESSED, EventDetail(suppressed="previous_complaint"), to=1
    )
    await happens(pillarbox, team, email, EventKind.SUPPRESSED, EventDetail(suppressed="manual"), to=2)
    late = EventDetail(reply="452 4.2.2 full", bounce=Bounce("Transient", "MailboxFull"))
    await happens(pillarbox, team, email, EventKind.BOUNCED, late, to=3)
    failed, complained, manual, bounced = await made.payloads()
    assert failed["data"]["failed"] == {"reason": "delivery_window_over"}
    assert list(failed["data"]) == [*BASE, "failed"]
    assert list(complained["data"]["suppressed"]) == ["diagnosticCode", "message", "reason", "type"]
    assert complained["data"]["suppressed"] == {
        "diagnosticCode": [],
        "message": "The recipient is on the suppression list after an earlier complaint.",
        "reason": "previous_complaint",
        "type": "OnAccountSuppressionList",
    }
    assert manual["data"]["suppressed"]["reason"] == "manual"
    assert bounced["data"]["bounce"]["diagnosticCode"] == ["smtp; 452 4.2.2 full"]
    assert (bounced["data"]["bounce"]["type"], bounced["data"]["bounce"]["subType"]) == (
        "Transient",
        "MailboxFull",
    )
    assert [body["data"]["to"] for body in (failed, complained, manual, bounced)] == [
        ["a@quay.example"],
        ["b@quay.example"],
        ["c@quay.example"],
        ["d@quay.example"],
    ]


async def test_a_suppressed_address_is_published_once(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "suppression.added")
    email = await held(team, to=["gone@quay.example"])
    app = pillarbox.app
    cause = SuppressionCause(
        team_id=team.id,
        address="gone@quay.example",
        origin="bounce",
        source_id=UUID(email),
        at=app.kit.clock.now(),
    )
    for _ in range(2):
        async with transaction(pillarbox.pool) as conn:
            await changes.add(conn, [cause, cause], app.need(Ids), app.need(Publisher))
    [body] = await made.payloads()
    entry = await pillarbox.pool.fetchrow("SELECT * FROM suppressions WHERE team_id = $1", team.id)
    assert list(body["data"]) == ["id", "email", "origin", "source_id", "created_at"]
    assert body["data"] == {
        "id": str(entry["id"]),
        "email": "gone@quay.example",
        "origin": "bounce",
        "source_id": email,
        "created_at": iso_style(entry["created_at"]),
    }


async def test_a_body_is_made_once_and_kept(pillarbox: World) -> None:
    """WH-02: byte for byte the same, whatever becomes of the email, for every webhook of the team."""
    team = await pillarbox.team()
    made, other = await hook(team, "email.delivered"), await hook(team, "email.delivered")
    email = await team.send(**CONTENT)
    await pillarbox.turn()
    [event] = await made.events()
    stored = "SELECT payload FROM webhook_events WHERE team_id = $1"
    assert await pillarbox.pool.fetchval(stored, team.id) is None
    before = await made.get(f"/events/{event['id']}")
    payload = await pillarbox.pool.fetchval(stored, team.id)
    assert b" " not in payload.replace(b"Berth 12", b"").replace(b"Harbor <", b"")
    assert "Grüße".encode() in payload
    await pillarbox.pool.execute("UPDATE emails SET subject = 'changed', tags = NULL")
    await happens(pillarbox, team, email, EventKind.OPENED)
    await pillarbox.pool.execute("DELETE FROM contents")
    assert await made.get(f"/events/{event['id']}") == before
    assert (await other.get(f"/events/{event['id']}")) == before
    assert await pillarbox.pool.fetchval(stored, team.id) == payload


async def test_an_event_whose_email_is_gone_says_what_it_knows(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "email.failed")
    email = await held(team)
    await happens(pillarbox, team, email, EventKind.FAILED, EventDetail(reason="tls_required"))
    await pillarbox.pool.execute("DELETE FROM emails")
    [body] = await made.payloads()
    assert body["data"] == {"email_id": email, "failed": {"reason": "tls_required"}}


async def test_what_disabling_ended_unseen_can_still_be_read_in_full(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "email.bounced")
    await team.send(to=["gone@pillarbox.test"])
    await pillarbox.turn()
    await made.change(status="disabled")
    app = pillarbox.app
    claims = DeliveryClaims(
        pillarbox.pool, app.kit.clock, app.need(Ids).new(), app.need(KeyRing), app.need(WebhookBodies)
    )
    clock_of(pillarbox).advance(1)
    claimed = await claims.claim((team.id, UUID(made.id)), 10)
    assert claimed.deliveries == []
    assert await made.owed() == []
    [event] = await made.events()
    assert event["status"] == "failed"
    [body] = await made.payloads()
    assert body["data"]["to"] == ["gone@pillarbox.test"]
    assert body["data"]["bounce"]["type"] == "Permanent"


async def test_an_event_without_a_body_blocks_no_other_and_fails_after_a_day(
    database_url: str, tmp_path: Path
) -> None:
    """It is put off at each claim, and has failed when it is a day old; it can still be replayed."""

    async def data_of(conn: Connection, team_id: UUID, subjects: Sequence[EventSubject]) -> Sequence[bytes]:
        if any(subject.position == 0 for subject in subjects):
            raise ValueError("of our own making")
        return [b'{"good":1}'] * len(subjects)

    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        made = await hook(team, "email.bounced")
        await team.send(to=["one@pillarbox.test", "two@pillarbox.test"])
        await pillarbox.turn()
        app = pillarbox.app
        claims = DeliveryClaims(
            pillarbox.pool,
            app.kit.clock,
            app.need(Ids).new(),
            app.need(KeyRing),
            WebhookBodies({"email": data_of}),
        )
        webhook = (team.id, UUID(made.id))
        clock_of(pillarbox).advance(1)
        claimed = [one for _ in range(2) for one in (await claims.claim(webhook, 10)).deliveries]
        assert [one.body.endswith(b'"data":{"good":1}}') for one in claimed] == [True]
        clock_of(pillarbox).advance(timedelta(hours=23))
        assert not (await claims.claim(webhook, 10)).deliveries
        assert [event["status"] for event in await made.events()] == ["pending", "pending"]
        clock_of(pillarbox).advance(timedelta(hours=1))
        assert not (await claims.claim(webhook, 10)).deliveries
        assert [event["status"] for event in await made.events()] == ["failed", "pending"]
        [failed, _] = await made.events()
        assert (await made.replay(failed["id"])).status_code == 200
        assert (await made.get(f"/events/{failed['id']}"))["payload"]["data"]["to"] == ["one@pillarbox.test"]


def test_bodies_are_compact_json_with_times_in_milliseconds() -> None:
    """The vector of webhooks.md section 3."""
    at = datetime(2026, 9, 29, 12, 0, 0, 999, tzinfo=UTC)
    assert body_of("domain.updated", at, {}) == (
        b'{"type":"domain.updated","created_at":"2026-09-29T12:00:00.000Z","data":{}}'
    )
