"""The parts of execution, as a process has them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pillarbox.automations.execution import state_queries
from pillarbox.automations.execution.changes import ContactSteps
from pillarbox.automations.execution.engine import StepEngine
from pillarbox.automations.execution.mail import MailMaker, MailSteps
from pillarbox.automations.execution.receiving import Receiving
from pillarbox.automations.execution.state import Runs
from pillarbox.automations.execution.versions import Versions
from pillarbox.contacts.store import ContactEnds, Contacts
from pillarbox.emails.accept import Accept
from pillarbox.emails.copies import TopicRules
from pillarbox.emails.requests.templating import Templating
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.settings.kinds import Role
from pillarbox.kernel.slices import Background, Kit, Start, Stop


def receiving(kit: Kit) -> Receiving:
    def wake() -> None:
        engine = kit.find(StepEngine)
        if engine is not None:
            engine.wake()

    return Receiving(kit.need(Ids), kit.need(Contacts), kit.need(Versions), wake)


def step_engine(kit: Kit) -> StepEngine | None:
    """None in a process that does no background work."""
    if Role.JOBS not in kit.settings.roles:
        return None
    runs = Runs(kit.engine_pool, kit.clock, kit.runtime.process_id, kit.need(Versions))
    mail = MailSteps(runs, kit.need(Accept), MailMaker(kit.need(Templating), kit.need(TopicRules)))
    contacts = ContactSteps(runs, kit.need(Contacts))
    return StepEngine(runs, mail, contacts, ",".join(kit.settings.roles))


def contact_ends(kit: Kit) -> ContactEnds:
    async def end(db: TeamDb, contact_id: UUID) -> None:
        await state_queries.cancel_of_contact(db, contact_id, kit.clock.now())

    return ContactEnds(end)


def background(kit: Kit) -> Sequence[Background]:
    engine = kit.find(StepEngine)
    if engine is None:
        return ()
    return [Background(start=(Start.JOBS, engine.start), stop=(Stop.JOBS, engine.stop))]
