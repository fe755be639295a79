"""SQL of automations, their versions and their triggers. A deleted automation is there until its runs are
gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from pillarbox.automations.graphs.graph import Graph, GraphStep, Trigger
from pillarbox.automations.graphs.stored import StoredGraph
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page

Status = Literal["enabled", "disabled"]

JOB_END: Final = "automations.end"
"""Cancels the runs that are left of an automation that was stopped, and removes all of one that was
deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedAutomation:
    """An automation as lists show it."""

    id: UUID
    name: str
    status: Status
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Automation:
    """An automation with its newest graph, as it is stored."""

    id: UUID
    name: str
    status: Status
    version: int
    epoch: int
    stored: StoredGraph
    created_at: datetime
    updated_at: datetime

    async def graph(self) -> Graph:
        return await self.stored.graph()


def _automation(*, steps: str, connections: str, **columns: Any) -> Automation:
    return Automation(stored=StoredGraph(steps, connections), **columns)


async def insert(db: TeamDb, automation: Automation) -> None:
    """Store a disabled automation, without its version."""
    await db.run(
        """
        INSERT INTO automations (team_id, id, name, status, version, created_at, updated_at)
        VALUES ($1, $2, $3, 'disabled', $4, $5, $6)
        """,
        automation.id,
        automation.name,
        automation.version,
        automation.created_at,
        automation.updated_at,
    )


async def insert_version(
    db: TeamDb, automation_id: UUID, version: int, graph: StoredGraph, now: datetime
) -> None:
    await db.run(
        """
        INSERT INTO automation_versions (team_id, automation_id, version, steps, connections, created_at)
        VALUES ($1, $2, $3, $4::text::json, $5::text::json, $6)
        """,
        automation_id,
        version,
        graph.steps,
        graph.connections,
        now,
    )


async def page(db: TeamDb, page: Page, status: str | None) -> list[ListedAutomation]:
    return await db.all(
        ListedAutomation,
        """
        SELECT id, name, status, created_at, updated_at FROM (
            (SELECT *
               FROM automations
              WHERE team_id = $1 AND id < $2 AND deleted_at IS NULL AND ($5::text IS NULL OR status = $5)
              ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT *
               FROM automations
              WHERE team_id = $1 AND id > $3 AND deleted_at IS NULL AND ($5::text IS NULL OR status = $5)
              ORDER BY id LIMIT $4)
        ) AS page
        """,
        *page.args,
        status,
    )


async def get(db: TeamDb, automation_id: UUID) -> Automation | None:
    return await db.one(
        _automation,
        """
        SELECT a.id, a.name, a.status, a.version, a.epoch, v.steps, v.connections, a.created_at, a.updated_at
          FROM automations a
          JOIN automation_versions v
            ON v.team_id = a.team_id AND v.automation_id = a.id AND v.version = a.version
         WHERE a.team_id = $1 AND a.id = $2 AND a.deleted_at IS NULL
        """,
        automation_id,
    )


async def hold(db: TeamDb, automation_id: UUID) -> bool:
    """Lock the automation until the transaction ends; return whether it exists."""
    found = await db.value(
        """
        SELECT true FROM automations WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL FOR NO KEY UPDATE
        """,
        automation_id,
    )
    return found is True


async def update(db: TeamDb, automation: Automation) -> None:
    """Store the automation's name, and which of its graphs is the newest."""
    await db.run(
        """
        UPDATE automations
           SET name = $3, version = $4, updated_at = greatest(updated_at, $5)
         WHERE team_id = $1 AND id = $2
        """,
        automation.id,
        automation.name,
        automation.version,
        automation.updated_at,
    )


async def enable(db: TeamDb, automation_id: UUID, triggers: Sequence[GraphStep], now: datetime) -> None:
    """Enable the automation: from the commit on, events from `now` on start runs."""
    names = [step.config.event_name for step in triggers if isinstance(step.config, Trigger)]
    await db.run(
        """
        WITH enabled AS (
            UPDATE automations
               SET status = 'enabled', enabled_at = $3, updated_at = greatest(updated_at, $3)
             WHERE team_id = $1 AND id = $2 AND status = 'disabled' AND deleted_at IS NULL
            RETURNING team_id, id, version, epoch
        )
        INSERT INTO automation_triggers (team_id, event_name, automation_id, trigger_key, version, epoch,
                                         enabled_at)
        SELECT enabled.team_id, t.event_name, enabled.id, t.trigger_key, enabled.version, enabled.epoch, $3
          FROM enabled, unnest($4::text[], $5::text[]) AS t (event_name, trigger_key)
        """,
        automation_id,
        now,
        names,
        [step.key for step in triggers],
    )


async def remove_triggers(db: TeamDb, automation_id: UUID) -> None:
    """Remove the triggers, after a wait for those who are just starting runs. Nothing starts any more, once
    the automation is disabled."""
    await db.run(
        """
        WITH held AS MATERIALIZED (
            SELECT event_name, trigger_key
              FROM automation_triggers
             WHERE team_id = $1 AND automation_id = $2
             ORDER BY event_name, trigger_key
               FOR UPDATE
        )
        DELETE FROM automation_triggers t
         USING held
         WHERE t.team_id = $1 AND t.automation_id = $2 AND t.event_name = held.event_name
           AND t.trigger_key = held.trigger_key
        """,
        automation_id,
    )


async def disable(db: TeamDb, automation_id: UUID, now: datetime) -> None:
    await db.run(
        """
        UPDATE automations
           SET status = 'disabled', enabled_at = NULL, updated_at = greatest(updated_at, $3)
         WHERE team_id = $1 AND id = $2 AND status = 'enabled'
        """,
        automation_id,
        now,
    )


async def next_epoch(db: TeamDb, automation_id: UUID) -> int:
    """Begin a new epoch and return it: every run that was started before is to end."""
    epoch: int = await db.value(
        """
        UPDATE automations SET epoch = epoch + 1 WHERE team_id = $1 AND id = $2 RETURNING epoch
        """,
        automation_id,
    )
    return epoch


async def mark_deleted(db: TeamDb, automation_id: UUID, now: datetime) -> None:
    await db.run(
        """
        UPDATE automations SET deleted_at = $3 WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
        """,
        automation_id,
        now,
    )
