"""Languages of pages: each has every text, and the choice of one."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path

import pytest

import pillarbox.dashboard
from kit.people import a_person, heading, logged_in, visit
from kit.world import world
from pillarbox.dashboard import pages
from pillarbox.dashboard.frame import charts, times
from pillarbox.dashboard.texts import (
    LANGUAGES,
    NAMES,
    SINGULAR,
    TEXTS,
    language,
    reasons,
    sentences,
    t,
    translated,
    use_language,
)
from pillarbox.dashboard.texts.languages import ENGLISH, GERMAN
from pillarbox.dashboard.texts.number_format import FORMATS, number
from pillarbox.delivery.commands import words
from pillarbox.domains.dns import zone
from pillarbox.emails.insights import rules

TEMPLATES = Path(pillarbox.dashboard.__file__).parent / "templates"
PLACE = re.compile(r"\{([a-z_]+)\}")
OTHERS = [code for code in LANGUAGES if code != ENGLISH]

SAME_IN_GERMAN = frozenset(
    """
    account.passkeys account.sessions.browser account.team audit.person consent.team docs.body docs.code
    docs.dashboard docs.kind.format docs.kind.null docs.llms.resource domain.not_checked domain.region
    domain.reputation domain.title domain.tracking domains.name domains.status domains.title email.broadcast
    email.by_host email.tags email.text email.webhooks emails.broadcast emails.domain emails.tag
    enrolment.code factor.code invitation.team kind_group.domain limit.most_domains limit.most_webhooks
    logs.status metrics.by.broadcast metrics.by.domain metrics.part navigation.installation navigation.team
    operator.examination.doctor operator.examination.verify operator.glance.blobs operator.glance.facts
    operator.glance.schema operator.glance.teams operator.glance.version operator.level.ok
    operator.level.problem operator.team operator.team.limits operator.teams passkey.name.default
    received.domains received.header received.spam request.body request.operation request.time role.admin
    send.html send.text signature.body source.api source.broadcast source.smtp suppressions.origin.bounce
    team.name team.title unsubscribe_page.text_color verdict.neutral verdict.spam webhook.title
    webhooks.status webhooks.title
    """.split()  # noqa: SIM905 (a list of keys)
)
"""Texts that German writes as English does: names, and words that both languages share."""

LITERALS = frozenset(
    """
    CSV Cc Ctrl Esc HTML Id Message-ID Pillarbox TLS UTC msg svix-id svix-signature svix-timestamp
    """.split()  # noqa: SIM905 (a list of words)
)
"""Words that every language writes alike."""

ENGLISH_ALONE = ("capture", "docs/", "frame/design.html")
"""Templates in English: mail kept on a developer's machine, the documentation, and the page of all parts."""


@pytest.fixture
def german() -> Iterator[None]:
    use_language(GERMAN, None)
    yield
    use_language(None, None)


# Catalogues ----------------------------------------------------------------------------------------


def test_each_language_has_a_name_a_format_and_every_text() -> None:
    assert list(LANGUAGES) == list(NAMES) == list(FORMATS)
    for code in OTHERS:
        assert [key for key in TEXTS if key not in LANGUAGES[code]] == [], code
        assert [key for key in LANGUAGES[code] if key not in TEXTS] == [], code


@pytest.mark.parametrize("code", OTHERS)
def test_texts_of_a_language_have_the_same_places(code: str) -> None:
    for key, text in LANGUAGES[code].items():
        assert text, key
        assert text == text.strip(), key
        assert "<" not in text, key
        if not key.endswith(SINGULAR):
            assert sorted(PLACE.findall(text)) == sorted(PLACE.findall(TEXTS[key])), key


def test_german_texts_are_german() -> None:
    """What is written as in English is in a list that somebody has read, and addresses are formal."""
    own = LANGUAGES[GERMAN]
    same = {key for key, text in own.items() if text == TEXTS[key] and re.search("[A-Za-z]", text)}
    assert sorted(same - SAME_IN_GERMAN) == []
    informal = re.compile(r"\b([Dd]u|[Dd]ir|[Dd]ich|[Dd]ein(e[mnrs]?)?)\b")
    assert [key for key, text in own.items() if informal.search(text)] == []
    assert [key for key, text in own.items() if re.search("[“][^„]*”|'", text)] == []


def test_a_count_of_one_has_its_own_text_where_there_is_one() -> None:
    for key in TEXTS:
        if key.endswith(SINGULAR):
            assert "{count}" in TEXTS[key.removesuffix(SINGULAR)], key
    assert t("email.passed", count=1) == "One check passed"
    assert t("email.passed", count=12) == "12 checks passed"


def test_sentences_of_the_api_are_said_in_the_language_with_their_values() -> None:
    english = "The record stands at a.b.example instead of b.example."

    def say(sentence: str) -> str:
        use_language(GERMAN, None)
        return translated(sentence)

    assert translated(english) == english
    assert copy_context().run(say, english) == "Der Eintrag steht unter a.b.example statt unter b.example."
    assert copy_context().run(say, "Nobody knows this sentence.") == "Nobody knows this sentence."
    for key, text in {**sentences.TEXTS, **reasons.TEXTS}.items():
        values = {name: f"<{name} {{x}}>" for name in PLACE.findall(text)}
        said = copy_context().run(say, text.format(**values))
        assert said == LANGUAGES[GERMAN][key].format(**values), key


def test_sentences_of_insights_and_queues_are_those_that_are_said() -> None:
    """Each piece of a text stands in the source of the module that says it."""
    for module, beginning in ((rules, "insight."), (words, "waiting."), (zone, "record_note.")):
        constants = {
            node.value
            for node in ast.walk(ast.parse(inspect.getsource(module)))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        for key, text in sentences.TEXTS.items():
            if key.startswith(beginning):
                pieces = [piece.strip() for piece in re.split(r"{\w+}| images have", text) if len(piece) > 3]
                missing = [piece for piece in pieces if not any(piece in constant for constant in constants)]
                assert missing == [], key


# Templates -----------------------------------------------------------------------------------------


def literal_words(source: str) -> list[str]:
    """Return the words of a template that stand between tags or in texts of them, outside of expressions."""
    source = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}", " ", source, flags=re.DOTALL)
    source = re.sub(r"<!.*?>|<(style|script)\b.*?</\1>", " ", source, flags=re.DOTALL)
    attributes = re.findall(r'\b(?:title|placeholder|aria-label|alt)="([^"]*)"', source)
    text = re.sub(r"<[^<>]*>|[a-z-]+=\"[^\"]*\"", " ", source)
    return re.findall(r"[A-Za-z][A-Za-z-]+", re.sub(r"&#?\w+;", " ", " ".join([text, *attributes])))


def test_templates_have_no_words_of_their_own() -> None:
    found = {}
    for path in sorted(TEMPLATES.rglob("*.html")):
        name = str(path.relative_to(TEMPLATES))
        if not name.startswith(ENGLISH_ALONE):
            words = [word for word in literal_words(path.read_text("utf-8")) if word not in LITERALS]
            if words:
                found[name] = words
    assert found == {}


def test_a_literal_word_in_a_template_is_found() -> None:
    assert literal_words('<p title="Two">{{ t("a.b") }} Three</p>') == ["Three", "Two"]
    assert literal_words("<p>{% if one %}{{ two }}{% endif %}</p>") == []


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
