"""Every screen in German: none shows an English text of the catalogue."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from kit.people import an_operator, logged_in
from kit.screens import address_of, some_domains, some_mail, table
from kit.world import world
from pillarbox.dashboard.texts import LANGUAGES, TEXTS
from pillarbox.dashboard.texts.languages import GERMAN

SCREENS = [screen for screen in table() if not screen.path.endswith(("/html", "/csv"))]
UNREAD = frozenset({"script", "style", "code", "pre", "textarea", "bdi"})
"""Elements with code, or with what others wrote."""

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
ATTRIBUTES = frozenset({"aria-label", "title", "placeholder", "alt"})
IN_ENGLISH = frozenset({"/design"})
"""The page with all parts of screens is written in English; it is for whoever builds screens."""


class PageTexts(HTMLParser):
    """Collects the texts that a page shows, without code, what others wrote, and what is marked English."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.language: str | None = None
        self._unread = 0
        self._english: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if self._english or (given.get("lang") == "en" and tag != "html"):
            if tag not in VOID:
                self._english.append(tag)
            return
        if tag in UNREAD:
            self._unread += 1
        if tag == "html":
            self.language = given.get("lang")
        self.texts += [value for name, value in attrs if name in ATTRIBUTES and value]

    def handle_endtag(self, tag: str) -> None:
        if self._english:
            self._english.pop()
        elif tag in UNREAD:
            self._unread -= 1

    def handle_data(self, data: str) -> None:
        if (text := " ".join(data.split())) and not (self._unread or self._english):
            self.texts.append(text)


def read(html: str) -> PageTexts:
    page = PageTexts()
    page.feed(html)
    return page


def patterns(texts: dict[str, str]) -> re.Pattern[str]:
    """Return what fits exactly the texts, with anything in place of the words in braces."""
    parts = (re.sub(r"\\{[a-z_]+\\}", ".+", re.escape(text)) for text in texts.values())
    return re.compile("|".join(sorted(parts)))


ENGLISH_ALONE = patterns(
    {
        key: text
        for key, text in TEXTS.items()
        if text not in LANGUAGES[GERMAN].values() and re.search("[A-Za-z]{3}", re.sub(r"{\w+}", "", text))
    }
)


def english_texts(page: PageTexts) -> list[str]:
    return [text for text in page.texts if ENGLISH_ALONE.fullmatch(text)]


def test_an_english_text_is_found() -> None:
    page = read('<html lang="de"><p title="Save">Löschen</p><p>12 checks passed</p><bdi>Delete</bdi>')
    assert english_texts(page) == ["Save", "12 checks passed"]


async def test_every_screen_is_german_for_a_german_reader(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as here:
        team = await here.team("Harbor")
        await some_mail(team)
        await some_domains(team)
        browser = await logged_in(here, await an_operator(team, "ada@harbor.example"))
        found = {}
        for screen in SCREENS:
            answer = await browser.get(await address_of(screen, team), **{"accept-language": "de"})
            page = read(answer.text)
            assert page.language == GERMAN, (screen.path, answer.status_code)
            if screen.path not in IN_ENGLISH and (texts := english_texts(page)):
                found[screen.path] = texts
        assert found == {}
