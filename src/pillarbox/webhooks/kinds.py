"""The kinds of events that a webhook may ask for (webhooks.md section 7): 37 of the API, and
one of our own, `email.judged`, which nobody gets who did not ask for it.

Each with its trigger. Some belong to parts that publish nothing yet; a webhook may ask for them all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    "email.scheduled": "a send was accepted with a future time",
    "email.sent": "a mail server was reached and offered the mail for the first time; once per email",
    "email.delivered": "the recipient's server took the mail",
    "email.delivery_delayed": "the mail could not be delivered yet and will be tried again",
    "email.bounced": "the mail was refused for good, or came back later",
    "email.complained": "the recipient reported the mail",
    "email.opened": "the mail was looked at; every time",
    "email.clicked": "a link of the mail was followed; every time",
    "email.failed": "the mail never reached a mail server",
    "email.suppressed": "the recipient is on the suppression list",
    "email.received": "an inbound message was stored",
    "email.judged": "what was found out about an inbound message, when it was stored",
    "contact.created": "a contact was created",
    "contact.updated": "a contact was changed, by its segments or its unsubscribe link too",
    "contact.deleted": "a contact was deleted",
    "contact.topics.updated": "a contact chose or left topics",
    "domain.created": "a domain was added",
    "domain.updated": "a domain or one of its records changed its status, or its settings were changed",
    "domain.deleted": "a domain was deleted",
    "suppression.added": "an address was put on the suppression list",
    "suppression.removed": "an address was taken off the suppression list",
    "topic.created": "a topic was created",
    "topic.updated": "a topic was changed",
    "topic.deleted": "a topic was deleted",
    "inbox.created": "an inbox was created",
    "inbox.updated": "the settings of an inbox were changed",
    "inbox.deleted": "an inbox was deleted",
    "inbox.thread.created": "the first message of a thread arrived or was sent",
    "inbox.email.received": "an inbound message was added to an inbox",
    "inbox.email.sent": "an outbound message was added to an inbox",
    "inbox.thread.folder.updated": "a thread was moved",
    "inbox.thread.assigned": "a thread was assigned",
    "inbox.thread.unassigned": "the assignment of a thread was taken back",
    "inbox.thread.labels.updated": "one label was put on a thread or taken off it",
    "inbox.draft.created": "a draft was created",
    "inbox.draft.updated": "a draft was changed",
    "inbox.draft.deleted": "a draft was deleted",
    "inbox.draft.sent": "a draft was sent",
}
