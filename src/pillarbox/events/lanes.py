"""Lanes: what events of one contact have in common, so that they are distributed one after the other.

A team has a fixed number of them. Each with events in it has one job.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID
from zlib import crc32

LANES: Final = 16

JOB: Final = "events.distribute"
"""The job of a lane; its subject says which lane."""


def lane_of(address: str) -> int:
    """The lane for the contact of an address, as it is compared. It never changes: events wait there."""
    return crc32(address.encode()) % LANES


def subject_of(lane: int) -> UUID:
    return UUID(int=lane)


def lane_with(subject: UUID) -> int:
    """The lane of a job by its subject."""
    return subject.int
