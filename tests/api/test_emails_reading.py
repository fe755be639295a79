"""GET /emails, /emails/{id} and /events, and POST …/share (emails.md sections 4 and 5.3)."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from kit.client import error
from kit.manual_world import clock_of, manual_world
from kit.world import World, mail
from pillarbox.emails.sharing.share import ShareLinks
from pillarbox.kernel.security.tokens import TokenExpired

LISTED = (
    *("id", "message_id", "to", "from", "created_at", "subject", "bcc", "cc", "reply_to"),
    *("last_event", "scheduled_at"),
)
RETRIEVED = (
    *("object", "id", "message_id", "to", "from", "created_at", "subject", "html", "text", "bcc", "cc"),
    *("reply_to", "last_event", "scheduled_at", "tags", "topic_id"),
)
INSTANT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00")
VALIDATION = (422, "validation_error")
WRONG_TYPES: list[Any] = [3600, True, [], {}]


async def test_the_answer_to_a_send_is_the_id_alone(pillarbox: World) -> None:
    team = await pillarbox.team()
    answer = await team.post("/emails", mail())
    email = answer.json()["id"]
    assert answer.text == f'{{"id":"{email}"}}'
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert UUID(email).version == 7


async def test_an_email_reads_as_the_contract_shows_it(pillarbox: World) -> None:
    """4.2, byte by byte: the order of the keys, nulls, no escapes outside ASCII."""
    team = await pillarbox.team()
    tags = [{"name": "kind", "value": "berth"}, {"name": "kind", "value": "twice"}]
    email = await team.send(subject='Liegeplatz "12" für Zoë', tags=tags)
    answer = await team.get(f"/emails/{email.upper()}")
    found = answer.json()
    assert tuple(found) == RETRIEVED
    assert INSTANT.fullmatch(found["created_at"])
    assert re.fullmatch(r"<[0-9a-f]{32}@harbor\.example>", found["message_id"])
    assert answer.text == (
        f'{{"object":"email","id":"{email}","message_id":"{found["message_id"]}",'
        '"to":["ada@quay.example"],"from":"Harbor <notes@harbor.example>",'
        f'"created_at":"{found["created_at"]}","subject":"Liegeplatz \\"12\\" für Zoë",'
        '"html":"<p>Ready</p>","text":"Ready","bcc":null,"cc":null,"reply_to":null,'
        '"last_event":"queued","scheduled_at":null,'
        '"tags":[{"name":"kind","value":"berth"},{"name":"kind","value":"twice"}],"topic_id":null}'
    )


async def test_the_list_reads_as_the_contract_shows_it(pillarbox: World) -> None:
    """4.1, byte by byte."""
    team = await pillarbox.team()
    await team.send()
    email = await team.send(
        to="a@quay.example", cc=["b@quay.example"], bcc="c@quay.example", reply_to=["d@quay.example"]
    )
    answer = await team.get("/emails?limit=1")
    [item] = answer.json()["data"]
    assert tuple(item) == LISTED
    assert answer.text == (
        f'{{"object":"list","has_more":true,"data":[{{"id":"{email}","message_id":"{item["message_id"]}",'
        '"to":["a@quay.example"],"from":"Harbor <notes@harbor.example>",'
        f'"created_at":"{item["created_at"]}","subject":"Berth 12","bcc":["c@quay.example"],'
        '"cc":["b@quay.example"],"reply_to":["d@quay.example"],"last_event":"queued",'
        '"scheduled_at":null}]}'
    )
    scheduled = await team.send(scheduled_at="2026-10-04T09:00:00Z")
    newest = (await team.get("/emails?limit=1")).json()["data"][0]
    assert newest["id"] == scheduled
    assert newest["scheduled_at"] == "2026-10-04 09:00:00.000000+00"
    assert newest["last_event"] == "scheduled"


async def test_an_empty_list(pillarbox: World) -> None:
    team = await pillarbox.team()
    assert (await team.get("/emails")).text == '{"object":"list","has_more":false,"data":[]}'


BODIES: list[tuple[dict[str, Any], tuple[str | None, str | None]]] = [
    ({"html": "<p>Hi</p><p>you</p>"}, ("<p>Hi</p><p>you</p>", "Hi\n\nyou")),
    ({"html": "<p>Hi</p>", "text": ""}, ("<p>Hi</p>", None)),
    ({"html": "<p>Hi</p>", "text": "Own"}, ("<p>Hi</p>", "Own")),
    ({"html": "<p>Hi</p>", "text": None}, ("<p>Hi</p>", "Hi")),
    ({"html": "", "text": "Only"}, (None, "Only")),
    ({"html": None, "text": "Only"}, (None, "Only")),
    ({"html": '<img src="https://quay.example/x.png">'}, ('<img src="https://quay.example/x.png">', None)),
    (
        {"html": '<style>p{}</style><a href="https://quay.example/a?b=1&amp;c=2">Go</a> &amp; see'},
        (
            '<style>p{}</style><a href="https://quay.example/a?b=1&amp;c=2">Go</a> &amp; see',
            "Go (https://quay.example/a?b=1&c=2) & see",
        ),
    ),
]


async def test_bodies_are_kept_and_the_text_is_derived(pillarbox: World) -> None:
    """Section 1 and 1.2: absent text is derived, empty text is no text part."""
    team = await pillarbox.team()
    for fields, expected in BODIES:
        sent = mail()
        del sent["html"]
        sent |= fields
        answer = await team.post("/emails", sent)
        found = await team.email(answer.json()["id"])
        assert (found["html"], found["text"]) == expected


async def test_pages_of_the_list(pillarbox: World) -> None:
    """Conventions section 10: newest first, both directions, `has_more` in the direction travelled."""
    team = await pillarbox.team()
    answer = await team.post("/emails/batch", [mail(subject=f"{n}") for n in range(25)])
    ids = [item["id"] for item in answer.json()["data"]][::-1]

    async def page(query: str) -> tuple[list[int], bool]:
        body = (await team.get(f"/emails?{query}")).json()
        return [ids.index(item["id"]) for item in body["data"]], body["has_more"]

    assert await page("") == (list(range(20)), True)
    assert await page("limit=25") == (list(range(25)), False)
    assert await page("limit=24") == (list(range(24)), True)
    assert await page(f"after={ids[19]}") == ([20, 21, 22, 23, 24], False)
    assert await page(f"limit=3&after={ids[1]}") == ([2, 3, 4], True)
    assert await page(f"limit=3&before={ids[10]}") == ([7, 8, 9], True)
    assert await page(f"limit=3&before={ids[2].upper()}") == ([0, 1], False)
    assert await page(f"before={ids[0]}") == ([], False)
    assert await page(f"after={ids[24]}") == ([], False)
    assert await page("after=&before=&limit=2") == ([0, 1], True)
    assert await page(f"limit=5&limit=2&after={ids[22]}") == ([23, 24], False)


async def test_bad_pages(pillarbox: World) -> None:
    """Conventions section 10, in its order: limit, both cursors, malformed cursor."""
    team = await pillarbox.team()
    limit = "Invalid `limit` parameter. Use an integer from 1 to 100."
    both = "Use either `after` or `before`, not both."
    for wrong in ("0", "101", "-1", "1.5", "", "x", "%2B1", "1e1", "٣", "9999999999"):
        assert error(await team.get(f"/emails?limit={wrong}&after=x")) == (*VALIDATION, limit), wrong
    assert error(await team.get("/emails?after=x&before=y")) == (*VALIDATION, both)
    for name in ("after", "before"):
        status, kind, message = error(await team.get(f"/emails?{name}=x"))
        assert (status, kind) == VALIDATION
        assert message.startswith(f"Invalid `{name}` parameter. ")
        # Contract decision 5: a cursor is a position, whoever's row it once was.
        assert (await team.get(f"/emails?{name}={uuid4()}")).status_code == 200


async def test_a_walk_neither_skips_nor_repeats_while_mail_comes_in(pillarbox: World) -> None:
    """API-06: everything that was there at the start is seen once, newest first."""
    team = await pillarbox.team()
    start = await team.post("/emails/batch", [mail(subject=f"{n}") for n in range(30)])
    there = [item["id"] for item in start.json()["data"]][::-1]
    done = asyncio.Event()

    async def write() -> None:
        while not done.is_set():
            await team.send(subject="later")

    writing = asyncio.create_task(write())
    seen: list[str] = []
    after = ""
    while True:
        body = (await team.get(f"/emails?limit=4&after={after}")).json()
        seen += [item["id"] for item in body["data"]]
        if not body["has_more"]:
            break
        after = body["data"][-1]["id"]
    done.set()
    await writing
    assert [email for email in seen if email in there] == there
    assert len(set(seen)) == len(seen)
    assert seen == sorted(seen, reverse=True)
    newer: list[str] = []
    before = there[-1]
    while True:
        body = (await team.get(f"/emails?limit=7&before={before}")).json()
        newer = [item["id"] for item in body["data"]] + newer
        if not body["has_more"]:
            break
        before = body["data"][0]["id"]
    assert newer == sorted(set(newer), reverse=True)
    assert newer[-29:] == there[:-1]


async def test_created_at_is_the_instant_of_the_id(running: World) -> None:
    """Architecture 2.3: list order is creation order."""
    team = await running.team()
    await asyncio.gather(*(team.send() for _ in range(20)))
    items = (await team.get("/emails")).json()["data"]
    times = [datetime.fromisoformat(item["created_at"]) for item in items]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == 20
    for item, at in zip(items, times, strict=True):
        millis = UUID(item["id"]).int >> 80
        assert millis == int(at.timestamp() * 1000) or abs(millis - at.timestamp() * 1000) < 1


async def test_the_history_of_an_email(pillarbox: World) -> None:
    """The extension GET /emails/{id}/events: time, event, recipient, host, reply, reason."""
    team = await pillarbox.team()
    email = await team.send(to="bounced@resend.dev")
    await pillarbox.turn()
    answer = await team.get(f"/emails/{email}/events")
    body = answer.json()
    assert (list(body), body["object"], body["has_more"]) == (
        ["object", "has_more", "data"],
        "list",
        False,
    )
    for event in body["data"]:
        assert list(event) == [
            *("id", "created_at", "event", "recipient", "host", "reply", "reason"),
            *("next_attempt_at", "attempt", "bounce", "uncertain"),
        ]
        assert INSTANT.fullmatch(event["created_at"])
    queued, sent, bounced = body["data"]
    assert (queued["event"], queued["recipient"], queued["host"]) == ("queued", None, None)
    assert (sent["event"], sent["host"]) == ("sent", "simulator")
    assert bounced["bounce"] == {"type": "Permanent", "subType": "NoEmail"}


# Share --------------------------------------------------------------------------------------------

LIFETIMES = {
    None: timedelta(hours=48),
    "48h": timedelta(hours=48),
    "10m": timedelta(minutes=10),
    "1s": timedelta(seconds=1),
    "90 sec": timedelta(seconds=90),
    "2 hours": timedelta(hours=2),
    "1 day": timedelta(days=1),
    "2 days": timedelta(days=2),
    "1h 30m": timedelta(minutes=90),
    "1h30m": timedelta(minutes=90),
    "1 hr 5 min 7 seconds": timedelta(hours=1, minutes=5, seconds=7),
}


async def test_share_links_hold_for_the_time_that_was_asked_for(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, public_url="https://mail.harbor.example") as pillarbox:
        team, clock = await pillarbox.team(), clock_of(pillarbox)
        email = await team.send()
        seen = set()
        for text, lifetime in LIFETIMES.items():
            answer = await team.post(f"/emails/{email}/share", {} if text is None else {"expires_in": text})
            body = answer.json()
            assert list(body) == ["object", "id", "url"]
            assert (answer.status_code, body["object"], body["id"]) == (200, "email", email)
            start, _, token = body["url"].partition("=")
            assert start == "https://mail.harbor.example/shared?token"
            seen.add(token)
            sharing: ShareLinks = pillarbox.app.need(ShareLinks)
            assert sharing.read(token) == (team.id, UUID(email))
            clock.advance(lifetime - timedelta(milliseconds=1))
            assert sharing.read(token) == (team.id, UUID(email))
            clock.advance(timedelta(milliseconds=1))
            with pytest.raises(TokenExpired):
                sharing.read(token)
        assert len(seen) == len(LIFETIMES)


async def test_bodies_of_a_share(pillarbox: World) -> None:
    """No body, an empty one and null ask for the default; what the grammar does not know is 422."""
    team = await pillarbox.team()
    email = await team.send()
    path = f"/emails/{email}/share"
    assert (await team.http.post(path)).status_code == 200
    assert (await team.http.post(path, headers={"content-type": "application/json"})).status_code == 200
    assert (await team.post(path, {"expires_in": None, "other": 1})).status_code == 200
    first, second = [(await team.post(path)).json()["url"] for _ in range(2)]
    assert first.startswith(f"{pillarbox.url}/shared?token=")
    clock_of(pillarbox).advance(0.001)
    assert (await team.post(path)).json()["url"] not in (first, second)
    for wrong in ("", "0s", "49h", "2 days 1s", "1", "h", "-1h", "1.5h", "1 week", "forever", "9999999s"):
        status, name, message = error(await team.post(path, {"expires_in": wrong}))
        assert (status, name) == VALIDATION, wrong
        assert message.startswith("Invalid `expires_in` field. ")
    for body in ([], *({"expires_in": value} for value in WRONG_TYPES)):
        assert error(await team.post(path, body))[:2] == VALIDATION


async def test_reading_needs_a_key_with_full_access(pillarbox: World) -> None:
    """Section 0, column auth."""
    team = await pillarbox.team()
    email = await team.send(scheduled_at="in 1 hour")
    sender = team.using(await team.key(permission="sending_access"))
    for method, path in (
        ("GET", "/emails"),
        ("GET", f"/emails/{email}"),
        ("PATCH", f"/emails/{email}"),
        ("POST", f"/emails/{email}/cancel"),
        ("POST", f"/emails/{email}/share"),
        ("GET", f"/emails/{email}/attachments"),
        ("GET", f"/emails/{email}/attachments/{uuid4()}"),
        ("GET", f"/emails/{email}/events"),
    ):
        assert error(await sender.call(method, path, {}))[:2] == (401, "restricted_api_key"), path
    assert (await sender.post("/emails", mail())).status_code == 200
    assert (await sender.post("/emails/batch", [mail()])).status_code == 200
    assert (await team.email(email))["last_event"] == "scheduled"
