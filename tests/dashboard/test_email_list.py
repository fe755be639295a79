"""The list of sent emails: its filters, and what is done with several chosen emails."""

from __future__ import annotations

import csv
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from kit.people import Visit, a_person, logged_in, text_of
from kit.world import Team, World, mail, world
from pillarbox.dashboard.emails import email_acts
from pillarbox.emails.inbox_mail import originals
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.people.roles import TeamRole

Place = tuple[str, Path]

KEY = re.compile(r'name="key" value="([^"]+)"')


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("lists")
    databases.drop(url)


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[World]:
    async with world(*place, started=False) as here:
        yield here


async def sent_emails(team: Team, query: str = "") -> list[dict[str, Any]]:
    return list((await team.get(f"/emails?limit=100{query}")).json()["data"])


async def shown_files(team: Team, email_id: str) -> list[dict[str, Any]]:
    """Return the attachments of an email without their ids and links."""
    files = (await team.get(f"/emails/{email_id}/attachments")).json()["data"]
    shown = ("filename", "size", "content_type", "content_disposition", "content_id")
    return [{name: file.get(name) for name in shown} for file in files]


def listed(page: httpx.Response) -> list[str]:
    """The subjects of the rows of the list."""
    return re.findall(
        r'<input type="checkbox" name="id" value="[^"]+" aria-label="Choose ([^"]+)">', page.text
    )


async def resends(browser: Visit, ids: list[str], **fields: Any) -> httpx.Response:
    key = KEY.search((await browser.get("/dashboard/emails")).text)
    assert key is not None
    return await browser.post("/dashboard/emails/resend", **{"key": key[1], **fields}, id=ids)


