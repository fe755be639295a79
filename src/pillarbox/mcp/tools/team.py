"""Tools of what a team has set up: domains, templates, webhooks, metrics, use."""

from __future__ import annotations

from typing import Final

from pillarbox.mcp.tool import Effect, Tool
from pillarbox.mcp.tools.inbox import PAGING

LONGEST_BODY: Final = 8000

TOOLS: Final = (
    Tool(
        name="list_domains",
        title="List domains",
        description="List the domains of the team and whether each is verified.",
        method="GET",
        path="/domains",
        query=PAGING,
    ),
    Tool(
        name="get_domain",
        title="Show a domain",
        description="Show a domain with each DNS record that it needs, and which of them are missing or "
        "wrong.",
        method="GET",
        path="/domains/{domain_id}",
    ),
    Tool(
        name="verify_domain",
        title="Verify a domain",
        description="Look at the DNS records of a domain again; get_domain shows the outcome.",
        method="POST",
        path="/domains/{domain_id}/verify",
        effect=Effect.CHANGES,
    ),
    Tool(
        name="list_templates",
        title="List templates",
        description="List the templates of mail.",
        method="GET",
        path="/templates",
        query=PAGING,
    ),
    Tool(
        name="get_template",
        title="Show a template",
        description="Show a template with its variables, subject and text.",
        method="GET",
        path="/templates/{template}",
        shown=(
            "id",
            "name",
            "alias",
            "from",
            "subject",
            "reply_to",
            "text",
            "variables",
            "status",
            "published_at",
        ),
        cut={"text": LONGEST_BODY},
    ),
    Tool(
        name="list_webhooks",
        title="List webhooks",
        description="List the webhooks: addresses that are told of events.",
        method="GET",
        path="/webhooks",
        query=PAGING,
    ),
    Tool(
        name="list_webhook_events",
        title="List events of a webhook",
        description="List the events that a webhook was to be told of, and whether it took them.",
        method="GET",
        path="/webhooks/{webhook_id}/events",
        query=PAGING,
    ),
    Tool(
        name="get_metrics",
        title="Show metrics",
        description="Count what was sent, delivered, bounced, opened and clicked in a range of days, as "
        "rows. `metrics` and `dimensions` are names with commas.",
        method="GET",
        path="/emails/metrics",
        query=(
            "start_date",
            "end_date",
            "timezone",
            "granularity",
            "metrics",
            "dimensions",
            "domain_id",
            "email_id",
        ),
    ),
    Tool(
        name="get_usage",
        title="Show use and quotas",
        description="Show how much the team has used of its quotas, and its rate limit.",
        method="GET",
        path="/usage",
    ),
    Tool(
        name="list_logs",
        title="List requests",
        description="List the latest requests of the API and what was answered.",
        method="GET",
        path="/logs",
        query=PAGING,
    ),
)
