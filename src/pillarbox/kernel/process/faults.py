"""Fault points: named places where a test lets this process die, freeze, fail or wait.

They are compiled in and inert: without the variable `PILLARBOX_FAULT` a point is one comparison. The
variable holds `POINT=DEED[@N|%N]`, several of them with commas between. The points are the rows of
`POINTS`. The deeds are:

- `kill`: this process gets SIGKILL, `freeze`: it gets SIGSTOP, and another process has to send SIGCONT;
- `raise`: `FaultRaised` is raised; `delay:SECONDS`: the task waits there, the others go on.

`@N` means once, at the N-th passage (1 where nothing is said). It does not count in the process that the
supervisor starts in place of one that died, so a killed process comes back whole. `%N` means every N-th
passage, in replacements too. Passages are counted by each process for itself.

    PILLARBOX_FAULT=delivery.after_dot=kill@20,timeline.events=delay:0.5%3

The variable is for tests and is not a setting.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

VARIABLE: Final = "PILLARBOX_FAULT"

POINTS: Final[Mapping[str, str]] = {
    "idempotency.looked_up": "no answer is kept for the key of a request, its handler is not begun",
    "accept.within": "the work that came with an email is done, the email is not written",
    "accept.before_commit": "all rows of a group commit are written, nothing is committed",
    "accept.after_commit": "the group commit is done, nobody was answered and no work was handed over",
    "receive.before_commit": "received messages are about to be written and committed by one statement",
    "receive.after_commit": "received messages are committed, no sender has the reply",
    "delivery.claimed": "an item is leased to this process and its attempt begins",
    "delivery.connected": "a session for the mail is open",
    "delivery.after_mail": "the server accepted MAIL",
    "delivery.before_dot": "all of the mail but its final dot may be on the wire; the lease is checked next",
    "delivery.after_dot": "the final dot is on the wire, its answer is not here",
    "delivery.after_250": "the attempt is over, nothing of its outcome is written",
    "delivery.in_settle": "all rows of a settlement are written, nothing is committed",
    "bulk_act.batch_written": "contacts of an act on many are changed and counted, nothing is committed",
    "bulk_act.batch_committed": "a batch of such an act is committed, and the next one is not begun",
    "personal_data.step_written": "a step of an erasure and the place of the next are written, not committed",
    "personal_data.step_committed": "a step of an erasure is committed, and the next one is not begun",
    "forms.mail_written": "a sign-up is stored with its mail, nothing is committed",
    "forms.confirmed": "a contact is added by its confirmation, nothing is committed",
    "import.stored": "the file of an import is in the blob store, no row names it",
    "import.batch_written": "the rows of a batch and their counts are written, nothing is committed",
    "import.batch_committed": "a batch is committed, and the next one is not begun",
    "import.undo_written": "contacts of an import are removed and counted, nothing is committed",
    "import.undo_committed": "a batch of an undone import is committed, and the next one is not begun",
    "broadcast.snapshot": "the recipients of a broadcast are written, nothing is committed",
    "broadcast.copies_written": "copies of a broadcast with their work are written, nothing is committed",
    "broadcast.copies_committed": "copies are committed and leased to this process, its engine has none",
    "broadcast.winner_chosen": "the winner of an A/B test is committed, and nothing else has happened",
    "events.before_commit": "events of teams are written with their jobs, nothing is committed",
    "events.after_commit": "events are committed, nobody was answered",
    "events.told": "what follows from an event is written, nothing is committed",
    "automations.claimed": "steps of automations are leased to this process, none is carried out",
    "automations.written": "what steps of automations lead to is written, nothing is committed",
    "automations.committed": "steps of automations are committed, what follows them is not begun",
    "automations.forwarded": "events of mail are stored for automations, not committed",
    "timeline.events": "events are about to be written, in somebody's transaction",
    "webhooks.rows": "events are about to be handed to the webhooks, in the same transaction",
    "webhooks.claimed": "a delivery of an event is leased to this process and its attempt begins",
    "webhooks.before_send": "the request is signed, nothing of it has left",
    "webhooks.after_answer": "the attempt is over, nothing of its outcome is written",
    "webhooks.in_settle": "the rows of attempts are written or about to be, nothing is committed",
}
"""The fault points; each line says what is true there."""

SWITCHES: Final = 3
"""Turns of the event loop before a deed: what was handed to the network before the point has left."""

_FAULT = re.compile(
    r"(?P<point>[a-z_.0-9]+)=(?P<deed>kill|freeze|raise|delay:(?P<seconds>\d+(\.\d+)?))(?P<when>[@%]\d+)?"
)


class FaultRaised(Exception):  # noqa: N818 - it stands for an unexpected failure
    """The exception of the deed `raise`."""


@dataclass(slots=True)
class Fault:
    """One deed at one point."""

    point: str
    deed: str
    nth: int
    is_lasting: bool
    seconds: float = 0.0
    passages: int = 0

    def passed(self) -> bool:
        """Count a passage; True when it is the one."""
        self.passages += 1
        return self.passages % self.nth == 0 if self.is_lasting else self.passages == self.nth

    async def happen(self) -> None:
        for _ in range(SWITCHES):
            await asyncio.sleep(0)
        if self.deed == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.deed == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.deed == "raise":
            raise FaultRaised(self.point)
        else:
            await asyncio.sleep(self.seconds)


_armed: dict[str, list[Fault]] | None = None


async def point(name: str) -> None:
    """Pass the point `name`: nothing happens, unless a test has said otherwise."""
    if _armed is not None:
        for fault in _armed.get(name, ()):
            if fault.passed():
                await fault.happen()


def are_armed() -> bool:
    """Return whether any fault is set in this process."""
    return _armed is not None


def arm(text: str | None) -> None:
    """Set the faults of this text, and none without it; ValueError with a sentence where it is wrong."""
    global _armed
    _armed = None
    if text:
        _armed = {}
        for fault in parse(text):
            _armed.setdefault(fault.point, []).append(fault)


@contextmanager
def armed(text: str) -> Iterator[None]:
    """Arm the faults of this text for as long as the block runs (for tests inside one process)."""
    arm(text)
    try:
        yield
    finally:
        arm(None)


def parse(text: str) -> list[Fault]:
    """Return the faults of a text, or raise ValueError."""
    return [_fault(part.strip()) for part in text.split(",")]


def for_replacements(text: str) -> str:
    """Return the faults that also hold for a process that replaces one that died: those with `%N`."""
    return ",".join(part for part in text.split(",") if "%" in part)


def _fault(part: str) -> Fault:
    match = _FAULT.fullmatch(part)
    if match is None:
        raise ValueError(f"{part!r} is not POINT=kill|freeze|raise|delay:SECONDS[@N|%N]")
    if match["point"] not in POINTS:
        raise ValueError(f"{match['point']!r} is not a fault point; they are {', '.join(POINTS)}")
    when = match["when"] or "@1"
    nth = int(when[1:])
    if nth < 1:
        raise ValueError(f"{part!r} counts from 1")
    deed, _, seconds = match["deed"].partition(":")
    return Fault(
        point=match["point"], deed=deed, nth=nth, is_lasting=when[0] == "%", seconds=float(seconds or 0)
    )
