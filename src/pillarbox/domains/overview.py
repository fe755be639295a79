"""A team's domains as the operator sees them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.status import domain_state
from pillarbox.kernel.postgres.database import TeamDb

DOMAINS = """
    SELECT id, name, created_at, sending, receiving, sending_ok, receiving_ok, trusted, records
      FROM domains
     WHERE team_id = $1
     ORDER BY name
"""


class OverviewRow(NamedTuple):
    """One domain; `trusted` says that the operator trusts it without DNS."""

    id: UUID
    name: str
    created_at: datetime
    sending: bool
    receiving: bool
    sending_ok: bool
    receiving_ok: bool
    trusted: bool
    states: dict[str, dict[str, Any]]


async def listed(db: TeamDb) -> list[OverviewRow]:
    """The team's domains by name."""
    return await db.all(_row, DOMAINS)


async def statuses(db: TeamDb, domains: list[OverviewRow], here: MailInstallation) -> list[str]:
    """The status of each domain, as the API shows it."""
    proof = await proof_needed(db, here)
    return [
        domain_state(
            sending=domain.sending, receiving=domain.receiving, proof=proof, states=domain.states
        ).value
        for domain in domains
    ]


def _row(*, records: str, **columns: Any) -> OverviewRow:
    return OverviewRow(**columns, states=msgspec.json.decode(records))
