"""Compares three records of one run: the client's, the remote servers' and the database's.

The client's ledger holds every answer of the API, the far servers' ledger every mail that they took; both
are lines of JSON that are on disk before the answer is believed (client) or given (server). The third
witness is Pillarbox itself: its database, or `GET /emails/{id}`. `compare` joins them:

- lost: acknowledged, said to be delivered or still to come, and in no server's ledger;
- doubled: taken more than once by a server for one recipient;
- stuck: acknowledged and without a final state;
- wrong: the state and the ledgers contradict each other;
- strays: taken by a server, but the client was never told that its mail was accepted.

Mails are known by a token in their subject, recipients by their address.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import asyncpg

TOKEN = "berth-"
FINAL = frozenset({"delivered", "bounced", "failed", "suppressed", "canceled", "complained"})
SHOWN = 5

STATES = """
    SELECT e.id, e.subject, e.message_id, r.address, r.state
      FROM recipients r
      JOIN complete_emails e ON e.team_id = r.team_id AND e.id = r.email_id
"""

UNCERTAIN = """
    SELECT e.subject, r.address
      FROM timeline t
      JOIN complete_emails e ON e.team_id = t.team_id AND e.id = t.email_id
      JOIN recipients r ON r.team_id = t.team_id AND r.email_id = t.email_id AND r.position = t.position
     WHERE (t.detail ->> 'uncertain')::boolean
"""


class Journal:
    """A file of JSON lines; `write` returns when its line is on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, **fields: Any) -> None:
        os.write(self._file, json.dumps(fields).encode() + b"\n")
        os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield what a journal holds by now; a last line that is still being written is left out."""
    if not path.exists():
        return
    for line in path.read_bytes().split(b"\n")[:-1]:
        yield json.loads(line)


class Acknowledged(NamedTuple):
    """A mail that the API said yes to."""

    id: str
    token: str
    recipients: tuple[str, ...]


class Arrival(NamedTuple):
    """A mail that a far server took, for one recipient."""

    token: str
    message_id: str
    recipient: str
    session: str
    answered: bool


Record = TypeVar("Record", Acknowledged, Arrival)


class State(NamedTuple):
    """What Pillarbox says of one recipient."""

    id: str
    token: str
    message_id: str
    recipient: str
    state: str


def token_of(subject: str) -> str:
    """Return the token in a subject, or all of it."""
    return subject[subject.find(TOKEN) :].split()[0] if TOKEN in subject else subject


def acknowledged(path: Path) -> list[Acknowledged]:
    """Return the mails of a client's ledger; one that was acknowledged again under its key counts once."""
    found = {}
    for line in lines_of(path):
        if line["kind"] == "accepted":
            found[line["id"]] = Acknowledged(line["id"], line["token"], tuple(line["to"]))
    return list(found.values())


def arrivals(path: Path) -> list[Arrival]:
    """Return the mails of the far servers' ledger, one line per recipient."""
    return [
        Arrival(
            token=line["token"],
            message_id=line["message_id"],
            recipient=recipient,
            session=line["session"],
            answered=line.get("answered", True),
        )
        for line in lines_of(path)
        if line["kind"] == "taken"
        for recipient in line["recipients"]
    ]


def last_words(path: Path) -> dict[str, str]:
    """Return what the far servers said last of each recipient: taken, refused, or in doubt (taken, and
    not said)."""
    words: dict[str, str] = {}
    for line in lines_of(path):
        if line["kind"] == "limited":
            continue
        outcome = "refused" if line["kind"] == "refused" else "taken" if line["answered"] else "in doubt"
        words.update(dict.fromkeys(line["recipients"], outcome))
    return words


def of_run(run: str, found: Sequence[Record]) -> list[Record]:
    """Return those whose token says that they are of this run of a client."""
    return [each for each in found if each.token.startswith(f"{TOKEN}{run}-")]


async def states(source: asyncpg.Pool | asyncpg.Connection) -> list[State]:
    """Return what the database says of every recipient."""
    return [
        State(
            id=str(row["id"]),
            token=token_of(row["subject"]),
            message_id=row["message_id"],
            recipient=row["address"],
            state=row["state"],
        )
        for row in await source.fetch(STATES)
    ]


