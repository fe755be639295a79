"""The slice of personal data: the file of a person, and the erasure of a person."""

from __future__ import annotations

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Container, Slice
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.personal_data import routes
from pillarbox.personal_data.erasing import LIMIT, Erasure, Erasures
from pillarbox.personal_data.export import readers_of
from pillarbox.personal_data.invariants import INVARIANTS
from pillarbox.personal_data.person import People
from pillarbox.suppressions.erased_addresses import ErasedAddresses


def _erasures(kit: Container) -> Erasures:
    sources = [source for entry in kit.slices for source in entry.personal_data]
    parts = [
        Erasure(source.name, source.eraser(kit))
        for source in sorted(sources, key=lambda source: source.order)
    ]
    erased = kit.need(ErasedAddresses)
    return Erasures(kit.engine_pool, kit.clock, kit.need(Ids), kit.need(BlobStore), erased, parts)


def _people(kit: Container) -> People:
    readers = readers_of(source for entry in kit.slices for source in entry.personal_data)
    return People(kit.need(Erasures), kit.need(ErasedAddresses), readers)


SLICE = Slice(
    name="personal_data",
    provides={Erasures: _erasures, People: _people},
    routes=collect(routes),
    jobs=lambda kit: kit.need(Erasures).handlers(),
    job_limits=lambda _: [LIMIT],
    invariants=INVARIANTS,
)
