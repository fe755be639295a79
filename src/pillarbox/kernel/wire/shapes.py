"""Wire shapes that are made of rows with the same names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar, get_type_hints

from msgspec import Struct

from pillarbox.kernel.wire.instants import DatabaseTime, IsoTime, database_style, iso_style

S = TypeVar("S", bound=Struct)


def from_row(kind: type[S], row: Any, /, **given: Any) -> S:
    """Return the shape with the values of the row; `given` are those that the row lacks or has otherwise.

    An instant is written in the style of its field. A field that is neither in the row nor given is an error,
    even where it has a default. It costs a microsecond more than a call that names each field, so long lists
    of mail name them.
    """
    plan = _plan(kind, tuple(given))
    given.update(zip(plan.names, plan.values(row), strict=True))
    for name, style in plan.instants:
        if (instant := given[name]) is not None:
            given[name] = style(instant)
    return kind(**given)


class _Plan(NamedTuple):
    """Which attributes of a row a shape takes, and which of them are instants."""

    names: tuple[str, ...]
    values: Callable[[Any], tuple[Any, ...]]
    instants: tuple[tuple[str, Callable[[datetime], str]], ...]


_STYLES: Final = (
    (DatabaseTime, database_style),
    (DatabaseTime | None, database_style),
    (IsoTime, iso_style),
    (IsoTime | None, iso_style),
)


@cache
def _plan(kind: type[Struct], given: tuple[str, ...]) -> _Plan:
    hints = get_type_hints(kind, include_extras=True)
    names = tuple(name for name in kind.__struct_fields__ if name not in given)
    instants = [(name, style) for name in names for hint, style in _STYLES if hints[name] == hint]
    # Of a single name `attrgetter` returns the value, not a tuple.
    return _Plan(
        names,
        attrgetter(*names) if len(names) > 1 else lambda row: (getattr(row, names[0]),),
        tuple(instants),
    )