async def open_work(source: asyncpg.Pool | asyncpg.Connection) -> int:
    """Return how many work items are left, whoever has them."""
    return int(await source.fetchval("SELECT count(*) FROM deliveries"))


async def uncertain(source: asyncpg.Pool | asyncpg.Connection) -> set[tuple[str, str]]:
    """Return the mails and recipients whose history says that they may have arrived twice."""
    return {(token_of(row["subject"]), row["address"]) for row in await source.fetch(UNCERTAIN)}


@dataclass
class Comparison:
    """What the witnesses say together."""

    accepted: int = 0
    arrived: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: dict[tuple[str, str], int] = field(default_factory=dict)
    stuck: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)

    @property
    def extra(self) -> int:
        """Deliveries beyond one per mail and recipient."""
        return sum(count - 1 for count in self.doubled.values())

    def __str__(self) -> str:
        heads = [f"{self.accepted} accepted, {self.arrived} arrived"]
        for name in ("lost", "doubled", "stuck", "wrong", "strays"):
            found = getattr(self, name)
            heads.append(f"{name} {len(found)}" + (f" ({list(found)[:SHOWN]})" if found else ""))
        return ", ".join(heads)

    def assert_sound(self, *, doubled: int = 0, strays: int = 0) -> None:
        """Assert that nothing is lost, stuck or wrong; at most so many second deliveries and
        unacknowledged mails."""
        assert not self.lost, str(self)
        assert not self.stuck, str(self)
        assert not self.wrong, str(self)
        assert self.extra <= doubled, f"{self.extra} deliveries too many: {self}"
        assert len(self.strays) <= strays, str(self)


def compare(
    accepted: Sequence[Acknowledged], arrived: Sequence[Arrival], known: Sequence[State]
) -> Comparison:
    """Join the three witnesses."""
    found = Comparison(len(accepted), len(arrived))
    taken = Counter((arrival.token, arrival.recipient) for arrival in arrived)
    found.doubled = {key: count for key, count in taken.items() if count > 1}
    fates = _by_email(known)
    for mail in accepted:
        for recipient in mail.recipients:
            _judge(mail, recipient, fates.get(mail.id, {}).get(recipient), taken, found)
    sent = {mail.token for mail in accepted}
    found.strays = sorted({arrival.token for arrival in arrived} - sent)
    found.wrong += _several_names(arrived, known)
    return found


def _judge(
    mail: Acknowledged,
    recipient: str,
    state: str | None,
    taken: Mapping[tuple[str, str], int],
    found: Comparison,
) -> None:
    where = f"{mail.token} to {recipient}"
    has_arrived = (mail.token, recipient) in taken
    if state is None:
        found.lost.append(f"{where} is unknown to the database")
    elif state not in FINAL:
        found.stuck.append(f"{where} is {state}")
    elif state == "delivered" and not has_arrived:
        found.lost.append(f"{where} is said to be delivered")
    elif state != "delivered" and has_arrived:
        found.wrong.append(f"{where} arrived and is {state}")


def _by_email(known: Iterable[State]) -> dict[str, dict[str, str]]:
    fates: dict[str, dict[str, str]] = defaultdict(dict)
    for state in known:
        fates[state.id][state.recipient] = state.state
    return fates


def _several_names(arrived: Iterable[Arrival], known: Iterable[State]) -> list[str]:
    """Return what is wrong with the names of mails. A mail that goes out again keeps its Message-ID, and a
    token has one email."""
    wrong = []
    names: dict[str, set[str]] = defaultdict(set)
    emails: dict[str, set[str]] = defaultdict(set)
    for arrival in arrived:
        names[arrival.token].add(arrival.message_id)
    for state in known:
        names[state.token].add(state.message_id)
        emails[state.token].add(state.id)
    wrong += [f"{token} has Message-IDs {found}" for token, found in names.items() if len(found) > 1]
    wrong += [f"{token} is {len(found)} emails" for token, found in emails.items() if len(found) > 1]
    return wrong
