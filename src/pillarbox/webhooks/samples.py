"""A sample of every kind of event (webhooks.md section 7), for trying out a receiver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

AT: Final = "2026-10-02T08:10:58.004Z"
INBOX: Final = "0f6c2d1e-8a44-4b6f-9d0b-6a1f6f3c2b10"
THREAD_ID: Final = "3b0f7c52-1d9e-4a2b-8c7d-9e0f1a2b3c4d"
EMAIL_ID: Final = "c1f0a2b3-6d5e-4f70-8192-a3b4c5d6e7f8"
DRAFT_ID: Final = "a0b1c2d3-e4f5-4061-8273-849506a7b8c9"
TOPIC_ID: Final = "0a1b2c3d-4e5f-4607-8819-2a3b4c5d6e7f"
LABEL: Final = {"id": "b7d1a6f0-91c3-4f7a-8f6e-2d0c4b5a6978", "name": "Refunds", "color": "#E93D82"}

SENT: Final = {
    "created_at": AT,
    "email_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "message_id": "<7c9e6679@harbor.example>",
    "from": "Harbor <news@harbor.example>",
    "to": ["kai@customer.example"],
    "subject": "Tide report",
    "tags": {"kind": "weekly"},
}
BOUNCE: Final = {
    "diagnosticCode": ["smtp; 550 5.1.1 user unknown"],
    "message": "The recipient's mail server permanently rejected the message.",
    "subType": "NoEmail",
    "type": "Permanent",
}
CLICK: Final = {
    "ipAddress": "203.0.113.9",
    "link": "https://harbor.example/tides",
    "timestamp": AT,
    "userAgent": "Mozilla/5.0",
}
SUPPRESSED: Final = {
    "diagnosticCode": [],
    "message": "The recipient is on the suppression list after an earlier bounce.",
    "reason": "previous_bounce",
    "type": "OnAccountSuppressionList",
}
RECEIVED: Final = {
    "email_id": EMAIL_ID,
    "created_at": AT,
    "from": "Iris Vale <iris@customer.example>",
    "to": ["help@harbor.example"],
    "bcc": [],
    "cc": [],
    "received_for": ["help@harbor.example"],
    "message_id": "<88.a1@customer.example>",
    "subject": "Refund for order 88",
    "attachments": [],
}
CONTACT: Final[Mapping[str, Any]] = {
    "id": "31415926-5358-4979-8323-846264338327",
    "audience_id": "27182818-2845-4904-8235-360287471352",
    "segment_ids": [],
    "created_at": AT,
    "updated_at": AT,
    "email": "kai@customer.example",
    "first_name": "Kai",
    "last_name": None,
    "unsubscribed": False,
}
DOMAIN: Final = {
    "id": "5d1c9e0a-2f7b-4c3e-8a61-7b9d0e1f2a3c",
    "name": "harbor.example",
    "status": "pending",
    "created_at": AT,
    "region": "us-east-1",
    "records": [
        {
            "record": "SPF",
            "name": "send",
            "type": "MX",
            "ttl": "Auto",
            "status": "pending",
            "value": "feedback.mail.harbor.example",
            "priority": 10,
        }
    ],
}
SUPPRESSION: Final = {
    "id": "e1d2c3b4-a5f6-4789-90ab-cdef01234567",
    "email": "nobody@customer.example",
    "origin": "bounce",
    "source_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "created_at": AT,
}
TOPIC: Final = {
    "id": TOPIC_ID,
    "name": "Tides",
    "description": None,
    "default_subscription": "opt_in",
    "deleted": False,
    "created_at": AT,
    "updated_at": AT,
}
INBOX_OBJECT: Final = {
    "object": "inbox",
    "id": INBOX,
    "name": "Help desk",
    "email_address": "help@harbor.example",
    "forwarding_address": None,
    "friendly_name": "Mina at Harbor",
    "unread": 2,
    "drafts": 1,
    "last_received": AT,
    "domain_id": DOMAIN["id"],
    "receiving_address": None,
    "from_name": "Mina at Harbor",
    "created_at": AT,
    "updated_at": AT,
}
THREAD: Final = {
    "object": "inbox_thread",
    "id": THREAD_ID,
    "subject": "Refund for order 88",
    "folder": "inbox",
    "labels": [],
    "read": False,
}
MESSAGE: Final = {
    "id": EMAIL_ID,
    "direction": "inbound",
    "from": "Iris Vale <iris@customer.example>",
    "to": ["help@harbor.example"],
    "cc": [],
    "bcc": [],
    "reply_to": [],
    "subject": "Refund for order 88",
    "message_id": "<88.a1@customer.example>",
    "attachments": [],
    "read": False,
    "received_at": AT,
}
DRAFT: Final = {
    "object": "inbox_draft",
    "id": DRAFT_ID,
    "type": "standalone",
    "to": ["iris@customer.example"],
    "cc": [],
    "bcc": [],
    "subject": "Your order",
    "thread_id": None,
    "reply_to_email_id": None,
    "email_id": None,
    "created_at": AT,
    "updated_at": AT,
    "attachments": [],
}
BY_SYSTEM: Final = {"source": "system", "inbox_id": INBOX}
BY_API: Final = {"source": "api", "inbox_id": INBOX}
IN_THREAD: Final = {"thread_id": THREAD_ID}
WITH_EMAIL: Final = {**BY_SYSTEM, **IN_THREAD, "email_id": EMAIL_ID, "thread": THREAD, "email": MESSAGE}
OF_DRAFT: Final = {**BY_API, "draft_id": DRAFT_ID}
ASSIGNEE: Final = "mina@harbor.example"

JUDGED: Final = {
    "email_id": EMAIL_ID,
    "spf": {"result": "pass", "identity": "mailfrom", "domain": "customer.example", "reason": None},
    "dkim": [{"result": "pass", "domain": "customer.example", "selector": "s1", "reason": None}],
    "dmarc": {
        "result": "pass",
        "domain": "customer.example",
        "policy": "reject",
        "policy_domain": "customer.example",
        "spf_aligned": True,
        "dkim_aligned": True,
        "reason": None,
    },
    "spam": {"is_spam": False, "reason": None, "score": 1.5, "required_score": 15.0},
    "automatic": False,
}

SAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "email.scheduled": SENT,
    "email.sent": SENT,
    "email.delivered": SENT,
    "email.delivery_delayed": SENT,
    "email.bounced": {**SENT, "bounce": BOUNCE},
    "email.complained": SENT,
    "email.opened": SENT,
    "email.clicked": {**SENT, "click": CLICK},
    "email.failed": {**SENT, "failed": {"reason": "reached_daily_quota"}},
    "email.suppressed": {**SENT, "suppressed": SUPPRESSED},
    "email.received": RECEIVED,
    "email.judged": JUDGED,
    "contact.created": CONTACT,
    "contact.updated": CONTACT,
    "contact.deleted": CONTACT,
    "contact.topics.updated": {
        "email": "kai@customer.example",
        "topics": [{"id": TOPIC_ID, "subscription": "opt_out"}],
    },
    "domain.created": {**DOMAIN, "status": "not_started"},
    "domain.updated": DOMAIN,
    "domain.deleted": DOMAIN,
    "suppression.added": SUPPRESSION,
    "suppression.removed": SUPPRESSION,
    "topic.created": TOPIC,
    "topic.updated": TOPIC,
    "topic.deleted": {**TOPIC, "deleted": True},
    "inbox.created": {**BY_API, "inbox": INBOX_OBJECT},
    "inbox.updated": {**BY_API, "inbox": INBOX_OBJECT},
    "inbox.deleted": BY_API,
    "inbox.thread.created": WITH_EMAIL,
    "inbox.email.received": WITH_EMAIL,
    "inbox.email.sent": WITH_EMAIL,
    "inbox.thread.folder.updated": {
        **BY_API,
        **IN_THREAD,
        "from": "inbox",
        "to": "archive",
        "thread": {**THREAD, "folder": "archive"},
    },
    "inbox.thread.assigned": {
        **BY_API,
        **IN_THREAD,
        "assignee_email": ASSIGNEE,
        "assigned_by_email": None,
        "previous_assignee_email": None,
        "thread": THREAD,
    },
    "inbox.thread.unassigned": {
        **BY_API,
        **IN_THREAD,
        "previous_assignee_email": ASSIGNEE,
        "thread": THREAD,
    },
    "inbox.thread.labels.updated": {
        **BY_API,
        **IN_THREAD,
        "added": [LABEL],
        "removed": [],
        "thread": {**THREAD, "labels": [LABEL]},
    },
    "inbox.draft.created": {**OF_DRAFT, "draft": DRAFT},
    "inbox.draft.updated": {**OF_DRAFT, "draft": DRAFT},
    "inbox.draft.deleted": OF_DRAFT,
    "inbox.draft.sent": {
        **BY_API,
        **IN_THREAD,
        "email_id": EMAIL_ID,
        "draft_id": DRAFT_ID,
        "thread": THREAD,
        "draft": {**DRAFT, "email_id": EMAIL_ID},
    },
}
