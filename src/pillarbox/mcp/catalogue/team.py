"""Tools of what a team has set up: domains, templates, webhooks, metrics, use."""

from __future__ import annotations

from typing import Final

from pillarbox.mcp.catalogue.inbox import PAGING
from pillarbox.mcp.tool import Effect, Tool

LONGEST_BODY: Final = 8000

TOOLS: Final = (
    Tool(
        name="list_domains",
        title="List domains",
        description="List the domains of the team and whether each is verified.",
        route="GET /domains",
        query=PAGING,
    ),
    Tool(
        name="get_domain",
        title="Show a domain",
        description="Show a domain with each DNS record that it needs, and which of them are missing or "
        "wrong.",
        route="GET /domains/{domain_id}",
    ),
    Tool(
        name="verify_domain",
        title="Verify a domain",
        description="Look at the DNS records of a domain again; get_domain shows the outcome.",
        route="POST /domains/{domain_id}/verify",
        effect=Effect.CHANGES,
    ),
    Tool(
        name="list_templates",
        title="List templates",
        description="List the templates of mail.",
        route="GET /templates",
        query=PAGING,
    ),
    Tool(
        name="get_template",
        title="Show a template",
        description="Show a template with its variables, subject and text.",
        route="GET /templates/{template}",
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
        route="GET /webhooks",
        query=PAGING,
    ),
    Tool(
        name="list_webhook_events",
        title="List events of a webhook",
        description="List the events that a webhook was to be told of, and whether it took them.",
        route="GET /webhooks/{webhook_id}/events",
        query=PAGING,
    ),
    Tool(
        name="get_metrics",
        title="Show metrics",
        description="Count what was sent, delivered, bounced, opened and clicked in a range of days, as "
        "rows. `metrics` and `dimensions` are names with commas.",
        route="GET /emails/metrics",
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
        route="GET /usage",
    ),
    Tool(
        name="list_logs",
        title="List requests",
        description="List the latest requests of the API and what was answered.",
        route="GET /logs",
        query=PAGING,
    ),
)
