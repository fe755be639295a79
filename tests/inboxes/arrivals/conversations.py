"""Conversations as mail programs write them, and the threads that they make (inboxes.md 9.3 to 9.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

IRIS: Final = "iris@customer.example"
OLA: Final = "ola@customer.example"
FORGED: Final = "ada@bank.example"


@dataclass(frozen=True, slots=True)
class Mail:
    """A message, and the thread in which it belongs: messages with one letter share one. "-" is stored
    nowhere. `sent` says that the inbox sends it, in the thread of that letter."""

    thread: str
    id: str | None = None
    subject: str | None = "Refund"
    re: str | None = None
    refs: str | None = None
    by: str = IRIS
    text: str | None = None
    headers: tuple[str, ...] = ()
    sent: bool = False


def first(subject: str | None = "Refund", message_id: str = "<1@c>", by: str = IRIS) -> Mail:
    return Mail("a", message_id, subject, by=by)


def fallback(subject: str, thread: str = "a", to: str = "Refund") -> list[Mail]:
    """An answer that names no earlier message."""
    return [first(to), Mail(thread, "<2@c>", subject)]


CONVERSATIONS: Final[dict[str, list[Mail]]] = {
    # By ids
    "answer": [first(), Mail("a", "<2@c>", "Re: Refund", re="<1@c>", refs="<1@c>")],
    "chain": [
        first(),
        Mail("a", "<2@c>", "Re: Refund", re="<1@c>", refs="<1@c>"),
        Mail("a", "<3@c>", "Re: Refund", re="<2@c>", refs="<1@c> <2@c>"),
        Mail("a", "<4@c>", "Re: Refund", re="<3@c>", refs="<1@c> <2@c> <3@c>"),
    ],
    "other subject": [first(), Mail("a", "<2@c>", "Something else", re="<1@c>")],
    "in-reply-to alone": [first(), Mail("a", "<2@c>", re="<1@c>")],
    "references alone": [first(), Mail("a", "<2@c>", refs="<1@c>")],
    "last reference first": [
        first(),
        Mail("b", "<2@c>", "Other"),
        Mail("b", "<3@c>", refs="<1@c> <2@c>"),
        Mail("a", "<4@c>", refs="<2@c> <1@c>"),
    ],
    "in-reply-to before references": [
        first(),
        Mail("b", "<2@c>", "Other"),
        Mail("a", "<3@c>", re="<1@c>", refs="<1@c> <2@c>"),
    ],
    "unknown parent, known grandparent": [first(), Mail("a", "<3@c>", re="<2@c>", refs="<1@c> <2@c>")],
    "missing middle": [first(), Mail("a", "<9@c>", refs="<1@c> <x@c> <y@c> <z@c>")],
    "unknown ids": [first(), Mail("b", "<2@c>", "Re: Refund", re="<x@c>", refs="<y@c>")],
    "unknown ids and no fallback": [first(), Mail("b", "<2@c>", "Re: Refund", re="<x@c>")],
    "several in-reply-to": [first(), Mail("a", "<2@c>", re="<x@c> <1@c>")],
    "in-reply-to with a phrase": [first(), Mail("a", "<2@c>", re="Your message of Monday <1@c>")],
    "broken references": [first(), Mail("a", "<2@c>", refs="garbage <<1@c> <1@c> , ;; <")],
    "references without brackets stay unknown": [first(), Mail("b", "<2@c>", refs="((((")],
    "empty references": [first(), Mail("b", "<2@c>", "Re: Refund", refs="")],
    "folded references": [first(), Mail("a", "<2@c>", refs="<x@c>\r\n <y@c>\r\n\t<1@c>")],
    "references with comments": [first(), Mail("a", "<2@c>", refs="(thread) <1@c> (end)")],
    "ids keep their case": [first(message_id="<AbC@c>"), Mail("b", "<2@c>", re="<abc@c>")],
    "id without brackets": [first(message_id="1@c"), Mail("a", "<2@c>", re="<1@c>")],
    "ids without brackets": [first(message_id="1@c"), Mail("a", "2@c", re="1@c"), Mail("a", refs="x@y 2@c")],
    "ids with blanks": [first(message_id="<1 @c>"), Mail("a", "<2@c>", re="<1 @c>")],
    "references longer than is read": [
        first(),
        Mail("a", "<2@c>", refs=" ".join(f"<{n}.{'r' * 60}@c>\r\n" for n in range(1200)) + " <1@c>"),
    ],
    "answer comes before its parent": [Mail("a", "<2@c>", "Re: Refund", re="<1@c>"), Mail("a", "<1@c>")],
    "siblings of a parent that nobody has": [
        Mail("a", "<2@c>", "Re: Refund", re="<1@c>"),
        Mail("a", "<3@c>", "Re: Refund", re="<1@c>"),
        Mail("a", "<4@c>", "Re: Refund", re="<2@c>", refs="<1@c> <2@c>"),
    ],
    "somebody else answers": [first(), Mail("a", "<2@c>", re="<1@c>", by=OLA)],
    "two branches": [
        first(),
        Mail("a", "<2@c>", re="<1@c>"),
        Mail("a", "<3@c>", re="<1@c>", by=OLA),
        Mail("a", "<4@c>", re="<3@c>"),
    ],
    "many references": [
        first(),
        Mail("a", "<2@c>", refs="<0@c> " + " ".join(f"<r{n}@c>\r\n" for n in range(60)) + " <1@c>"),
    ],
    "a reference to itself": [Mail("a", "<1@c>", re="<1@c>"), Mail("a", "<2@c>", re="<1@c>")],
    "ids of gmail": [
        first(message_id="<CAKf=x_1+2@mail.gmail.com>"),
        Mail("a", "<2@c>", re="<CAKf=x_1+2@mail.gmail.com>"),
    ],
    "ids of exchange": [
        first(message_id="<AM0PR04MB6451.eurprd04.prod.outlook.com>"),
        Mail("b", "<2@c>", re="<am0PR04MB6451.eurprd04.prod.outlook.com>"),
        Mail("a", "<3@c>", re="<AM0PR04MB6451.eurprd04.prod.outlook.com>"),
    ],
    "no id is never joined": [Mail("a"), Mail("b", "<2@c>", "Re: Other", re="<1@c>")],
    "two without ids": [Mail("a", text="x"), Mail("b", text="y"), Mail("-", text="x")],
    # By the subject
    "re": fallback("Re: Refund"),
    "re in capitals": fallback("RE: REFUND"),
    "re without blank": fallback("re:Refund"),
    "re with blanks": fallback("Re :  Refund"),
    "re twice": fallback("Re: Re: Refund"),
    "re counted": fallback("Re[2]: Refund"),
    "re counted in brackets": fallback("Re (3): Refund"),
    "fw": fallback("Fw: Refund"),
    "fwd": fallback("FWD: Refund"),
    "german answer": fallback("AW: Refund"),
    "german forward": fallback("WG: Refund"),
    "nordic answer": fallback("SV: Refund"),
    "nordic forward": fallback("VS: Refund"),
    "french forward": fallback("TR: Refund"),
    "spanish forward": fallback("RV: Refund"),
    "portuguese answer": fallback("RES: Refund"),
    "portuguese forward": fallback("ENC: Refund"),
    "dutch answer": fallback("Antw: Refund"),
    "mixed": fallback("AW: WG: Re[4]: Fwd: Refund"),
    "list tag": fallback("Re: [desk] Refund", to="[desk] Refund"),
    "list tag before": fallback("[desk] Re: Refund"),
    "list tag of one side": fallback("Re: [desk] Refund"),
    "blanks in between": fallback("Re: Refund   of  88", to="Refund of 88"),
    "decomposed letters": fallback("Re: =?utf-8?q?Cafe=CC=81?=", to="=?utf-8?q?Caf=C3=A9?="),
    "sharp s": fallback("Re: STRASSE", to="=?utf-8?q?Stra=C3=9Fe?="),
    "the first one was an answer": fallback("Re: Refund", to="Re: Refund"),
    "no prefix": fallback("Refund", "b"),
    "list tag is no prefix": fallback("[desk] Refund", "b"),
    "another subject": fallback("Re: Refund 2", "b"),
    "a word that begins like a prefix": fallback("Research: Refund", "b"),
    "prefix in the middle": fallback("Refund Re: 1", "b"),
    "nothing behind the prefix": fallback("Re:", "b", to="Re:"),
    "only a tag behind the prefix": fallback("Re: [desk]", "b", to="[desk]"),
    "somebody else": [first(), Mail("b", "<2@c>", "Re: Refund", by=OLA)],
    "somebody who takes part": [
        first(),
        Mail("a", "<2@c>", re="<1@c>", by=OLA),
        Mail("a", "<3@c>", "Re: Refund", by=OLA),
    ],
    "sender in capitals": [first(), Mail("a", "<2@c>", "Re: Refund", by="IRIS@Customer.Example")],
    "the newest of two": [
        first(),
        Mail("b", "<2@c>", "Refund"),
        Mail("b", "<3@c>", "Re: Refund"),
    ],
    "auto reply": [first(), Mail("a", "<2@c>", "Re: Refund", headers=("Auto-Submitted: auto-replied",))],
    # Spam
    "spam begins its own": [first(), Mail("b", "<2@c>", re="<1@c>", by=FORGED)],
    "spam joins spam": [Mail("a", "<1@c>", by=FORGED), Mail("a", "<2@c>", re="<1@c>", by=FORGED)],
    "spam with a subject": [first(by=FORGED), Mail("b", "<2@c>", "Re: Refund", by=FORGED)],
    # Repetitions
    "the same twice": [first(), Mail("-", "<1@c>", headers=("X-Path: 2",))],
    "the same id with another body": [first(), Mail("b", "<1@c>", text="Other")],
    "the same id as an answer": [first(), Mail("a", "<1@c>", "Re: Refund", re="<1@c>", text="Other")],
    "the same answer twice": [
        first(),
        Mail("a", "<2@c>", re="<1@c>"),
        Mail("-", "<2@c>", re="<1@c>", headers=("X-Path: 2",)),
        Mail("a", "<3@c>", re="<2@c>"),
    ],
    # With what the inbox sends
    "answer to what was sent": [
        Mail("a", "<s1@h>", sent=True),
        Mail("a", "<2@c>", "Re: Refund", re="<s1@h>"),
    ],
    "answer to what was sent, by the subject": [
        Mail("a", "<s1@h>", sent=True),
        Mail("a", "<2@c>", "Re: Refund"),
    ],
    "to and fro": [
        first(),
        Mail("a", "<s1@h>", "Re: Refund", sent=True),
        Mail("a", "<2@c>", "Re: Refund", re="<s1@h>", refs="<1@c> <s1@h>"),
        Mail("a", "<s2@h>", "Re: Refund", sent=True),
        Mail("a", "<3@c>", "Re: Refund", refs="<1@c> <s1@h> <2@c> <s2@h>"),
    ],
    "somebody else answers what was sent": [
        Mail("a", "<s1@h>", sent=True),
        Mail("b", "<2@c>", "Re: Refund", by=OLA),
    ],
    "two that were sent": [
        Mail("a", "<s1@h>", sent=True),
        Mail("b", "<s2@h>", sent=True),
        Mail("a", "<2@c>", re="<s1@h>"),
        Mail("b", "<3@c>", re="<s2@h>"),
    ],
}
