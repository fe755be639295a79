"""Addresses of people who were erased, to which a team must not write although it does not know them any
more.

All that is left of such an address is a hash, made with a key that lies sealed in the database: whoever has
a copy of the database alone cannot try addresses until one fits. The key is the oldest of the keys of links,
which the installation keeps for ever (docs/decisions/0086). The team is part of what is hashed: the same
address has another hash in each team.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.process.offload import in_thread
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.suppressions import erased_queries as queries

ORIGIN: Final = "erased"
"""The reason for which mail to such an address is skipped."""

PURPOSE: Final = b"pillarbox erased address"
OLDEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
HASH_BYTES: Final = 16
IN_PLACE: Final = 500
"""Addresses whose hashes are made on the event loop, in 4 ms; those of an import are more."""


def _hashes(cipher: AESSIV, team_id: UUID, addresses: Collection[str]) -> dict[bytes, str]:
    context = [PURPOSE, team_id.bytes]
    return {
        cipher.encrypt(b"\0", [*context, address.encode("utf-8", "surrogatepass")])[:HASH_BYTES]: address
        for address in addresses
    }


class AddressErased(Invalid):
    """The address is of somebody who was erased in this team."""

    def __init__(self) -> None:
        super().__init__(
            "The person with this address was erased. Take the erasure back first, if the person asked for "
            "mail again."
        )


class ErasedAddresses:
    """Answers which addresses are erased. A team without erasures costs one look at an index."""

    def __init__(self, keys: LinkKeys) -> None:
        self._keys = keys

    async def hashes(self, team_id: UUID, addresses: Collection[str]) -> dict[bytes, str]:
        """Return these addresses, in the form that is compared, by their hashes."""
        cipher = (await self._keys.maker(OLDEST)).cipher
        if len(addresses) <= IN_PLACE:
            return _hashes(cipher, team_id, addresses)
        return await in_thread(_hashes, cipher, team_id, addresses)

    async def hash_of(self, team_id: UUID, address: str) -> bytes:
        """Return the hash of an address in the form that is compared."""
        [found] = await self.hashes(team_id, [address])
        return found

    async def has_any(self, db: TeamDb) -> bool:
        """Return whether anybody was erased in the team."""
        return await queries.has_erased(db.source, db.team_id)

    async def among(self, source: Source, team_id: UUID, addresses: Collection[str]) -> set[str]:
        """Return those of these addresses that are of erased people."""
        if not addresses or not await queries.has_erased(source, team_id):
            return set()
        return await self.found_among(source, team_id, addresses)

    async def found_among(self, source: Source, team_id: UUID, addresses: Collection[str]) -> set[str]:
        """Return those of these addresses that are of erased people, in a team that is known to have some."""
        hashes = await self.hashes(team_id, addresses)
        return {hashes[found] for found in await queries.erased(source, team_id, list(hashes))}

    async def refuse(self, db: TeamDb, address: str) -> None:
        """Raise AddressErased for an address of somebody who was erased."""
        if await self.among(db.source, db.team_id, [address]):
            raise AddressErased
