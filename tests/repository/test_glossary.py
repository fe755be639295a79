"""Names of modules and classes are words of the field, or terms that docs/glossary.md explains."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from kit.sources import nodes_of

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
GLOSSARY = ROOT / "docs" / "glossary.md"
FIELD_WORDS = Path(__file__).with_name("field_words.txt")

TERM = re.compile(r"^\*\*(?P<term>[^*]+)\*\* — (?P<meaning>\S.*)$")
CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")

BANNED = """
    asker asking authorities bell carrier carriers census desk door doors ear enclosure enclosures exchange
    familiar figure figures finding findings gathering given house lane lanes looker looking neighbour
    neighbours nursery pace parcel parcels passes posts reach register room round rounds seams sheet sheets
    sighting sightings silence tallies tally telling together way ways workshop
"""
METAPHORS = frozenset(BANNED.split())
"""Words that named parts here once and told a stranger nothing; they stay out, whatever the lists say."""


def terms() -> list[str]:
    return [match["term"] for line in GLOSSARY.read_text().splitlines() if (match := TERM.match(line))]


def explained_words() -> set[str]:
    """Every word of a term of the glossary, and its plural."""
    words = {word for term in terms() for word in re.split(r"[ -]", term.lower())}
    return words | {f"{word}s" for word in words}


def field_words() -> list[str]:
    return FIELD_WORDS.read_text().split()


def modules() -> Iterator[Path]:
    return (path for path in sorted(SOURCE.rglob("*.py")) if path.name != "__main__.py")


def words_of_module(path: Path) -> list[str]:
    """The words of the last segment: of the file, or of the folder where the file is `__init__`."""
    name = path.parent.name if path.stem == "__init__" else path.stem
    return [word for word in name.split("_") if word]


def words_of_class(name: str) -> list[str]:
    return [word.lower() for word in CAMEL.findall(name)]


def report(offenders: list[str]) -> None:
    assert not offenders, f"{len(offenders)} offenders:\n" + "\n".join(offenders)


def test_every_word_of_a_module_name_is_known() -> None:
    known = (explained_words() | {*field_words()}) - METAPHORS
    report(
        [
            f"{path.relative_to(SOURCE)}: {word}"
            for path in modules()
            for word in words_of_module(path)
            if word not in known
        ]
    )


def test_no_class_is_named_by_a_metaphor() -> None:
    report(
        [
            f"{path.relative_to(SOURCE)}:{node.lineno}: {node.name}"
            for path in modules()
            for node in nodes_of(path)
            if isinstance(node, ast.ClassDef) and METAPHORS & set(words_of_class(node.name))
        ]
    )


def test_the_lists_of_words_hold_no_metaphor_and_nothing_twice() -> None:
    assert field_words() == sorted(set(field_words())), "field_words.txt: sorted, each word once"
    names = [term.casefold() for term in terms()]
    assert names == sorted(set(names)), "docs/glossary.md: sorted, each term once"
    assert not METAPHORS & {*explained_words(), *field_words()}
    assert not explained_words() & {*field_words()}, "in the glossary, so not in field_words.txt"


def test_every_field_word_is_used() -> None:
    used = {word for path in modules() for word in words_of_module(path)}
    report([f"field_words.txt: {word}" for word in field_words() if word not in used])


def test_every_line_of_the_glossary_is_a_term_with_a_meaning() -> None:
    head, _, body = GLOSSARY.read_text().partition("\n**")
    report([line for line in ("**" + body).splitlines() if line and not TERM.match(line)])
    assert head.startswith("# Glossary")


def test_names_are_cut_into_words() -> None:
    assert words_of_class("SmtpDoors") == ["smtp", "doors"]
    assert words_of_class("_HTTPServer2") == ["http", "server2"]
    assert words_of_module(Path("mail/smtp/__init__.py")) == ["smtp"]
    assert words_of_module(Path("kernel/http/request_cycle.py")) == ["request", "cycle"]
