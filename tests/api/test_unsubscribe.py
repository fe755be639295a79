"""The page behind the link of a mail, and one click (topics.md 4, emails.md 9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from kit.audience import a_contact, a_topic, chooses
from kit.unsubscribing import PROXY, Recipient, Shown, recipient
from kit.webhook_events import published_events, published_kinds, subscribe
from kit.world import Team, world
from pillarbox.contacts.event_data import SHAPES

ONE_CLICK = "List-Unsubscribe=One-Click"
BOUNDARY = "----x"
MULTIPART = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\n'
    f"One-Click\r\n--{BOUNDARY}--\r\n"
)


@pytest.fixture
@asynccontextmanager
async def team(database_url: str, tmp_path: Path) -> AsyncIterator[Team]:
    """A team that has a webhook for all events of contacts."""
    async with world(database_url, tmp_path, started=False, trusted_proxy=PROXY) as pillarbox:
        team = await pillarbox.team()
        await subscribe(team, list(SHAPES))
        yield team


async def rows(team: Team) -> list[tuple[Any, ...]]:
    """All that a link could change."""
    found: list[tuple[Any, ...]] = []
    for table in (
        "contacts",
        "topic_choices",
        "timeline",
        "webhook_events",
        "metric_increments",
        "recipients",
    ):
        listed = await team.world.pool.fetch(f"SELECT t::text FROM {table} t ORDER BY 1")
        found += [tuple(row) for row in listed]
    return found


async def delivered(team: Team, topic: UUID | None = None, **fields: Any) -> tuple[str, Recipient]:
    """A mail that has arrived, and who got it."""
    named = {} if topic is None else {"topic_id": str(topic)}
    email = await team.send(**named, **fields)
    await team.world.turn()
    assert (await team.email(email))["last_event"] == "delivered"
    return email, await recipient(team, topic, email=email)


async def metric(team: Team) -> int:
    found = await team.world.pool.fetchval("SELECT sum(unsubscribed) FROM metric_increments")
    return int(found or 0)


# Looking changes nothing --------------------------------------------------------------------------


async def test_looking_changes_nothing_and_one_click_does(team: Team) -> None:
    """topics.md 5.5; LST-03: a hundred GETs and HEADs, with a topic and without one."""
    topic = await a_topic(team)
    for about in (topic, None):
        email, ada = await delivered(team, about)
        before = await rows(team)
        for _ in range(50):
            assert (await ada.opens()).status == 200
            head = await ada.http.head(ada.path, headers=ada.headers(purpose="prefetch"))
            assert (head.status_code, head.content) == (200, b"")
        assert await rows(team) == before
        assert (await ada.clicks()).status_code == 200
        assert await rows(team) != before
        assert (await team.email(email))["last_event"] == "delivered"
    assert await ada.choice(topic) == "opt_out"
    assert await ada.is_unsubscribed()


async def test_the_page_is_kept_nowhere_and_loads_nothing(team: Team) -> None:
    ada = await recipient(team, await a_topic(team))
    shown = await ada.opens()
    headers = shown.answer.headers
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["cache-control"] == "no-store"
    assert headers["x-robots-tag"] == "noindex"
    assert headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "http" not in headers["content-security-policy"]
    assert "set-cookie" not in headers
    assert shown.tree.css_first("script") is None
    assert "a…@quay.example" in shown.text
    assert "ada@quay" not in shown.answer.text
    assert "Pillarbox" not in shown.text


# What the page shows ------------------------------------------------------------------------------


async def test_a_mail_of_a_topic_offers_to_leave_it_and_all_choices(team: Team) -> None:
    topic = await a_topic(team, name="Release notes")
    await a_topic(team, "opt_out", name="Tides")
    shown = await (await recipient(team, topic)).opens()
    assert shown.buttons == [
        "Unsubscribe from Release notes",
        "Save choices",
        "Unsubscribe from everything",
    ]
    assert shown.boxes == {"Release notes": True, "Tides": False}


async def test_a_mail_without_a_topic_offers_all_choices(team: Team) -> None:
    await a_topic(team, name="Tides")
    shown = await (await recipient(team)).opens()
    assert (shown.buttons, shown.boxes) == (
        ["Save choices", "Unsubscribe from everything"],
        {"Tides": True},
    )


async def test_without_topics_there_is_one_button(team: Team) -> None:
    await a_topic(team, "opt_out", name="Staff", visibility="private")
    ada = await recipient(team)
    shown = await ada.opens()
    assert (shown.buttons, shown.boxes) == (["Unsubscribe"], {})
    done = await ada.posts(*shown.form("form"))
    assert await ada.is_unsubscribed()
    assert done.buttons == ["Undo"]


async def test_a_private_topic_is_shown_to_who_is_in_it(team: Team) -> None:
    """topics.md 5.6."""
    private = await a_topic(team, "opt_out", name="Staff", visibility="private")
    await a_topic(team, name="Everybody", visibility="private")
    await chooses(team, await a_contact(team, "bob@quay.example"), private, "opt_in")
    assert (await (await recipient(team)).opens()).boxes == {"Everybody": True}
    bob = await recipient(team, address="bob@quay.example")
    assert (await bob.opens()).boxes == {"Everybody": True, "Staff": True}


async def test_topics_of_other_teams_and_deleted_ones_are_not_there(team: Team) -> None:
    quay = await team.world.team("Quay")
    foreign, gone = await a_topic(quay, name="Foreign"), await a_topic(team, name="Gone")
    await team.call("DELETE", f"/topics/{gone}")
    ada = await recipient(team, gone)
    assert (await ada.opens()).buttons == ["Unsubscribe"]
    done = await ada.posts(("topic", foreign), ("shown", foreign), ("topic", gone), action="preferences")
    assert done.said.startswith("Your choices are saved; nothing is different")
    assert await ada.is_unsubscribed() is None


async def test_names_are_text(team: Team) -> None:
    topic = await a_topic(team, name="<script>alert(1)</script>")
    ada = await recipient(team, topic, address='"<b>x"@quay.example')
    for shown in (await ada.opens(), await ada.posts(confirm=1)):
        assert shown.tree.css_first("script") is None
        assert shown.tree.css_first("b") is None
        assert "<script>alert(1)</script>" in shown.text


# Forms --------------------------------------------------------------------------------------------


async def test_leaving_a_topic_and_taking_it_back(team: Team) -> None:
    topic = await a_topic(team, name="Tides")
    ada = await recipient(team, topic)
    done = await ada.posts(confirm=1)
    assert (done.status, done.said) == (200, "You will get no more mail about Tides . Undo")
    assert await ada.choice(topic) == "opt_out"
    assert await ada.is_unsubscribed() is False
    assert "Subscribe again to Tides" in (await ada.opens()).buttons
    back = await ada.takes_back(done)
    assert back.said == "You will get mail about Tides . Undo"
    assert await ada.choice(topic) == "opt_in"
    await ada.takes_back(back)
    assert await ada.choice(topic) == "opt_out"


async def test_choices_are_what_was_checked_of_what_was_shown(team: Team) -> None:
    one, two, three = [await a_topic(team, name=name) for name in ("One", "Two", "Three")]
    four = await a_topic(team, "opt_out", name="Four")
    ada = await recipient(team)
    pairs = [("shown", topic) for topic in (one, two, four)] + [("topic", one), ("topic", four)]
    done = await ada.posts(*pairs, action="preferences")
    assert done.boxes == {"One": True, "Two": False, "Three": True, "Four": True}
    assert [await ada.choice(topic) for topic in (one, two, three, four)] == [
        "opt_in",
        "opt_out",
        None,
        "opt_in",
    ]
    await ada.takes_back(done)
    assert (await ada.opens()).boxes == {"One": True, "Two": True, "Three": True, "Four": False}


async def test_topics_that_are_not_on_the_page_cannot_be_chosen(team: Team) -> None:
    private = await a_topic(team, "opt_out", visibility="private")
    ada = await recipient(team)
    await ada.posts(
        ("topic", private), ("shown", private), ("topic", "x"), ("shown", ""), action="preferences"
    )
    assert await ada.choice(private) is None
    assert await team.world.pool.fetchval("SELECT count(*) FROM contacts") == 0


async def test_a_private_topic_that_was_left_can_be_taken_back_at_once(team: Team) -> None:
    private = await a_topic(team, name="Staff", visibility="private")
    ada = await recipient(team)
    done = await ada.posts(("shown", private), action="preferences")
    assert await ada.choice(private) == "opt_out"
    assert (await ada.opens()).boxes == {}
    await ada.takes_back(done)
    assert await ada.choice(private) == "opt_in"
    assert (await ada.opens()).boxes == {"Staff": True}


async def test_leaving_everything_and_coming_back_keeps_choices(team: Team) -> None:
    topic = await a_topic(team, name="Tides")
    ada = await recipient(team, topic)
    await chooses(team, await a_contact(team, "ada@quay.example"), topic, "opt_in")
    done = await ada.posts(action="all")
    assert done.said.startswith("You are unsubscribed from everything.")
    assert await ada.is_unsubscribed()
    assert await ada.choice(topic) == "opt_in"
    assert (await ada.opens()).buttons == ["Subscribe again", "Save choices"]
    saved = await ada.posts(("shown", topic), ("topic", topic), action="preferences")
    assert "You are still unsubscribed from everything" in saved.said
    assert "Subscribe again" in saved.buttons
    assert await ada.is_unsubscribed()
    back = await ada.takes_back(done)
    assert back.said.startswith("You are subscribed again.")
    assert await ada.is_unsubscribed() is False
    assert await ada.choice(topic) == "opt_in"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("", "application/x-www-form-urlencoded"),
        ("confirm=2", "application/x-www-form-urlencoded"),
        ("action=delete", "application/x-www-form-urlencoded"),
        ("&".join(["a=b"] * 6000), "application/x-www-form-urlencoded"),
        ('{"confirm":"1"}', "application/json"),
        ("\xff\xfe%00%ff=%", "application/x-www-form-urlencoded"),
        (MULTIPART, "multipart/form-data"),
        (MULTIPART.replace("One-Click", "Two-Clicks"), f"multipart/form-data; boundary={BOUNDARY}"),
        ("List-Unsubscribe=", "application/x-www-form-urlencoded"),
    ],
)
async def test_anything_else_is_no_form(team: Team, body: str, kind: str) -> None:
    ada = await recipient(team, await a_topic(team))
    before = await rows(team)
    headers = ada.headers(content_type=kind)
    answer = await ada.http.post(ada.path, content=body.encode("latin-1"), headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/html; charset=utf-8")
    assert await rows(team) == before


# One click ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (ONE_CLICK, "application/x-www-form-urlencoded"),
        (f"x=1&{ONE_CLICK}", "application/x-www-form-urlencoded; charset=UTF-8"),
        (MULTIPART, f"multipart/form-data; boundary={BOUNDARY}"),
        (MULTIPART, f'multipart/form-data; boundary="{BOUNDARY}"'),
    ],
)
async def test_one_click_needs_nothing_but_its_body(team: Team, body: str, kind: str) -> None:
    """LST-02: 200, no body, no redirect, no cookie; as often as it is sent."""
    topic = await a_topic(team)
    ada = await recipient(team, topic)
    for _ in range(3):
        answer = await ada.http.post(ada.path, content=body, headers=ada.headers(content_type=kind))
        assert (answer.status_code, answer.content) == (200, b"")
        assert not {"set-cookie", "location"} & answer.headers.keys()
    assert await ada.choice(topic) == "opt_out"
    assert await ada.is_unsubscribed() is False
    assert await published_kinds(team) == ["contact.created", "contact.topics.updated"]


async def test_one_click_without_a_live_topic_leaves_everything(team: Team) -> None:
    gone = await a_topic(team)
    await team.call("DELETE", f"/topics/{gone}")
    for topic, address in (
        (None, "ada@quay.example"),
        (gone, "bob@quay.example"),
        (uuid4(), "eve@quay.example"),
    ):
        who = await recipient(team, topic, address)
        assert (await who.clicks()).status_code == 200
        assert await who.is_unsubscribed()


async def test_what_webhooks_hear(team: Team) -> None:
    topic = await a_topic(team)
    await a_contact(team, "ada@quay.example")
    ada = await recipient(team, topic)
    await ada.clicks()
    await ada.posts(action="all")
    await ada.posts(action="all")
    await ada.posts(("topic", topic), action="resubscribe")
    events = await published_events(team)
    assert [event["type"] for event in events] == [
        "contact.topics.updated",
        "contact.updated",
        "contact.updated",
        "contact.topics.updated",
    ]
    chosen = {"email": "ada@quay.example", "topics": [{"id": str(topic), "subscription": "opt_out"}]}
    assert events[0]["data"] == chosen
    assert [event["data"]["unsubscribed"] for event in events[1:3]] == [True, False]


# What it counts for -------------------------------------------------------------------------------


async def test_unsubscribing_counts_once_for_each_mail(team: Team) -> None:
    """topics.md 5.10: three submissions; coming back does not subtract, and another mail counts by itself."""
    topic = await a_topic(team)
    email, ada = await delivered(team, topic)
    _, again = await delivered(team, topic)
    for _ in range(2):
        await ada.clicks()
    await ada.posts(confirm=1)
    assert await metric(team) == 1
    await ada.posts(("topic", topic), action="resubscribe")
    await ada.posts(action="all")
    assert await metric(team) == 1
    await again.posts(action="all")
    assert await metric(team) == 2
    assert (await team.kinds(email))[-1] == "unsubscribed"
    assert (await team.email(email))["last_event"] == "delivered"
    assert await team.db.value("SELECT count(*) FROM suppressions WHERE team_id = $1") == 0
    assert (
        await team.world.pool.fetchval("SELECT count(*) FROM recipients WHERE unsubscribed_at IS NOT NULL")
        == 2
    )


@pytest.mark.parametrize(("left", "counted"), [(True, 1), (False, 0)])
async def test_choices_count_where_a_topic_was_left(team: Team, left: bool, counted: int) -> None:
    topic = await a_topic(team)
    _, ada = await delivered(team, topic)
    pairs: list[tuple[str, Any]] = [("shown", topic)]
    await ada.posts(*pairs, *([] if left else [("topic", topic)]), action="preferences")
    assert await metric(team) == counted


async def test_a_link_works_when_its_mail_is_gone(team: Team) -> None:
    """LST-04: the mail was removed with age, and its contact was deleted."""
    topic = await a_topic(team)
    ada = await recipient(team, topic)
    assert (await ada.opens()).buttons[0] == "Unsubscribe from Release notes"
    await ada.clicks()
    await team.call("DELETE", "/contacts/ada@quay.example")
    await ada.clicks()
    assert await ada.choice(topic) == "opt_out"
    assert await metric(team) == 0
    assert (await published_kinds(team))[-2:] == ["contact.created", "contact.topics.updated"]


# Who may not --------------------------------------------------------------------------------------


async def test_links_that_are_none(team: Team) -> None:
    """topics.md 5.7: a plain page, alike for whatever is wrong."""
    ada = await recipient(team, await a_topic(team))
    token = ada.path.rpartition("/")[2]
    other = "B" if token[50] == "A" else "A"
    seen = set()
    for text in (
        token[:-1],
        f"{token[:50]}{other}{token[51:]}",
        "x",
        "...",
        "%F0%9F",
        "a" * 3000,
        token + "%0A",
    ):
        for method in ("GET", "POST"):
            headers = ada.headers(content_type="application/x-www-form-urlencoded")
            answer = await ada.http.request(
                method, f"/unsubscribe/{text}", content=ONE_CLICK, headers=headers
            )
            assert (answer.status_code, answer.headers["content-type"]) == (
                404,
                "text/html; charset=utf-8",
            )
            seen.add(answer.text)
    assert len(seen) == 1
    assert await team.world.pool.fetchval("SELECT count(*) FROM contacts") == 0


async def test_other_methods_are_none_of_it(team: Team) -> None:
    ada = await recipient(team)
    for method in ("PUT", "DELETE", "PATCH"):
        assert (await ada.http.request(method, ada.path, headers=ada.headers())).status_code == 405
    options = await ada.http.options(ada.path, headers=ada.headers())
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, POST")
    large = await ada.http.post(ada.path, content=b"x" * (1024 * 1024 + 1), headers=ada.headers())
    assert large.status_code == 413


async def test_sixty_requests_a_minute_from_one_address(team: Team) -> None:
    ada = await recipient(team, await a_topic(team))
    mine, theirs = {"x-forwarded-for": "192.0.2.1"}, {"x-forwarded-for": "192.0.2.2"}
    for _ in range(60):
        assert (await ada.http.get(ada.path, headers=mine)).status_code == 200
    before = await rows(team)
    for put_off in (
        await ada.http.get(ada.path, headers=mine),
        await ada.http.post(ada.path, content=ONE_CLICK, headers=mine),
    ):
        assert (put_off.status_code, put_off.headers["content-type"]) == (429, "text/html; charset=utf-8")
        assert 1 <= int(put_off.headers["retry-after"]) <= 60
    assert await rows(team) == before
    assert (await ada.http.get(ada.path, headers=theirs)).status_code == 200


async def test_twenty_clicks_at_once_make_one_contact(team: Team) -> None:
    topic = await a_topic(team)
    _, ada = await delivered(team, topic)
    answers = await asyncio.gather(*(ada.clicks() for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert await published_kinds(team) == ["contact.created", "contact.topics.updated"]
    assert await metric(team) == 1


async def test_many_topics_do_not_make_an_endless_page(team: Team) -> None:
    topic = await a_topic(team, name="zz")
    await team.world.pool.execute(
        "INSERT INTO topics (team_id, id, name, default_subscription, visibility, created_at, updated_at)"
        " SELECT $1, gen_random_uuid(), 'many ' || n, 'opt_in', 'public', now(), now()"
        " FROM generate_series(1, 1500) n",
        team.id,
    )
    shown: Shown = await (await recipient(team, topic)).opens()
    boxes: Mapping[str, bool] = shown.boxes
    assert len(boxes) == 1000
    assert "zz" in boxes
