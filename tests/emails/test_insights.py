"""Insights: each rule over an email, and the route that shows them."""

from __future__ import annotations

from typing import Any

import pytest

from kit.world import World
from pillarbox.emails.insights.queries import InspectedEmail
from pillarbox.emails.insights.reading import read
from pillarbox.emails.insights.rules import RULES, Insight, judged

PLAIN: dict[str, Any] = {
    "sender": "Harbor <hello@mail.harbor.example>",
    "domain_name": "mail.harbor.example",
    "html": "<p>Ready</p>",
    "text": "Ready",
    "headers": None,
    "topic_id": None,
    "broadcast_id": None,
    "recipients": 1,
}


def insights(signs_for: str | None = "mail.harbor.example", **fields: Any) -> dict[str, Insight]:
    stored = InspectedEmail(**{**PLAIN, **fields})
    return {insight.code: insight for insight in judged(read(stored, signs_for))}


def test_a_plain_email_is_fine() -> None:
    found = insights()
    assert {insight.level for insight in found.values()} == {"ok"}
    assert set(found) == {"dmarc_alignment", "html_size", "text_part", "sender_address"}


CASES = [
    ("dmarc_alignment", "ok", {}),
    ("link_hosts", "ok", {"html": '<a href="https://www.harbor.example/x">Open</a>'}),
    ("link_hosts", "advice", {"html": '<a href="https://short.example/x">Open</a>'}),
    ("link_texts", "ok", {"html": '<a href="https://harbor.example/x">www.harbor.example</a>'}),
    ("link_texts", "warning", {"html": '<a href="https://evil.example/x">https://bank.example/login</a>'}),
    ("html_size", "ok", {"html": "x" * 102_000}),
    ("html_size", "warning", {"html": "x" * 102_001}),
    ("html_size", "warning", {"html": "ü" * 51_001}),
    ("text_part", "advice", {"text": None}),
    ("image_texts", "ok", {"html": '<img src="https://harbor.example/a.png" alt="">'}),
    ("image_texts", "advice", {"html": '<img src="https://harbor.example/a.png">'}),
    ("sender_address", "advice", {"sender": "Harbor <no-reply@mail.harbor.example>"}),
    ("sender_address", "advice", {"sender": "NoReply+12@mail.harbor.example"}),
    ("sender_address", "advice", {"sender": "do_not_reply@mail.harbor.example"}),
    ("sender_address", "ok", {"sender": "reply@mail.harbor.example"}),
    ("list_unsubscribe", "warning", {"recipients": 20}),
    (
        "list_unsubscribe",
        "advice",
        {"headers": '[["List-Unsubscribe","<https://a.example>"],["List-Id","a"]]'},
    ),
    (
        "list_unsubscribe",
        "ok",
        {
            "recipients": 40,
            "headers": '[["List-Unsubscribe","<https://a.example>"],["list-unsubscribe-post","a"]]',
        },
    ),
]


@pytest.mark.parametrize(("code", "level", "fields"), CASES, ids=range(len(CASES)))
def test_each_rule(code: str, level: str, fields: dict[str, Any]) -> None:
    assert insights(**fields)[code].level == level


def test_every_rule_has_cases() -> None:
    assert {code for code, _, _ in CASES} == set(RULES)


def test_a_domain_that_nobody_verified_comes_first() -> None:
    found = judged(read(InspectedEmail(**PLAIN), None))
    assert (found[0].code, found[0].level) == ("dmarc_alignment", "warning")


def test_rules_do_not_apply_to_what_is_not_there() -> None:
    assert set(insights(html=None, text=None)) == {"dmarc_alignment", "sender_address"}


def test_links_that_are_no_addresses_are_left_out() -> None:
    html = '<a href="mailto:a@b.example">a</a><a href="#x">b</a><a href="{{{url}}}">c</a><a href="http://[">d</a>'
    assert "link_hosts" not in insights(html=html)


def test_hostile_html_takes_little_time() -> None:
    assert "link_hosts" not in insights(html="<b a0>" * 100_000 + "<div>" * 100_000)


async def test_the_route_shows_the_insights_of_an_email(pillarbox: World) -> None:
    team, other = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
    email_id = await team.send(html='<a href="https://evil.example">https://bank.example</a>')
    answer = (await team.get(f"/emails/{email_id}/insights")).json()
    assert list(answer) == ["object", "id", "insights"]
    assert (answer["object"], answer["id"]) == ("email_insights", email_id)
    levels = {insight["code"]: insight["level"] for insight in answer["insights"]}
    assert levels["link_texts"] == "warning"
    assert list(answer["insights"][0]) == ["code", "level", "message"]
    assert (await other.get(f"/emails/{email_id}/insights")).status_code == 404
