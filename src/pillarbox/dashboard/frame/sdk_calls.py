"""Methods of the official SDKs by route, and how each takes ids and fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

USER_KEYS: Final = frozenset(("headers", "variables", "properties", "payload", "schema", "column_map"))
"""Fields whose keys are the user's own: the Node SDK leaves them as they are."""


@dataclass(frozen=True, slots=True)
class SdkMethod:
    """A method of an SDK. Ids go before a dict of fields, unless `names` puts them into it under these names.

    With `keywords` ids are keyword arguments of these names and the fields are `params` (Python alone);
    `body` names the argument that a body which is a list stands in.
    """

    path: str
    names: tuple[str, ...] = ()
    keywords: tuple[str, ...] | None = None
    body: str | None = None


class SdkCall(NamedTuple):
    """A route in both SDKs."""

    python: SdkMethod
    node: SdkMethod


def _ids(path: str) -> SdkMethod:
    """Return a method that takes ids first."""
    return SdkMethod(path)


def _named(path: str, *names: str, body: str | None = None) -> SdkMethod:
    """Return a method that takes ids among the fields."""
    return SdkMethod(path, names, body=body)


def _keywords(path: str, *keywords: str) -> SdkMethod:
    """Return a method of Python that takes ids as keyword arguments."""
    return SdkMethod(path, keywords=keywords)


def _both(python: str, node: str) -> SdkCall:
    return SdkCall(_ids(python), _ids(node))


INBOX: Final = "/inboxes/{}"
THREAD: Final = f"{INBOX}/threads/{{}}"
THREAD_EMAIL: Final = f"{THREAD}/emails/{{}}"
DRAFT: Final = f"{INBOX}/drafts/{{}}"

