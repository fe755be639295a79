"""Beginning checks of links, and what is known of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from pillarbox.documents.link_checks import queries
from pillarbox.documents.link_checks.mail_links import MailLinks
from pillarbox.documents.link_checks.queries import JOB, KnownLink, NewLink
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb, after_commit
from pillarbox.kernel.work import job_queries
from pillarbox.kernel.work.job_queries import NewJob
from pillarbox.teams.allowances import TooMany, hold_count

FRESH: Final = timedelta(hours=1)
"""So long a team does not ask for the same link again."""

MOST_WAITING: Final = 500
"""Links of a team that wait for their check."""


class CheckedLink(NamedTuple):
    """A link of a mail; `known` is None where nobody has asked for its check."""

    url: str
    known: KnownLink | None


@dataclass(frozen=True, slots=True)
class LinkChecks:
    """Begins checks. `wake` tells the jobs of this process that there are some."""

    ids: Ids
    wake: Callable[[], None]

    async def begin(self, db: TeamDb, links: MailLinks) -> None:
        """Let the links be checked that were not within the last hour; raises TooMany."""
        if not links.urls:
            return
        now = self.ids.now()
        wanted = [NewLink(link_id(url), url) for url in links.urls]
        async with db.joined_transaction() as inside:
            await hold_count(inside, "link checks")
            new = await queries.ask(inside, wanted, now, now - FRESH)
            if not new:
                return
            if await queries.count_waiting(inside) > MOST_WAITING:
                raise TooMany(MOST_WAITING, "links that wait for their check")
            await job_queries.add_several(
                inside.source, [self._job(inside.team_id, link, now) for link in new]
            )
            after_commit(inside.connection, self.wake)

    def _job(self, team_id: UUID, link: NewLink, now: datetime) -> NewJob:
        return NewJob(
            team_id=team_id,
            id=self.ids.new(),
            kind=JOB,
            subject_id=link.id,
            due_at=now,
            site=urlsplit(link.url).netloc,
        )


async def checked_links(db: TeamDb, links: MailLinks) -> Sequence[CheckedLink]:
    """Return the links of a mail with what is known of them, in its order."""
    if not links.urls:
        return ()
    ids = [link_id(url) for url in links.urls]
    found = {known.id: known for known in await queries.known(db, ids)}
    return [CheckedLink(url, found.get(one)) for url, one in zip(links.urls, ids, strict=True)]


def link_id(url: str) -> UUID:
    """Return the id of a link, which is the same for the same URL."""
    return UUID(bytes=hashlib.sha256(url.encode()).digest()[:16])
