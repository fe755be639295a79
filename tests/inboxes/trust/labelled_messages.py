"""Messages with a label, made by a seed: for each reason some that must have it, and like ones that must not.

    for labelled in labelled_messages(seed): judge(labelled.raw, labelled.verdicts, labelled.facts)

The seed `TUNING` was looked at while the rules were made; `HELD_BACK` has other names, domains, words and
files, and was counted afterwards.
"""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from pillarbox.inboxes.trust.confusables import SenderDomains, name_skeleton
from pillarbox.inboxes.trust.evaluation import SenderFacts, TeamKnowledge
from pillarbox.mail.authentication.mail_verdicts import DmarcVerdict, MailVerdicts, SpamVerdict, SpfVerdict

TUNING: Final = 1
HELD_BACK: Final = 2
OF_EACH: Final = 8

KNOWN: Final = UUID(int=7)
WORDS: Final[dict[int, dict[str, tuple[str, ...]]]] = {
    TUNING: {
        "first": ("Iris", "Ada", "Ben", "Mina", "Tom", "Kim"),
        "last": ("Vale", "Quay", "Harlow", "Stone", "Brook", "Lind"),
        "domains": ("customer.example", "quayside.example", "northwind.example", "paperworks.example"),
        "strangers": ("letters.test", "mailroom.test", "plainfield.test"),
        "texts": (
            "Where is my order? It was due on Monday.",
            "The meeting moves to 14:30, room 2048. Call 555 0101 if that is a problem.",
            "Invoice 20261128 is attached. Please pay 1,250.00 within 30 days.",
            "Thanks for the code review. The pass rate is 98 %.",
        ),
        "files": ("invoice", "report", "photo"),
    },
    HELD_BACK: {
        "first": ("Noor", "Lucia", "Pavel", "Greta", "Samuel", "Aiko"),
        "last": ("Marsh", "Olsen", "Rivera", "Castle", "Winter", "Fjord"),
        "domains": ("lumber.example", "bluebird.example", "harvester.example", "old-mill.example"),
        "strangers": ("postbox.test", "wayside.test", "outpost.test"),
        "texts": (
            "Could you send the contract 4471 again? Page 3 is missing.",
            "We land at 18:45 on flight LX1612 and take room 512.",
            "Your parcel 00340434161094042557 arrives tomorrow between 9 and 12.",
            "PIN board in the kitchen: the party is in 2027, 40 people come.",
        ),
        "files": ("contract", "minutes", "scan"),
    },
}
"""The two halves share no word."""


CODES: Final = {
    TUNING: (
        "Your verification code is {}. It expires in {} minutes.",
        "{} is your login code. Valid for {} hours.",
        "Ihr Bestätigungscode lautet {}. Er ist {} Minuten gültig.",
    ),
    HELD_BACK: (
        "Use {} as your one-time password. The code will expire in {} minutes.",
        "Votre code de vérification : {} (valable {} minutes)",
        "Security code: {}\nDo not share it. It is valid for {} minutes.",
    ),
}
"""What is said of a code, and of its validity."""


@dataclass(frozen=True, slots=True)
class LabelledMessage:
    """A message; `expected` are the reasons of deception or kind that it must have, and no others."""

    name: str
    raw: bytes
    verdicts: MailVerdicts
    facts: SenderFacts
    expected: frozenset[str]
    is_attack: bool


@dataclass(slots=True)
class _Maker:
    seed: int
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def of(self, words: str) -> str:
        return str(self.random.choice(WORDS[self.seed][words]))

    def person(self) -> str:
        return f"{self.of('first')} {self.of('last')}"

    def code(self) -> str:
        return str(self.random.randrange(100_000, 1_000_000))


def team(seed: int) -> TeamKnowledge:
    """Return what the team of these messages knows."""
    own = frozenset({"harborlight.example"})
    return TeamKnowledge(
        own, frozenset({name_skeleton("Harbor Desk")}), SenderDomains({*own, *WORDS[seed]["domains"]})
    )


def passed(domain: str, *, is_good: bool = True, policy: str = "none") -> MailVerdicts:
    """Return the verdicts on mail of a domain."""
    result = "pass" if is_good else "fail"
    dmarc = DmarcVerdict(
        result=result,
        domain=domain,
        policy=policy,
        policy_domain=domain,
        spf_aligned=is_good,
        dkim_aligned=False,
    )
    spf = SpfVerdict(result, "mailfrom", domain)
    return MailVerdicts(spf=spf, dkim=[], dmarc=dmarc, spam=SpamVerdict(is_spam=False), automatic=None)


