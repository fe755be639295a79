"""Mail made of documents: whatever is written in a field, no more than text and safe links come out."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from pillarbox.documents import markdown_text, source
from pillarbox.documents.colors import contrast
from pillarbox.documents.gallery import GALLERY
from pillarbox.documents.gallery_german import GERMAN_GALLERY
from pillarbox.documents.gallery_parts import GalleryTemplate
from pillarbox.documents.rendering import STACK, DocumentRefused, _thread_with_stack, rendered
from pillarbox.documents.safe_html import active_part
from pillarbox.documents.source import document_of
from pillarbox.documents.theme import DEFAULT, Theme, by_day, by_night
from pillarbox.kernel.wire.problems import InvalidField

EVIL = (
    "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{{NAME|<script>alert(2)</script>}}}</mj-text>"
)
BAD_LINKS = (
    "javascript:alert(1)",
    " JaVa\tscript:alert(1)",
    "data:text/html,x",
    "{{{URL|javascript:alert(1)}}}",
    "//harbor.example",
    'https://x" onclick="alert(1)',
)


def everywhere(text: str, link: str) -> dict[str, Any]:
    """A document with this text and this link in each field that has one."""
    return {
        "kind": "blocks",
        "preheader": text,
        "blocks": [
            {"type": "heading", "text": text},
            {"type": "text", "text": f"{text}\n\n[x]({link}) ![x]({link})", "panel": True},
            {"type": "image", "src": link, "alt": text, "href": link},
            {"type": "image", "src": "https://harbor.example/a.png", "alt": text, "href": link},
            {"type": "button", "text": text, "href": link},
            {
                "type": "columns",
                "columns": [[{"type": "text", "text": text}], [{"type": "code", "text": text}]],
            },
            {"type": "quote", "text": text, "by": text},
            {"type": "social", "links": [{"name": text, "href": link}]},
            {"type": "html", "html": f"<p>{text}</p><a href='{link}'>x</a>"},
            {"type": "footer", "text": text, "address": text, "unsubscribe": text},
        ],
    }


@pytest.mark.parametrize("link", BAD_LINKS)
def test_nothing_that_acts_comes_out_of_any_field(link: str) -> None:
    mail = rendered(document_of(everywhere(EVIL, link)), Theme())
    assert active_part(mail.html) is None
    assert "fonts.googleapis.com" not in mail.html
    assert "<script" not in mail.html.lower()
    assert "javascript:" not in re.sub(r"\{\{\{.*?\}\}\}", "", mail.html).lower()


def test_placeholders_survive_in_every_field() -> None:
    fields = everywhere(
        "Hi {{{NAME_OF_IT|Ada *and* Ben}}}", "https://harbor.example/{{{ORDER_1}}}?a=1&b={{{B}}}"
    )
    mail = rendered(document_of(fields), Theme())
    assert mail.html.count("{{{NAME_OF_IT|Ada *and* Ben}}}") >= 12
    assert mail.html.count('"https://harbor.example/{{{ORDER_1}}}?a=1&amp;b={{{B}}}"') >= 6
    assert mail.text is not None
    assert "https://harbor.example/{{{ORDER_1}}}?a=1&b={{{B}}}" in mail.text
    assert "{{{UNSUBSCRIBE_URL}}}" in mail.text
    assert "{{{UNSUBSCRIBE_URL}}}" in mail.html


def test_a_link_may_be_a_placeholder() -> None:
    mail = rendered(document_of({"kind": "markdown", "text": "[Go]({{{URL}}})"}), Theme())
    assert 'href="{{{URL}}}"' in mail.html
    assert "Go ({{{URL}}})" in (mail.text or "")


def test_markdown_has_a_way_out_by_itself_unless_it_has_one() -> None:
    assert (
        rendered(document_of({"kind": "markdown", "text": "Hi"}), DEFAULT).html.count("UNSUBSCRIBE_URL") == 1
    )
    own = {"kind": "markdown", "text": "[Leave]({{{UNSUBSCRIBE_URL}}})"}
    assert rendered(document_of(own), DEFAULT).html.count("UNSUBSCRIBE_URL") == 1


@pytest.mark.parametrize(
    ("mjml", "is_refused"),
    [
        (
            "<mjml><mj-body><mj-section><mj-column><mj-text>Hi</mj-text></mj-column></mj-section></mj-body></mjml>",
            False,
        ),
        ("<mjml><mj-body>" + "<mj-wrapper>" * 4900 + "</mj-wrapper>" * 4900 + "</mj-body></mjml>", False),
        ("<mjml><mj-body>" + "<div>" * 6000 + "</mj-body></mjml>", True),
        ("<mjml><mj-body><!--" + "<!-- --><mj-wrapper>" * 6000 + "</mj-body></mjml>", True),
        ("<mjml><mj-body><mj-text " + "a='1' " * 100 + "/></mj-body></mjml>", True),
        ("<mjml><mj-body><mj-include path='/etc/passwd' /></mj-body></mjml>", True),
        ("<p>no MJML</p>", True),
        ("", True),
    ],
)
def test_mjml_is_bounded(mjml: str, is_refused: bool) -> None:
    def work() -> bool:
        try:
            rendered(document_of({"kind": "mjml", "source": mjml}), DEFAULT)
        except DocumentRefused:
            return True
        return False

    assert _thread_with_stack(STACK).submit(work).result() is is_refused


def refused(fields: dict[str, Any]) -> bool:
    try:
        rendered(document_of(fields), DEFAULT)
    except InvalidField:
        return True
    return False


def test_a_document_of_blocks_is_bounded_as_a_whole() -> None:
    large = [{"type": "html", "html": "<p>x</p>" * 12_000}]
    assert not refused({"kind": "blocks", "blocks": [{"type": "code", "text": "x" * 20_000}]})
    assert refused({"kind": "blocks", "blocks": large * 10})


def test_markdown_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown_text, "MOST_SECONDS", 0.05)
    assert not refused({"kind": "markdown", "text": "Hi *there*"})
    for text in (
        "[" * 20_000,
        "|a" * 100 + "\n" + "|-" * 100 + "\n" + "x\n" * 500 + "\nx\n\nx",
        "*a _a " * 3000,
    ):
        assert refused({"kind": "markdown", "text": text}), text[:10]


def test_loading_the_parser_costs_a_document_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    load = markdown_text._parser.__wrapped__

    @cache
    def loaded_slowly() -> Any:
        ends = time.thread_time() + 0.1
        while time.thread_time() < ends:
            pass
        return load()

    monkeypatch.setattr(markdown_text, "_parser", loaded_slowly)
    monkeypatch.setattr(markdown_text, "MOST_SECONDS", 0.05)
    assert not refused({"kind": "markdown", "text": "Hi *there*"})


def test_the_way_out_of_markdown_has_the_language_of_the_text() -> None:
    mail = rendered(document_of({"kind": "markdown", "text": "Hallo", "language": "de-AT"}), DEFAULT)
    assert ">Abmelden<" in mail.html
    assert "Abmelden: {{{UNSUBSCRIBE_URL}}}" in (mail.text or "")


def test_what_is_kept_counts_only_beside_its_html() -> None:
    document = document_of({"kind": "markdown", "text": "Hi"})
    mail = rendered(document, DEFAULT)
    kept = source.stored(document, mail.html)
    assert source.of_stored(kept, mail.html, mail.text) == document
    assert source.builtins_of(source.of_stored(kept, "<p>Other</p>", None))["kind"] == "html"
    assert source.builtins_of(source.of_stored('{"later": 1}', mail.html, None))["kind"] == "html"


@pytest.mark.parametrize("accent", ["#ffff00", "#000000", "#1f5fd6", "#b3261e", "#ffffff"])
def test_all_texts_can_be_read_by_day_and_by_night(accent: str) -> None:
    theme = Theme(accent=accent)
    for palette in (by_day(theme), by_night(theme)):
        for ink in (palette.text, palette.soft, palette.link):
            assert contrast(ink, palette.card) >= 4.5, (accent, palette)


WORDS = frozenset({"text", "by", "name", "unsubscribe", "address"})
"""Fields of blocks that are in the language of the mail."""


def without_words(part: Any) -> Any:
    """Return a part of a document without the words in it: kinds of blocks, their looks, and links."""
    if isinstance(part, Mapping):
        return {name: without_words(value) for name, value in part.items() if name not in WORDS}
    return [without_words(one) for one in part] if isinstance(part, list) else part


def placeholders_of(template: GalleryTemplate) -> set[str]:
    """Return the names of what a mail of the gallery puts in, without their fallbacks."""
    return set(re.findall(r"\{\{\{([\w.]+)", json.dumps([template.subject, template.document])))


def test_the_gallery_says_the_same_in_both_languages() -> None:
    assert list(GERMAN_GALLERY) == list(GALLERY)
    for name, german in GERMAN_GALLERY.items():
        english = GALLERY[name]
        assert german.name == english.name == name
        assert german.fallbacks.keys() == english.fallbacks.keys(), name
        assert without_words(german.document["blocks"]) == without_words(english.document["blocks"]), name
        assert placeholders_of(german) == placeholders_of(english), name
        assert german.fallbacks.keys() <= placeholders_of(german), name
        links = {key for key in english.fallbacks if key.endswith("_URL")}
        assert [german.fallbacks[key] for key in links] == [english.fallbacks[key] for key in links], name
        assert (english.document["language"], german.document["language"]) == ("en", "de")
        rendered(document_of(german.document), DEFAULT)
