"""Which rows lie together where the tables are distributed over several servers (docs/decisions/0052).

Citus distributes rows by the hash of their team, in ranges of equal width; tables that are colocated have the
same ranges, so all that belongs to a team lies in one shard group. The hash is PostgreSQL's own of a uuid
(`uuid_hash`, of 16 bytes), which every version since 8.4 computes in the same way on a little-endian machine.
"""

from __future__ import annotations

import struct
from typing import Final
from uuid import UUID

_ALL = 0xFFFFFFFF
_LEAST: Final = -(1 << 31)
_BEGIN: Final = (0x9E3779B9 + 16 + 3923095) & _ALL


def shard_group(team_id: UUID, shards: int) -> int:
    """Return the number of the team's shard group among `shards`, from 0; one group where there are
    no shards."""
    if shards <= 1:
        return 0
    return min((uuid_hash(team_id) - _LEAST) // ((1 << 32) // shards), shards - 1)


def uuid_hash(value: UUID) -> int:
    """Return PostgreSQL's hash of a uuid, a signed number of 32 bits (Bob Jenkins, "lookup3", 2006)."""
    first, second, third, fourth = struct.unpack("<4I", value.bytes)
    a, b, c = (_BEGIN + first) & _ALL, (_BEGIN + second) & _ALL, (_BEGIN + third) & _ALL
    a, b, c = _mixed(a, b, c)
    found = _final((a + fourth) & _ALL, b, c)
    return found - (1 << 32) if found > _ALL >> 1 else found


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _ALL


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits in (4, 6, 8, 16, 19, 4):
        a = (a - c) & _ALL ^ _rotated(c, bits)
        c = (c + b) & _ALL
        a, b, c = b, c, a
    return a, b, c


def _final(a: int, b: int, c: int) -> int:
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _rotated(b, bits)) & _ALL
        a, b, c = b, c, a
    return b