def _mail(
    sender: str, text: str, fields: Sequence[str] = (), kind: str = "text/plain", subject: str = "Hello"
) -> bytes:
    head = [
        f"From: {sender}",
        "To: help@harborlight.example",
        f"Subject: {subject}",
        "Message-ID: <a@b.example>",
        *fields,
    ]
    return "\r\n".join([*head, f"Content-Type: {kind}; charset=utf-8", "", text, ""]).encode()


def _file(sender: str, name: str, kind: str, content: bytes) -> bytes:
    body = (
        f"--b\r\nContent-Type: text/plain\r\n\r\nSee the file.\r\n--b\r\nContent-Type: {kind}\r\n"
        f'Content-Disposition: attachment; filename="{name}"\r\nContent-Transfer-Encoding: base64\r\n\r\n'
        f"{b64encode(content).decode()}\r\n--b--\r\n"
    )
    return _mail(sender, body, ["MIME-Version: 1.0"]).replace(
        b"Content-Type: text/plain; charset=utf-8", b'Content-Type: multipart/mixed; boundary="b"', 1
    )


ZIP: Final = b"PK\x03\x04\x14\x00\x00\x00" + bytes(40)
LOCKED_ZIP: Final = b"PK\x03\x04\x14\x00\x01\x00" + bytes(40)
OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(60)
PDF: Final = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n"

Make = Callable[[_Maker], LabelledMessage]


def _plain(
    make: _Maker, name: str, raw: Callable[[str, str], bytes], expected: set[str], **more: object
) -> LabelledMessage:
    """Return a message of a sender with a good name and domain, made of both."""
    sender_domain = str(more.get("domain") or make.of("domains"))
    person = make.person()
    sender = f"{more.get('shown', person)} <{person.split()[0].lower()}@{sender_domain}>"
    return LabelledMessage(
        name=name,
        raw=raw(sender, sender_domain),
        verdicts=passed(
            sender_domain, is_good=bool(more.get("is_good", True)), policy=str(more.get("policy", "none"))
        ),
        facts=more.get("facts") or SenderFacts(has_come=True),  # type: ignore[arg-type]
        expected=frozenset(expected),
        is_attack=bool(more.get("is_attack", False)),
    )


def _text_of(make: _Maker) -> Callable[[str, str], bytes]:
    text = make.of("texts")
    return lambda sender, _: _mail(sender, text)


def _changed(make: _Maker, domain: str) -> str:
    """Return a domain that looks like this one."""
    label, _, rest = domain.partition(".")
    at = make.random.randrange(1, len(label) - 1)
    ways = [
        label[:at] + label[at + 1 :],
        label[:at] + label[at] + label[at:],
        label.replace("o", "0", 1) if "o" in label else label.replace("l", "1", 1),
        label.replace("m", "rn", 1) if "m" in label else label[:at] + "x" + label[at + 1 :],
    ]
    found = make.random.choice([way for way in ways if way != label])
    return f"{found}.{rest}"


def _link(shown: str, host: str) -> str:
    return f'<html><body><p>Please look at <a style="color:blue" href="https://{host}/path?x=1"><b>{shown}</b></a></p></body></html>'


def _attacks(make: _Maker) -> Iterator[LabelledMessage]:
    stranger, known = make.of("strangers"), make.of("domains")
    person = make.person()
    text = _text_of(make)

    def attack(
        name: str, expected: set[str], raw: Callable[[str, str], bytes] = text, **more: object
    ) -> LabelledMessage:
        return _plain(make, name, raw, expected, is_attack=True, **{"domain": stranger, **more})

    yield attack("name of known", {"name_of_known"}, facts=SenderFacts(name_of=KNOWN))
    yield attack("name of team", {"name_of_team"}, shown="H\u0430rbor Desk")
    yield attack("address in name", {"address_in_name"}, shown=f'"{person.split()[0].lower()}@{known}"')
    yield attack(
        "own domain", {"own_domain_forged", "dmarc_failed"}, domain="harborlight.example", is_good=False
    )
    yield attack("look-alike", {"look_alike_domain"}, domain=_changed(make, known))
    yield attack("own look-alike", {"look_alike_domain"}, domain=_changed(make, "harborlight.example"))
    yield attack("known as label", {"known_domain_as_label"}, domain=f"{known}.{stranger}")
    yield attack("mixed scripts", {"mixed_scripts"}, domain=f"paym\u0435nts{make.random.randrange(9)}.test")
    yield attack("forged", {"dmarc_failed"}, domain=known, is_good=False, policy="reject")
    link = _link(f"https://www.{known}/login", f"{known.split('.')[0]}.{stranger}")
    yield attack("link", {"link_disguised"}, lambda sender, _: _mail(sender, link, kind="text/html"))
    name = make.of("files")
    yield attack(
        "double ending",
        {"attachment_disguised", "attachment_executable"},
        lambda sender, _: _file(sender, f"{name}.pdf.exe", "application/octet-stream", b"MZ" + bytes(99)),
    )
    yield attack(
        "program as picture",
        {"attachment_disguised", "attachment_executable"},
        lambda sender, _: _file(sender, f"{name}.jpg", "image/jpeg", b"MZ" + bytes(99)),
    )
    yield attack(
        "script",
        {"attachment_executable"},
        lambda sender, _: _file(sender, f"{name}.js", "text/javascript", b"WScript"),
    )
    yield attack(
        "page and answers elsewhere",
        {"attachment_active", "reply_to_elsewhere"},
        lambda sender, _: _file(sender, f"{name}.html", "text/html", b"<html><form>").replace(
            b"\r\nTo:", b"\r\nReply-To: x@elsewhere.test\r\nTo:", 1
        ),
    )


