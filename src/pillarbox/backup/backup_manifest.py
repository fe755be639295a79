"""The manifest of a backup. It is the file that is written last, so a backup that has one is complete."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct, UnsetType

from pillarbox.backup.failure import BackupError
from pillarbox.kernel.postgres.migrations import MigrationRow

FORMAT = 2
KNOWN_FORMATS = (1, 2)
"""The second one names the installation."""

DUMP = "database.dump"
INDEX = "blobs.index"
KEYS = "keys.json"
MANIFEST = "manifest.json"
MOST_LISTED = 1000
"""Missing blobs that the manifest names; all of them are counted."""


class BackupFile(Struct, frozen=True):
    """A file of the backup."""

    size: int
    sha256: str


class AppliedMigration(Struct, frozen=True):
    """A row of `schema_migrations`."""

    version: int
    name: str
    checksum: str
    applied_at: datetime
    compatible_since: int | None

    @classmethod
    def of(cls, applied: MigrationRow) -> AppliedMigration:
        return cls(*applied)


class BlobCounts(Struct, frozen=True):
    """The blobs that the snapshot names. `copied` were written by this backup, the rest was there already."""

    blobs: int
    octets: int
    copied: int
    missing: int
    missing_keys: list[str]


class KeyRingInfo(Struct, frozen=True):
    """The ids of the ring's keys, the active one first, and whether the backup has the ring."""

    ids: list[str]
    included: bool


class BackupManifest(Struct, frozen=True):
    """One backup. `checksum` is that of the manifest itself, taken while it is empty. `store_id` tells
    installations apart: it is the id of the blob store of the database, unset before there is one."""

    format: int
    name: str
    program: str
    server: int
    schema_version: int
    migrations: list[AppliedMigration]
    started_at: datetime
    snapshot_at: datetime
    finished_at: datetime
    files: dict[str, BackupFile]
    tables: dict[str, int]
    open_work: dict[str, int]
    blobs: BlobCounts
    key_ring: KeyRingInfo
    checksum: str = ""
    store_id: UUID | UnsetType = UNSET

    @property
    def octets(self) -> int:
        """The size of everything that a restore reads."""
        return sum(file.size for file in self.files.values()) + self.blobs.octets


def encoded(manifest: BackupManifest) -> bytes:
    """Return the text of the file, with its checksum."""
    bare = msgspec.json.encode(msgspec.structs.replace(manifest, checksum=""))
    whole = msgspec.structs.replace(manifest, checksum=sha256(bare).hexdigest())
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def decoded(text: bytes, name: str) -> BackupManifest:
    """Return the manifest in the file of the backup `name`; BackupError where it is damaged, belongs to
    another backup, or has a format that this release does not know."""
    try:
        head = msgspec.json.decode(text, type=dict)
        if head.get("format") not in KNOWN_FORMATS:
            raise BackupError(
                f"The backup {name} has the format {head.get('format')!r}, which this release does not know."
            )
        found = msgspec.json.decode(text, type=BackupManifest)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BackupError(f"The manifest of the backup {name} is damaged.") from None
    bare = msgspec.json.encode(msgspec.structs.replace(found, checksum=""))
    if found.checksum != sha256(bare).hexdigest() or found.name != name:
        raise BackupError(f"The manifest of the backup {name} is damaged.")
    return found
