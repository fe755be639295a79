"""Wire shapes that are made of rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from msgspec import Struct

from pillarbox.kernel.wire.instants import DatabaseTime, IsoTime
from pillarbox.kernel.wire.shapes import from_row

NOON = datetime(2026, 10, 3, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipRow:
    id: int
    name: str
    docked_at: datetime
    left_at: datetime | None


class Ship(Struct, kw_only=True):
    name: str
    id: int


class DockedShip(Ship, kw_only=True):
    docked_at: DatabaseTime
    left_at: DatabaseTime | None


class ShipEvent(Struct, kw_only=True):
    id: str
    docked_at: IsoTime
    left_at: IsoTime | None
    gone: bool = False


class ShipId(Struct, kw_only=True):
    id: int


ROW = ShipRow(id=7, name="Ida", docked_at=NOON, left_at=None)


def test_a_shape_takes_the_values_of_the_same_names() -> None:
    assert from_row(Ship, ROW) == Ship(id=7, name="Ida")
    assert from_row(ShipId, ROW) == ShipId(id=7)


def test_instants_have_the_style_of_their_fields() -> None:
    assert from_row(DockedShip, ROW) == DockedShip(
        id=7, name="Ida", docked_at="2026-10-03 12:00:00.000000+00", left_at=None
    )
    assert from_row(ShipEvent, ROW, id="7", gone=True) == ShipEvent(
        id="7", docked_at="2026-10-03T12:00:00.000Z", left_at=None, gone=True
    )


def test_a_row_may_be_a_named_tuple() -> None:
    class Named(NamedTuple):
        name: str
        id: int

    assert from_row(Ship, Named("Ida", 7)) == Ship(id=7, name="Ida")


def test_a_field_that_nobody_gives_is_an_error_even_with_a_default() -> None:
    with pytest.raises(AttributeError, match="gone"):
        from_row(ShipEvent, ROW)
