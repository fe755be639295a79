"""Opening a claim (domains.md section 5.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pillarbox.directory import domains as directory
from pillarbox.domains import queries as domain_queries
from pillarbox.domains.claims import queries
from pillarbox.domains.claims.ending import drop_job
from pillarbox.domains.claims.policy import JOB, LIFETIME, OPEN, REUSABLE, ClaimRules, Status
from pillarbox.domains.claims.queries import ClaimOptions, DomainClaim
from pillarbox.domains.claims.wire import NewClaim, options_of
from pillarbox.domains.context import DomainContext
from pillarbox.domains.create import (
    AlreadyRegistered,
    add,
    make_key,
    refuse_same_label,
    registrable_name,
)
from pillarbox.domains.domain_events import UPDATED, publish
from pillarbox.domains.queries import Domain, DomainNameUse, StoredKey
from pillarbox.kernel.ids import Stamp
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import InvalidField
from pillarbox.kernel.work import job_queries


class NothingToClaim(InvalidField):
    """Also where another team holds the name unverified: that it does is nobody's business."""

    def __init__(self) -> None:
        super().__init__(
            "name", "No other team has verified this domain, so add it with `POST /domains` instead."
        )


class OpenedClaim(NamedTuple):
    """A claim, and whether it is a new one."""

    claim: DomainClaim
    new: bool


class PreparedClaim(NamedTuple):
    """The name and options of a claim to open, and the key of its placeholder, where a new one is needed."""

    name: str
    options: ClaimOptions
    key: StoredKey | None


async def prepared(db: TeamDb, new_claim: NewClaim, context: DomainContext) -> PreparedClaim:
    """Return the claim that a request asks for, checked, with a key for a new placeholder. `db` must not be
    inside a transaction: making a key takes long, and no transaction waits for one."""
    name = registrable_name(new_claim.name, context.here)
    options = options_of(new_claim)
    refuse_same_label(options.tracking_subdomain, options.return_path)
    key = None
    if await domain_queries.place(db, name) is None:
        if not await directory.owned_elsewhere(db, name):
            raise NothingToClaim
        key = await make_key(context)
    return PreparedClaim(name, options, key)


async def open_claim(
    db: TeamDb, ready: PreparedClaim, context: DomainContext, rules: ClaimRules
) -> OpenedClaim:
    """Open the team's claim for the name, in the transaction that `db` stands for."""
    name, options, key = ready
    await directory.hold_name(db, name)
    place = await domain_queries.place(db, name)
    last = None if place is None else await queries.latest(db, place.domain_id)
    now = context.ids.now()
    if last is not None and last.status in OPEN:
        if last.options == options and not (last.status is Status.PENDING and last.expires_at <= now):
            return OpenedClaim(last, False)
        await queries.close(db, last.id, Status.SUPERSEDED)
        await drop_job(db, last.id)
    elif place is not None and (place.owned or last is None or last.status not in REUSABLE):
        raise AlreadyRegistered(name)
    if not await directory.owned_elsewhere(db, name):
        raise AlreadyRegistered(name) if place is not None else NothingToClaim()
    if place is None:
        domain_stamp, claim_stamp = context.ids.stamp(), context.ids.stamp()
        claim = _new_claim(name, options, domain_stamp, claim_stamp, context, rules)
        await _add_place(db, claim, domain_stamp, context, key or await make_key(context))
    else:
        claim = _new_claim(name, options, Stamp(place.domain_id, now), context.ids.stamp(), context, rules)
        await _reuse_place(db, place, claim, context)
    await queries.insert(db, claim)
    await job_queries.restart(db, context.ids.new(), JOB, claim.id, claim.expires_at, claim.created_at)
    return OpenedClaim(claim, True)


def _new_claim(
    name: str, options: ClaimOptions, domain: Stamp, stamp: Stamp, context: DomainContext, rules: ClaimRules
) -> DomainClaim:
    return DomainClaim(
        id=stamp.id,
        name=name,
        domain_id=domain.id,
        token=f"{rules.prefix}={context.ids.token()}",
        options=options,
        status=Status.PENDING,
        blocked_reason=None,
        failure_reason=None,
        created_at=stamp.at,
        expires_at=stamp.at + LIFETIME,
        checking_since=None,
        blocked_since=None,
    )


async def _add_place(
    db: TeamDb, claim: DomainClaim, stamp: Stamp, context: DomainContext, key: StoredKey
) -> None:
    options = claim.options
    domain = Domain(
        id=stamp.id,
        name=claim.name,
        region=options.region,
        created_at=stamp.at,
        return_path=options.return_path,
        tracking_subdomain=options.tracking_subdomain,
        open_tracking=options.open_tracking,
        click_tracking=options.click_tracking,
        tls="opportunistic",
        sending=True,
        receiving=False,
        selector=key.selector,
        public_key=key.public_key,
        claim_id=claim.id,
    )
    await add(db, domain, key, context)


async def _reuse_place(db: TeamDb, place: DomainNameUse, claim: DomainClaim, context: DomainContext) -> None:
    before = await domain_queries.lock(db, place.domain_id)
    assert before is not None, "the name is held, so its domain stays"
    await job_queries.remove(db, place.domain_id)
    await queries.reuse_place(db, place.domain_id, claim.id, claim.options)
    after = await domain_queries.get(db, place.domain_id)
    assert after is not None
    if replace(before, claim_id=None) != replace(after, claim_id=None) or before.claim_id is None:
        await publish(db, context, UPDATED, after)
