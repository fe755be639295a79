"""Screens of emails: what a person sees of mail that was sent and received, and what forms do."""

from __future__ import annotations

import csv
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from kit.people import Visit, a_person, heading, logged_in, text_of
from kit.screens import a_received_email
from kit.webhooks import hook
from kit.world import Team, World, world
from pillarbox.dashboard.emails.email_csv import csv_parts
from pillarbox.emails.search.filters import EmailFilter
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people.roles import TeamRole
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rules import ClickDetail, EventDetail, EventKind, TimelineEntry

Place = tuple[str, Path]

KEY = re.compile(r'name="key" value="([^"]+)"')
WRITTEN = {
    "from": "Harbor <hello@harbor.example>",
    "to": "ada@quay.example",
    "subject": "Berth 12",
    "html": "<p>Ready</p>",
}


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("screens")
    databases.drop(url)


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[World]:
    async with world(*place, started=False) as here:
        yield here


async def test_received_mail_is_listed_and_shown_with_its_verdicts(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@one.example"))
        empty = await ada.get("/dashboard/emails/receiving")
        assert "No received email yet" in text_of(empty)
        email_id = await a_received_email(team)
        listed = await ada.get("/dashboard/emails/receiving")
        assert "Re: Your invoice" in text_of(listed)
        page = await ada.get(f"/dashboard/emails/receiving/{email_id}")
        assert heading(page) == "Re: Your invoice"
        assert "There is no SPF record for" in text_of(page)
        assert "DMARC" in text_of(page)
        headers = await ada.get(f"/dashboard/emails/receiving/{email_id}?view=headers")
        assert "reply-12@quay.example" in text_of(headers)
        files = await ada.get(f"/dashboard/emails/receiving/{email_id}?view=attachments")
        assert "order.pdf" in text_of(files)


async def test_the_html_of_received_mail_is_cleaned_and_sandboxed(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@two.example"))
        frame = await ada.get(f"/dashboard/emails/receiving/{await a_received_email(team)}/html")
        assert "twelve more" in frame.text
        assert "alert(1)" not in frame.text
        assert "sandbox" in frame.headers["content-security-policy"]


async def test_received_mail_of_another_team_is_not_there(place: Place) -> None:
    async with opened(place) as here:
        team, other = await here.team("Harbor"), await here.team("Quay")
        ben = await logged_in(here, await a_person(other, "ben@three.example"))
        path = f"/dashboard/emails/receiving/{await a_received_email(team)}"
        assert (await ben.get(path)).status_code == 404
        assert (await ben.get(f"{path}/html")).status_code == 404


def key_of(page: httpx.Response) -> str:
    found = KEY.search(page.text)
    assert found is not None, page.text
    return found[1]


async def sent_emails(team: Team) -> list[dict[str, Any]]:
    return list((await team.get("/emails")).json()["data"])


async def sends(browser: Visit, **fields: str) -> httpx.Response:
    """Fill in the form and send it."""
    key = key_of(await browser.get("/dashboard/send"))
    return await browser.post("/dashboard/send", **{**WRITTEN, "key": key, **fields})


async def test_the_form_sends_and_leads_to_the_email(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@four.example"))
        assert "ada@four.example" in (await ada.get("/dashboard/send")).text
        shown = await ada.follow(await sends(ada, to='"Quill, Ada" <ada@quay.example>, ben@quay.example'))
        assert heading(shown) == "Berth 12"
        assert "The email is accepted." in text_of(shown)
        [email] = await sent_emails(team)
        assert email["to"] == ['"Quill, Ada" <ada@quay.example>', "ben@quay.example"]


async def test_a_form_that_is_sent_twice_sends_one_email(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@five.example"))
        key = key_of(await ada.get("/dashboard/send"))
        first = await ada.post("/dashboard/send", **WRITTEN, key=key)
        second = await ada.post("/dashboard/send", **WRITTEN, key=key)
        assert first.headers["location"] == second.headers["location"]
        assert len(await sent_emails(team)) == 1
        changed = await ada.post("/dashboard/send", **{**WRITTEN, "subject": "Other"}, key=key)
        assert changed.status_code == 409
        assert key_of(changed) != key


async def test_an_error_keeps_what_was_typed(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@six.example"))
        page = await sends(ada, to="not an address", html='<p>"kept"</p>', scheduled_at="in 2 hours")
        assert page.status_code == 422
        assert "<code>to</code>" in page.text
        assert "&lt;p&gt;&#34;kept&#34;&lt;/p&gt;" in page.text
        assert "in 2 hours" in page.text
        assert await sent_emails(team) == []


async def test_a_scheduled_email_waits(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@seven.example"))
        await sends(ada, scheduled_at="in 2 hours")
        [email] = await sent_emails(team)
        assert email["last_event"] == "scheduled"


async def test_a_published_template_is_sent_with_its_variables(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@eight.example"))
        assert "No published template yet" in text_of(await ada.get("/dashboard/send?template="))
        variables = [
            {"key": "NAME", "type": "string"},
            {"key": "COUNT", "type": "number", "fallback_value": 1},
        ]
        fields = {"name": "Order", "html": "<p>{{{NAME}}}: {{{COUNT}}}</p>", "subject": "Order"}
        template_id = (await team.post("/templates", {**fields, "variables": variables})).json()["id"]
        await team.post(f"/templates/{template_id}/publish")
        page = await ada.get(f"/dashboard/send?template={template_id}")
        assert 'name="variable.NAME"' in page.text
        given = {"from": WRITTEN["from"], "to": WRITTEN["to"], "template": template_id, "key": key_of(page)}
        refused = await ada.post(
            "/dashboard/send", **given, **{"variable.NAME": "Ada", "variable.COUNT": "x"}
        )
        assert refused.status_code == 422
        assert 'value="Ada"' in refused.text
        values = {"variable.NAME": "Ada", "variable.COUNT": "12"}
        shown = await ada.follow(await ada.post("/dashboard/send", **given, **values))
        assert heading(shown) == "Order"
        email_id = (await sent_emails(team))[0]["id"]
        assert (await team.get(f"/emails/{email_id}")).json()["html"] == "<p>Ada: 12</p>"


async def test_send_again_fills_the_form_from_the_email(place: Place) -> None:
    async with opened(place) as here:
        team, other = await here.team("Harbor"), await here.team("Quay")
        ada = await logged_in(here, await a_person(team, "ada@nine.example"))
        ben = await logged_in(here, await a_person(other, "ben@nine.example"))
        email_id = await team.send(**{**WRITTEN, "subject": "<b>Berth</b>"})
        page = await ada.get(f"/dashboard/send?again={email_id}")
        assert "&lt;b&gt;Berth&lt;/b&gt;" in page.text
        assert "&lt;p&gt;Ready&lt;/p&gt;" in page.text
        assert (await ben.get(f"/dashboard/send?again={email_id}")).status_code == 404


async def test_viewers_do_not_send(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        vera = await logged_in(here, await a_person(team, "vera@ten.example", TeamRole.VIEWER))
        assert (await vera.get("/dashboard/send")).status_code == 403
        assert (await vera.post("/dashboard/send", **WRITTEN)).status_code == 403
        assert await sent_emails(team) == []


async def opened_by(
    team: Team, email_id: str, kind: EventKind, detail: EventDetail, position: int = 0
) -> None:
    entry = TimelineEntry(
        team_id=team.id,
        email_id=UUID(email_id),
        position=position,
        kind=kind,
        at=SystemClock().now(),
        detail=detail,
    )
    async with transaction(team.world.pool) as conn:
        await team.world.app.need(Timeline).record(conn, [entry])


async def test_an_email_shows_who_opened_it_and_what_webhooks_were_told(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@eleven.example"))
        told = await hook(team, "email.delivered", endpoint="https://told.example/in")
        email_id = await team.send(to="delivered@resend.dev", subject="Berth 12", html="<p>Ready</p>")
        await here.turn()
        [event] = await told.events()
        await told.attempt(event["id"], 503, "busy here")
        machine = EventDetail(machine="Some image proxy")
        await opened_by(team, email_id, EventKind.OPENED, machine)
        click = ClickDetail("192.0.2.4", "https://harbor.example/12", SystemClock().now(), "<i>Browser</i>")
        await opened_by(team, email_id, EventKind.CLICKED, EventDetail(click=click))
        page = await ada.get(f"/dashboard/emails/{email_id}")
        text = text_of(page)
        assert "Some image proxy" in text
        assert "One of them by a machine" in text
        assert "https://harbor.example/12" in text
        assert "&lt;i&gt;Browser&lt;/i&gt;" in page.text
        assert "https://told.example/in" in text
        assert "503 busy here" in text


async def test_an_email_shows_its_request_and_its_insights(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@twelve.example"))
        html = '<a href="https://evil.example/x">https://bank.example</a>'
        email_id = await team.send(html=html, headers={"X-Berth": "<b>12</b>"})
        await team.send(subject="Another")
        page = await ada.get(f"/dashboard/emails/{email_id}")
        found = re.search("/dashboard/logs/([0-9a-f-]{36})", page.text)
        assert found is not None, text_of(page)
        assert (await team.get(f"/logs/{found[1]}")).json()["response_body"]["id"] == email_id
        assert "“bank.example” leads to evil.example" in text_of(page)
        headers = await ada.get(f"/dashboard/emails/{email_id}?view=headers")
        assert "X-Berth" in text_of(headers)
        assert "&lt;b&gt;12&lt;/b&gt;" in headers.text


async def test_the_filtered_list_is_saved_as_csv(place: Place) -> None:
    async with opened(place) as here:
        team, other = await here.team("Harbor"), await here.team("Quay")
        ada = await logged_in(here, await a_person(team, "ada@thirteen.example"))
        await team.send(subject="=HYPERLINK(1)", to=["ada@quay.example", "ben@quay.example"])
        await team.send(subject="Berth, 12")
        await other.send(subject="Not theirs")
        assert (
            "/dashboard/emails/csv?subject=berth" in (await ada.get("/dashboard/emails?subject=berth")).text
        )
        every = await ada.get("/dashboard/emails/csv")
        assert every.headers["content-type"].startswith("text/csv")
        assert "emails.csv" in every.headers["content-disposition"]
        rows = list(csv.DictReader(StringIO(every.text)))
        assert [row["subject"] for row in rows] == ["Berth, 12", "'=HYPERLINK(1)"]
        assert rows[1]["to"] == "ada@quay.example, ben@quay.example"
        [row] = csv.DictReader(StringIO((await ada.get("/dashboard/emails/csv?subject=berth")).text))
        assert row["subject"] == "Berth, 12"
        assert (await ada.get("/dashboard/emails/csv?to=nobody")).status_code == 422


async def test_the_file_has_no_more_rows_than_its_bound(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        for number in range(5):
            await team.send(subject=f"Berth {number}")
        parts = [part async for part in csv_parts(team.db, EmailFilter(), limit=3, page_rows=2)]
        subjects = [row["subject"] for row in csv.DictReader(StringIO(b"".join(parts).decode()))]
        assert subjects == ["Berth 4", "Berth 3", "Berth 2"]


async def test_an_email_says_whom_it_did_not_reach(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@fourteen.example"))
        email_id = await team.send(to=["bounced@resend.dev", "delivered@resend.dev"])
        await here.turn()
        await opened_by(team, email_id, EventKind.OPENED, EventDetail(), position=1)
        text = text_of(await ada.get(f"/dashboard/emails/{email_id}"))
        assert "bounced@resend.dev: The recipient's mail server refused the email for good." in text


async def test_an_email_says_whether_its_address_is_suppressed(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@fifteen.example"))
        email_id = await team.send(to="bounced@resend.dev")
        complained_id = await team.send(to="complained@resend.dev")
        await here.turn()
        text = text_of(await ada.get(f"/dashboard/emails/{email_id}"))
        assert "bounced@resend.dev : mail of the simulator suppresses nothing." in text
        assert "Nothing speaks against" not in text
        complained = text_of(await ada.get(f"/dashboard/emails/{complained_id}"))
        assert "reported the mail as spam" not in complained.partition("What happened")[0]
        await team.post("/suppressions", {"email": "ben@quay.example"})
        refused_id = await team.send(to="ben@quay.example")
        await here.turn()
        page = await ada.get(f"/dashboard/emails/{refused_id}")
        entry_id = (await team.get("/suppressions/ben@quay.example")).json()["id"]
        assert f'href="/dashboard/suppressions/{entry_id}"' in page.text
        await team.post("/suppressions/batch/remove", {"ids": [entry_id]})
        later = text_of(await ada.get(f"/dashboard/emails/{refused_id}"))
        assert "ben@quay.example : the address is not on the suppression list any more." in later


async def test_a_scheduled_email_is_rescheduled_and_shows_both_times(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@sixteen.example"))
        vera = await logged_in(here, await a_person(team, "vera@sixteen.example", TeamRole.VIEWER))
        email_id = await team.send(scheduled_at="in 2 hours")
        path = f"/dashboard/emails/{email_id}"
        await vera.get(path)
        refused = await ada.send(path, f"{path}/reschedule", scheduled_at="<b>never</b>")
        assert refused.status_code == 422
        assert 'value="&lt;b&gt;never&lt;/b&gt;"' in refused.text
        assert (await vera.post(f"{path}/reschedule", scheduled_at="in 3 hours")).status_code == 403
        before = (await team.get(f"/emails/{email_id}")).json()
        shown = await ada.follow(await ada.post(f"{path}/reschedule", scheduled_at="in 3 hours"))
        assert "The email waits for its new time." in text_of(shown)
        email = (await team.get(f"/emails/{email_id}")).json()
        assert email["scheduled_at"] > before["scheduled_at"]
        row = (await ada.get("/dashboard/emails")).text
        assert "Scheduled for" in row
        assert re.search(r'<td class="time"><time datetime="' + email["created_at"][:10], row)


async def test_first_opens_of_people_and_machines_both_stand_in_what_happened(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@seventeen.example"))
        email_id = await team.send(to="delivered@resend.dev")
        await here.turn()
        for machine in ("apple_mail_privacy", "apple_mail_privacy", None, None):
            await opened_by(team, email_id, EventKind.OPENED, EventDetail(machine=machine), position=0)
        text = text_of(await ada.get(f"/dashboard/emails/{email_id}"))
        steps = text.partition("What happened")[2].partition("all of them are below")[0]
        assert steps.count("Opened · delivered@resend.dev") == 2
        assert "By a machine: Apple mail privacy" in steps


async def test_all_that_changes_of_an_email_is_renewed(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@eighteen.example"))
        page = (await ada.get(f"/dashboard/emails/{await team.send()}")).text
        facts = page.partition('id="facts" data-live-part')[2].partition('id="timeline" data-live-part')[0]
        assert "Queued" in facts
        assert 'id="activity" data-live-part' in page
        assert re.search(
            r'data-live="/dashboard/live\?of=emails&amp;id=[0-9a-f-]+&amp;seen=[0-9a-f-]{36}"', page
        )
        assert "There is no such page" in text_of(await ada.get("/dashboard/emails/odd", accept="text/html"))
