"""Telling every process which inboxes have changed.

A server does it after the commit, coalesced, so that its commits never come one after the other. A command
has nothing that runs after its commit; there the notification is part of the transaction.

A notification names up to `INBOXES_EACH` inboxes, so a process wakes only those who wait for one of them. One
that is lost, because the connection broke, costs a waiting request two seconds: a listener that has connected
again wakes everybody.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final
from uuid import UUID

import asyncpg

from pillarbox.inboxes.waiting import notify_queries
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import Connection, after_commit
from pillarbox.kernel.postgres.notify import Notifier, NotifyListener

log = get("inboxes")

CHANNEL: Final = "pillarbox_inboxes"
INBOXES_EACH: Final = 200
"""In one notification, whose text must be shorter than 8000 octets."""

_TOKEN_DIGITS: Final = 16
_OF_NOBODY: Final = "0" * _TOKEN_DIGITS
"""In place of the token of a process that wakes its own waiting requests itself."""
_ID_DIGITS: Final = 32

Heard = Callable[[Iterable[UUID]], None]
"""Takes the ids of inboxes that have changed."""

_hearing: dict[int, Heard] = {}
"""The listeners in this process. One for each running program; several in tests only."""


async def changed(conn: Connection, inbox_ids: Iterable[UUID]) -> None:
    """Tell waiting requests, once the transaction of this connection is committed, that these inboxes have
    changed."""
    concerned = frozenset(inbox_ids)
    if not concerned:
        return
    if _hearing:
        after_commit(conn, partial(_tell, concerned))
    else:
        await notify_queries.notify(conn, CHANNEL, _payloads(_OF_NOBODY, concerned))


def _tell(inbox_ids: frozenset[UUID]) -> None:
    for heard in tuple(_hearing.values()):
        heard(inbox_ids)


class ChangeNotifier(Notifier):
    """Tells the other processes. Between `start` and `stop` it hears what is committed in this one."""

    def __init__(self, pool: asyncpg.Pool, wake: Heard) -> None:
        super().__init__(pool, CHANNEL)
        self.token = secrets.token_hex(_TOKEN_DIGITS // 2)
        self._wake = wake
        self._changed: set[UUID] = set()

    async def start(self) -> None:
        _hearing[id(self)] = self._hear

    async def stop(self) -> None:
        _hearing.pop(id(self), None)

    def _hear(self, inbox_ids: Iterable[UUID]) -> None:
        self._wake(inbox_ids)
        self._changed.update(inbox_ids)
        self.notify()

    async def _notify(self) -> None:
        told, self._changed = self._changed, set()
        await notify_queries.notify(self._pool, CHANNEL, _payloads(self.token, told))


class ChangeListener(NotifyListener):
    """Hears what other processes tell; `connected` is called whenever something may have been missed."""

    def __init__(self, url: str, own_token: str, wake: Heard, connected: Callable[[], None]) -> None:
        super().__init__(url, CHANNEL, connected)
        self._own_token = own_token
        self._wake = wake

    def _on_notify(self, *heard: Any) -> None:
        payload: str = heard[-1]
        if payload.startswith(self._own_token):
            return
        try:
            self._wake(_ids(payload))
        except ValueError:
            log.info("inboxes.not_understood", octets=len(payload))


def _payloads(token: str, inbox_ids: Iterable[UUID]) -> list[str]:
    digits = [inbox_id.hex for inbox_id in sorted(inbox_ids)]
    return [token + "".join(digits[at : at + INBOXES_EACH]) for at in range(0, len(digits), INBOXES_EACH)]


def _ids(payload: str) -> list[UUID]:
    return [UUID(payload[at : at + _ID_DIGITS]) for at in range(_TOKEN_DIGITS, len(payload), _ID_DIGITS)]
