"""Which addresses mail is accepted for (receiving.md 5.1, SMTP-16, SMTP-17); everything else is no relay.

What a domain means is asked of the database for all domains that are being asked about at once, and is
kept for a second; so a change counts at the latest one second later in every process. So are the receiving
addresses of inboxes, which lie at the installation's own domain. Which inbox gets a mail is not found out
here but when it is stored (`arrivals`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.directory import domains, inboxes
from pillarbox.inboxes.inbox.addresses import meant_by
from pillarbox.inboxes.policy import refusals
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.postgres.time_limit import TimeLimit, shared
from pillarbox.mail.message.address import AddressError, parse_domain, wire_local
from pillarbox.receiving.arrivals.inbox_addresses import receiving_local
from pillarbox.receiving.reports.return_path import FEEDBACK
from pillarbox.receiving.storage import Storage
from pillarbox.teams import bootstrap, slugs

KEPT: Final = 1.0
MOST_KEPT: Final = 10_000
OPERATORS: Final = frozenset(("postmaster", "abuse"))
ROUTED: Final = frozenset("%!@")
"""Characters that once sent a mail on to somewhere else; no local part with one of them is ours."""


class AddressRefusalReason(Enum):
    """Why an address is not accepted."""

    RELAY = "its domain is not ours"
    UNKNOWN = "there is no such address at a domain of ours"
    FULL = "its team has no room for more mail"


class ForTeam(NamedTuple):
    """The mail is stored for this team; `address` is the recipient in the form of the wire. With `refuses` an
    inbox of the team refuses the mail of some senders."""

    team_id: UUID
    address: str
    refuses: bool = False


class ForBounces(NamedTuple):
    """The mail is a report about mail that we sent: by the token, or by itself at the feedback address."""

    token: str
    address: str


Place = ForTeam | ForBounces | AddressRefusalReason


@dataclass(frozen=True, slots=True)
class AddressRules:
    """The operator's settings. Domains are in lower case."""

    hostname: str
    inbound_domain: str | None = None
    require_dns: bool = True


class _DomainUse(NamedTuple):
    """The use of a domain, which holds for all its addresses; `operators` is the other team that gets mail to
    postmaster. `takes_feedback`: no team receives here but one whose return path this is."""

    team_id: UUID | None
    is_return_path: bool
    takes_feedback: bool
    operators: UUID | None
    is_full: bool = False
    refuses: bool = False


