"""Every sentence of `doctor` and `verify` has a text in each language, also one that no test brings about."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from types import ModuleType
from uuid import UUID

import pytest

from pillarbox.application import SLICES
from pillarbox.dashboard.installation import glance
from pillarbox.dashboard.installation.check_sentences import SaidText, said, said_gap
from pillarbox.dashboard.texts import LANGUAGES, use_language
from pillarbox.dashboard.texts.examination import checks as findings
from pillarbox.dashboard.texts.examination import verification as gaps
from pillarbox.dashboard.texts.languages import ENGLISH, GERMAN
from pillarbox.delivery.smtp import relay_faults
from pillarbox.doctor import (
    backups,
    checks,
    clocks,
    examination,
    examination_runs,
    listeners,
    login_provider,
    machine,
    naming,
    outside,
    outward,
    own_certificate,
    reputation,
    shared_state,
    verification,
)
from pillarbox.emails.integrity import blob_references, reconcile
from pillarbox.kernel.security import certificates, ring_check
from pillarbox.kernel.security.sealed_values import SealedColumn, UnreadableValue
from pillarbox.kernel.storage import backend, bucket, folder, store_check
from pillarbox.people.openid import provider, provider_document

SOURCES = (
    backups,
    checks,
    clocks,
    examination,
    listeners,
    login_provider,
    machine,
    naming,
    outside,
    outward,
    own_certificate,
    relay_faults,
    reputation,
    shared_state,
)
"""The modules whose sentences are findings."""

QUOTED = (certificates, ring_check, backend, bucket, folder, provider, provider_document, store_check)
"""Modules with sentences that findings quote, and with others."""

SEALED = [column for one in SLICES for column in one.sealed]

PLACE = re.compile(r"{[^{}]*}")
FIELD = re.compile(r"{(\w+)[^{}]*}")
"""A value in the sentence of an invariant, with its format."""
UNSHOWN = re.compile(r"(?i:expected|wanted)|^name$|_ERROR|TABLE")
"""Names of variables and arguments whose texts the dashboard does not show."""

OF_DOMAINS = ("it does not answer in TLS", "it does not speak TLS", "its certificate is not valid: {}")
"""What is said of the tracking host of a domain, which the command alone looks at."""


def sentences_of(source: str) -> Iterator[str]:
    """Return the texts of several words that a module says, with `{}` in place of values."""
    tree = ast.parse(source)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        elif isinstance(node, ast.keyword) and UNSHOWN.search(node.arg or ""):
            skipped.update(ast.walk(node.value))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            skipped.update(_unshown(node))
        elif isinstance(node, ast.JoinedStr) and node not in skipped:
            skipped.update(set(ast.walk(node)) - {node} - set(_texts_within(node)))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = PLACE.sub("{}", node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            text = PLACE.sub("{}", "".join(map(str, parts)))
        if re.search(r"[a-z]{2,} |[a-z}:] [a-z]", text):
            yield text


def _unshown(node: ast.Assign | ast.AnnAssign) -> Iterator[ast.AST]:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    pairs = [(target, node.value)]
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        pairs = list(zip(target.elts, node.value.elts, strict=True))
    for name, value in pairs:
        if isinstance(name, ast.Name) and value is not None and UNSHOWN.search(name.id):
            yield from ast.walk(value)


def _texts_within(node: ast.JoinedStr) -> Iterator[ast.AST]:
    """Return the texts that are chosen between within a value of the text."""
    for value in ast.walk(node):
        if isinstance(value, ast.IfExp):
            yield from (value.body, value.orelse)


def pieces(text: str) -> list[str]:
    """Return the words of a text between its values."""
    return [
        piece
        for piece in (part.strip(" .;:,()") for part in text.split("{}"))
        if re.search("[a-z]{2}", piece)
    ]


KNOWN = [PLACE.sub("{}", text) for text in findings.TEXTS.values()]


def is_known(text: str, texts: Sequence[str] = KNOWN) -> bool:
    """Return whether one text of the catalogue has all words of this one."""
    return any(all(piece in known for piece in pieces(text)) for known in texts)


@pytest.mark.parametrize("module", SOURCES)
def test_every_sentence_of_a_finding_has_a_text(module: ModuleType) -> None:
    unknown = [text for text in sentences_of(inspect.getsource(module)) if not is_known(text)]
    assert [text for text in unknown if text not in OF_DOMAINS] == []


def test_a_sentence_without_a_text_is_found() -> None:
    source = 'x = Check(name="a b c", title=f"The {port} is painted blue", found="none", expected="the sky")'
    assert [text for text in sentences_of(source) if not is_known(text)] == ["The {} is painted blue"]


def test_texts_of_findings_are_those_that_are_said() -> None:
    """Each piece of a text stands in the source of a module that says it, so none is out of date."""
    sources = [inspect.getsource(module) for module in (*SOURCES, *QUOTED, examination_runs, glance)]
    said_here = [
        PLACE.sub("{}", node.value)
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    said_here += [text for column in SEALED for text in (column.sentence, column.cure)]
    everything = " ".join(PLACE.sub("{}", text) for text in said_here)
    missing = {
        key: piece
        for key, text in findings.TEXTS.items()
        for piece in pieces(PLACE.sub("{}", text))
        if not is_joined(piece.split(), everything)
    }
    assert missing == {}


def is_joined(words: list[str], source: str, most: int = 3) -> bool:
    """Return whether the words are a few runs of words of the source, one behind the other."""
    for _ in range(most):
        length = next((n for n in range(len(words), 0, -1) if " ".join(words[:n]) in source), 0)
        words = words[length:]
    return not words


def in_german(name: str, sentence: str, say: Callable[[str, str], SaidText] = said) -> SaidText:
    def answer() -> SaidText:
        use_language(GERMAN, None)
        return say(name, sentence)

    return copy_context().run(answer)


def test_findings_are_said_in_german_with_their_values() -> None:
    for key, text in findings.TEXTS.items():
        check = key.split(".")[1]
        values = {
            name: "7" if name.startswith("number") else f"<{name}>" for name in re.findall(r"{(\w+)}", text)
        }
        if check != "part":
            expected = SaidText(LANGUAGES[GERMAN][key].format(**values))
            assert in_german(check, text.format(**values)) == expected, key


def test_a_finding_with_parts_and_numbers_is_said_in_german() -> None:
    listener = in_german("listener.smtp", "0.0.0.0:25: nothing listens there")
    assert listener == SaidText("0.0.0.0:25: dort lauscht kein Programm")
    disk = in_german("disk", "12,345 MiB free for /srv/mail")
    assert disk == SaidText("12.345 MiB frei für /srv/mail")
    last = in_german("clock.jumps", "2 in 7 days, the last to 2026-11-27 14:05:00 UTC by +1,234 s")
    assert last == SaidText("2 in 7 Tagen, zuletzt um +1.234 s auf 27.11.2026 14:05:00 UTC")
    refused = (
        "The key ring of --secret-key is not the one of this database: it has another key a and the key b, "
        "and the secrets in the database need the keys a and c; put the x of a machine that works on this "
        "database, or of its backup, there or give its text with --secret-key (docs/guide/backup.md says "
        "what to do where it is lost)."
    )
    step = in_german("key_ring", refused).text
    assert "Er hat einen anderen Schlüssel a und den Schlüssel b, und" in step
    assert "brauchen die Schlüssel a und c; legen Sie x eines" in step


def unreadable(column: SealedColumn, key_id: str | None) -> UnreadableValue:
    return UnreadableValue(column=column, team_id=UUID(int=1), id=UUID(int=2), owner="someone", key_id=key_id)


def test_each_sealed_value_that_cannot_be_opened_is_said_in_german() -> None:
    for column in SEALED:
        for key_id in (None, "k1"):
            value = unreadable(column, key_id)
            step = in_german("key_ring.secret", value.sentence)
            assert step.language is None, value.sentence
            for text in (column.sentence, column.cure):
                assert text.format(owner="someone", id=UUID(int=2)) not in step.text, step.text


# Gaps ----------------------------------------------------------------------------------------------


GAPS = {f"gap.{one.name}": FIELD.sub(r"{\1}", one.sentence) for part in SLICES for one in part.invariants}


def test_the_sentence_of_every_invariant_has_a_text() -> None:
    assert {key: text for key, text in GAPS.items() if gaps.TEXTS.get(key) != text} == {}


def test_every_other_gap_has_a_text() -> None:
    known = [PLACE.sub("{}", text) for key, text in gaps.TEXTS.items() if key not in GAPS]
    for module in (reconcile, blob_references, verification):
        said_there = [text for text in sentences_of(inspect.getsource(module)) if text.endswith(".")]
        assert [text for text in said_there if not is_known(text, known)] == []


def test_gaps_are_said_in_german_with_their_values() -> None:
    for key, text in gaps.TEXTS.items():
        values = {name: f"<{name}>" for name in re.findall(r"{(\w+)}", text)}
        expected = SaidText(LANGUAGES[GERMAN][key].format(**values))
        name = key.split(".")[1]
        assert in_german(name, text.format(**values), said_gap) == expected, key


def test_the_gap_of_a_secret_is_said_in_german() -> None:
    value = unreadable(SEALED[0], None)
    assert in_german("secret_unreadable", value.sentence, said_gap).language is None
    assert in_german("any_gap", "The post is late.", said_gap) == SaidText("The post is late.", ENGLISH)


def test_a_sentence_of_another_release_stays_english() -> None:
    assert in_german("disk", "The disk hums.") == SaidText("The disk hums.", ENGLISH)
    assert in_german("", "There is room on the disk") == SaidText("There is room on the disk", ENGLISH)
    assert said("disk", "The disk hums.") == SaidText("The disk hums.")