def _benign(make: _Maker) -> Iterator[LabelledMessage]:
    known, text = make.of("domains"), _text_of(make)
    word = make.of("texts")

    def benign(
        name: str, expected: set[str], raw: Callable[[str, str], bytes] = text, **more: object
    ) -> LabelledMessage:
        return _plain(make, name, raw, expected, **more)

    def with_fields(*fields: str, body: str = word, kind: str = "text/plain") -> Callable[[str, str], bytes]:
        return lambda sender, _: _mail(sender, body, fields, kind)

    def with_file(filename: str, kind: str, content: bytes) -> Callable[[str, str], bytes]:
        return lambda sender, _: _file(sender, filename, kind, content)

    yield benign("customer", set(), facts=SenderFacts(has_written=True, has_come=True))
    yield benign("first contact", set(), domain=make.of("strangers"), facts=SenderFacts())
    yield benign("team member", set(), domain="harborlight.example", shown="Harbor Desk")
    yield benign(
        "own link",
        set(),
        lambda sender, host: _mail(sender, _link(f"www.{host}", f"shop.{host}"), kind="text/html"),
    )
    yield benign(
        "link with words", set(), with_fields(body=_link("our page", "other.test"), kind="text/html")
    )
    yield benign("named file", set(), with_fields(body=_link("terms.pdf", "files.test"), kind="text/html"))
    yield benign("one answers address", {"reply_to_elsewhere"}, with_fields("Reply-To: desk@answers.test"))
    yield benign("no policy", {"dmarc_failed"}, is_good=False)
    name = make.of("files")
    for ending, kind, content in (
        ("pdf", "application/pdf", PDF),
        ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", ZIP),
        ("xls", "application/vnd.ms-excel", OLE),
        ("v2.final.png", "image/png", b"\x89PNG\r\n\x1a\n" + bytes(40)),
    ):
        yield benign(f"file {ending}", set(), with_file(f"{name}.{ending}", kind, content))
    yield benign(
        "locked zip",
        {"attachment_encrypted"},
        lambda s, _: _file(s, f"{name}.zip", "application/zip", LOCKED_ZIP),
    )
    yield benign(
        "locked document",
        {"attachment_encrypted"},
        lambda s, _: _file(s, f"{name}.docx", "application/msword", OLE),
    )
    tracked = _link(f"www.{known}", "click.provider.test")
    yield benign(
        "newsletter",
        {"bulk"},
        with_fields("List-Unsubscribe: <https://u.test>", body=tracked, kind="text/html"),
    )
    yield benign(
        "list",
        {"list"},
        with_fields("List-Id: <dev.lists.test>", "Precedence: list", "Reply-To: dev@lists.test"),
    )
    yield benign("away", {"auto_reply"}, with_fields("Auto-Submitted: auto-replied (vacation)"))
    report = (
        "--b\r\nContent-Type: text/plain\r\n\r\nIt failed.\r\n--b\r\n"
        "Content-Type: message/delivery-status\r\n\r\nAction: failed\r\n--b--"
    )
    yield benign(
        "report",
        {"delivery_report"},
        with_fields(body=report, kind='multipart/report; report-type=delivery-status; boundary="b"'),
    )
    yield benign(
        "date",
        {"calendar"},
        with_fields(body="BEGIN:VCALENDAR\r\nEND:VCALENDAR", kind="text/calendar; method=REQUEST"),
    )
    words = make.random.choice(CODES[make.seed])
    said = words.format(make.code(), make.random.randrange(2, 30))
    yield benign("code", {"verification_code"}, with_fields(body=said))
    yield benign(
        "code in html", {"verification_code"}, with_fields(body=f"<div>{said}</div>", kind="text/html")
    )


def labelled_messages(seed: int) -> Iterator[LabelledMessage]:
    """Yield the messages of a half."""
    make = _Maker(seed)
    for _ in range(OF_EACH):
        yield from _attacks(make)
        yield from _benign(make)
