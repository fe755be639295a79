"""How many webhooks and API keys a team may have: a number of its own, or the installation's.

Whoever makes one through the API holds the team's lock of its kind until the commit. So the number that is
counted is still right when it is committed. What exists when a limit is lowered stays.
"""

from __future__ import annotations

from dataclasses import dataclass

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Forbidden
from pillarbox.teams import queries


class TooMany(Forbidden):
    def __init__(self, limit: int, things: str) -> None:
        super().__init__(f"Your team may have at most {limit} {things}.")


async def hold_count(db: TeamDb, things: str) -> None:
    """Keep others from adding one of these to the team until the transaction ends."""
    await queries.hold_count(db, things)


@dataclass(frozen=True, slots=True)
class Allowances:
    """The installation's numbers."""

    webhooks: int = 50
    api_keys: int = 1000

    async def admit_webhook(self, db: TeamDb) -> None:
        """Raise a 403 where the team has its share of webhooks, disabled ones included."""
        await queries.hold_count(db, "webhooks")
        found = await queries.webhooks(db)
        _refuse(found, self.webhooks, "webhooks")

    async def admit_api_key(self, db: TeamDb) -> None:
        """Raise a 403 where the team has its share of API keys."""
        await queries.hold_count(db, "API keys")
        found = await queries.api_keys(db)
        _refuse(found, self.api_keys, "API keys")


def _refuse(resource_count: queries.ResourceCount, usual: int, things: str) -> None:
    most = usual if resource_count.most is None else resource_count.most
    if resource_count.there >= most:
        raise TooMany(most, things)
