"""What was found out about received mail, over the API and in webhooks (receiving.md 2.3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kit.client import error
from kit.http_outside import answer as http_answer
from kit.http_outside import serving
from kit.inbound_client import inbound_client, receiving_domain
from kit.inbox_rows import Inbox
from kit.webhooks import hook
from kit.world import Team, World, world
from kit.zone import Zone

HELP = "help@harbor.example"
ZONE = """
    bank.example        TXT "v=spf1 -all"
    _dmarc.bank.example TXT "v=DMARC1; p=reject"
    shop.example        TXT "v=spf1 ip4:127.0.0.0/8 -all"
    _dmarc.shop.example TXT "v=DMARC1; p=quarantine"
"""


def mail(sender: str, *fields: str) -> bytes:
    return "\r\n".join([f"From: {sender}", "Subject: Berth", *fields, "", "Hello", ""]).encode()


async def harbor(pillarbox: World) -> Team:
    team = await pillarbox.team()
    await receiving_domain(team)
    return team


async def verdicts(team: Team, answer: str) -> dict[str, Any]:
    assert answer.startswith("250"), answer
    found: dict[str, Any] = (await team.get(f"/emails/receiving/{answer.split()[-1]}/verdicts")).json()
    return found


async def test_verdicts_name_domains_and_alignment(database_url: str, tmp_path: Path) -> None:
    """INB-10."""
    async with (
        world(database_url, tmp_path, zone=Zone(ZONE)) as pillarbox,
        inbound_client(pillarbox) as post,
    ):
        team = await harbor(pillarbox)
        good = await verdicts(team, await post.deliver(mail("a@shop.example"), [HELP], "a@shop.example"))
        assert " ".join(good) == "object id spf dkim dmarc spam automatic"
        assert good["object"] == "email_verdicts"
        assert good["spf"] == {
            "result": "pass",
            "identity": "mailfrom",
            "domain": "shop.example",
            "reason": None,
        }
        assert good["dkim"] == []
        assert good["dmarc"] == {
            "result": "pass",
            "domain": "shop.example",
            "policy": "quarantine",
            "policy_domain": "shop.example",
            "spf_aligned": True,
            "dkim_aligned": False,
            "reason": None,
        }
        assert good["spam"] == {"is_spam": False, "reason": None, "score": None, "required_score": None}
        assert good["automatic"] is False
        bad = await verdicts(team, await post.deliver(mail("b@bank.example"), [HELP], "a@shop.example"))
        assert (bad["spf"]["result"], bad["dmarc"]["result"], bad["dmarc"]["spf_aligned"]) == (
            "pass",
            "fail",
            False,
        )
        assert bad["spam"]["is_spam"] is True
        assert bad["spam"]["reason"] == "dmarc=fail policy=reject"


async def test_a_signature_that_fails_says_why(database_url: str, tmp_path: Path) -> None:
    signature = "DKIM-Signature: v=1; a=rsa-sha256; d=gone.example; s=x; h=from; bh=YWJj; b=YWJj"
    async with world(database_url, tmp_path, zone=Zone(ZONE)) as pillarbox, inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        found = await verdicts(team, await post.deliver(mail("a@shop.example", signature), [HELP]))
        [dkim] = found["dkim"]
        assert (dkim["domain"], dkim["selector"]) == ("gone.example", "x")
        assert dkim["result"] != "pass"
        assert dkim["reason"]


@pytest.mark.parametrize(
    ("fields", "sender"),
    [
        (("Auto-Submitted: auto-replied",), "a@shop.example"),
        (("Precedence: bulk",), "a@shop.example"),
        (("List-Id: <a.shop.example>",), "a@shop.example"),
        ((), ""),
    ],
)
async def test_mail_of_programs_lists_and_the_null_sender_is_automatic(
    database_url: str, tmp_path: Path, fields: tuple[str, ...], sender: str
) -> None:
    """RFC 3834."""
    async with world(database_url, tmp_path, zone=Zone(ZONE)) as pillarbox, inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        answer = await post.deliver(mail("a@shop.example", *fields), [HELP], sender)
        assert (await verdicts(team, answer))["automatic"] is True


async def test_the_score_of_the_scanner_is_shown_for_good_mail_too(database_url: str, tmp_path: Path) -> None:
    """INB-05."""
    body = json.dumps({"action": "greylist", "score": 4.5, "required_score": 15}).encode()
    async with serving(http_answer(body)) as far:
        url = f"http://127.0.0.1:{far.port}"
        async with (
            world(database_url, tmp_path, zone=Zone(ZONE), rspamd_url=url) as pillarbox,
            inbound_client(pillarbox) as post,
        ):
            team = await harbor(pillarbox)
            found = await verdicts(team, await post.deliver(mail("a@shop.example"), [HELP]))
            assert found["spam"] == {
                "is_spam": False,
                "reason": None,
                "score": 4.5,
                "required_score": 15.0,
            }


async def test_mail_of_before_shows_what_is_known_and_other_teams_see_nothing(
    database_url: str, tmp_path: Path
) -> None:
    async with world(database_url, tmp_path, zone=Zone(ZONE)) as pillarbox, inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        answer = await post.deliver(mail("a@shop.example"), [HELP], "a@shop.example")
        await pillarbox.pool.execute("UPDATE received_emails SET verdicts = NULL")
        found = await verdicts(team, answer)
        assert (found["spf"]["result"], found["spf"]["domain"]) == ("pass", None)
        assert (found["dmarc"]["result"], found["dmarc"]["spf_aligned"]) == ("pass", None)
        assert (found["dkim"], found["automatic"]) == ([], None)
        other = await pillarbox.team("Quay")
        path = f"/emails/receiving/{found['id']}/verdicts"
        assert error(await other.get(path)) == (404, "not_found", "Email not found")


async def test_webhooks_that_ask_for_verdicts_get_them_in_an_event_of_their_own(
    database_url: str, tmp_path: Path
) -> None:
    async with world(database_url, tmp_path, zone=Zone(ZONE)) as pillarbox, inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        plain = await hook(team, "email.received")
        both = await hook(team, "email.received", "email.judged")
        shown = await verdicts(team, await post.deliver(mail("a@shop.example"), [HELP], "a@shop.example"))
        assert [event["type"] for event in await plain.payloads()] == ["email.received"]
        events = {event["type"]: event["data"] for event in await both.payloads()}
        assert set(events) == {"email.received", "email.judged"}
        data = events["email.judged"]
        assert " ".join(data) == "email_id spf dkim dmarc spam automatic"
        assert data.pop("email_id") == shown["id"]
        assert data == {name: shown[name] for name in data}
        assert not set(data) & set(events["email.received"])


async def test_messages_of_inboxes_that_came_in_have_verdicts(inbox: Inbox) -> None:
    thread = await inbox.thread()
    email_id = await thread.received(mail("a@shop.example", "List-Id: <x>"))
    shown = (await thread.get(f"/emails/{email_id}/verdicts")).json()
    assert shown == (await inbox.team.get(f"/emails/receiving/{email_id}/verdicts")).json()
    assert shown["automatic"] is True
    sent = await thread.sent()
    answer = await thread.get(f"/emails/{sent}/verdicts")
    assert error(answer) == (404, "not_found", "Verdict not found")
