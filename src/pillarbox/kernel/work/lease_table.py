"""Tables of work with leases, described once: the statements of `leases` come from the description.

Such a table has the columns `owner` (the process that has the row; null: it is free), `leased_until`,
`attempt` (counts claims) and `due_at`. What a claim takes, and what an outcome writes, is said by each slice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

MOST_FREED: Final = 2000
"""Rows of a lost holder that one statement frees; the rest is freed by the next look."""


_described: dict[str, LeaseTable] = {}


@dataclass(frozen=True, slots=True)
class LeaseTable:
    """`name` is the table; `keys` are the columns of its primary key with their types, `team_id` first.

    `lease` is how long a claim lasts, `renewed_every` the seconds after which its holder renews it, or after
    which a lease that does not move is suspect.

    `on_return` and `on_loss` assign columns of a row `w` that its holder gives back, or whose holder is gone.
    The first may name `$at`, an instant that the holder gives; the second has `$4` and what follows for the
    values of `Leases.loss_values`. `tells_of_lost` are further columns of what was freed.
    """

    name: str
    keys: Mapping[str, str]
    lease: timedelta
    renewed_every: float
    on_return: str = ""
    on_loss: str = ""
    tells_of_lost: str = ""

    def __post_init__(self) -> None:
        _described[self.name] = self

    @property
    def renew(self) -> str:
        """What this process holds of some keys lasts longer; the keys of what was renewed.

        A renewal that comes late shortens no lease; one after a step back of the clock does (DUR-09). A row
        that somebody has locked is left out, so that the others are in time: it is about to be settled, and
        waiting for it could deadlock.
        """
        owner, until, latest = (f"${len(self.keys) + number}" for number in (1, 2, 3))
        return f"""
            UPDATE {self.name} w
               SET leased_until = CASE WHEN w.leased_until > {latest} THEN {until}
                                       ELSE greatest(w.leased_until, {until}) END
              FROM (SELECT {self._columns("w")}
                      FROM unnest({self._arrays}) AS k ({", ".join(self.keys)})
                      JOIN {self.name} w ON {self._equal("w", "k")}
                     WHERE w.owner = {owner}
                       FOR NO KEY UPDATE OF w SKIP LOCKED) AS mine
             WHERE {self._equal("w", "mine")}
            RETURNING {self._columns("w")}
        """

    @property
    def give_back(self) -> str:
        """Free some claims of this process. A row that was claimed again since stays."""
        attempts, owner, instant = (f"${len(self.keys) + number}" for number in (1, 2, 3))
        more = f", {self.on_return}" if self.on_return else ""
        return f"""
            UPDATE {self.name} w
               SET owner = NULL, leased_until = NULL{more.replace("$at", instant)}
              FROM unnest({self._arrays}, {attempts}::integer[]) AS k ({", ".join(self.keys)}, attempt)
             WHERE {self._equal("w", "k")} AND w.owner = {owner} AND w.attempt = k.attempt
        """

    @property
    def holders(self) -> str:
        """Across teams: who holds rows, when the first and the last of the leases end, and the process."""
        return f"""
            SELECT h.owner, h.first, h.last, p.host, p.pid, p.pid_start
              FROM (SELECT owner, min(leased_until) AS first, max(leased_until) AS last
                      FROM {self.name}
                     WHERE owner IS NOT NULL
                     GROUP BY owner) AS h
              LEFT JOIN processes p ON p.id = h.owner
        """

    @property
    def free(self) -> str:
        """Across teams: what a holder had that is gone. What somebody has locked is left for the next look,
        so that nothing waits for one long transaction."""
        more = f", {self.on_loss}" if self.on_loss else ""
        told = f", {self.tells_of_lost}" if self.tells_of_lost else ""
        return f"""
            WITH lost AS MATERIALIZED (
                SELECT {", ".join(self.keys)}
                  FROM {self.name}
                 WHERE owner IS NOT NULL AND owner = $1 AND leased_until <= $2
                 ORDER BY owner, leased_until
                 LIMIT $3
                   FOR NO KEY UPDATE SKIP LOCKED
            )
            UPDATE {self.name} w
               SET owner = NULL, leased_until = NULL{more}
              FROM lost
             WHERE {self._equal("w", "lost")}
            RETURNING {self._columns("w")}{told}
        """

    @property
    def statements(self) -> Mapping[str, str]:
        """All of them, by name."""
        return {name: getattr(self, name) for name in ("renew", "give_back", "holders", "free")}

    @property
    def _arrays(self) -> str:
        return ", ".join(f"${number}::{type_}[]" for number, type_ in enumerate(self.keys.values(), 1))

    def _columns(self, alias: str) -> str:
        return ", ".join(f"{alias}.{column}" for column in self.keys)

    def _equal(self, left: str, right: str) -> str:
        return " AND ".join(f"{left}.{column} = {right}.{column}" for column in self.keys)


def forget_process() -> str:
    """Across teams: take a process out of the register that holds nothing in any of the tables."""
    holds = [
        f"NOT EXISTS (SELECT FROM {name} w WHERE w.owner IS NOT NULL AND w.owner = p.id)"
        for name in sorted(_described)
    ]
    return f"DELETE FROM processes p WHERE p.id = $1 AND {' AND '.join(holds)}"
