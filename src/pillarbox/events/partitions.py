"""Partitions: what events of one contact have in common, so that they are distributed one after the other.

A team has a fixed number of them. Each with events in it has one job.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID
from zlib import crc32

PARTITIONS: Final = 16

JOB: Final = "events.distribute"
"""The job of a partition; its subject says which partition."""


def partition_of(address: str) -> int:
    """Return the partition for the contact of an address, as it is compared. It never changes: events wait
    there."""
    return crc32(address.encode()) % PARTITIONS


def subject_of(partition: int) -> UUID:
    return UUID(int=partition)


def partition_with(subject: UUID) -> int:
    """Return the partition of a job by its subject."""
    return subject.int
