"""Texts of pages in every language: none is missing, and templates have no words of their own."""

from __future__ import annotations

import ast
import inspect
import re
from contextvars import copy_context
from pathlib import Path

import pytest

import pillarbox.dashboard
from pillarbox.dashboard.texts import (
    LANGUAGES,
    NAMES,
    SINGULAR,
    TEXTS,
    reasons,
    sentences,
    t,
    translated,
    use_language,
)
from pillarbox.dashboard.texts.languages import ENGLISH, GERMAN
from pillarbox.dashboard.texts.number_format import FORMATS
from pillarbox.delivery.commands import words
from pillarbox.domains.dns import zone
from pillarbox.emails.insights import rules

TEMPLATES = Path(pillarbox.dashboard.__file__).parent / "templates"
PLACE = re.compile(r"\{([a-z_]+)\}")
OTHERS = [code for code in LANGUAGES if code != ENGLISH]

SAME_IN_GERMAN = frozenset(
    """
    account.passkeys account.sessions.browser account.team audit.person consent.team contact.name
    contact.segment contacts.column.name contacts.column.status facts.broadcasts bulk.segment bulk.status
    segments.name segments.one properties.type.string topics.name docs.body docs.code
    editor.as.example editor.block.code editor.block.html editor.block.text editor.field.href editor.link
    editor.field.html editor.field.links editor.field.text editor.from.example editor.kind.html theme.logo
    editor.kind.markdown editor.kind.mjml editor.source.html editor.source.markdown editor.source.mjml
    editor.view.html gallery.newsletter template.alias template.test.subject template.variable theme.text
    template.variable.string template.version template.version.size templates.name theme.footer
    docs.dashboard docs.kind.format docs.kind.null docs.llms.resource domain.not_checked domain.region
    domain.reputation domain.title domain.tracking domains.name domains.status domains.title email.broadcast
    folder.spam inbox.labels inboxes.domain inboxes.name threads.label_choose threads.spam
    imports.status imports.type.string
    email.by_host email.tags email.text email.webhooks emails.broadcast emails.domain emails.tag
    enrolment.code factor.code invitation.team kind_group.domain limit.most_domains limit.most_webhooks
    logs.status metrics.by.broadcast metrics.by.domain metrics.part navigation.installation navigation.team
    operator.examination.doctor operator.examination.verify operator.glance.blobs operator.glance.facts
    operator.glance.schema operator.glance.teams operator.glance.version operator.level.ok
    operator.level.problem operator.team operator.team.limits operator.teams passkey.name.default
    received.domains received.header received.spam request.body request.operation request.time role.admin
    send.html send.text signature.body source.api source.broadcast source.smtp suppressions.origin.bounce
    team.name team.title unsubscribe_page.text_color verdict.neutral verdict.spam webhook.title
    webhooks.status webhooks.title finding.listener.contact finding.outgoing.greeting finding.outgoing.ok
    finding.python.found finding.return_path.greeting
    broadcasts.title broadcast.title broadcast.name broadcast.segment broadcast.view.links broadcast.bounce
    broadcast.links broadcast.link
    automation.graph automation.segment automation.title automations.name event.name event.schema
    simulation.unit.s
    """.split()  # noqa: SIM905 (a list of keys)
)
"""Texts that German writes as English does: names, and words that both languages share."""

LITERALS = frozenset(
    """
    CSV Cc Ctrl Esc HTML Id JSON Message-ID Pillarbox TLS UTC msg svix-id svix-signature svix-timestamp
    """.split()  # noqa: SIM905 (a list of words)
)
"""Words that every language writes alike."""

ENGLISH_ALONE = ("capture", "docs/", "frame/design.html")
"""Templates in English: mail kept on a developer's machine, the documentation, and the page of all parts."""


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
