"""The program: the list of the slices.

What a slice is stands in its `manifest.py`, for whoever must not wait until the program is loaded, and in its
`plugin.py`. This list imports the manifests alone; `pillarbox.application` loads the slices and runs them.
"""

from __future__ import annotations

from pillarbox.api_keys import manifest as api_keys
from pillarbox.automations import manifest as automations
from pillarbox.broadcasts import manifest as broadcasts
from pillarbox.capture import manifest as capture
from pillarbox.contact_properties import manifest as contact_properties
from pillarbox.contacts import manifest as contacts
from pillarbox.dashboard import manifest as dashboard
from pillarbox.delivery import manifest as delivery
from pillarbox.documents import manifest as documents
from pillarbox.domains import manifest as domains
from pillarbox.domains.claims import manifest as claims
from pillarbox.emails import manifest as emails
from pillarbox.events import manifest as events
from pillarbox.forms import manifest as forms
from pillarbox.inboxes import manifest as inboxes
from pillarbox.kernel import manifest as kernel
from pillarbox.kernel.manifests import SliceManifest, settings_in
from pillarbox.logs import manifest as logs
from pillarbox.mcp import manifest as mcp
from pillarbox.metrics import manifest as metrics
from pillarbox.oauth import manifest as oauth
from pillarbox.people import manifest as people
from pillarbox.personal_data import manifest as personal_data
from pillarbox.receiving import manifest as receiving
from pillarbox.segments import manifest as segments
from pillarbox.smtp import manifest as smtp
from pillarbox.suppressions import manifest as suppressions
from pillarbox.teams import manifest as teams
from pillarbox.templates import manifest as templates
from pillarbox.timeline import manifest as timeline
from pillarbox.topics import manifest as topics
from pillarbox.tracking import manifest as tracking
from pillarbox.unsubscribe import manifest as unsubscribe
from pillarbox.usage import manifest as usage
from pillarbox.webhooks import manifest as webhooks

MANIFESTS: tuple[SliceManifest, ...] = (
    teams.MANIFEST,
    people.MANIFEST,
    api_keys.MANIFEST,
    oauth.MANIFEST,
    domains.MANIFEST,
    claims.MANIFEST,
    emails.MANIFEST,
    delivery.MANIFEST,
    timeline.MANIFEST,
    metrics.MANIFEST,
    webhooks.MANIFEST,
    receiving.MANIFEST,
    suppressions.MANIFEST,
    contacts.MANIFEST,
    contact_properties.MANIFEST,
    segments.MANIFEST,
    topics.MANIFEST,
    unsubscribe.MANIFEST,
    templates.MANIFEST,
    documents.MANIFEST,
    broadcasts.MANIFEST,
    automations.MANIFEST,
    events.MANIFEST,
    forms.MANIFEST,
    tracking.MANIFEST,
    inboxes.MANIFEST,
    logs.MANIFEST,
    personal_data.MANIFEST,
    usage.MANIFEST,
    smtp.MANIFEST,
    capture.MANIFEST,
    dashboard.MANIFEST,
    mcp.MANIFEST,
    kernel.MANIFEST,
)
"""In the order in which their routes, settings and commands are listed."""

SETTINGS = settings_in(MANIFESTS)
"""Every setting that there is."""
