"""A tool: one route of the API as a model sees it, with some of its arguments and some fields of its
answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Effect(Enum):
    """The effect of a call, from which the marks for clients follow."""

    READS = "nothing changes"
    ADDS = "something new is made"
    CHANGES = "something that is there is changed, and can be changed back"
    DESTROYS = "something is lost"
    SENDS = "mail leaves to other people"

    @property
    def marks(self) -> dict[str, bool]:
        """Return the annotations of MCP; they are hints, the rights of the key decide."""
        return {
            "readOnlyHint": self is Effect.READS,
            "destructiveHint": self in (Effect.DESTROYS, Effect.SENDS),
            "idempotentHint": self in (Effect.READS, Effect.CHANGES, Effect.DESTROYS),
            "openWorldHint": self is Effect.SENDS,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool of the table. `query` and `fields` are the parameters and body fields of the route that a
    model may give; `shown` are the fields of the answer, or of each item of a list, and () means all;
    `cut` says after how many characters a text ends. `lines` are fields, also of objects inside, whose texts
    strangers wrote: each comes as one line of safe text. `fixed` are fields of the body that the tool
    itself gives, `defaults` parameters where the model gives none."""

    name: str
    title: str
    description: str
    method: str
    path: str
    effect: Effect = Effect.READS
    query: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    cut: Mapping[str, int] = field(default_factory=dict)
    lines: frozenset[str] = frozenset()
    defaults: Mapping[str, int] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
