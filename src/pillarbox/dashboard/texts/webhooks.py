"""Texts of the screens of webhooks, and what each kind of event means."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "webhooks.title": "Webhooks",
    "webhooks.words": "events, endpoints, deliveries, callbacks",
    "webhooks.new": "Add a webhook",
    "webhooks.new.words": "create an endpoint for events",
    "webhooks.new.text": (
        "Each event is posted as JSON to the endpoint, signed, and tried again until it answers 2xx."
    ),
    "webhooks.create": "Add the webhook",
    "webhooks.back": "Back",
    "webhooks.endpoint": "Endpoint",
    "webhooks.endpoint.hint": "A public https address that answers 2xx within 15 seconds.",
    "webhooks.events": "Events",
    "webhooks.status": "Status",
    "webhooks.created": "Added",
    "webhooks.none": "No webhook yet",
    "webhooks.none.text": (
        "A webhook tells your program what became of each email, a second after it happened. "
        "First write a receiver:"
    ),
    "webhook.title": "Webhook",
    "webhook.edit": "Edit",
    "webhook.edit.text": (
        "A new endpoint counts for every later attempt. Fewer events cancel nothing that is on its way."
    ),
    "webhook.save": "Save",
    "webhook.switch": "Enable or disable the webhook",
    "webhook.enable": "Enable",
    "webhook.disable": "Disable",
    "webhook.is_disabled": "Events that happen now are not recorded for it.",
    "webhook.secret": "Secret",
    "webhook.secret.hidden": "Shown once, when it is made. Rotate it for a new one.",
    "webhook.rotate": "Rotate the secret",
    "webhook.rotate.title": "Make a new secret?",
    "webhook.rotate.text": (
        "For 24 hours deliveries are signed with the new and the old secret, so that receivers "
        "can change over."
    ),
    "webhook.delete": "Delete",
    "webhook.delete.title": "Delete the webhook?",
    "webhook.delete.text": (
        "What is on its way is cancelled, and the log of its events is removed. This cannot be undone."
    ),
    "webhook.typed_wrong": "Nothing was deleted: type the endpoint exactly.",
    "webhook.test": "Send a test event",
    "webhook.test.text": "A sample is sent to this webhook alone, signed like a real event.",
    "webhook.test.send": "Send it",
    "webhook.no_kind": "There is no such event.",
    "webhook.kind": "Event",
    "webhook.replay_failed": "Replay what failed",
    "webhook.replay_failed.text": (
        "Failed events are sent once more, with the same ids; at most the newest {limit}."
    ),
    "webhook.failed_in": "Failed in the last",
    "webhook.period.1h": "Hour",
    "webhook.period.24h": "24 hours",
    "webhook.period.7d": "7 days",
    "webhook.period.30d": "30 days",
    "webhook.all_events": "All events",
    "webhook.event_id": "Id",
    "webhook.happened": "Happened",
    "webhook.none_failed": "Nothing failed",
    "webhook.none_failed.text": "Every event that has ended was answered with 2xx.",
    "webhook.no_events": "No event yet",
    "webhook.no_events.text": "Events appear here as they happen. Send a test event to try the endpoint out.",
    "done.webhook_changed": "The webhook is changed.",
    "done.webhook_enabled": "The webhook is enabled.",
    "done.webhook_disabled": "The webhook is disabled.",
    "done.webhook_deleted": "The webhook is deleted.",
    "done.webhook_sample": "The test event is on its way. Refresh to see the answer.",
    "webhook.replayed": "Failed events that are sent once more: {count}. Each stays in this list until it "
    "succeeds.",
    "done.webhook_none_failed": "Nothing failed in this period.",
    "done.event_replayed": "The event is sent once more. Refresh to see the answer.",
    "secret.title": "Signing secret",
    "secret.new": "The webhook is added. This is its signing secret:",
    "secret.rotated": "Deliveries are signed with this new secret from now on:",
    "secret.once": "It is shown only now. Keep it where your receiver reads its secrets.",
    "secret.verify": "Verify deliveries with it",
    "secret.go_on": "I have kept it",
    "hook_event.title": "Event of a webhook",
    "hook_event.next": "Next attempt",
    "hook_event.replay": "Replay",
    "hook_event.request": "Request",
    "hook_event.request.text": (
        "The body is sent without line breaks. Each attempt has its own timestamp and signature."
    ),
    "hook_event.headers": "Headers",
    "hook_event.attempts": "Attempts",
    "hook_event.answer": "Answer",
    "hook_event.empty_answer": "The answer had no body.",
    "hook_event.no_answer": "No answer",
    "hook_event.refused": "The endpoint is in a private network, or its name leads to one. Webhooks go there "
    "only if the operator allows that network by the setting `--allow-private`.",
    "hook_event.no_attempt": "No attempt yet",
    "hook_event.no_attempt.text": "The first attempt has not ended.",
    "hook_event.more": "Older attempts are in the API.",
    "signature.title": "Check a signature",
    "signature.words": "verify a webhook, svix, standard webhooks",
    "signature.text": "Paste a delivery as your receiver got it. Nothing of it is stored.",
    "signature.body": "Body",
    "signature.headers": "Headers",
    "signature.secret": "Signing secret",
    "signature.secret.hint": "Begins with whsec_. It is used for this check alone.",
    "signature.check": "Check",
    "signature.verdict.valid": "The signature is valid.",
    "signature.verdict.out_of_time": (
        "The signature is valid, but its time is more than 5 minutes away. Receivers refuse it."
    ),
    "signature.verdict.mismatch": (
        "The signature does not fit. The secret is another one, or the body was changed: verify "
        "the raw body, before it is parsed."
    ),
    "signature.verdict.not_a_secret": "This is no signing secret: one begins with whsec_, base64 follows.",
    "signature.verdict.no_headers": (
        "Headers are missing: svix-id, svix-timestamp and svix-signature, each on a line of its own."
    ),
    "signature.verdict.no_time": "The timestamp is no number of seconds.",
    "kind_group.email": "Emails",
    "kind_group.contact": "Contacts",
    "kind_group.domain": "Domains",
    "kind_group.suppression": "Suppressions",
    "kind_group.topic": "Topics",
    "kind_group.inbox": "Inboxes",
    "kind.email.scheduled": "A send was accepted with a future time.",
    "kind.email.sent": "A mail server was reached and offered the mail for the first time; once per email.",
    "kind.email.delivered": "The recipient's server took the mail.",
    "kind.email.delivery_delayed": "The mail could not be delivered yet and will be tried again.",
    "kind.email.bounced": "The mail was refused for good, or came back later.",
    "kind.email.complained": "The recipient reported the mail.",
    "kind.email.opened": "The mail was looked at; every time.",
    "kind.email.clicked": "A link of the mail was followed; every time.",
    "kind.email.failed": "The mail never reached a mail server.",
    "kind.email.suppressed": "The recipient is on the suppression list.",
    "kind.email.received": "An inbound message was stored.",
    "kind.email.judged": "What was found out about an inbound message, when it was stored.",
    "kind.contact.created": "A contact was created.",
    "kind.contact.updated": "A contact was changed, by its segments or its unsubscribe link too.",
    "kind.contact.deleted": "A contact was deleted.",
    "kind.contact.topics.updated": "A contact chose or left topics.",
    "kind.domain.created": "A domain was added.",
    "kind.domain.updated": "A domain or one of its records changed its status, or its settings were changed.",
    "kind.domain.deleted": "A domain was deleted.",
    "kind.suppression.added": "An address was put on the suppression list.",
    "kind.suppression.removed": "An address was taken off the suppression list.",
    "kind.topic.created": "A topic was created.",
    "kind.topic.updated": "A topic was changed.",
    "kind.topic.deleted": "A topic was deleted.",
    "kind.inbox.created": "An inbox was created.",
    "kind.inbox.updated": "The settings of an inbox were changed.",
    "kind.inbox.deleted": "An inbox was deleted.",
    "kind.inbox.thread.created": "The first message of a thread arrived or was sent.",
    "kind.inbox.email.received": "An inbound message was added to an inbox.",
    "kind.inbox.email.sent": "An outbound message was added to an inbox.",
    "kind.inbox.thread.folder.updated": "A thread was moved.",
    "kind.inbox.thread.assigned": "A thread was assigned.",
    "kind.inbox.thread.unassigned": "The assignment of a thread was taken back.",
    "kind.inbox.thread.labels.updated": "One label was put on a thread or taken off it.",
    "kind.inbox.draft.created": "A draft was created.",
    "kind.inbox.draft.updated": "A draft was changed.",
    "kind.inbox.draft.deleted": "A draft was deleted.",
    "kind.inbox.draft.sent": "A draft was sent.",
}
