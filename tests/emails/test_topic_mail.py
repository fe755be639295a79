"""Mail of a topic: who gets it, and what each copy has of its own (emails.md 1.7 and 9, topics.md 2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import dkim
import pytest

from kit.audience import a_contact, a_topic, chooses
from kit.manual_world import clock_of, parsed, relayed_world
from kit.smtp_sink import Message, Sink
from kit.world import Team, mail
from pillarbox.kernel.security import link_tokens
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.link_tokens import LinkToken

URL = "https://mail.harbor.example"


@asynccontextmanager
async def harbor(database_url: str, folder: Path, **settings: str) -> AsyncIterator[tuple[Team, Sink]]:
    """A team whose mail goes to a server in the test."""
    async with relayed_world(database_url, folder, public_url=URL, **settings) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        yield team, sink


async def sent(team: Team, topic_id: object, **fields: Any) -> str:
    """The id of an email of this topic that was delivered as far as it may be."""
    email = await team.send(topic_id=str(topic_id), **fields)
    await team.world.turn()
    return email


def link_of(message: Message) -> str:
    """The link in the header of a mail, without its brackets."""
    return str(parsed(message)["list-unsubscribe"]).strip("<>")


async def read(team: Team, url: str) -> LinkToken | None:
    return await link_tokens.read(url.rpartition("/")[2], team.world.app.need(LinkKeys))


async def outcomes(team: Team, email: str) -> dict[str, tuple[str, str | None]]:
    """What became of each recipient, and why."""
    events = [event for event in await team.events(email) if event["recipient"]]
    return {
        event["recipient"]: (event["event"], event["reason"] if event["event"] == "failed" else None)
        for event in events
    }


async def test_each_copy_has_a_signed_link_of_its_own(database_url: str, tmp_path: Path) -> None:
    """LST-01, DKIM-02: both headers are signed, and nobody can add a second one."""
    async with harbor(database_url, tmp_path) as (team, sink):
        topic = await a_topic(team)
        email = await sent(team, topic, to=["ada@quay.example", "bob@quay.example"], bcc="eve@quay.example")
        messages = {message.recipients[0]: message for message in await sink.messages(3)}
        assert [len(message.recipients) for message in messages.values()] == [1, 1, 1]
        [domain] = (await team.get("/domains")).json()["data"]
        records = (await team.get(f"/domains/{domain['id']}")).json()["records"]
        key = next(record["value"] for record in records if record["record"] == "DKIM").encode()
        for place, address in enumerate(("ada@quay.example", "bob@quay.example", "eve@quay.example")):
            message = messages[address]
            assert parsed(message)["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
            assert link_of(message).startswith(f"{URL}/unsubscribe/")
            assert await read(team, link_of(message)) == LinkToken(
                team_id=team.id, email_id=UUID(email), position=place, topic_id=topic, address=address
            )
            assert dkim.verify(message.content, dnsfunc=lambda *_, **__: key)
            for name in (b"List-Unsubscribe", b"List-Unsubscribe-Post"):
                assert not dkim.verify(name + b": <x>\r\n" + message.content, dnsfunc=lambda *_, **__: key)
        assert len({parsed(message)["message-id"] for message in messages.values()}) == 1
        assert (await team.email(email))["topic_id"] == str(topic)


async def test_the_link_stands_in_both_bodies_and_is_stored_in_none(
    database_url: str, tmp_path: Path
) -> None:
    """templates.md 6: the stored html keeps the placeholder; the four words mean the same."""
    words = [f"{word}UNSUBSCRIBE_URL" for word in ("SERVICE_", "PILLARBOX_", "RESEND_", "")]
    html = "".join(f'<a href="{{{{{{{word}}}}}}}">x</a>{{{{{{ {word} | none }}}}}}' for word in words)
    text = " ".join(f"{{{{{{{word}}}}}}}" for word in words) + " {{{OTHER}}} {{{{UNSUBSCRIBE_URL}}}}"
    async with harbor(database_url, tmp_path) as (team, sink):
        topic = await a_topic(team)
        email = await sent(team, topic, html=html, text=text)
        [message] = await sink.messages(1)
        link = link_of(message)
        bodies = {part.get_content_type(): part.get_content() for part in parsed(message).iter_parts()}
        assert bodies["text/html"].strip() == f'<a href="{link}">x</a>{link}' * 4
        assert bodies["text/plain"].split() == [*[link] * 4, "{{{OTHER}}}", "{{{{UNSUBSCRIBE_URL}}}}"]
        shown = await team.email(email)
        assert (shown["html"], shown["text"]) == (html, text)


async def test_text_that_is_made_of_the_html_has_the_link_too(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, sink):
        topic = await a_topic(team)
        await sent(team, topic, html='<p>Hi <a href="{{{PILLARBOX_UNSUBSCRIBE_URL}}}">leave</a></p>')
        [message] = await sink.messages(1)
        part = parsed(message).get_body(("plain",))
        assert part is not None
        assert part.get_content().strip() == f"Hi leave ({link_of(message)})"


async def test_without_a_topic_nothing_is_added_or_replaced(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, sink):
        await team.send(text="{{{UNSUBSCRIBE_URL}}}", html=None)
        await team.world.turn()
        [message] = await sink.messages(1)
        assert parsed(message)["list-unsubscribe"] is None
        assert b"{{{UNSUBSCRIBE_URL}}}" in message.content


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ({"list-unsubscribe": "<mailto:x@y.example>"}, {}),
        (
            {
                "List-Unsubscribe": "<mailto:x@y.example>",
                "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            },
            {},
        ),
        ({"List-Unsubscribe-Post": "Mine"}, {"list-unsubscribe"}),
    ],
)
async def test_headers_of_the_sender_stay(
    database_url: str, tmp_path: Path, given: dict[str, str], added: set[str]
) -> None:
    """LST-01: values that the sender gives are respected; a placeholder is still replaced."""
    async with harbor(database_url, tmp_path) as (team, sink):
        await sent(team, await a_topic(team), headers=given, text="{{{UNSUBSCRIBE_URL}}}")
        [message] = await sink.messages(1)
        found = parsed(message)
        kept = {name.lower(): value for name, value in given.items()}
        for name in ("list-unsubscribe", "list-unsubscribe-post"):
            assert len(found.get_all(name, [])) == int(name in kept or name in added)
            if name in kept:
                assert found[name] == kept[name]
        part = found.get_body(("plain",))
        assert part is not None
        assert part.get_content().startswith(f"{URL}/unsubscribe/")


async def test_who_gets_mail_of_a_topic(database_url: str, tmp_path: Path) -> None:
    """topics.md 5.1 and 5.9: the four rows of section 2, contacts made before and after the topic."""
    async with harbor(database_url, tmp_path) as (team, sink):
        early = {}
        for name in ("in", "out", "none", "gone"):
            early[name] = await a_contact(team, f"early-{name}@quay.example", unsubscribed=name == "gone")
        for default in ("opt_in", "opt_out"):
            topic = await a_topic(team, default)
            for name, contact in early.items():
                if name != "none":
                    await chooses(team, contact, topic, "opt_out" if name == "out" else "opt_in")
            late = {"in": {topic: "opt_in"}, "out": {topic: "opt_out"}, "none": {}, "gone": {topic: "opt_in"}}
            for name, choices in late.items():
                address = f"late-{name}-{default}@quay.example".replace("_", "-")
                made = await a_contact(team, address, unsubscribed=name == "gone")
                for chosen, subscription in choices.items():
                    await chooses(team, made, chosen, subscription)
            addresses = {
                **{f"early-{name}@quay.example": name for name in early},
                **{f"late-{name}-{default}@quay.example".replace("_", "-"): name for name in late},
                f"nobody-{default}@quay.example".replace("_", "-"): "none",
            }
            email = await sent(team, topic, to=list(addresses))
            gets = {"in": True, "out": False, "none": default == "opt_in", "gone": False}
            wanted = {
                address: ("delivered", None) if gets[name] else ("failed", "topic_opt_out")
                for address, name in addresses.items()
            }
            assert await outcomes(team, email) == wanted, default
            arrived = {message.recipients[0] for message in sink.received}
            assert arrived == {address for address, what in wanted.items() if what[0] == "delivered"}
            sink.received.clear()


async def test_an_email_that_nobody_wants_fails(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, sink):
        topic = await a_topic(team, "opt_out")
        email = await sent(team, topic, to="ada@quay.example", cc="bob@quay.example")
        assert (await team.email(email))["last_event"] == "failed"
        assert set((await outcomes(team, email)).values()) == {("failed", "topic_opt_out")}
        assert sink.received == []
        assert await team.db.value("SELECT count(*) FROM suppressions WHERE team_id = $1") == 0
        assert await team.db.value("SELECT count(*) FROM deliveries WHERE team_id = $1") == 0


async def test_a_suppressed_address_stays_suppressed(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, _):
        await team.world.pool.execute(
            "INSERT INTO suppressions (team_id, id, address, origin, created_at)"
            " VALUES ($1, $2, 'ada@quay.example', 'manual', now())",
            team.id,
            uuid4(),
        )
        email = await sent(team, await a_topic(team, "opt_out"))
        assert (await team.email(email))["last_event"] == "suppressed"


async def test_scheduled_mail_honours_what_is_chosen_meanwhile(database_url: str, tmp_path: Path) -> None:
    """LST-05."""
    async with harbor(database_url, tmp_path) as (team, sink):
        topic = await a_topic(team)
        contact = await a_contact(team, "ada@quay.example")
        email = await team.send(
            topic_id=str(topic), to=["ada@quay.example", "bob@quay.example"], scheduled_at="in 1 hour"
        )
        await chooses(team, contact, topic, "opt_out")
        clock_of(team.world).advance(timedelta(hours=1, seconds=1))
        await team.world.turn()
        assert await outcomes(team, email) == {
            "ada@quay.example": ("failed", "topic_opt_out"),
            "bob@quay.example": ("delivered", None),
        }
        assert [message.recipients for message in sink.received] == [["bob@quay.example"]]


async def test_a_topic_that_is_deleted_meanwhile_still_keeps_mail_from_who_left(
    database_url: str, tmp_path: Path
) -> None:
    """topics.md 5.8; a row that is gone altogether keeps it from everybody."""
    async with harbor(database_url, tmp_path) as (team, _):
        topic, other = await a_topic(team), await a_topic(team)
        await chooses(team, await a_contact(team, "ada@quay.example"), topic, "opt_out")
        to = ["ada@quay.example", "bob@quay.example"]
        email = await team.send(topic_id=str(topic), to=to, scheduled_at="in 1 hour")
        lost = await team.send(topic_id=str(other), to=to, scheduled_at="in 1 hour")
        await team.call("DELETE", f"/topics/{topic}")
        await team.world.pool.execute("DELETE FROM topics WHERE id = $1", other)
        assert (await team.email(email))["topic_id"] is None
        clock_of(team.world).advance(timedelta(hours=1, seconds=1))
        await team.world.turn()
        assert await outcomes(team, email) == {
            "ada@quay.example": ("failed", "topic_opt_out"),
            "bob@quay.example": ("delivered", None),
        }
        assert set((await outcomes(team, lost)).values()) == {("failed", "topic_opt_out")}


async def test_who_leaves_between_two_attempts_gets_nothing(database_url: str, tmp_path: Path) -> None:
    """LST-05: the choice counts for what is queued already."""
    async with harbor(database_url, tmp_path) as (team, sink):
        topic = await a_topic(team)
        contact = await a_contact(team, "ada@quay.example")
        sink.script("RCPT", "451 4.2.0 later")
        email = await sent(team, topic)
        assert (await team.email(email))["last_event"] == "delivery_delayed"
        await chooses(team, contact, topic, "opt_out")
        clock_of(team.world).advance(timedelta(minutes=5))
        await team.world.turn()
        assert (await outcomes(team, email))["ada@quay.example"] == ("failed", "topic_opt_out")
        assert (await team.email(email))["last_event"] == "failed"


async def test_unknown_topics_are_refused_alike(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, _):
        quay = await team.world.team("Quay")
        gone = await a_topic(team)
        await team.call("DELETE", f"/topics/{gone}")
        for topic in (uuid4(), gone, await a_topic(quay)):
            answer = await team.post("/emails", mail(topic_id=str(topic)))
            assert (answer.status_code, answer.json()["message"]) == (404, "Topic not found")
        malformed = await team.post("/emails", mail(topic_id="news"))
        assert (malformed.status_code, malformed.json()["name"]) == (422, "invalid_parameter")
        assert await team.db.value("SELECT count(*) FROM emails WHERE team_id = $1") == 0


async def test_topics_in_a_batch(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, sink):
        topic = await a_topic(team)
        good, plain, bad = mail(topic_id=str(topic)), mail(), mail(topic_id=str(uuid4()))
        strict = await team.post("/emails/batch", [good, bad])
        assert (strict.status_code, strict.json()["message"]) == (404, "[1] Topic not found")
        answer = await team.post("/emails/batch", [good, plain, bad], x_batch_validation="permissive")
        assert answer.json()["errors"] == [{"index": 2, "message": "Topic not found"}]
        await team.world.turn()
        messages = await sink.messages(2)
        assert sorted(parsed(message)["list-unsubscribe"] is None for message in messages) == [False, True]


async def test_too_many_placeholders_are_refused(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, sink):
        topic = str(await a_topic(team))
        for field in ("html", "text"):
            answer = await team.post(
                "/emails", mail(topic_id=topic, **{field: "{{{UNSUBSCRIBE_URL}}}" * 1001})
            )
            assert answer.status_code == 422
            assert answer.json()["message"] == f"Invalid `{field}` field. Use at most 1000 placeholders."
        await sent(team, topic, html="{{{UNSUBSCRIBE_URL}}}" * 1000, text="")
        assert (await sink.messages(1))[0].content.count(b"{{{") == 0


async def test_a_retry_sends_the_same_bytes(database_url: str, tmp_path: Path) -> None:
    """What is composed again is the same message, link and signature included."""
    async with harbor(database_url, tmp_path) as (team, sink):
        sink.script("DOT", "451 4.3.0 later")
        await sent(team, await a_topic(team), text="{{{UNSUBSCRIBE_URL}}}", html=None)
        clock_of(team.world).advance(timedelta(minutes=5))
        await team.world.turn()
        [message] = await sink.messages(1)
        [refused] = [content for session in sink.sessions for content in session.refused]
        assert refused == message.content


async def test_copies_with_large_files_and_bodies_are_whole_and_signed(
    database_url: str, tmp_path: Path
) -> None:
    """Their files are read as they go, their bodies wait for room, and each has its own link in them."""
    async with harbor(database_url, tmp_path) as (team, sink):
        topic = await a_topic(team)
        files = [{"filename": "chart.bin", "content": "QUFB" * 200_000}]
        to = [f"ada{number}@quay.example" for number in range(3)]
        html = "<p>{{{UNSUBSCRIBE_URL}}}</p>" + "<p>Ready</p>" * 60_000
        await sent(team, topic, to=to, html=html, text="{{{UNSUBSCRIBE_URL}}}", attachments=files)
        await sent(team, topic, to=to, html=html, text="")
        messages = await sink.messages(6)
        [domain] = (await team.get("/domains")).json()["data"]
        records = (await team.get(f"/domains/{domain['id']}")).json()["records"]
        key = next(record["value"] for record in records if record["record"] == "DKIM").encode()
        assert len({link_of(message) for message in messages}) == 6
        for message in messages:
            assert dkim.verify(message.content, dnsfunc=lambda *_, **__: key)
            part = parsed(message).get_body(("html",))
            assert part is not None
            assert part.get_content().startswith(f"<p>{link_of(message)}</p><p>Ready</p>")
        assert sum(b"chart.bin" in message.content for message in messages) == 3
