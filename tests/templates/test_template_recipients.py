"""Mail of templates that speaks to its recipients: what it knows of a contact, and links to unsubscribe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kit.audience import a_topic
from kit.manual_world import parsed
from kit.world import Team
from pillarbox.kernel.security import link_tokens
from pillarbox.kernel.security.link_keys import LinkKeys
from templates.test_template_mail import (
    body,
    live,
    opened_harbor,
    shown,
    string,
)


async def a_person(team: Team, **fields: Any) -> None:
    for key, kind, fallback in (("company", "string", "<i>none</i>"), ("berth", "number", None)):
        await team.post("/contact-properties", {"key": key, "type": kind, "fallback_value": fallback})
    made = await team.post("/contacts", {"email": "ada@quay.example", **fields})
    assert made.status_code == 201, made.text


ABOUT = (
    "{{{FIRST_NAME}}}/{{{contact.last_name|none}}}/{{{EMAIL}}}/{{{contact.company}}}/"
    "{{{contact.properties.berth|?}}}/{{{contact.unknown}}}"
)


async def test_mail_to_one_contact_may_name_it(database_url: str, tmp_path: Path) -> None:
    """templates.md 5: what people call themselves is escaped in html, and there alone."""
    async with opened_harbor(database_url, tmp_path) as (team, _):
        await a_person(
            team,
            first_name="<script>\"&'{{{EMAIL}}}",
            last_name="L\r\nBcc: x\u202e",
            properties={"company": "Tide & Co", "berth": 12.0},
        )
        name = await live(team, subject="{{{LAST_NAME}}}", html=ABOUT, text=ABOUT)
        email = await shown(team, name, to="Ada <ADA@quay.example>")
        assert email["subject"] == "L Bcc: x\u202e"
        assert email["html"] == (
            "&lt;script&gt;&quot;&amp;&#x27;{{{EMAIL}}}/L\r\nBcc: x\u202e/ada@quay.example/Tide &amp; Co/12/"
        )
        assert email["text"] == ("<script>\"&'{{{EMAIL}}}/L\r\nBcc: x\u202e/ada@quay.example/Tide & Co/12/")


async def test_mail_to_several_or_to_nobody_known_names_nobody(database_url: str, tmp_path: Path) -> None:
    async with opened_harbor(database_url, tmp_path) as (team, _):
        await a_person(team, first_name="Ada", properties={"company": "Tide"})
        name = await live(team, html=ABOUT)
        several = await shown(team, name, to=["ada@quay.example"], bcc="bob@quay.example")
        assert several["html"] == "/none////?/".replace("////", "///")
        unknown = await shown(team, name, to="bob@quay.example")
        assert unknown["html"] == "/none/bob@quay.example//?/"
        same = await shown(team, name, to=["ada@quay.example"], cc=["Ada@Quay.example"])
        assert same["html"] == "Ada/none/ada@quay.example/Tide/?/"
        await team.post("/contacts", {"email": "cy@quay.example"})
        nameless = await shown(team, name, to="cy@quay.example")
        assert nameless["html"] == "/none/cy@quay.example/<i>none</i>/?/"


WORDS = ("SERVICE_UNSUBSCRIBE_URL", "PILLARBOX_UNSUBSCRIBE_URL", "RESEND_UNSUBSCRIBE_URL", "UNSUBSCRIBE_URL")


async def test_each_recipient_has_a_link_of_its_own(database_url: str, tmp_path: Path) -> None:
    """templates.md 6: the four words give one link, about all mail where there is no topic, and for
    which no header is added. What only looks like such a placeholder came with a value and stays."""
    html = "{{{A}}}" + "".join(f'<a href="{{{{{{{word}}}}}}}">x</a>' for word in WORDS)
    fake = "{{{UNSUBSCRIBE_URL}}}{"
    async with opened_harbor(database_url, tmp_path) as (team, sink):
        name = await live(
            team, subject="S{{{UNSUBSCRIBE_URL|u}}}", html=html, text=None, variables=[string("A")]
        )
        email = await shown(team, name, {"A": fake}, to=["ada@quay.example", "bob@quay.example"])
        assert email["subject"] == "Su"
        assert email["html"] == html.replace("{{{A}}}", fake)
        await team.world.turn()
        links = set()
        for message in await sink.messages(2):
            assert len(message.recipients) == 1
            assert parsed(message)["list-unsubscribe"] is None
            found = body(message, "html").removeprefix(fake)
            link = found.removeprefix('<a href="').partition('"')[0]
            assert found == f'<a href="{link}">x</a>' * 4
            assert body(message, "plain") == fake + f"x ({link})" * 4
            read = await link_tokens.read(link.rpartition("/")[2], team.world.app.need(LinkKeys))
            assert read is not None
            assert (str(read.email_id), read.topic_id) == (email["id"], None)
            assert read.address == message.recipients[0]
            links.add(link)
        assert len(links) == 2


async def test_a_template_with_a_topic_has_the_headers_and_the_links_of_the_topic(
    database_url: str, tmp_path: Path
) -> None:
    async with opened_harbor(database_url, tmp_path) as (team, sink):
        topic = await a_topic(team)
        name = await live(team, html="{{{A}}} {{{UNSUBSCRIBE_URL}}}", variables=[string("A")])
        await shown(team, name, {"A": "{{{UNSUBSCRIBE_URL}}}"}, topic_id=str(topic))
        await team.world.turn()
        [message] = await sink.messages(1)
        link = parsed(message)["list-unsubscribe"].strip("<>")
        assert body(message, "html") == f"{{{{{{UNSUBSCRIBE_URL}}}}}} {link}"
        read = await link_tokens.read(link.rpartition("/")[2], team.world.app.need(LinkKeys))
        assert read is not None
        assert read.topic_id == topic


async def test_a_value_that_looks_like_a_link_makes_no_copies(database_url: str, tmp_path: Path) -> None:
    async with opened_harbor(database_url, tmp_path) as (team, sink):
        name = await live(team, html="{{{A}}}", variables=[string("A")])
        await shown(team, name, {"A": "{{{UNSUBSCRIBE_URL}}}"}, to=["a@quay.example", "b@quay.example"])
        await team.world.turn()
        [message] = await sink.messages(1)
        assert len(message.recipients) == 2
        assert body(message, "html") == "{{{UNSUBSCRIBE_URL}}}"
