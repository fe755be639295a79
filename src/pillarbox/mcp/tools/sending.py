"""Tools of emails that are sent by the API: send, look up, explain, and the broadcasts."""

from __future__ import annotations

from typing import Final

from pillarbox.mcp.tool import Effect, Tool
from pillarbox.mcp.tools.inbox import LINES, PAGING

LONGEST_BODY: Final = 8000

EMAIL: Final = (
    *("id", "message_id", "to", "cc", "bcc", "from", "reply_to", "subject", "created_at", "last_event"),
    *("scheduled_at", "tags", "topic_id", "text"),
)
LISTED: Final = ("id", "to", "from", "subject", "created_at", "last_event", "scheduled_at")

TOOLS: Final = (
    Tool(
        name="send_email",
        title="Send an email",
        description="Send an email to up to 50 recipients from an address at a verified domain of the "
        "team. Give `text` or `html`, or a `template` with its id and variables.",
        method="POST",
        path="/emails",
        effect=Effect.SENDS,
        fields=(
            *(
                "from",
                "to",
                "subject",
                "text",
                "html",
                "cc",
                "bcc",
                "reply_to",
                "scheduled_at",
                "tags",
                "topic_id",
            ),
            "template",
        ),
    ),
    Tool(
        name="list_emails",
        title="List sent emails",
        description="List emails that were sent, newest first, by recipient, sender, words of the "
        "subject, state, time or tag.",
        method="GET",
        path="/emails",
        query=(
            "to",
            "from",
            "subject",
            "state",
            "domain",
            "since",
            "until",
            "tag",
            "source",
            "message_id",
            *PAGING,
        ),
        shown=LISTED,
    ),
    Tool(
        name="get_email",
        title="Show a sent email",
        description="Show an email that was sent: recipients, subject, text, and its last event.",
        method="GET",
        path="/emails/{email_id}",
        shown=EMAIL,
        cut={"text": LONGEST_BODY},
    ),
    Tool(
        name="explain_email",
        title="Explain what became of an email",
        description="List all that happened to an email, per recipient: attempts, the words of the other "
        "server, bounces, when it is tried next. Use it to answer why a mail was not "
        "delivered.",
        method="GET",
        path="/emails/{email_id}/events",
        lines=frozenset({"reply", "reason"}),
    ),
    Tool(
        name="review_email",
        title="Review an email",
        description="Show what could be better about an email that was sent, such as a missing text part.",
        method="GET",
        path="/emails/{email_id}/insights",
    ),
    Tool(
        name="reschedule_email",
        title="Reschedule an email",
        description="Change when a scheduled email will be sent.",
        method="PATCH",
        path="/emails/{email_id}",
        effect=Effect.CHANGES,
        fields=("scheduled_at",),
    ),
    Tool(
        name="cancel_email",
        title="Cancel an email",
        description="Cancel a scheduled email. It will not be sent.",
        method="POST",
        path="/emails/{email_id}/cancel",
        effect=Effect.DESTROYS,
    ),
    Tool(
        name="list_received_emails",
        title="List received emails",
        description="List emails that were received at the team's domains, also without an inbox.",
        method="GET",
        path="/emails/receiving",
        query=("from", "to", "subject", "since", "until", "message_id", *PAGING),
        shown=("id", "to", "from", "subject", "created_at", "received_for"),
        lines=LINES,
    ),
    Tool(
        name="list_broadcasts",
        title="List broadcasts",
        description="List broadcasts: one mail to all contacts of a segment.",
        method="GET",
        path="/broadcasts",
        query=PAGING,
    ),
    Tool(
        name="get_broadcast",
        title="Show a broadcast",
        description="Show a broadcast with its subject, text and state.",
        method="GET",
        path="/broadcasts/{broadcast_id}",
        shown=(
            *(
                "id",
                "name",
                "segment_id",
                "from",
                "subject",
                "reply_to",
                "preview_text",
                "status",
                "created_at",
            ),
            *("scheduled_at", "sent_at", "text", "topic_id"),
        ),
        cut={"text": LONGEST_BODY},
    ),
    Tool(
        name="get_broadcast_progress",
        title="Show the progress of a broadcast",
        description="Show how many copies of a broadcast were sent, delivered, bounced, opened and clicked.",
        method="GET",
        path="/broadcasts/{broadcast_id}/progress",
    ),
    Tool(
        name="create_broadcast",
        title="Write a broadcast",
        description="Write the draft of a broadcast to a segment. Nothing is sent.",
        method="POST",
        path="/broadcasts",
        effect=Effect.ADDS,
        fields=(
            "segment_id",
            "from",
            "subject",
            "html",
            "text",
            "name",
            "reply_to",
            "preview_text",
            "topic_id",
        ),
        fixed={"send": False},
    ),
    Tool(
        name="send_broadcast",
        title="Send a broadcast",
        description="Send a broadcast to all contacts of its segment, now or at `scheduled_at`.",
        method="POST",
        path="/broadcasts/{broadcast_id}/send",
        effect=Effect.SENDS,
        fields=("scheduled_at",),
    ),
)
