"""The interface between the HTTP pipeline and the request log (contract decision 34), as a Protocol.

The row of a write is committed with the write: in the route's transaction, or where a handler commits by
itself, by `recorded`. The row of a write that failed is committed before the answer, in a transaction of its
own. Rows of reads are gathered, and dropped under pressure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from pillarbox.kernel.postgres.combined_statement import Statement
from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.security.authentication import Caller

UNREADABLE: Final = object()
"""The body of a request that is no JSON."""

READS: Final = frozenset({"GET", "HEAD"})


class RequestRecord:
    """A request as the log tells of it. `body` is what was parsed and `size` the number of its bytes, 0 when
    there was none; `masked_sizes` are those of a large body as it is logged, where the request was accepted
    and where it was refused; `status` is what the route answers where all goes well. `is_kept` says that the
    row is committed already, `is_open` that no answer of this kind can hold a secret."""

    __slots__ = (
        "at",
        "body",
        "endpoint",
        "id",
        "is_kept",
        "is_open",
        "masked_sizes",
        "method",
        "size",
        "status",
        "team_id",
        "user_agent",
    )

    def __init__(
        self,
        *,
        team_id: UUID,
        id: UUID,
        instant: datetime,
        endpoint: str,
        method: str,
        user_agent: bytes | None,
        status: int,
    ) -> None:
        self.team_id = team_id
        self.id = id
        self.at = instant
        self.endpoint = endpoint
        self.method = method
        self.user_agent = user_agent
        self.status = status
        self.body: Any = None
        self.size = 0
        self.masked_sizes: tuple[int, int] | None = None
        self.is_kept = False
        self.is_open = False


class LoggedContent(NamedTuple):
    """The html and text of an email that the request made: they are stored with the email."""

    html: str | None
    text: str | None


class ResponseRecord(NamedTuple):
    """A request with its answer; `contents` are those of the emails in the answer, in its order."""

    asked: RequestRecord
    status: int
    body: bytes | None
    contents: Sequence[LoggedContent] = ()


class RequestLogWriter(Protocol):
    """The log of requests."""

    def keeps(self, caller: Caller) -> bool:
        """Return whether there is a log for this caller's team."""
        ...

    def measure(self, asked: RequestRecord) -> None:
        """Find out how much would be kept of a large body. Takes long: to be called in a thread."""
        ...

    def rows(self, answered: Sequence[ResponseRecord]) -> Statement | None:
        """Return the statement that writes these rows, to be combined with other statements; None where there
        is nothing to write."""
        ...

    async def keep(self, conn: Source, answered: Sequence[ResponseRecord]) -> None:
        """Write rows in the caller's transaction, or in one of their own."""
        ...

    async def keep_alone(self, answered: ResponseRecord) -> None:
        """Commit a row; gives up where that cannot be done, and never raises."""
        ...

    def keep_later(self, answered: ResponseRecord) -> None:
        """Write the row within a second, unless there is too much to do."""
        ...


class NoRequestLog:
    """Where nothing is logged."""

    def keeps(self, caller: Caller) -> bool:
        return False

    def measure(self, asked: RequestRecord) -> None:
        """Do nothing."""

    def rows(self, answered: Sequence[ResponseRecord]) -> Statement | None:
        """Return None: there is no row."""

    async def keep(self, conn: Source, answered: Sequence[ResponseRecord]) -> None:
        """Do nothing."""

    async def keep_alone(self, answered: ResponseRecord) -> None:
        """Do nothing."""

    def keep_later(self, answered: ResponseRecord) -> None:
        """Do nothing."""