class AddressLookup:
    """Finds the place of an address. `is_return_path` says whether a local part is a bounce address that we
    made."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        clock: Clock,
        rules: AddressRules,
        is_return_path: Callable[[str], bool],
        storage: Storage,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._rules = rules
        self._is_return_path = is_return_path
        self._storage = storage
        self._own = frozenset(name for name in (rules.hostname, rules.inbound_domain) if name)
        self._kept: dict[str, tuple[float, _DomainUse]] = {}
        self._asked: dict[str, asyncio.Future[_DomainUse]] = {}
        self._asking: asyncio.Task[None] | None = None

    def at_hand(self, local: str, domain: str) -> Place | None:
        """Return the place of `local@domain` as far as it is known now; None where `find` has to ask. A bare
        `postmaster` has the domain ""."""
        name = self._named(local, domain)
        if name is None:
            return AddressRefusalReason.RELAY
        kept = self._kept.get(self._asked_as(local, name))
        if kept is None or kept[0] < self._clock.boottime():
            return None
        return self._place(local, name, kept[1])

    async def find(self, local: str, domain: str) -> Place:
        """Return the place of `local@domain`; raises the errors of the database."""
        found = self.at_hand(local, domain)
        if found is not None:
            return found
        name = self._named(local, domain) or ""
        return self._place(local, name, await self._meaning(self._asked_as(local, name)))

    def _asked_as(self, local: str, name: str) -> str:
        """Return the key of the lookup: the domain, or the receiving address of an inbox."""
        if name != self._rules.inbound_domain or self._is_return_path(local):
            return name
        label = receiving_local(local)
        return name if label is None else f"{label}@{name}"

    def _named(self, local: str, domain: str) -> str | None:
        """Return the domain in the form in which it is looked up; None where the address cannot be ours."""
        if not ROUTED.isdisjoint(local):
            return None
        if not domain:
            return self._rules.hostname
        name = domain.lower()
        if name.isascii() and name.replace(".", "").replace("-", "").isalnum() and "xn--" not in name:
            return name
        try:
            return parse_domain(domain)
        except AddressError:
            return None

    def _place(self, local: str, name: str, meaning: _DomainUse) -> Place:
        address = f"{wire_local(local)}@{name}"
        is_own = name in self._own
        if (meaning.is_return_path or is_own) and self._is_return_path(local):
            return ForBounces(local, address)
        if local.lower() == FEEDBACK and (meaning.takes_feedback or is_own):
            return ForBounces("", address)
        if meaning.team_id is not None:
            is_for_operator = local.lower() in OPERATORS
            if meaning.is_full and not is_for_operator:
                return AddressRefusalReason.FULL
            return ForTeam(meaning.team_id, address, meaning.refuses and not is_for_operator)
        if is_own:
            operators = meaning.operators if local.lower() in OPERATORS else None
            return AddressRefusalReason.UNKNOWN if operators is None else ForTeam(operators, address)
        return AddressRefusalReason.UNKNOWN if meaning.is_return_path else AddressRefusalReason.RELAY

    async def refuses(self, place: ForTeam, sender: str) -> bool:
        """Return whether the inbox at this address refuses mail of this envelope sender (inboxes.md 3.7);
        raises the errors of the database."""
        db = TeamDb(self._pool, place.team_id)
        return await refusals.refuses(db, meant_by(place.address), sender)

    # Asking ------------------------------------------------------------------------------------------

    async def _meaning(self, name: str) -> _DomainUse:
        asked = self._asked.get(name)
        if asked is None:
            asked = self._asked[name] = asyncio.get_running_loop().create_future()
            if self._asking is None:
                self._asking = asyncio.create_task(self._ask())
        return await shared(asked)

    async def _ask(self) -> None:
        """Answer everybody who asks, all who came meanwhile together."""
        try:
            while self._asked:
                asked, self._asked = self._asked, {}
                try:
                    with TimeLimit():
                        found = await self._look_up(list(asked))
                except Exception as trouble:
                    for answer in asked.values():
                        answer.set_exception(trouble)
                else:
                    for name, answer in asked.items():
                        answer.set_result(found[name])
        finally:
            self._asking = None

    async def _look_up(self, asked: Sequence[str]) -> dict[str, _DomainUse]:
        at = self._clock.boottime()
        found: dict[str, _DomainUse] = {}
        if addresses := [one for one in asked if "@" in one]:
            found |= await self._of_inboxes(addresses)
        if names := [one for one in asked if "@" not in one]:
            found |= await self._of_domains(names)
        if len(self._kept) + len(found) > MOST_KEPT:
            self._kept.clear()
        self._kept.update((name, (at + KEPT, meaning)) for name, meaning in found.items())
        return found

    async def _of_inboxes(self, addresses: Sequence[str]) -> dict[str, _DomainUse]:
        """Return the use of each receiving address; one that is of no inbox has no team."""
        at = await inboxes.at(self._pool, addresses)
        full = await self._storage.full({one.team_id for one in at.values()})
        teams = {address: one.team_id for address, one in at.items()}
        found = {
            address: _meaning_of(teams.get(address), (), None, teams.get(address) in full)
            for address in addresses
        }
        return await self._with_refusing(found)

    async def _of_domains(self, names: Sequence[str]) -> dict[str, _DomainUse]:
        known = await domains.receivers_of(self._pool, names, require_dns=self._rules.require_dns)
        by_slug = await self._by_slug(names)
        operators = None
        if not self._own.isdisjoint(names):
            operators = await bootstrap.operators_team(self._pool)
        # What lies below the installation's own domain is no team's to take, whatever one has added.
        teams = {name: by_slug.get(name) or receivers.team_id for name, receivers in known.items()}
        full = await self._storage.full({team for team in teams.values() if team is not None})
        return await self._with_refusing(
            {
                name: _meaning_of(teams[name], receivers.senders, operators, teams[name] in full)
                for name, receivers in known.items()
            }
        )

    async def _with_refusing(self, uses: dict[str, _DomainUse]) -> dict[str, _DomainUse]:
        """Return them with the teams marked that have an inbox which refuses senders."""
        teams = {use.team_id for use in uses.values() if use.team_id is not None}
        refusing = await refusals.refusing(self._pool, teams) if teams else frozenset()
        if not refusing:
            return uses
        return {name: use._replace(refuses=use.team_id in refusing) for name, use in uses.items()}

    async def _by_slug(self, names: Sequence[str]) -> dict[str, UUID]:
        """Return the teams that receive at the installation's own domain."""
        if self._rules.inbound_domain is None:
            return {}
        end = f".{self._rules.inbound_domain}"
        labels = [name.removesuffix(end) for name in names if name.endswith(end)]
        teams = await slugs.teams_of(self._pool, labels) if labels else {}
        return {f"{label}{end}": team for label, team in teams.items()}


def _meaning_of(
    team_id: UUID | None, senders: Collection[UUID], operators: UUID | None, is_full: bool
) -> _DomainUse:
    takes_feedback = bool(senders) and (team_id is None or team_id in senders)
    return _DomainUse(
        team_id=team_id,
        is_return_path=bool(senders),
        takes_feedback=takes_feedback,
        operators=operators,
        is_full=is_full,
    )
