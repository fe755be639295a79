"""Texts of the overview, and the names of metrics."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "overview.title": "Overview",
    "overview.words": "start, home, figures",
    "overview.span.24h": "24 hours",
    "overview.span.7d": "7 days",
    "overview.span.30d": "30 days",
    "overview.span.90d": "90 days",
    "overview.chart": "Emails over time",
    "overview.period": "Period",
    "overview.latest": "Latest emails",
    "overview.attention": "Needs attention",
    "overview.all_well": "Every domain is verified.",
    "overview.more": "{percent} % more than before",
    "overview.less": "{percent} % less than before",
    "overview.as_before": "as before",
    "overview.none_before": "none before",
    "overview.complaint_rate": "Complaint rate",
    "overview.hard_bounce_rate": "Hard bounce rate",
    "overview.limit": "providers accept up to {limit}",
    "overview.above_limit": "above what providers accept: {limit}",
    "metric.received": "Accepted",
    "metric.sent": "Sent",
    "metric.delivered": "Delivered",
    "metric.bounced": "Bounced",
    "metric.complained": "Complained",
    "metric.opened": "Opens",
    "metric.clicked": "Clicks",
    "metric.unique_opened": "Opened",
    "metric.unique_clicked": "Clicked",
}
