"""The catalogue of texts: every key is used, and every use has a key."""

from __future__ import annotations

import re
from pathlib import Path

import pillarbox.dashboard
from pillarbox.dashboard.texts import SINGULAR, TEXTS, examination, sentences, t

FOLDER = Path(pillarbox.dashboard.__file__).parent
KEY = re.compile(r"""["']([a-z_]+(?:\.[a-z_0-9]+)+)["']""")
BEGINNING = re.compile(r"""\bf["']([a-z_]+(?:\.[a-z_0-9]+)*\.)\{""")
JOINED = re.compile(r"""\bt\(\s*["']([a-z_.]+\.)["']\s*~""")
USE = re.compile(r"""\bt\(\s*["']([^"']+)["']\s*[,)]""")
PLACEHOLDER = re.compile(r"\{\{\{[A-Z_]+(?:\|\w+)?\}\}\}")
"""A placeholder of mail, which some texts show."""

PLACE = re.compile(r"\{([a-z_]+)\}")


def sources() -> dict[Path, str]:
    """What may name a text: handlers and templates, not the catalogues themselves."""
    catalogues = {path for path in (FOLDER / "texts").rglob("*.py") if path != FOLDER / "texts/__init__.py"}
    files = {*FOLDER.rglob("*.py"), *FOLDER.rglob("*.html")} - catalogues
    return {path: path.read_text("utf-8") for path in files}


def test_every_use_has_a_text() -> None:
    missing = [
        f"{path.name}: {key}"
        for path, text in sources().items()
        for key in USE.findall(text)
        if key not in TEXTS
    ]
    assert missing == []


def test_every_text_is_used() -> None:
    """By its key, or by the beginning of it where the rest is a state or a kind.

    Sentences that others say are found by their English text, not by a key; tests of theirs compare them.
    """
    everything = "\n".join(sources().values())
    keys = set(KEY.findall(everything))
    beginnings = tuple(BEGINNING.findall(everything) + JOINED.findall(everything))
    recognised = {**sentences.TEXTS, **examination.TEXTS}
    used = [key.removesuffix(SINGULAR) for key in TEXTS if key not in recognised]
    assert [key for key in used if key not in keys and not key.startswith(beginnings)] == []


def test_texts_are_plain_and_their_words_can_be_filled_in() -> None:
    for key, text in TEXTS.items():
        assert text == text.strip(), key
        if key not in examination.TEXTS:  # which say `<address>` for what a person fills in
            assert "<" not in text, f"{key}: a text is no HTML"
        values = dict.fromkeys(PLACE.findall(text), "x")
        assert "{" not in PLACEHOLDER.sub("", t(key, **values)), key
