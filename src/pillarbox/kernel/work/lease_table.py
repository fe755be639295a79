"""Tables of work with leases, described once: from the description come the statements of `leases`,
`queue_poll` and `queue_counts`.

Such a table has the columns `owner` (the process that has the row; null: it is free), `leased_until`,
`attempt` (counts claims) and `due_at`. What a claim takes, and what an outcome writes, is said by each slice.
"""

from __future__ import annotations

import re
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

    `state` is the state of a row `d` at the instant `$1`, with `$2` and what follows for values of its own.
    `since` is the column that says from when on it waits (`queue_counts`).
    """

    name: str
    keys: Mapping[str, str]
    lease: timedelta
    renewed_every: float
    on_return: str = ""
    on_loss: str = ""
    tells_of_lost: str = ""
    state: str = ""
    since: str = "created_at"

    def __post_init__(self) -> None:
        _described[self.name] = self

    @property
    def renew(self) -> str:
        """Return the statement that renews this process's leases on some keys, and returns the renewed keys.

        A renewal that comes late shortens no lease; one after a step back of the clock does (DUR-09).
        A row that somebody has locked is left out, so that the others are in time: it is about to be
        settled, and waiting for it could deadlock.
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
    def is_busy(self) -> str:
        """Across teams: whether somebody holds rows, or some are due (`queue_poll`). Where more than 200 wait
        it is not looked which: the engine finds out."""
        return f"""
            SELECT EXISTS (SELECT FROM {self.name} WHERE owner IS NOT NULL)
                OR (SELECT count(*) = 200 OR min(due_at) <= $1
                      FROM (SELECT due_at FROM {self.name} WHERE owner IS NULL LIMIT 200) AS waiting)
        """

    @property
    def count(self) -> str:
        """Across teams: the rows in each state, of as many as the last value says."""
        return self._counted(f"(SELECT * FROM {self.name} LIMIT {self._after_state}) AS d")

    @property
    def sample(self) -> str:
        """Across teams: the same of some pages of the table, of which the last value is the percentage."""
        return self._counted(f"{self.name} AS d TABLESAMPLE SYSTEM ({self._after_state})")

    @property
    def size(self) -> str:
        """How many pages the table has."""
        return f"SELECT pg_relation_size('{self.name}') / current_setting('block_size')::bigint"

    def _counted(self, rows: str) -> str:
        return f"""
            SELECT {self.state} AS state, count(*) AS items, min(d.{self.since}) AS oldest,
                   min(d.due_at) AS first_due
              FROM {rows}
             GROUP BY 1
        """

    @property
    def _after_state(self) -> str:
        return f"${max(map(int, re.findall('[$]([0-9]+)', self.state))) + 1}"

    @property
    def _arrays(self) -> str:
        return ", ".join(f"${number}::{type_}[]" for number, type_ in enumerate(self.keys.values(), 1))

    def _columns(self, alias: str) -> str:
        return ", ".join(f"{alias}.{column}" for column in self.keys)

    def _equal(self, left: str, right: str) -> str:
        return " AND ".join(f"{left}.{column} = {right}.{column}" for column in self.keys)


def forget_process() -> str:
    """Return the statement that takes a process out of the register, across teams, if it holds nothing in any
    of the tables."""
    holds = [
        f"NOT EXISTS (SELECT FROM {name} w WHERE w.owner IS NOT NULL AND w.owner = p.id)"
        for name in sorted(_described)
    ]
    return f"DELETE FROM processes p WHERE p.id = $1 AND {' AND '.join(holds)}"
