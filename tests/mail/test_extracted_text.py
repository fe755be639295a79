"""What the author of a message wrote, in mails of the programs that people use."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pillarbox.mail.message.extracted_text import LONGEST_TEXT, extracted_text
from pillarbox.mail.quotations import marked_html

CORPUS = Path(__file__).parent / "extracted"


class Case(NamedTuple):
    name: str
    source: str
    expected: str


def cases(name: str) -> list[Case]:
    """The messages of a file: `=== name`, the message, `---`, and what its author wrote."""
    found = []
    for part in (CORPUS / name).read_text(encoding="utf-8").split("=== ")[1:]:
        title, _, rest = part.partition("\n")
        source, _, expected = rest.rpartition("\n---\n")
        found.append(Case(title, source, expected.rstrip("\n")))
    return found


PLAIN, HTML = cases("plain.txt") + cases("kept.txt"), cases("html.txt")
"""`kept.txt`: what people write looks like a signature or like a quotation, and is neither."""


def test_the_corpus_is_large_enough() -> None:
    names = [case.name for case in PLAIN + HTML]
    assert len(PLAIN) + len(HTML) >= 80
    assert len(set(names[: len(PLAIN)])) == len(PLAIN)


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.name)
def test_plain_text(case: Case) -> None:
    assert extracted_text(case.source, None) == case.expected
    # Line ends as they come over the wire make no difference.
    assert extracted_text(case.source.replace("\n", "\r\n"), None) == case.expected


@pytest.mark.parametrize("case", HTML, ids=lambda case: case.name)
def test_html(case: Case) -> None:
    assert extracted_text(None, case.source) == case.expected
    assert extracted_text(" \n", case.source) == case.expected


def test_a_message_without_a_body_has_no_text() -> None:
    assert extracted_text(None, None) is None
    assert extracted_text("", None) == ""


def test_plain_text_goes_before_html() -> None:
    assert extracted_text("Plain.", "<p>Rich.</p>") == "Plain."


@pytest.mark.parametrize(
    "text", ["This message is in HTML format.", "Ihr Programm zeigt kein HTML an.\n\n-- \nAda"]
)
def test_plain_text_that_only_names_the_html_is_not_what_was_written(text: str) -> None:
    assert extracted_text(text, "<p>I want my money back.</p>") == "I want my money back."
    assert extracted_text(text, "<img src='cid:a'>") == extracted_text(text, None)


OUTLOOK = "From: Ann <ann@x.example>\nSent: Monday, March 2, 2026 10:15 AM\nSubject: Broken\n\nIt is broken."


@pytest.mark.parametrize(
    "subject", ["Fwd: Broken", "WG: Broken", "TR : Broken", "転送: Broken", "İlt: Broken"]
)
def test_a_forward_without_a_note_has_the_text_that_it_hands_on(subject: str) -> None:
    html = "<p></p><div id=divRplyFwdMsg>" + OUTLOOK.replace("<", "&lt;").replace("\n", "<br>") + "</div>"
    for found in (extracted_text(OUTLOOK, None, subject), extracted_text(None, html, subject)):
        assert found is not None
        assert found.endswith("It is broken.")
        assert found.startswith("From: Ann")
    assert extracted_text("See below.\n\n" + OUTLOOK, None, subject) == "See below."


def test_a_reply_that_only_quotes_has_no_text() -> None:
    for subject in ("Re: Broken", "Broken", None):
        assert extracted_text(OUTLOOK, None, subject) == ""


def test_html_tells_of_a_quotation_that_plain_text_does_not_show() -> None:
    marked = '<p>New.</p><div id="divRplyFwdMsg">Lähettäjä: Ann</div><p>Old.</p>'
    assert extracted_text("New.\n\nLähettäjä: Ann\n\nOld.", marked) == "New."


@pytest.mark.parametrize(
    "text",
    [
        "> " * 200_000,
        ">\n" * 200_000,
        "On " * 200_000,
        "On 1\n" * 100_000,
        "From: a@b\n" * 100_000,
        "-- \n" * 100_000,
        "Best regards,\n" * 100_000,
        "_" * 400_000,
        "a:\n" * 100_000,
        "\n" * 400_000,
        "-" * 60 + "\n" + ("-" * 60 + "\n") * 5000,
    ],
    ids=[
        "marks",
        "quoted",
        "on",
        "dated",
        "fields",
        "dashes",
        "greetings",
        "rule",
        "colons",
        "blank",
        "rules",
    ],
)
def test_hostile_text_is_read_to_its_bound(text: str) -> None:
    assert len(extracted_text(text, None) or "") <= LONGEST_TEXT


@pytest.mark.parametrize(
    "html",
    [
        "<blockquote>" * 50_000,
        "<blockquote>a</blockquote>" * 20_000,
        "<div class=gmail_quote>" * 30_000,
        "a<br>" * 100_000,
    ],
    ids=["deep quotations", "many quotations", "deep containers", "lines"],
)
def test_hostile_html_is_read_to_its_bound(html: str) -> None:
    assert len(extracted_text(None, html) or "") <= LONGEST_TEXT


def test_many_short_images_cost_no_more_than_their_octets() -> None:
    """The source is longer than what is read of it, so images are taken out first, in one run."""
    html = "<p>Before</p>" + ("data:" * 199 + ") ") * 2000
    tried = 0

    def counted(found: re.Match[str]) -> str:
        nonlocal tried
        tried += 1
        return marked_html.without_long_data(found)

    assert marked_html.DATA.sub(counted, html) == html
    assert tried == 2000


def test_text_behind_large_images_is_read() -> None:
    image = '<img alt="" src="data:image/png;base64,' + "A" * 3_000_000 + '">'
    assert extracted_text(None, f"<p>Before</p>{image}<p>After</p>") == "Before\n\nAfter"


WORDS = st.sampled_from(
    [
        "Hello",
        "yes",
        "On",
        "wrote:",
        "2026",
        "10:15",
        "<a@b.example>",
        ">",
        "-- ",
        "From:",
        "Subject:",
        "Sent:",
        "\n",
        "\n\n",
        ":",
    ]
)


@given(st.lists(WORDS, max_size=60))
@settings(max_examples=150, deadline=None)
def test_nothing_is_added(words: list[str]) -> None:
    """Property: what is extracted stands in the message, line by line and in its order."""
    text = " ".join(words)
    given_lines = iter([line.strip() for line in text.splitlines()])
    for line in (extracted_text(text, None) or "").splitlines():
        assert not line.strip() or any(line.strip() == one for one in given_lines)


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.name)
def test_what_was_extracted_is_extracted_again(case: Case) -> None:
    assert extracted_text(case.expected, None) == case.expected


def test_a_reply_that_quotes_any_message_of_the_corpus_keeps_its_own_words_alone() -> None:
    chance = random.Random(17)
    for case in PLAIN:
        own = chance.choice(["Yes.", "Nein, danke sehr.", "はい、お願いします。"])
        quoted = "\n".join(f"> {line}" for line in case.source.splitlines())
        reply = f"{own}\n\nOn Tue, Mar 3, 2026 at 9:00 AM Bo <bo@quay.example> wrote:\n\n{quoted}\n"
        assert extracted_text(reply, None) == own
