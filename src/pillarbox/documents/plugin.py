"""The slice of documents: what renders them, and their pictures."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.documents import routes
from pillarbox.documents.images import REFUSAL, Images
from pillarbox.documents.rendering import DocumentRendering
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Background, Container, Slice, Stop
from pillarbox.kernel.storage.blobs import BlobStore
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


SLICE = Slice(
    name="documents",
    provides={DocumentRendering: lambda _: DocumentRendering(), Images: _images},
    pages=collect(routes),
    background=_background,
)
