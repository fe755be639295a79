"""A team of the installation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

DEMO_MARK: Final = bytes.fromhex("b0de30a0d3300000")
"""The last eight octets of the id of the demo's team. Ids of others end with random octets."""


@dataclass(frozen=True, slots=True)
class Team:
    """One team, as the operator sees it."""

    id: UUID
    number: int
    name: str
    email: str
    status: str
    rate_limit: int | None
    created_at: datetime
    daily_quota: int | None
    monthly_quota: int | None
    email_retention_days: int | None
    log_retention_days: int | None
    metrics_retention_days: int | None
    most_domains: int | None
    most_webhooks: int | None
    most_api_keys: int | None

    @property
    def is_demo(self) -> bool:
        return is_demo(self.id)


def is_demo(team_id: UUID) -> bool:
    """Return whether this is the id of the demo's team."""
    return team_id.bytes.endswith(DEMO_MARK)
