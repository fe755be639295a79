"""The slice of claims of domain names: their routes, and the jobs that decide them."""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.domains.claims import routes
from pillarbox.domains.claims.jobs import JOB_LIMIT, KEPT, ClaimJudge, claim_periodic
from pillarbox.domains.claims.policy import JOB, ClaimRules
from pillarbox.domains.claims.settings import CLAIM_GRACE, CLAIM_QUIET, CLAIM_SCHEDULED, CLAIM_TOKEN_PREFIX
from pillarbox.domains.claims.transfer import OwnerActivity, Transfers
from pillarbox.domains.context import DomainContext
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.network.dns_answers import UncachedDns
from pillarbox.kernel.slices import Container, Retention, RetentionItem, Slice
from pillarbox.kernel.work.jobs import Handler


def _rules(kit: Container) -> ClaimRules:
    settings = kit.settings
    return ClaimRules(
        settings[CLAIM_GRACE],
        settings[CLAIM_QUIET],
        settings[CLAIM_SCHEDULED],
        settings[CLAIM_TOKEN_PREFIX],
    )


def _jobs(kit: Container) -> Mapping[str, Handler]:
    activity: OwnerActivity = kit.need(OwnerActivity)  # type: ignore[type-abstract]
    transfers = Transfers(kit.pool, kit.need(DomainContext), kit.need(ClaimRules), activity)
    dns: UncachedDns = kit.need(UncachedDns)  # type: ignore[type-abstract]
    return {JOB: ClaimJudge(kit.pool, kit.clock, dns, transfers).run}


SLICE = Slice(
    name="claims",
    provides={ClaimRules: _rules},
    routes=collect(routes),
    jobs=_jobs,
    job_limits=lambda _: [JOB_LIMIT],
    retention=[
        Retention(
            [RetentionItem("claims of domains that are over, but for the latest of each domain", KEPT)],
            lambda kit: claim_periodic(kit.pool, kit.clock),
        )
    ],
)
