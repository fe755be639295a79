"""The slice of automations: routes, the step engine, the intake of events, retention and invariants."""

from __future__ import annotations

from functools import partial

from pillarbox.automations import jobs, routes
from pillarbox.automations.changes import AutomationChanges
from pillarbox.automations.execution import parts
from pillarbox.automations.execution.engine import StepEngine
from pillarbox.automations.execution.mail_forwarding import MailEventForwarder
from pillarbox.automations.execution.versions import GraphVersions
from pillarbox.automations.invariants import INVARIANTS
from pillarbox.automations.misdated_queries import misdated_steps
from pillarbox.automations.personal_data import PERSONAL_DATA
from pillarbox.automations.retention import RUNS_KEPT, RunRetention
from pillarbox.automations.runs import routes as run_routes
from pillarbox.contacts.store import ContactEnds
from pillarbox.events.distribution import EventReceiver
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Container, Retention, RetentionItem, Slice
from pillarbox.kernel.work.jobs import Jobs
from pillarbox.webhooks.listening.subscriptions import SubscriptionWake


def _changes(kit: Container) -> AutomationChanges:
    def wake() -> None:
        # Not before: jobs need parts that are built later.
        kit.need(Jobs).wake()

    return AutomationChanges(kit.need(Ids), wake, parts.subscription(kit))


SLICE = Slice(
    name="automations",
    provides={
        AutomationChanges: _changes,
        ContactEnds: parts.contact_ends,
        EventReceiver: parts.receiving,
        StepEngine: parts.step_engine,
        MailEventForwarder: parts.mail_event_forwarder,
        SubscriptionWake: parts.subscription_wake,
        GraphVersions: lambda _: GraphVersions(),
    },
    routes=collect(routes, run_routes),
    jobs=lambda kit: jobs.AutomationEnding(kit.pool, kit.clock).handlers(),
    job_limits=lambda _: [jobs.LIMIT],
    background=parts.background,
    retention=[
        Retention(
            [RetentionItem("runs of automations that ended, with their steps", RUNS_KEPT)],
            lambda kit: RunRetention(kit.pool, kit.clock, parts.subscription(kit)).periodic(),
        )
    ],
    invariants=INVARIANTS,
    personal_data=PERSONAL_DATA,
    clock_corrections=lambda kit: [partial(misdated_steps, kit.pool)],
)
