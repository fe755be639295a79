"""Simulates a run for a contact: what commands and screens ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from pillarbox.automations.execution import contact_queries
from pillarbox.automations.execution.facts import awaited
from pillarbox.automations.execution.mail import MailMaker
from pillarbox.automations.graphs.graph import MAIL_EVENTS, Graph
from pillarbox.automations.simulation.contact import SimulatedContact, contact_of
from pillarbox.automations.simulation.run import SimulatedEvent, SimulatedRun
from pillarbox.emails.copies import MailOfTopic, TopicRules
from pillarbox.emails.outgoing import OutgoingEmail
from pillarbox.emails.permitted_senders import PermittedSenders
from pillarbox.emails.requests.templating import ContactSource, TemplateRendering
from pillarbox.events import definitions
from pillarbox.events.definitions import event_name
from pillarbox.events.payloads import encoded, fitted
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.wire.email_address import EmailAddress
from pillarbox.topics import lookup, subscriptions


async def simulated(
    db: TeamDb,
    senders: PermittedSenders,
    graph: Graph,
    trigger: int,
    address: EmailAddress,
    new_id: UUID,
    events: Sequence[SimulatedEvent],
) -> SimulatedRun:
    """Return the run when it is over. The first event starts it; `new_id` is the id of the contact that it
    would make."""
    first, *others = events
    contact = await contact_of(db, address, new_id, first.at)

    async def may_send(mail: OutgoingEmail) -> object:
        return await senders.find(db.team_id, mail.sender.domain, None, is_simulator=True)

    run = SimulatedRun(
        db=db,
        graph=graph,
        trigger=trigger,
        contact=contact,
        event=first,
        dates=await contact_queries.dates(db, [first.name, *awaited(graph)]),
        maker=_maker(contact),
        may_send=may_send,
    )
    await run.go(others)
    return run


async def accepted(db: TeamDb, now: datetime, name: str, payload: Mapping[str, Any]) -> SimulatedEvent:
    """Return the event with its payload as it would be accepted; raises the Problem that would refuse it."""
    name = name.strip() if name.strip() in MAIL_EVENTS else event_name(name, "event")
    definition = await definitions.by_name(db, name)
    if definition is not None and definition.schema is not None:
        payload = fitted(dict(payload), msgspec.json.decode(definition.schema))
    encoded(dict(payload))
    return SimulatedEvent(now, name, payload)


def _maker(contact: SimulatedContact) -> MailMaker:
    return MailMaker(TemplateRendering(ContactSource(contact.values)), TopicRules(lookup.live, _refused))


async def _refused(conn: Connection, mails: Sequence[MailOfTopic]) -> Set[MailOfTopic]:
    return await subscriptions.refused(conn, [subscriptions.TopicAddress(*mail) for mail in mails])
