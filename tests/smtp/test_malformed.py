"""A thousand messages that are wrong in many ways, submitted: one reply each (issue 6)."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kit.memory import resident
from kit.submission import message_bytes, submission

TO = ("ada@quay.example",)


def mutations(text: bytes, count: int, chance: random.Random) -> Iterator[bytes]:
    """Messages that are wrong in many ways, with clean line ends so that they reach the parser."""
    words = [
        b"\r\n", b"\r\n\r\n", b"--", b";", b"=?utf-8?q?=ff?=", b"=?x?b?!?=", b"Content-Type: ", b"boundary=",
        b"Content-Transfer-Encoding: base64\r\n", b"From: ", b'"', b"<", b">", b"@", b",", b"=00", b"=\r\n",
        b"charset=utf-7", b"filename*0*=x''%", b"multipart/mixed", b"message/rfc822", b":", b" ", b"AAAA",
        b"(" * 50, b"\t", b"\xff\xfe",
    ]  # fmt: skip
    for _ in range(count):
        made = bytearray(text)
        for _ in range(chance.randint(1, 12)):
            at = chance.randrange(len(made))
            kind = chance.randrange(4)
            if kind == 0:
                made[at:at] = chance.choice(words)
            elif kind == 1:
                del made[at : at + chance.randint(1, 60)]
            elif kind == 2:
                made[at] = chance.randrange(256)
            else:
                until = at + chance.randint(1, 200)
                made[at:at] = made[at:until]
        clean = (
            bytes(made)
            .replace(b"\0", b"?")
            .replace(b"\r\n", b"\n")
            .replace(b"\r", b"")
            .replace(b"\n", b"\r\n")
        )
        clean += b"" if clean.endswith(b"\r\n") else b"\r\n"
        yield re.sub(rb"(?m)^\.", b"..", clean)


async def test_a_thousand_malformed_messages_get_one_reply_each(database_url: str, tmp_path: Path) -> None:
    """Issue 6: no crash, no trouble of our own, no reply too many."""
    chance = random.Random(6)
    base = message_bytes(
        html='<img src="cid:a@b">', Cc="Bo <bo@quay.example>", files=[("a.pdf", b"x" * 300), ("b.txt", b"y")],
        References="<a@b.example> <c@d.example>",
    )  # fmt: skip
    settings = {"smtp_client_rate": "off", "roles": "api,smtp"}
    async with submission(database_url, tmp_path, **settings) as (team, listeners):
        codes: Counter[str] = Counter()
        texts = mutations(base, 1000, chance)
        after_some = 0
        while codes.total() < 1000:
            if codes.total() == 400:
                after_some = resident()
            async with listeners.program(team.token) as client:
                for text in itertools.islice(texts, 8):  # from the tenth mistake on answers are slow
                    codes[str(await client.send(text, to=TO))] += 1
                assert [said.code for said in (await client.ask("QUIT"), *await client.over())] == [221]
        assert resident() - after_some < 20_000_000
        assert set(codes) <= {"250 2.0.0", "550 5.6.0", "554 5.7.1", "452 4.5.3"}, codes
        assert codes["250 2.0.0"] > 300
        assert codes["550 5.6.0"] > 20
