"""Adding a domain: its name is checked, its DKIM key made, and both stored together."""

from __future__ import annotations

import asyncio
from datetime import datetime
from uuid import UUID

import asyncpg

from pillarbox.directory import domains as directory
from pillarbox.domains import queries
from pillarbox.domains.context import DomainContext
from pillarbox.domains.domain_events import CREATED, publish
from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.names import NotADomain, is_public_suffix, normalised
from pillarbox.domains.queries import Domain, StoredKey
from pillarbox.domains.senders import seal_context
from pillarbox.domains.wire import NewDomain, WantedCapabilities
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Forbidden, InvalidField
from pillarbox.mail.authentication.dkim import generate_rsa_key


class AlreadyRegistered(Forbidden):
    def __init__(self, name: str) -> None:
        super().__init__(f"The domain {name[:100]} has been registered already.")


class OwnedElsewhere(Forbidden):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"The domain {name[:100]} is verified by another team. "
            "If it is yours, claim it with `POST /domains/claim`."
        )


class TooManyDomains(Forbidden):
    def __init__(self, limit: int) -> None:
        super().__init__(f"Your team may have at most {limit} domains.")


class NoCapability(InvalidField):
    def __init__(self) -> None:
        super().__init__("capabilities", "At least one of `sending` and `receiving` must be `enabled`.")


async def create(db: TeamDb, new_domain: NewDomain, context: DomainContext) -> Domain:
    """Create a domain with its key, and commit it."""
    domain, key = await prepared(db, new_domain, context)
    async with db.transaction() as inner:
        await add(inner, domain, key, context)
    return domain


async def prepared(db: TeamDb, new_domain: NewDomain, context: DomainContext) -> tuple[Domain, StoredKey]:
    """Return a new domain with its key, not stored yet. `db` must not be inside a transaction: making a key
    takes a tenth of a second, and no transaction waits for it."""
    name = registrable_name(new_domain.name, context.here)
    refuse_options(new_domain)
    await refuse_taken(db, name, context.here)
    stamp = context.ids.stamp()
    key = await make_key(context)
    return drafted(new_domain, name, key, stamp.id, stamp.at), key


async def add(db: TeamDb, domain: Domain, key: StoredKey, context: DomainContext) -> None:
    """Store a domain with its key and publish the event, in the transaction that `db` stands for."""
    most = await queries.allowed(db, context.here.most_domains)
    if most is not None:
        await refuse_too_many(db, most)
    try:
        await queries.insert(db, domain)
    except asyncpg.UniqueViolationError as clash:
        if clash.constraint_name != "domains_team_name_key":
            raise
        raise AlreadyRegistered(domain.name) from None
    await queries.insert_key(db, domain.id, key)
    await directory.add(db, domain.name, domain.id)
    await publish(db, context, CREATED, domain)


async def refuse_too_many(db: TeamDb, limit: int) -> None:
    """Raise 403 where the team has as many domains as it may; until the transaction ends nobody else adds
    to it."""
    await queries.hold_count(db)
    if await queries.count(db) >= limit:
        raise TooManyDomains(limit)


def registrable_name(text: str, here: MailInstallation) -> str:
    """Return the normal form of a name that may be added, or raise 422."""
    try:
        name = normalised(text)
    except NotADomain as wrong:
        raise InvalidField("name", str(wrong)) from None
    if is_public_suffix(name):
        raise InvalidField("name", "It is a public suffix, under which others register.")
    if here.reserves(name):
        raise InvalidField("name", "It is reserved by this installation.")
    return name


def refuse_options(new_domain: NewDomain) -> None:
    """Raise 422 for options that contradict each other."""
    capabilities = new_domain.capabilities
    if capabilities and "enabled" not in (capabilities.sending, capabilities.receiving):
        raise NoCapability
    refuse_same_label(new_domain.tracking_subdomain, new_domain.custom_return_path)


def refuse_same_label(tracking: str | None, return_path: str) -> None:
    """Raise 422 where both would be the same name: a CNAME stands alone."""
    if tracking and tracking.lower() == return_path.lower():
        raise InvalidField("tracking_subdomain", "It must differ from the return path.")


async def refuse_taken(db: TeamDb, name: str, here: MailInstallation) -> None:
    """Raise 403 for a name that cannot be added, before a key is made for it; the insert settles races."""
    if await queries.id_of(db, name) is not None:
        raise AlreadyRegistered(name)
    if await directory.owned_elsewhere(db, name):
        raise OwnedElsewhere(name)
    most = await queries.allowed(db, here.most_domains)
    if most is not None and await queries.count(db) >= most:
        raise TooManyDomains(most)


async def make_key(context: DomainContext) -> StoredKey:
    """Make a DKIM key for this installation's selector, in a thread, and seal it."""
    pair = await asyncio.to_thread(generate_rsa_key)
    key_id = context.ids.new()
    sealed = context.ring.seal(pair.private, seal_context(key_id))
    return StoredKey(
        id=key_id,
        selector=context.here.selector,
        public_key=pair.public,
        sealed=sealed,
        created_at=context.ids.now(),
    )


def drafted(new_domain: NewDomain, name: str, key: StoredKey, domain_id: UUID, instant: datetime) -> Domain:
    """Return the row of a domain that was asked for."""
    capabilities = new_domain.capabilities or WantedCapabilities()
    return Domain(
        id=domain_id,
        name=name,
        region=new_domain.region,
        created_at=instant,
        return_path=new_domain.custom_return_path.lower(),
        tracking_subdomain=new_domain.tracking_subdomain and new_domain.tracking_subdomain.lower(),
        open_tracking=new_domain.open_tracking,
        click_tracking=new_domain.click_tracking,
        tls=new_domain.tls,
        sending=capabilities.sending == "enabled",
        receiving=capabilities.receiving == "enabled",
        selector=key.selector,
        public_key=key.public_key,
    )
