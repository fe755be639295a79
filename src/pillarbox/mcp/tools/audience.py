"""Tools of contacts and of addresses that get no mail."""

from __future__ import annotations

from typing import Final

from pillarbox.mcp.tool import Effect, Tool
from pillarbox.mcp.tools.inbox import PAGING

NAMES: Final = frozenset({"first_name", "last_name"})
"""Fields that strangers fill in forms."""

TOOLS: Final = (
    Tool(
        name="list_contacts",
        title="List contacts",
        description="List or search contacts, all or those of a segment.",
        method="GET",
        path="/contacts",
        query=("search", "segment_id", *PAGING),
        lines=NAMES,
    ),
    Tool(
        name="get_contact",
        title="Show a contact",
        description="Show a contact by id or address, with its properties.",
        method="GET",
        path="/contacts/{contact}",
        lines=NAMES,
    ),
    Tool(
        name="create_contact",
        title="Add a contact",
        description="Add a contact by its address.",
        method="POST",
        path="/contacts",
        effect=Effect.ADDS,
        fields=("email", "first_name", "last_name", "unsubscribed", "properties"),
    ),
    Tool(
        name="update_contact",
        title="Change a contact",
        description="Change the name, properties or subscription of a contact.",
        method="PATCH",
        path="/contacts/{contact}",
        effect=Effect.CHANGES,
        fields=("first_name", "last_name", "unsubscribed", "properties"),
    ),
    Tool(
        name="list_segments",
        title="List segments",
        description="List the segments: named sets of contacts.",
        method="GET",
        path="/segments",
        query=PAGING,
        shown=("id", "name", "created_at"),
    ),
    Tool(
        name="list_topics",
        title="List topics",
        description="List the topics to which contacts can subscribe.",
        method="GET",
        path="/topics",
        query=PAGING,
    ),
    Tool(
        name="list_suppressions",
        title="List suppressions",
        description="List addresses that get no mail, because mail bounced, somebody complained, or by hand.",
        method="GET",
        path="/suppressions",
        query=("origin", *PAGING),
    ),
    Tool(
        name="get_suppression",
        title="Show a suppression",
        description="Show whether an address gets no mail, and why.",
        method="GET",
        path="/suppressions/{suppression}",
    ),
    Tool(
        name="add_suppression",
        title="Suppress an address",
        description="Send no more mail to an address.",
        method="POST",
        path="/suppressions",
        effect=Effect.CHANGES,
        fields=("email",),
    ),
    Tool(
        name="remove_suppression",
        title="Remove a suppression",
        description="Let an address get mail again. Only where its owner wants that: mail to dead "
        "addresses harms delivery.",
        method="DELETE",
        path="/suppressions/{suppression}",
        effect=Effect.DESTROYS,
    ),
)
