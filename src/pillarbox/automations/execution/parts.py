"""The parts of execution, as a process has them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pillarbox.automations.execution import state_queries, work_queries
from pillarbox.automations.execution.changes import ContactSteps
from pillarbox.automations.execution.engine import StepEngine
from pillarbox.automations.execution.mail import MailMaker, MailSteps
from pillarbox.automations.execution.mail_forwarding import MailEventForwarder
from pillarbox.automations.execution.receiving import AutomationTriggers
from pillarbox.automations.execution.state import RunLocks
from pillarbox.automations.execution.versions import GraphVersions
from pillarbox.automations.mail_events import NAME
from pillarbox.contacts.store import ContactEnds, Contacts
from pillarbox.emails.accept import Accept
from pillarbox.emails.copies import TopicRules
from pillarbox.emails.requests.templating import TemplateRendering
from pillarbox.events.sending import EventSender
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.kinds import ProcessRole
from pillarbox.kernel.slices import Background, Container, StartOrder, Stop
from pillarbox.kernel.work.lone_attempts import LoneAttempts
from pillarbox.kernel.work.queue_poll import SELDOM, QueuePoll
from pillarbox.webhooks.bodies import WebhookBodies
from pillarbox.webhooks.listening.subscriptions import IS_BUSY, EventSubscription, SubscriptionWake


def receiving(kit: Container) -> AutomationTriggers:
    def wake() -> None:
        engine = kit.find(StepEngine)
        if engine is not None:
            engine.wake()

    return AutomationTriggers(kit.need(Ids), kit.need(Contacts), kit.need(GraphVersions), wake)


def step_engine(kit: Container) -> StepEngine | None:
    """Return the engine of steps; None in a process that does no background work."""
    if ProcessRole.JOBS not in kit.settings.roles:
        return None
    runs = RunLocks(kit.engine_pool, kit.clock, kit.runtime.process_id, kit.need(GraphVersions))
    mail = MailSteps(runs, kit.need(Accept), MailMaker(kit.need(TemplateRendering), kit.need(TopicRules)))
    contacts = ContactSteps(runs, kit.need(Contacts))
    roles, lone = ",".join(kit.settings.roles), kit.need(LoneAttempts)
    engine = StepEngine(runs, mail, contacts, roles, lone, SELDOM)
    kit.need(QueuePoll).add(work_queries.STEPS.is_busy, engine.wake)
    return engine


def contact_ends(kit: Container) -> ContactEnds:
    async def end(db: TeamDb, contact_id: UUID) -> None:
        await state_queries.cancel_of_contact(db, contact_id, kit.clock.now())

    return ContactEnds(end)


def subscription(kit: Container) -> EventSubscription:
    return EventSubscription(NAME, kit.need(KeyRing), kit.need(WebhookBodies))


def mail_event_forwarder(kit: Container) -> MailEventForwarder | None:
    """Return the forwarder of mail events; None in a process that does no background work."""
    if ProcessRole.JOBS not in kit.settings.roles:
        return None
    forwarder = MailEventForwarder(kit.engine_pool, subscription(kit), kit.need(EventSender))
    kit.need(QueuePoll).add(IS_BUSY, forwarder.wake)
    return forwarder


def subscription_wake(kit: Container) -> SubscriptionWake:
    def wake() -> None:
        # Not before: the forwarder needs parts that publish.
        forwarder = kit.find(MailEventForwarder)
        if forwarder is not None:
            forwarder.wake()

    return SubscriptionWake(wake)


def background(kit: Container) -> Sequence[Background]:
    engine, forwarder = kit.find(StepEngine), kit.find(MailEventForwarder)
    if engine is None or forwarder is None:
        return ()
    return [
        Background(start=(StartOrder.JOBS, engine.start), stop=(Stop.JOBS, engine.stop)),
        Background(start=(StartOrder.JOBS, forwarder.start), stop=(Stop.JOBS, forwarder.stop)),
    ]
