"""The slice of documents: what renders them."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.documents.rendering import DocumentRendering
from pillarbox.kernel.slices import Background, Container, Slice, Stop


def _background(kit: Container) -> Sequence[Background]:
    rendering = kit.need(DocumentRendering)

    async def close(_: float) -> None:
        rendering.close()

    return [Background(stop=(Stop.THREADS, close))]


SLICE = Slice(
    name="documents",
    provides={DocumentRendering: lambda _: DocumentRendering()},
    background=_background,
)
