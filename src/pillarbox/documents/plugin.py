"""The slice of documents: what renders them, their pictures, and the checks of their links."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.documents import routes
from pillarbox.documents.images import REFUSAL, Images
from pillarbox.documents.link_checks.checks import LinkChecks
from pillarbox.documents.link_checks.jobs import KEPT, LIMIT, LinkCheckJobs
from pillarbox.documents.rendering import DocumentRendering
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.slices import Background, Container, Retention, RetentionItem, Slice, Stop
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.work.jobs import Jobs
from pillarbox.kernel.work.team_turns import TeamTurns


def _background(kit: Container) -> Sequence[Background]:
    rendering = kit.need(DocumentRendering)

    async def close(_: float) -> None:
        rendering.close()

    return [Background(stop=(Stop.THREADS, close))]


def _images(kit: Container) -> Images:
    return Images(
        pool=kit.pool,
        blobs=kit.need(BlobStore),
        ids=kit.need(Ids),
        public_url=kit.settings.public_url,
        turns=TeamTurns(1, REFUSAL),
    )


def _link_checks(kit: Container) -> LinkChecks:
    def wake() -> None:
        # Not before: jobs need parts that are built later.
        kit.need(Jobs).wake()

    return LinkChecks(kit.need(Ids), wake)


SLICE = Slice(
    name="documents",
    provides={
        DocumentRendering: lambda _: DocumentRendering(),
        Images: _images,
        LinkChecks: _link_checks,
        LinkCheckJobs: lambda kit: LinkCheckJobs(kit.engine_pool, kit.clock, kit.need(Outbound)),
    },
    pages=collect(routes),
    background=_background,
    jobs=lambda kit: kit.need(LinkCheckJobs).handlers(),
    job_limits=lambda _: [LIMIT],
    retention=[
        Retention(
            [RetentionItem("results of checks of links in drafts and templates", KEPT)],
            lambda kit: kit.need(LinkCheckJobs).periodic(),
        )
    ],
)
