"""Copies of broadcasts: each contact gets one of its own, made while it is sent (broadcasts.md 5 to 8)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import dkim
import pytest

from kit.audience import a_contact, a_property, a_topic, chooses, some_contacts
from kit.broadcast_rows import a_broadcast, copies_of
from kit.manual_world import clock_of, parsed, relayed_world
from kit.smtp_sink import Message, Sink
from kit.world import Team
from pillarbox.emails.queries import event_emails
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


async def named(team: Team, contact: UUID, first: str | None, last: str | None = None, **own: Any) -> None:
    """Give a contact a name and properties, through the API."""
    body = {"first_name": first, "last_name": last, **({"properties": own} if own else {})}
    answer = await team.call("PATCH", f"/contacts/{contact}", body)
    assert answer.status_code == 200, answer.text


def bodies(message: Message) -> dict[str, str]:
    mail = parsed(message)
    parts = list(mail.iter_parts()) if mail.is_multipart() else [mail]
    return {part.get_content_type(): part.get_content() for part in parts}


async def test_each_contact_gets_one_copy_of_its_own(database_url: str, tmp_path: Path) -> None:
    """LST-01, broadcasts.md 7: To has the address alone; both List-* headers are there and signed; one click
    knows who."""
    async with harbor(database_url, tmp_path) as (team, sink):
        ada, bob = await a_contact(team, "ada@quay.example"), await a_contact(team, "bob@orchard.example")
        await named(team, ada, "Ada", "King")
        broadcast = await a_broadcast(
            team,
            [ada, bob],
            subject="{{{FIRST_NAME|Sailor}}}, the tides",
            html="<p>Hi {{{contact.first_name|sailor}}}</p>"
            '<a href="{{{PILLARBOX_UNSUBSCRIBE_URL}}}">Leave</a>',
            reply_to=["crew@harbor.example"],
        )
        await team.world.turn()
        messages = {message.recipients[0]: message for message in await sink.messages(2)}
        first, second = await copies_of(team, broadcast)
        for address, name, copy in (
            ("ada@quay.example", "Ada", first),
            ("bob@orchard.example", "sailor", second),
        ):
            mail = parsed(messages[address])
            assert (mail["to"], mail["from"]) == (address, "Harbor <news@harbor.example>")
            assert mail["reply-to"] == "crew@harbor.example"
            assert mail["subject"] == ("Ada, the tides" if name == "Ada" else "Sailor, the tides")
            link = str(mail["list-unsubscribe"]).strip("<>")
            assert mail["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
            read = await link_tokens.read(link.rpartition("/")[2], team.world.app.need(LinkKeys))
            assert read == LinkToken(
                team_id=team.id, email_id=copy["email_id"], position=0, topic_id=None, address=address
            )
            found = bodies(messages[address])
            assert found["text/html"].strip() == f'<p>Hi {name}</p><a href="{link}">Leave</a>'
            assert found["text/plain"].split() == ["Hi", name, "Leave", f"({link})"]
            assert copy["last_event"] == "delivered"
        [domain] = (await team.get("/domains")).json()["data"]
        records = (await team.get(f"/domains/{domain['id']}")).json()["records"]
        key = next(record["value"] for record in records if record["record"] == "DKIM").encode()
        raw = messages["ada@quay.example"].content
        assert dkim.verify(raw, dnsfunc=lambda *_, **__: key)
        assert not dkim.verify(b"List-Unsubscribe: <x>\r\n" + raw, dnsfunc=lambda *_, **__: key)


async def test_a_copy_is_read_complete_and_as_it_was_sent(database_url: str, tmp_path: Path) -> None:
    """broadcasts.md 5: the stored copy shows the rendered content, also after its contact has changed or is
    gone."""
    async with harbor(database_url, tmp_path) as (team, sink):
        ada = await a_contact(team, "ada@quay.example")
        await named(team, ada, "Ada <3")
        broadcast = await a_broadcast(
            team,
            [ada],
            subject="{{{FIRST_NAME}}}",
            html="<body><p>Hi {{{FIRST_NAME}}}</p></body>",
            preview_text="High & dry, {{{FIRST_NAME}}}",
            reply_to=["crew@harbor.example"],
        )
        await team.world.turn()
        [message] = await sink.messages(1)
        [copy] = await copies_of(team, broadcast)
        await named(team, ada, "Eve")
        await team.call("DELETE", f"/contacts/{ada}")
        shown = await team.email(str(copy["email_id"]))
        assert shown["from"] == "Harbor <news@harbor.example>"
        assert (shown["to"], shown["reply_to"]) == (["ada@quay.example"], ["crew@harbor.example"])
        assert (shown["subject"], shown["text"]) == ("Ada <3", "Hi Ada <3")
        assert shown["message_id"] == str(parsed(message)["message-id"])
        assert shown["html"].startswith("<body><div style=")
        assert "High &amp; dry, Ada &lt;3&#847;" in shown["html"]
        assert shown["html"].endswith("<p>Hi Ada &lt;3</p></body>")
        assert bodies(message)["text/html"].strip() == shown["html"]
        [listed] = (await team.get("/emails")).json()["data"]
        assert listed == {name: shown[name] for name in listed}
        assert await team.kinds(str(copy["email_id"])) == ["queued", "sent", "delivered"]
        told = (await event_emails(team.db, [copy["email_id"]]))[copy["email_id"]]
        assert (told.subject, told.sender, told.mailboxes) == ("Ada <3", shown["from"], shown["to"])
        assert (told.message_id, told.broadcast_id) == (shown["message_id"], broadcast)


async def test_values_come_in_order(database_url: str, tmp_path: Path) -> None:
    """broadcasts.md 5: the contact's value, the inline fallback, the property's fallback, nothing; an empty
    string is no
    value; what is unknown is nothing. Values of contacts are escaped in html alone."""
    async with harbor(database_url, tmp_path) as (team, sink):
        for key in ("plan", "port"):
            await a_property(team, key)
        await team.world.pool.execute(
            "UPDATE contact_properties SET fallback_value = '\"<i>free</i>\"' WHERE key = 'plan'"
        )
        ada, bob = await a_contact(team, "ada@quay.example"), await a_contact(team, "bob@quay.example")
        await named(team, ada, "<script>", plan="<b>gold</b>")
        await team.world.pool.execute("UPDATE contacts SET first_name = '' WHERE id = $1", bob)
        source = (
            "{{{FIRST_NAME|friend}}},{{{plan}}},{{{contact.plan|inline}}},{{{contact.properties.port|none}}},"
            "{{{port}}},{{{unknown}}},{{{unknown|x}}},{{{EMAIL}}},{{{{plan}}}}"
        )
        await a_broadcast(team, [ada, bob], html=source, text=source, subject="{{{FIRST_NAME}}}{{{plan}}}")
        await team.world.turn()
        found = {message.recipients[0]: message for message in await sink.messages(2)}
        of_ada, of_bob = bodies(found["ada@quay.example"]), bodies(found["bob@quay.example"])
        gold = "&lt;b&gt;gold&lt;/b&gt;"
        assert of_ada["text/html"].strip() == (
            f"&lt;script&gt;,{gold},{gold},none,,,x,ada@quay.example,{{{{{{{{plan}}}}}}}}"
        )
        assert of_ada["text/plain"].strip() == (
            "<script>,<b>gold</b>,<b>gold</b>,none,,,x,ada@quay.example,{{{{plan}}}}"
        )
        assert of_bob["text/html"].strip() == (
            "friend,<i>free</i>,inline,none,,,x,bob@quay.example,{{{{plan}}}}"
        )
        assert parsed(found["ada@quay.example"])["subject"] == "<script><b>gold</b>"
        assert parsed(found["bob@quay.example"])["subject"] == "<i>free</i>"


async def test_who_left_since_the_start_is_skipped(database_url: str, tmp_path: Path) -> None:
    """broadcasts.md 6, rows 4, 5: no contact any more, unsubscribed, out of the topic: no copy; suppressed: a
    copy that ends
    so."""
    async with harbor(database_url, tmp_path) as (team, sink):
        topic = await a_topic(team)
        names = ("ada", "bob", "eve", "kai", "lea")
        people = {name: await a_contact(team, f"{name}@quay.example") for name in names}
        broadcast = await a_broadcast(team, list(people.values()), topic_id=topic)
        await team.call("PATCH", f"/contacts/{people['ada']}", {"unsubscribed": True})
        await team.call("DELETE", f"/contacts/{people['bob']}")
        await chooses(team, people["eve"], topic, "opt_out")
        await team.post("/suppressions", {"email": "kai@quay.example"})
        await team.world.turn()
        assert [message.recipients for message in await sink.messages(1)] == [["lea@quay.example"]]
        found = {
            one["address"]: (one["skipped_for"], one["last_event"])
            for one in await copies_of(team, broadcast)
        }
        assert found == {
            "ada@quay.example": ("unsubscribed", None),
            None: ("contact_deleted", None),
            "eve@quay.example": ("topic_opt_out", None),
            "kai@quay.example": (None, "suppressed"),
            "lea@quay.example": (None, "delivered"),
        }


LEAVE = {
    "cancel": "UPDATE broadcasts SET status = 'canceled'",
    "unsubscribe": "UPDATE contacts SET unsubscribed = true",
    "delete": "DELETE FROM contacts",
    "topic": "UPDATE topics SET default_subscription = 'opt_out'",
}


@pytest.mark.parametrize("change", LEAVE)
async def test_a_copy_that_waits_for_another_try_is_not_sent_after_the_change(
    database_url: str, tmp_path: Path, change: str
) -> None:
    """A copy that had not begun ends `canceled`, whatever it was that came between."""
    async with harbor(database_url, tmp_path) as (team, sink):
        ada = await a_contact(team, "ada@quay.example")
        topic = await a_topic(team)
        broadcast = await a_broadcast(team, [ada], topic_id=topic)
        sink.script("MAIL", "451 4.3.0 later")
        await team.world.turn()
        await team.world.pool.execute(LEAVE[change])
        clock_of(team.world).advance(120)
        await team.world.turn()
        [copy] = await copies_of(team, broadcast)
        assert copy["last_event"] == "canceled"
        assert (await team.kinds(str(copy["email_id"])))[-1] == "canceled"
        assert await team.world.pool.fetchval("SELECT count(*) FROM deliveries") == 0


async def test_many_copies_are_made_in_turns_of_the_broadcasts(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, sink):
        people = await some_contacts(team, 250)
        broadcasts = [await a_broadcast(team, people) for _ in range(2)]
        for _ in range(12):
            await team.world.turn()
        for broadcast in broadcasts:
            copies = await copies_of(team, broadcast)
            assert {copy["last_event"] for copy in copies} == {"delivered"}
            assert len({copy["email_id"] for copy in copies}) == 250
        assert len(await sink.messages(500)) == 500
