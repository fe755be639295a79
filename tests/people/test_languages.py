"""Languages of pages: how each writes numbers and times, and who chooses one."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path

import pytest

from kit.people import a_person, heading, logged_in, visit
from kit.world import world
from pillarbox.dashboard import pages
from pillarbox.dashboard.frame import charts, times
from pillarbox.dashboard.texts import (
    language,
    t,
    use_language,
)
from pillarbox.dashboard.texts.languages import GERMAN
from pillarbox.dashboard.texts.number_format import number


@pytest.fixture
def german() -> Iterator[None]:
    use_language(GERMAN, None)
    yield
    use_language(None, None)


# Numbers and times ---------------------------------------------------------------------------------


def test_numbers_and_times_in_english() -> None:
    assert (number(1234), number(1234.56, 2), number(0.5)) == ("1,234", "1,234.56", "0.5")
    assert times.percent(1, 3) == "33.3\N{NO-BREAK SPACE}%"
    assert times.local_text("2026-11-27 14:05:00+00") == "2026-11-27 14:05"
    assert times.utc_text("2026-11-27 14:05:09+00") == "2026-11-27 14:05:09 UTC"
    assert (pages.size(1), pages.size(999), pages.size(1_250_000)) == ("1 byte", "999 bytes", "1.2 MB")
    assert charts._amount(1_500_000) == "1.5 M"


@pytest.mark.usefixtures("german")
def test_numbers_and_times_in_german() -> None:
    assert (number(1234), number(1234.56, 2), number(0.5)) == ("1.234", "1.234,56", "0,5")
    assert number(-1234.5, 2, is_signed=True) == "-1.234,50"
    assert times.percent(1, 3) == "33,3\N{NO-BREAK SPACE}%"
    assert times.local_text("2026-11-27 14:05:00+00") == "27.11.2026, 14:05"
    assert times.utc_text("2026-11-27 14:05:09+00") == "27.11.2026, 14:05:09 UTC"
    assert times.local_day("2026-11-27 14:05:00+00") == "27.11.2026"
    assert times.period_text("2026-11-27") == "27.11.2026"
    assert times.period_text("2026-11-27T14:00:00.000Z") == "27.11.2026, 14:00"
    assert (pages.size(1), pages.size(999), pages.size(1_250_000)) == ("1 Byte", "999 Byte", "1,2 MB")
    assert (charts._amount(1_500_000), charts._amount(12_000)) == ("1,5 Mio.", "12 Tsd.")
    assert t("suppressions.too_many", count=1200).startswith("Das sind 1.200 Adressen")


# The choice ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "accepted", "used"),
    [
        (None, None, "en"),
        (None, "de-AT,de;q=0.9,en;q=0.8", "de"),
        (None, "fr, en;q=0.4, de;q=0.7", "de"),
        (None, "de;q=0, en", "en"),
        ("en", "de", "en"),
        ("de", "en", "de"),
        ("xx", "de", "de"),
        (None, "de;q=x, ,;;", "en"),
    ],
)
def test_the_chosen_language_goes_before_that_of_the_browser(
    chosen: str | None, accepted: str | None, used: str
) -> None:
    def use() -> str:
        use_language(chosen, accepted)
        return language()

    assert copy_context().run(use) == used


async def test_guests_and_people_choose_the_language(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as here:
        guest = visit(here)
        german = {"accept-language": "de-DE,de;q=0.9"}
        page = await guest.get("/login", **german)
        assert heading(page) == "Anmelden"
        assert '<html lang="de">' in page.text
        chosen = await guest.post(
            "/language",
            {"sec-fetch-site": "same-origin", "referer": f"{here.url}/login?to=/team"},
            language="en",
        )
        assert (chosen.status_code, chosen.headers["location"]) == (303, "/login?to=/team")
        assert heading(await guest.get("/login", **german)) == "Log in"
        ada = await a_person(await here.team(), "ada@quay.example")
        browser = await logged_in(here, ada)
        assert heading(await browser.get("/account", **german)) == "Ihr Konto"
        assert "As the browser asks" in (await browser.get("/account")).text
        await browser.post("/language", language="de")
        assert heading(await browser.get("/account")) == "Ihr Konto"
        await browser.post("/language", language="")
        assert heading(await browser.get("/account")) == "Your account"


async def test_a_choice_leads_to_no_other_site_and_needs_the_form(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as here:
        guest = visit(here)
        await guest.get("/login")
        away = {"sec-fetch-site": "same-origin", "referer": "https://elsewhere.example//evil.example/x"}
        assert (await guest.post("/language", away, language="de")).headers["location"] == "/"
        foreign = await guest.post("/language", {"sec-fetch-site": "cross-site"}, language="en")
        assert foreign.status_code == 403
        guest.csrf = "another"
        assert (await guest.post("/language", language="en")).status_code == 403


async def test_pages_that_are_not_there_speak_the_language(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as here:
        headers = {"accept": "text/html", "accept-language": "de"}
        stranger = visit(here)
        for path, said in (
            ("/team/nothing", "Diese Seite gibt es nicht"),
            ("/shared?token=x", "Hinter diesem Link ist nichts"),
            ("/unsubscribe/x", "Hinter diesem Link ist nichts"),
            ("/t/c/x", "Hinter diesem Link ist nichts"),
        ):
            page = await stranger.get(path, **headers)
            assert said in page.text, path
            assert '<html lang="de">' in page.text, path
