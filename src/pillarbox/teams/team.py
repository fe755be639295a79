"""A team of the installation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


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
