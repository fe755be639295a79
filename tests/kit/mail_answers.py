"""What the program makes of many messages, as one digest a line: `python -m kit.mail_answers`.

Two ways to run the same sources must print the same (docs/decisions/0119). The first line says which it was.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from email import policy

from mail.test_message_corpus import TEXTS, corpus
from pillarbox.kernel.process import compiled
from pillarbox.mail.authentication import dkim
from pillarbox.mail.message.address import Mailbox
from pillarbox.mail.message.attachments import Attachment
from pillarbox.mail.message.compose import Message, compose
from pillarbox.mail.message.parse import parse

DAMAGES = 4
"""Damaged copies of each message."""


def answers() -> Iterator[str]:
    chance = random.Random(119)
    # The standard library draws boundaries from here.
    random.seed(119)
    for made in corpus():
        raw = made.as_bytes(policy=policy.SMTP)
        yield read(raw)
        for _ in range(DAMAGES):
            yield read(damaged(raw, chance))
    for (name, text), files in itertools.product(TEXTS.items(), (0, 2)):
        yield written(name, text, files)


def read(raw: bytes) -> str:
    """All that is read of a message, in words."""
    message = parse(raw)
    body = dkim.BodyHash()
    body.add(raw)
    names = [name for name in dir(message) if not name.startswith("_")]
    words = [f"{name}={getattr(message, name)!r}" for name in names]
    return " ".join([*(word for word in words if " at 0x" not in word), body.digest().hex()])


def damaged(raw: bytes, chance: random.Random) -> bytes:
    """The message with some octets replaced, and without its end."""
    octets = bytearray(raw[: chance.randrange(len(raw) // 2, len(raw) + 1)])
    for _ in range(5):
        octets[chance.randrange(len(octets))] = chance.choice(b'\r\n\0:;="<>,?\xff\xe4 \t-')
    return bytes(octets)


def written(name: str, text: str, files: int) -> str:
    sender = Mailbox("jo", "quay.example", f"Jö {name}")
    reader = Mailbox("ann", "harbor.example", None)
    made = compose(
        Message(
            sender=sender,
            to=(reader,) * 40,
            cc=(sender,),
            reply_to=(reader,),
            subject=f"Grüße {name} " * 9,
            date=datetime(2025, 10, 3, 8, 40, 11, tzinfo=UTC),
            message_id="<119@quay.example>",
            seed=b"s" * 16,
            html=f"<p>{text}</p>",
            text=text or None,
            headers=(("X-Berth", f"übersicht {name}"), ("List-Unsubscribe", "<https://quay.example/u>")),
            attachments=tuple(
                Attachment(f"plän {number}.txt", "text/plain", text.encode()) for number in range(files)
            ),
        )
    )
    return repr(made) + read(made)


if __name__ == "__main__":
    print(compiled.used())
    for answer in answers():
        print(hashlib.sha256(answer.encode("utf-8", "surrogatepass")).hexdigest())
