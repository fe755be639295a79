"""The parts of execution, as a process has them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pillarbox.automations.execution import state_queries
from pillarbox.automations.execution.changes import ContactSteps
from pillarbox.automations.execution.engine import StepEngine
from pillarbox.automations.execution.mail import MailMaker, MailSteps
from pillarbox.automations.execution.receiving import AutomationTriggers
from pillarbox.automations.execution.state import RunLocks
from pillarbox.automations.execution.versions import GraphVersions
from pillarbox.contacts.store import ContactEnds, Contacts
from pillarbox.emails.accept import Accept
from pillarbox.emails.copies import TopicRules
from pillarbox.emails.requests.templating import TemplateRendering
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.settings.kinds import ProcessRole
from pillarbox.kernel.slices import Background, Container, StartOrder, Stop


def receiving(kit: Container) -> AutomationTriggers:
    def wake() -> None:
        engine = kit.find(StepEngine)
        if engine is not None:
            engine.wake()

    return AutomationTriggers(kit.need(Ids), kit.need(Contacts), kit.need(GraphVersions), wake)


def step_engine(kit: Container) -> StepEngine | None:
    """None in a process that does no background work."""
    if ProcessRole.JOBS not in kit.settings.roles:
        return None
    runs = RunLocks(kit.engine_pool, kit.clock, kit.runtime.process_id, kit.need(GraphVersions))
    mail = MailSteps(runs, kit.need(Accept), MailMaker(kit.need(TemplateRendering), kit.need(TopicRules)))
    contacts = ContactSteps(runs, kit.need(Contacts))
    return StepEngine(runs, mail, contacts, ",".join(kit.settings.roles))


def contact_ends(kit: Container) -> ContactEnds:
    async def end(db: TeamDb, contact_id: UUID) -> None:
        await state_queries.cancel_of_contact(db, contact_id, kit.clock.now())

    return ContactEnds(end)


def background(kit: Container) -> Sequence[Background]:
    engine = kit.find(StepEngine)
    if engine is None:
        return ()
    return [Background(start=(StartOrder.JOBS, engine.start), stop=(Stop.JOBS, engine.stop))]
