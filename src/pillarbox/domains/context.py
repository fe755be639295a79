"""The parts that changing a domain needs besides the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from pillarbox.domains.installation import MailInstallation
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.webhooks.publish import Publisher


async def _nothing(db: TeamDb, domain_id: UUID) -> None:
    """Do nothing, where nothing hangs on domains."""


@dataclass(frozen=True, slots=True)
class DomainDependents:
    """The hook of a higher slice whose data does not outlive its domain. `remove` is called in the
    transaction that deletes the domain, which is locked."""

    remove: Callable[[TeamDb, UUID], Awaitable[None]] = _nothing


@dataclass(frozen=True, slots=True)
class DomainContext:
    here: MailInstallation
    ring: KeyRing
    ids: Ids
    publisher: Publisher
    dependents: DomainDependents = DomainDependents()