async def test_the_list_is_filtered_by_tag_key_and_source(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@one.example"))
        for number in range(3):
            await team.send(subject=f"Bill {number}", tags=[{"name": "kind", "value": f"bill{number % 2}"}])
        await team.send(subject="Plain")
        await here.pool.execute("UPDATE emails SET source = 'smtp' WHERE subject = 'Bill 2'")
        key = (await team.get("/api-keys")).json()["data"][0]
        for query, subjects in {
            "": ["Plain", "Bill 2", "Bill 1", "Bill 0"],
            "tag=kind": ["Bill 2", "Bill 1", "Bill 0"],
            "tag=kind:bill0": ["Bill 2", "Bill 0"],
            "source=smtp": ["Bill 2"],
            "source=api&tag=kind": ["Bill 1", "Bill 0"],
            f"key={key['id']}&subject=plain": ["Plain"],
            f"key={UUID(int=1)}": [],
            f"broadcast={UUID(int=1)}": [],
        }.items():
            page = await ada.get(f"/dashboard/emails?{query}")
            assert listed(page) == subjects, query
            file = await ada.get(f"/dashboard/emails/csv?{query}")
            assert [row["subject"] for row in csv.DictReader(StringIO(file.text))] == subjects, query
        page = await ada.get("/dashboard/emails?tag=kind:bill0&source=api")
        assert "/dashboard/emails/csv?tag=kind%3Abill0&amp;source=api" in page.text
        assert f'<option value="{key["id"]}">' in page.text
        assert '<option value="api" selected>' in page.text
        assert "tag=kind%3Abill0" in text_of(page) or "tag=kind:bill0" in text_of(page)


async def test_a_filter_that_means_nothing_is_told_and_kept(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@two.example"))
        for query, said in {
            "tag=a b": "is no tag",
            "source=fax": "source",
            "key=7": "is not an id",
        }.items():
            page = await ada.get(f"/dashboard/emails?{query}")
            assert page.status_code == 422
            assert said in text_of(page)
        assert 'value="&lt;b&gt;"' in (await ada.get("/dashboard/emails?tag=<b>")).text
        assert (await ada.get("/dashboard/emails/csv?tag=<b>")).status_code == 422


async def test_pages_of_a_filter_follow_each_other(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@three.example"))
        batch = [
            mail(to=["delivered@pillarbox.test"], subject=f"No {n}", tags=[{"name": "kind", "value": "bill"}])
            for n in range(45)
        ]
        assert (await team.post("/emails/batch", batch)).status_code == 200
        first = await ada.get("/dashboard/emails?tag=kind")
        older = re.search(r'rel="next" href="([^"]+)"', first.text)
        assert older is not None
        second = await ada.get(older[1].replace("&amp;", "&"))
        assert sorted(listed(first) + listed(second)) == sorted(f"No {n}" for n in range(45))


async def test_chosen_emails_are_canceled_and_each_refusal_is_told(place: Place) -> None:
    async with opened(place) as here:
        team, other = await here.team("Harbor"), await here.team("Quay")
        ada = await logged_in(here, await a_person(team, "ada@four.example"))
        waiting = [await team.send(subject=f"W{n}", scheduled_at="in 3 hours") for n in range(2)]
        gone = await team.send(subject="<i>Gone</i>")
        theirs = await other.send(subject="Theirs", scheduled_at="in 3 hours")
        await ada.get("/dashboard/emails")
        done = await ada.post("/dashboard/emails/cancel", id=waiting[:1])
        assert done.headers["location"] == "/dashboard/emails?done=emails_canceled"
        page = await ada.post("/dashboard/emails/cancel", id=[waiting[1], gone, theirs])
        assert page.status_code == 422
        text = text_of(page)
        assert "2 of 3 chosen emails were left as they are." in text
        assert "Only scheduled emails can be canceled." in text
        assert "Email not found" in text
        assert "Theirs" not in text
        assert "&lt;i&gt;Gone" in page.text
        states = {email["subject"]: email["last_event"] for email in await sent_emails(team)}
        assert (states["W0"], states["W1"]) == ("canceled", "canceled")
        assert (await sent_emails(other))[0]["last_event"] == "scheduled"


async def test_chosen_emails_are_sent_once_more(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@five.example"))
        given: dict[str, Any] = {
            "subject": "Bill", "html": "<p>x</p>", "text": "x", "headers": {"X-Berth": "12"},
            "tags": [{"name": "kind", "value": "bill"}], "cc": ["delivered+cc@pillarbox.test"],
            "attachments": [
                {"filename": "a.txt", "content": "aGk=", "content_type": "text/plain"},
                {"filename": "b.bin", "content": b64encode(bytes(300_000)).decode(), "content_id": "b1"},
            ],
        }  # fmt: skip
        first = await team.send(**given)
        second = await team.send(subject="Plain")
        key = KEY.search((await ada.get("/dashboard/emails")).text)
        assert key is not None
        for _ in range(2):
            done = await resends(ada, [first, second], key=key[1])
            assert done.headers["location"] == "/dashboard/emails?done=emails_resent"
        emails = await sent_emails(team)
        assert sorted(email["subject"] for email in emails) == ["Bill", "Bill", "Plain", "Plain"]
        again = next(email for email in emails if email["subject"] == "Bill")
        assert again["id"] != first
        stored, original = [(await team.get(f"/emails/{one}")).json() for one in (again["id"], first)]
        same = ("from", "to", "cc", "subject", "html", "text", "tags")
        assert [stored[name] for name in same] == [original[name] for name in same]
        files = [await shown_files(team, one) for one in (again["id"], first)]
        assert files[0] == files[1]
        assert [file["size"] for file in files[0]] == [2, 300_000]
        headers = await here.pool.fetch("SELECT headers::text FROM contents WHERE headers IS NOT NULL")
        assert len({row["headers"] for row in headers}) == 1
        assert len(headers) == 2


async def test_sending_again_has_bounded_memory(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """One form of a team at a time; what finds no room in time is not sent."""
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@fivefive.example"))
        first = await team.send(subject="Bill", text="x" * 100)
        copies = here.app.need(email_acts.CopiesInMemory)
        with copies.turn_of(team.id):
            assert (await resends(ada, [first])).status_code == 503
        monkeypatch.setattr(email_acts, "WAIT", 0.1)
        async with copies.room(email_acts.AT_ONCE):
            assert (await resends(ada, [first])).status_code == 503
        assert len(await sent_emails(team)) == 1
        assert (await resends(ada, [first])).status_code == 303
        assert len(await sent_emails(team)) == 2


async def test_an_attachment_that_is_gone_is_not_sent_empty(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        with pytest.raises(Invalid):
            await originals.octets(TeamDb(here.pool, team.id), here.app.need(BlobStore), UUID(int=1))


async def test_what_cannot_be_sent_again_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(place) as here:
        team, other = await here.team("Harbor"), await here.team("Quay")
        ada = await logged_in(here, await a_person(team, "ada@six.example"))
        monkeypatch.setattr(email_acts, "MOST_OCTETS", 1)
        files = [{"filename": "a.txt", "content": "aGk="}]
        attached, plain = await team.send(subject="File", attachments=files), await team.send(subject="Plain")
        copied = await team.send(subject="Copy")
        await here.pool.execute(
            "UPDATE emails SET broadcast_id = $1 WHERE id = $2", UUID(int=1), UUID(copied)
        )
        theirs = await other.send(subject="Theirs")
        page = await resends(ada, [attached, plain, copied, theirs])
        assert page.status_code == 422
        text = text_of(page)
        assert "3 of 4 chosen emails were left as they are." in text
        assert "The attachments have more than" in text
        assert "A copy of a broadcast is not sent again" in text
        assert "Email not found" in text
        assert len(await sent_emails(team)) == 4
        assert len(await sent_emails(other)) == 1


async def test_the_number_of_chosen_emails_is_bounded(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@seven.example"))
        await team.send()
        await ada.get("/dashboard/emails")
        ids = [str(UUID(int=n)) for n in range(101)]
        for path, count in (("cancel", 101), ("resend", 21), ("cancel", 0), ("resend", 0)):
            page = (
                await resends(ada, ids[:count])
                if path == "resend"
                else await ada.post("/dashboard/emails/cancel", id=ids[:count])
            )
            assert page.status_code == 422
            assert ("Choose at most" if count else "Choose at least one") in text_of(page)
        assert (await ada.post("/dashboard/emails/resend", id=ids[:1], key="x")).status_code == 422


async def test_viewers_neither_cancel_nor_send_again(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        vera = await logged_in(here, await a_person(team, "vera@eight.example", TeamRole.VIEWER))
        email_id = await team.send(scheduled_at="in 3 hours")
        page = await vera.get("/dashboard/emails")
        assert 'name="id"' not in page.text
        assert "/dashboard/emails/resend" not in page.text
        for path in ("cancel", "resend"):
            answer = await vera.post(f"/dashboard/emails/{path}", id=[email_id], key=str(UUID(int=1)))
            assert answer.status_code == 403
        [email] = await sent_emails(team)
        assert email["last_event"] == "scheduled"


async def test_mail_to_a_domain_is_found_with_and_without_an_at(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@twelve.example"))
        await team.send(to="ben@quay.example", subject="To the quay")
        await team.send(to="ben@pier.example", subject="To the pier")
        for query in ("quay.example", "@quay.example", "ben@quay.example"):
            assert listed(await ada.get(f"/dashboard/emails?to={query}")) == ["To the quay"]
            file = await ada.get(f"/dashboard/emails/csv?to={query}")
            assert [row["subject"] for row in csv.DictReader(StringIO(file.text))] == ["To the quay"]
        refused = await ada.get("/dashboard/emails?to=ben")
        assert refused.status_code == 422
        assert "neither a whole address nor a domain" in text_of(refused)


async def test_what_is_done_with_chosen_emails_stands_above_the_list(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@thirteen.example"))
        await team.send()
        page = (await ada.get("/dashboard/emails")).text
        assert page.index('data-chosen="# chosen"') < page.index("<table")
        assert page.index("Send the chosen emails again") < page.index("<table")
