"""How fast received mail is read: 4 kB mails beside the standard library, and one message of 25 MB.

One process on one core; results are by its CPU time, the best of several repetitions, so that other work on
the machine count little.
"""

from __future__ import annotations

import email
import time
import tracemalloc
from collections.abc import Callable
from email import policy
from email.message import EmailMessage

from bench.kit.results import Report, at_least, at_most, ended
from pillarbox.mail.message.parse import parse

LINE = "the boats lie at the long berth until the tide turns, and then they go\n"
HOP = (
    "Received: from mx{0}.quay.example (mx{0}.quay.example [192.0.2.{0}])\r\n"
    "\tby mx{1}.harbor.example with ESMTPS id 4f{0}a\r\n"
    "\tfor <help@harbor.example>; Fri, 03 Oct 2025 08:40:1{0} +0000\r\n"
)
SIGNATURE = (
    "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=quay.example; s=pillarbox;\r\n"
    "\th=from:to:subject:date:message-id; bh=" + "A" * 43 + "=; b=" + "B" * 344 + "\r\n"
)
LARGE_FILES = 3
LARGE_FILE = 6_300_000
LARGE_SECONDS = 1.5
LARGE_MEMORY = 4.0
RATE = 5000


def measure(report: Report) -> None:
    small = ordinary()
    repetitions, each = (3, 100) if report.short else (30, 300)
    ours = rate(lambda: read(small), repetitions, each)
    theirs = rate(lambda: by_the_library(small), repetitions, max(each // 20, 1))
    report.result(
        "mails of 4 kB",
        ours,
        "mails/s",
        at_least(RATE),
        note=f"{len(small)} octets, {1e6 / ours:.0f} µs each",
    )
    report.result("the standard library", theirs, "mails/s")
    report.result("ratio of the two", ours / theirs, "×")
    large = big()
    report.result("message of 25 MB", len(large) / 1e6, "MB")
    report.result("its reading", seconds(lambda: read(large)), "s", at_most(LARGE_SECONDS))
    report.result("peak memory, with the message itself", memory(large), "× size", at_most(LARGE_MEMORY))


def ordinary() -> bytes:
    """Text and html, 4 hops, a signature: what most mail looks like."""
    made = EmailMessage()
    made["From"] = "Ada Quay <ada@quay.example>"
    made["To"] = "help@harbor.example, Bo Pier <bo@pier.example>"
    made["Subject"] = "Where is berth 12? Grüße"
    made["Date"] = "Fri, 03 Oct 2025 08:40:11 +0000"
    made["Message-ID"] = "<c81@quay.example>"
    made.set_content(LINE * 10)
    made.add_alternative(f"<p>{'ü ' + LINE}</p>\n" * 17, subtype="html")
    hops = "".join(HOP.format(number, number + 1) for number in range(4))
    return (hops + SIGNATURE).encode() + made.as_bytes(policy=policy.SMTP)


def big() -> bytes:
    """25 MB on the wire: three files in base64."""
    made = EmailMessage()
    made["From"] = "ada@quay.example"
    made["Subject"] = "the plans"
    made.set_content(LINE)
    for number in range(LARGE_FILES):
        made.add_attachment(bytes(LARGE_FILE), "application", "zip", filename=f"plan{number}.zip")
    return made.as_bytes(policy=policy.SMTP)


def read(raw: bytes) -> None:
    """All of a message, its bodies and date too, which are decoded when they are asked for."""
    message = parse(raw)
    _ = message.text, message.html, message.date


def by_the_library(raw: bytes) -> None:
    """What `read` reads, asked of the standard library."""
    message = email.message_from_bytes(raw, policy=policy.default)
    for name in message.keys():  # noqa: SIM118 - the headers are decoded when they are read
        str(message[name])
    for kind in ("plain", "html"):
        body = message.get_body((kind,))
        if body is not None:
            body.get_content()


def seconds(work: Callable[[], object]) -> float:
    """CPU time of one run, the best of three."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def rate(work: Callable[[], object], repetitions: int, each: int) -> float:
    """Runs per second of CPU, in the best of the repetitions."""
    taken = []
    for _ in range(repetitions):
        began = time.process_time()
        for _ in range(each):
            work()
        taken.append(time.process_time() - began)
    return each / min(taken)


def memory(raw: bytes) -> float:
    """What the message and the reading of it take together, in sizes of the message."""
    tracemalloc.start()
    read(raw)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return 1 + peak / len(raw)


if __name__ == "__main__":
    ended("parse", measure, __doc__)
