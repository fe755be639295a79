"""Searching against a straightforward implementation, over 2,000 messages in several languages."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.inbox_rows import BEGAN
from kit.searched_inboxes import Mail, SearchedInbox, searched_world
from pillarbox.emails.search import terms
from pillarbox.kernel.wire.instants import iso_style

slow_words = cache(terms.words)
OPERATORS = ("AND", "OR", "NOT")
"""Words that a query refuses when they are written so."""

MESSAGES = 2000
SEED = 17

DESCRIBED = 1700
"""After each hundred of so many messages those that are there are described."""

UNDESCRIBED = """
    SELECT count(*) FROM inbox_messages m JOIN inboxes i USING (team_id)
     WHERE m.team_id = $1 AND i.id = m.inbox_id AND m.id > i.described_to
"""

LATE = "SELECT count(*) FROM inbox_search_late WHERE team_id = $1"

TALK = {
    "en": "refund order invoice the and of your shipping harbor Harbor's re-send 88 later thanks don't ship",
    "de": "Rückerstattung Rechnung Größe Straße der die und nicht Bestellung ÜBER über Maß groß Nr.7 heiß",
    "fr": "remboursement facture été l'été déjà œuvre commande où ça naïve très",
    "hi": "धन्यवाद आदेश चालान हिन्दी",
    "ru": "Возврат заказ счёт ещё ЗАКАЗ",
    "ja": "返金 請求書 注文 お願いします ありがとう カタカナ ﾊﾝｶｸ １２３",
    "th": "คืนเงิน ใบแจ้งหนี้ คำสั่งซื้อ ขอบคุณ",
}
UNSPACED = {"ja", "th"}
NAMES = ("Iris Vale", "Øyvind Ås", "Mina", "José Núñez", "山田 太郎", "O'Brien", "Élodie")
HOSTS = ("customer.example", "quay.example", "pier.example", "xn--mller-kva.example")
FILES = ("invoice.pdf", "Größe_2.png", "請求書.pdf", "a b-c.txt", "REPORT-88.csv")
FOLDERS = ("inbox", "archive", "spam", "trash")


def sentence(dice: random.Random, language: str) -> str:
    vocabulary = TALK[language].split()
    chosen = dice.choices(vocabulary, k=dice.randint(1, 14))
    return ("" if language in UNSPACED else dice.choice((" ", ", ", "\n"))).join(chosen)


def person(dice: random.Random) -> str:
    name = dice.choice(NAMES)
    address = f"{dice.choice(('iris', 'ops', 'mina.v', 'o_b'))}@{dice.choice(HOSTS)}"
    return f"{name} <{address}>" if dice.random() < 0.7 else address


def a_mail(dice: random.Random, number: int) -> Mail:
    language = dice.choice(list(TALK))
    return Mail(
        subject=sentence(dice, language)[:60] if dice.random() < 0.9 else None,
        text="\n".join(sentence(dice, dice.choice((language, "en"))) for _ in range(dice.randint(1, 4))),
        sender=person(dice),
        to=[person(dice) for _ in range(dice.randint(1, 2))],
        cc=[person(dice) for _ in range(dice.randint(0, 2))],
        bcc=[person(dice)] if dice.random() < 0.1 else [],
        files=dice.sample(FILES, k=dice.choice((0, 0, 0, 1, 2))),
        at=BEGAN + timedelta(minutes=7 * number + dice.randint(0, 30)),
        is_inbound=dice.random() < 0.8,
    )


@dataclass
class Reference:
    """Every message is looked at for every question."""

    mails: list[Mail]
    folder: dict[Any, str] = field(default_factory=dict)
    changed: dict[Any, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for mail in self.mails:
            known = self.changed.get(mail.thread_id, BEGAN)
            self.changed[mail.thread_id] = max(known, mail.at)

    def matches(self, mail: Mail, asked: dict[str, Any]) -> bool:
        people = {"from": [mail.sender], "to": mail.to, "cc": mail.cc, "bcc": mail.bcc}
        if any(
            not any(value.casefold() in text.casefold() for value in asked[name].split(",") for text in texts)
            for name, texts in people.items()
            if name in asked
        ):
            return False
        if "has_attachment" in asked and asked["has_attachment"] != ("true" if mail.files else "false"):
            return False
        if "start_date" in asked and iso_style(mail.at)[:10] < asked["start_date"]:
            return False
        if "end_date" in asked and iso_style(mail.at)[:10] > asked["end_date"]:
            return False
        texts = [
            mail.subject or "",
            mail.sender,
            "\n".join((*mail.to, *mail.cc, *mail.bcc)),
            "\n".join(mail.files),
            mail.text,
        ]
        fields = [slow_words(text) for text in texts]
        return all(
            any(follow(item, one) for one in fields) is wanted
            for item, wanted in items(asked.get("query", ""))
        )

    def threads(self, asked: dict[str, Any]) -> list[tuple[str, set[str]]]:
        """The threads in the order of the list, each with the messages that fit."""
        folders = asked.get("folders", "inbox").split(",")
        found: dict[Any, set[str]] = {}
        for mail in self.mails:
            folder = self.folder[mail.thread_id]
            sent = "sent" in folders and not mail.is_inbound and folder not in ("spam", "trash")
            if (sent or folder in set(folders) - {"sent"}) and self.matches(mail, asked):
                found.setdefault(mail.thread_id, set()).add(str(mail.id))
        order = sorted(found, key=lambda thread: (self.changed[thread], thread), reverse=True)
        return [(str(thread), found[thread]) for thread in order]


def follow(item: list[str], words: list[str]) -> bool:
    return any(words[at : at + len(item)] == item for at in range(len(words)))


def items(query: str) -> list[tuple[list[str], bool]]:
    """The words and phrases of a query as this test writes them: apart by blanks, phrases without a minus
    inside."""
    found = []
    before = ""
    for place, piece in enumerate(query.split('"')):
        if place % 2:
            found.append((slow_words(piece), not before.endswith("-")))
        else:
            before = piece
            for word in piece.split():
                if word != "-":
                    found.append((slow_words(word.removeprefix("-")), not word.startswith("-")))
    return [(words, wanted) for words, wanted in found if words]


@asynccontextmanager
async def filled(database_url: str, folder: Path) -> AsyncIterator[tuple[SearchedInbox, Reference]]:
    """The messages, of which blocks describe most."""
    dice = random.Random(SEED)
    async with searched_world(database_url, folder) as inbox:
        mails = [a_mail(dice, number) for number in range(MESSAGES)]
        described = 0
        for at in range(0, MESSAGES, 100):
            some = mails[at : at + 100]
            for mail in some:
                if at and dice.random() < 0.3:
                    earlier = dice.choice(mails[:at])
                    # Mail that is sent names its thread, what comes in the message that it answers.
                    mail.thread = earlier.id if mail.is_inbound else earlier.thread_id
            await inbox.add(*some)
            if at < DESCRIBED:
                described += await inbox.describe(worth=60, together=4)
        assert described > 15
        assert await inbox.inbox.team.db.value(UNDESCRIBED) > 100
        assert await inbox.inbox.team.db.value(LATE) > 0
        reference = Reference(mails)
        rows = await inbox.inbox.team.world.pool.fetch("SELECT id, received_at FROM inbox_threads")
        assert {row["id"]: row["received_at"] for row in rows} == reference.changed
        for thread in sorted(reference.changed):
            if dice.random() < 0.3:
                mail = next(mail for mail in mails if mail.thread_id == thread)
                await inbox.move(mail, dice.choice(FOLDERS))
        rows = await inbox.inbox.team.world.pool.fetch("SELECT id, folder FROM inbox_threads")
        reference.folder = {row["id"]: row["folder"] for row in rows}
        yield inbox, reference


WORDS = [word for text in TALK.values() for word in text.split()]


@st.composite
def queries(draw: st.DrawFn) -> str:
    found = []
    for _ in range(draw(st.integers(1, 3))):
        minus = draw(st.sampled_from(["", "", "", "-"]))
        if draw(st.integers(0, 3)):
            word = draw(
                st.sampled_from([*WORDS, "customer", "88", "iris", "pdf", "INVOICE", "vale", "nothing"])
            )
            written = draw(st.sampled_from([word, word.upper(), word[: max(2, len(word) // 2)]]))
            found.append(minus + (written.lower() if written in OPERATORS else written))
        else:
            found.append(
                f'{minus}"{" ".join(draw(st.lists(st.sampled_from(WORDS), min_size=2, max_size=3)))}"'
            )
    return " ".join(found)


PARTS = {
    "query": queries(),
    "from": st.sampled_from(
        ["iris", "ÉLODIE", "customer.example,pier", "山田", "ø", "zz", "O'B", "ñ", "@", "mina.v@"]
    ),
    "to": st.sampled_from(["ops@quay", "VALE", "x", "太郎 <", "nobody"]),
    "cc": st.sampled_from(["iris", "josé", "q"]),
    "bcc": st.sampled_from(["mina", "e"]),
    "has_attachment": st.sampled_from(["true", "false"]),
    "start_date": st.sampled_from(["2026-10-02", "2026-10-09"]),
    "end_date": st.sampled_from(["2026-10-05", "2026-10-10"]),
}


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(list(PARTS)), min_size=1, max_size=2, unique=True))
    found = {name: draw(PARTS[name]) for name in {*names, *draw(st.sampled_from([["query"], []]))}}
    if {"start_date", "end_date"} <= found.keys() and found["end_date"] < found["start_date"]:
        del found["end_date"]
    folders = draw(
        st.sampled_from([None, "inbox,archive,sent", "sent", "trash,spam", "inbox,archive,spam,sent,trash"])
    )
    return found | ({} if folders is None else {"folders": folders})


async def compare(inbox: SearchedInbox, reference: Reference, asked: dict[str, Any]) -> None:
    expected = reference.threads(asked)
    found: list[tuple[str, str]] = []
    after: dict[str, str] = {}
    while True:
        page = await inbox.page(**asked, **after, limit=100)
        found += [(item["id"], item["matched_email_id"]) for item in page["data"]]
        if not page["has_more"]:
            break
        after = {"after": page["data"][-1]["id"]}
    assert [thread for thread, _ in found] == [thread for thread, _ in expected], asked
    for (_, message), (_, messages) in zip(found, expected, strict=True):
        assert message in messages, asked


async def test_random_questions_find_what_a_look_at_every_message_finds(
    database_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    asked: list[dict[str, Any]] = []

    @settings(
        max_examples=2000 if request.config.getoption("slow") else 80,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(questions())
    def collect(question: dict[str, Any]) -> None:
        asked.append(question)

    collect()
    some = 0
    async with filled(database_url, tmp_path) as (inbox, reference):
        for question in asked:
            await compare(inbox, reference, question)
            some += bool(reference.threads(question))
    assert some > len(asked) / 4