SDK_CALLS: Final[Mapping[tuple[str, str], SdkCall]] = {
    ("POST", "/emails"): _both("Emails.send", "emails.send"),
    ("GET", "/emails"): _both("Emails.list", "emails.list"),
    ("POST", "/emails/batch"): _both("Batch.send", "batch.send"),
    ("GET", "/emails/metrics"): _both("Emails.metrics", "emails.metrics"),
    ("GET", "/emails/{}"): _both("Emails.get", "emails.get"),
    ("PATCH", "/emails/{}"): SdkCall(_named("Emails.update", "id"), _named("emails.update", "id")),
    ("POST", "/emails/{}/cancel"): _both("Emails.cancel", "emails.cancel"),
    ("POST", "/emails/{}/share"): _both("Emails.share", "emails.share"),
    ("GET", "/emails/{}/attachments"): SdkCall(
        _ids("Emails.Attachments.list"), _named("emails.attachments.list", "emailId")
    ),
    ("GET", "/emails/{}/attachments/{}"): SdkCall(
        _ids("Emails.Attachments.get"), _named("emails.attachments.get", "emailId", "id")
    ),
    ("GET", "/emails/receiving"): _both("Emails.Receiving.list", "emails.receiving.list"),
    ("GET", "/emails/receiving/{}"): _both("Emails.Receiving.get", "emails.receiving.get"),
    ("GET", "/emails/receiving/{}/attachments"): SdkCall(
        _ids("Emails.Receiving.Attachments.list"), _named("emails.receiving.attachments.list", "emailId")
    ),
    ("GET", "/emails/receiving/{}/attachments/{}"): SdkCall(
        _ids("Emails.Receiving.Attachments.get"),
        _named("emails.receiving.attachments.get", "emailId", "id"),
    ),
    ("GET", "/domains"): _both("Domains.list", "domains.list"),
    ("POST", "/domains"): _both("Domains.create", "domains.create"),
    ("GET", "/domains/{}"): _both("Domains.get", "domains.get"),
    ("PATCH", "/domains/{}"): SdkCall(_named("Domains.update", "id"), _named("domains.update", "id")),
    ("DELETE", "/domains/{}"): _both("Domains.remove", "domains.remove"),
    ("POST", "/domains/{}/verify"): _both("Domains.verify", "domains.verify"),
    ("POST", "/domains/claim"): _both("Domains.Claims.create", "domains.claims.create"),
    ("GET", "/domains/{}/claim"): _both("Domains.Claims.get", "domains.claims.get"),
    ("POST", "/domains/{}/claim/verify"): _both("Domains.Claims.verify", "domains.claims.verify"),
    ("GET", "/api-keys"): _both("ApiKeys.list", "apiKeys.list"),
    ("POST", "/api-keys"): _both("ApiKeys.create", "apiKeys.create"),
    ("PATCH", "/api-keys/{}"): SdkCall(_named("ApiKeys.update", "id"), _ids("apiKeys.update")),
    ("DELETE", "/api-keys/{}"): _both("ApiKeys.remove", "apiKeys.remove"),
    ("GET", "/webhooks"): _both("Webhooks.list", "webhooks.list"),
    ("POST", "/webhooks"): _both("Webhooks.create", "webhooks.create"),
    ("GET", "/webhooks/{}"): _both("Webhooks.get", "webhooks.get"),
    ("PATCH", "/webhooks/{}"): SdkCall(_named("Webhooks.update", "webhook_id"), _ids("webhooks.update")),
    ("DELETE", "/webhooks/{}"): _both("Webhooks.remove", "webhooks.remove"),
    ("POST", "/webhooks/{}/signing-secret/rotate"): _both(
        "Webhooks.rotate_signing_secret", "webhooks.rotateSigningSecret"
    ),
    ("GET", "/webhooks/{}/events"): SdkCall(
        _ids("Webhooks.list_events"), _named("webhooks.events.list", "webhookId")
    ),
    ("GET", "/webhooks/{}/events/{}"): SdkCall(
        _ids("Webhooks.get_event"), _named("webhooks.events.get", "webhookId", "eventId")
    ),
    ("POST", "/webhooks/{}/events/{}/replay"): SdkCall(
        _ids("Webhooks.replay_event"), _named("webhooks.events.replay", "webhookId", "eventId")
    ),
    ("GET", "/webhooks/{}/events/{}/attempts"): SdkCall(
        _ids("Webhooks.list_event_attempts"), _named("webhooks.events.attempts.list", "webhookId", "eventId")
    ),
    ("GET", "/suppressions"): _both("Suppressions.list", "suppressions.list"),
    ("POST", "/suppressions"): _both("Suppressions.add", "suppressions.add"),
    ("GET", "/suppressions/{}"): _both("Suppressions.get", "suppressions.get"),
    ("DELETE", "/suppressions/{}"): _both("Suppressions.remove", "suppressions.remove"),
    ("POST", "/suppressions/batch/add"): _both("Suppressions.Batch.add", "suppressions.batch.add"),
    ("POST", "/suppressions/batch/remove"): _both("Suppressions.Batch.remove", "suppressions.batch.remove"),
    ("GET", "/contacts"): SdkCall(_keywords("Contacts.list"), _ids("contacts.list")),
    ("POST", "/contacts"): _both("Contacts.create", "contacts.create"),
    ("GET", "/contacts/{}"): SdkCall(_keywords("Contacts.get", "id"), _ids("contacts.get")),
    ("PATCH", "/contacts/{}"): SdkCall(_named("Contacts.update", "id"), _named("contacts.update", "id")),
    ("DELETE", "/contacts/{}"): SdkCall(_keywords("Contacts.remove", "id"), _ids("contacts.remove")),
    ("GET", "/contacts/{}/segments"): SdkCall(
        _named("Contacts.Segments.list", "contact_id"), _named("contacts.segments.list", "contactId")
    ),
    ("POST", "/contacts/{}/segments/{}"): SdkCall(
        _named("Contacts.Segments.add", "contact_id", "segment_id"),
        _named("contacts.segments.add", "contactId", "segmentId"),
    ),
    ("DELETE", "/contacts/{}/segments/{}"): SdkCall(
        _named("Contacts.Segments.remove", "contact_id", "segment_id"),
        _named("contacts.segments.remove", "contactId", "segmentId"),
    ),
    ("GET", "/contacts/{}/topics"): SdkCall(
        _keywords("Contacts.Topics.list", "contact_id"), _named("contacts.topics.list", "id")
    ),
    ("PATCH", "/contacts/{}/topics"): SdkCall(
        _named("Contacts.Topics.update", "id", body="topics"),
        _named("contacts.topics.update", "id", body="topics"),
    ),
    ("GET", "/contacts/imports"): _both("Contacts.Imports.list", "contacts.imports.list"),
    ("GET", "/contacts/imports/{}"): _both("Contacts.Imports.get", "contacts.imports.get"),
    ("GET", "/contact-properties"): _both("ContactProperties.list", "contactProperties.list"),
    ("POST", "/contact-properties"): _both("ContactProperties.create", "contactProperties.create"),
    ("GET", "/contact-properties/{}"): _both("ContactProperties.get", "contactProperties.get"),
    ("PATCH", "/contact-properties/{}"): SdkCall(
        _named("ContactProperties.update", "id"), _named("contactProperties.update", "id")
    ),
    ("DELETE", "/contact-properties/{}"): _both("ContactProperties.remove", "contactProperties.remove"),
    ("GET", "/segments"): _both("Segments.list", "segments.list"),
    ("POST", "/segments"): _both("Segments.create", "segments.create"),
    ("GET", "/segments/{}"): _both("Segments.get", "segments.get"),
    ("PATCH", "/segments/{}"): _both("Segments.update", "segments.update"),
    ("DELETE", "/segments/{}"): _both("Segments.remove", "segments.remove"),
    ("GET", "/segments/{}/contacts"): SdkCall(
        _keywords("Contacts.list", "segment_id"), _named("contacts.list", "segmentId")
    ),
    ("GET", "/topics"): _both("Topics.list", "topics.list"),
    ("POST", "/topics"): _both("Topics.create", "topics.create"),
    ("GET", "/topics/{}"): _both("Topics.get", "topics.get"),
    ("PATCH", "/topics/{}"): SdkCall(_ids("Topics.update"), _named("topics.update", "id")),
    ("DELETE", "/topics/{}"): _both("Topics.remove", "topics.remove"),
    ("GET", "/templates"): _both("Templates.list", "templates.list"),
    ("POST", "/templates"): _both("Templates.create", "templates.create"),
    ("GET", "/templates/{}"): _both("Templates.get", "templates.get"),
    ("PATCH", "/templates/{}"): SdkCall(_named("Templates.update", "id"), _ids("templates.update")),
    ("DELETE", "/templates/{}"): _both("Templates.remove", "templates.remove"),
    ("POST", "/templates/{}/publish"): _both("Templates.publish", "templates.publish"),
    ("POST", "/templates/{}/duplicate"): _both("Templates.duplicate", "templates.duplicate"),
    ("GET", "/broadcasts"): _both("Broadcasts.list", "broadcasts.list"),
    ("POST", "/broadcasts"): _both("Broadcasts.create", "broadcasts.create"),
    ("GET", "/broadcasts/{}"): _both("Broadcasts.get", "broadcasts.get"),
    ("PATCH", "/broadcasts/{}"): SdkCall(
        _named("Broadcasts.update", "broadcast_id"), _ids("broadcasts.update")
    ),
    ("DELETE", "/broadcasts/{}"): _both("Broadcasts.remove", "broadcasts.remove"),
    ("POST", "/broadcasts/{}/send"): SdkCall(
        _named("Broadcasts.send", "broadcast_id"), _ids("broadcasts.send")
    ),
    ("POST", "/broadcasts/{}/cancel"): _both("Broadcasts.cancel", "broadcasts.cancel"),
    ("POST", "/broadcasts/{}/duplicate"): _both("Broadcasts.duplicate", "broadcasts.duplicate"),
    ("GET", "/broadcasts/{}/recipients"): _both("Broadcasts.recipients", "broadcasts.recipients"),
    ("GET", "/broadcasts/{}/clicked-links"): _both("Broadcasts.clicked_links", "broadcasts.clickedLinks"),
    ("GET", "/automations"): _both("Automations.list", "automations.list"),
    ("POST", "/automations"): _both("Automations.create", "automations.create"),
    ("GET", "/automations/{}"): _both("Automations.get", "automations.get"),
    ("PATCH", "/automations/{}"): SdkCall(
        _named("Automations.update", "automation_id"), _ids("automations.update")
    ),
    ("DELETE", "/automations/{}"): _both("Automations.remove", "automations.remove"),
    ("POST", "/automations/{}/duplicate"): _both("Automations.duplicate", "automations.duplicate"),
    ("POST", "/automations/{}/stop"): _both("Automations.stop", "automations.stop"),
    ("GET", "/automations/{}/runs"): SdkCall(
        _ids("Automations.Runs.list"), _named("automations.runs.list", "automationId")
    ),
    ("GET", "/automations/{}/runs/{}"): SdkCall(
        _ids("Automations.Runs.get"), _named("automations.runs.get", "automationId", "runId")
    ),
    ("GET", "/events"): _both("Events.list", "events.list"),
    ("POST", "/events"): _both("Events.create", "events.create"),
    ("GET", "/events/{}"): _both("Events.get", "events.get"),
    ("PATCH", "/events/{}"): SdkCall(_named("Events.update", "identifier"), _ids("events.update")),
    ("DELETE", "/events/{}"): _both("Events.remove", "events.remove"),
    ("POST", "/events/send"): _both("Events.send", "events.send"),
    ("GET", "/inboxes"): _both("Inboxes.list", "inboxes.list"),
    ("POST", "/inboxes"): _both("Inboxes.create", "inboxes.create"),
    ("GET", INBOX): _both("Inboxes.get", "inboxes.get"),
    ("PATCH", INBOX): SdkCall(_named("Inboxes.update", "id"), _ids("inboxes.update")),
    ("DELETE", INBOX): _both("Inboxes.remove", "inboxes.remove"),
    ("GET", f"{INBOX}/agent"): SdkCall(_ids("Inboxes.Agent.get"), _named("inboxes.agent.get", "inboxId")),
    ("PATCH", f"{INBOX}/agent"): SdkCall(
        _named("Inboxes.Agent.update", "inbox_id"), _named("inboxes.agent.update", "inboxId")
    ),
    ("GET", f"{INBOX}/labels"): SdkCall(
        _ids("Inboxes.Labels.list"), _named("inboxes.labels.list", "inboxId")
    ),
    ("POST", f"{INBOX}/labels"): SdkCall(
        _named("Inboxes.Labels.create", "inbox_id"), _named("inboxes.labels.create", "inboxId")
    ),
    ("PATCH", f"{INBOX}/labels/{{}}"): SdkCall(
        _named("Inboxes.Labels.update", "inbox_id", "id"),
        _named("inboxes.labels.update", "inboxId", "labelId"),
    ),
    ("DELETE", f"{INBOX}/labels/{{}}"): SdkCall(
        _ids("Inboxes.Labels.remove"), _named("inboxes.labels.remove", "inboxId", "labelId")
    ),
    ("GET", f"{INBOX}/threads"): SdkCall(
        _ids("Inboxes.Threads.list"), _named("inboxes.threads.list", "inboxId")
    ),
    ("GET", f"{INBOX}/threads/search"): SdkCall(
        _ids("Inboxes.Threads.search"), _named("inboxes.threads.search", "inboxId")
    ),
    ("GET", THREAD): SdkCall(
        _ids("Inboxes.Threads.get"), _named("inboxes.threads.get", "inboxId", "threadId")
    ),
    ("PATCH", THREAD): SdkCall(
        _named("Inboxes.Threads.update", "inbox_id", "id"),
        _named("inboxes.threads.update", "inboxId", "threadId"),
    ),
    ("DELETE", THREAD): SdkCall(
        _ids("Inboxes.Threads.remove"), _named("inboxes.threads.remove", "inboxId", "threadId")
    ),
    ("POST", f"{THREAD}/labels"): SdkCall(
        _named("Inboxes.Threads.Labels.add", "inbox_id", "thread_id"),
        _named("inboxes.threads.labels.add", "inboxId", "threadId"),
    ),
    ("PUT", f"{THREAD}/labels"): SdkCall(
        _named("Inboxes.Threads.Labels.set", "inbox_id", "thread_id"),
        _named("inboxes.threads.labels.set", "inboxId", "threadId"),
    ),
    ("DELETE", f"{THREAD}/labels/{{}}"): SdkCall(
        _ids("Inboxes.Threads.Labels.remove"),
        _named("inboxes.threads.labels.remove", "inboxId", "threadId", "labelId"),
    ),
    ("GET", f"{THREAD}/emails"): SdkCall(
        _ids("Inboxes.Threads.Emails.list"), _named("inboxes.threads.emails.list", "inboxId", "threadId")
    ),
    ("GET", THREAD_EMAIL): SdkCall(
        _ids("Inboxes.Threads.Emails.get"),
        _named("inboxes.threads.emails.get", "inboxId", "threadId", "emailId"),
    ),
    ("POST", f"{THREAD_EMAIL}/reply"): SdkCall(
        _named("Inboxes.Threads.Emails.reply", "inbox_id", "thread_id", "email_id"),
        _named("inboxes.threads.emails.reply", "inboxId", "threadId", "emailId"),
    ),
    ("POST", f"{THREAD_EMAIL}/forward"): SdkCall(
        _named("Inboxes.Threads.Emails.forward", "inbox_id", "thread_id", "email_id"),
        _named("inboxes.threads.emails.forward", "inboxId", "threadId", "emailId"),
    ),
    ("GET", f"{INBOX}/drafts"): SdkCall(
        _ids("Inboxes.Drafts.list"), _named("inboxes.drafts.list", "inboxId")
    ),
    ("POST", f"{INBOX}/drafts"): SdkCall(
        _named("Inboxes.Drafts.create", "inbox_id"), _named("inboxes.drafts.create", "inboxId")
    ),
    ("GET", DRAFT): SdkCall(_ids("Inboxes.Drafts.get"), _named("inboxes.drafts.get", "inboxId", "draftId")),
    ("PATCH", DRAFT): SdkCall(
        _named("Inboxes.Drafts.update", "inbox_id", "id"),
        _named("inboxes.drafts.update", "inboxId", "draftId"),
    ),
    ("DELETE", DRAFT): SdkCall(
        _ids("Inboxes.Drafts.remove"), _named("inboxes.drafts.remove", "inboxId", "draftId")
    ),
    ("POST", f"{DRAFT}/send"): SdkCall(
        _ids("Inboxes.Drafts.send"), _named("inboxes.drafts.send", "inboxId", "draftId")
    ),
    ("GET", "/logs"): _both("Logs.list", "logs.list"),
    ("GET", "/logs/{}"): _both("Logs.get", "logs.get"),
    ("GET", "/usage"): _both("Usage.get", "usage.get"),
    ("GET", "/oauth/grants"): _both("OAuthGrants.list", "oauthGrants.list"),
    ("DELETE", "/oauth/grants/{}"): _both("OAuthGrants.revoke", "oauthGrants.revoke"),
}
"""Calls of the official SDKs. Other routes are shown as plain HTTP."""


def camel_keys(value: Any) -> Any:
    """Return fields with the names that they have in the Node SDK."""
    if isinstance(value, list):
        return [camel_keys(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {_camel(name): inner if name in USER_KEYS else camel_keys(inner) for name, inner in value.items()}


def _camel(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(word.title() for word in words)
