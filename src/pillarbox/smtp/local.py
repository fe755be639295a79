"""The handler for LMTP: mail from a mail server on this machine.

That server has answered its own clients already, so each recipient gets an answer of its own here, and
addresses of reports and of teams may stand in one transaction. Its client is not known, so SPF is skipped.
"""

from __future__ import annotations

from uuid import UUID

from pillarbox.mail.smtp import answers as say
from pillarbox.mail.smtp.answers import SessionReply, Verdict
from pillarbox.mail.smtp.intake import ReceivedText
from pillarbox.mail.smtp.session import SmtpSession
from pillarbox.receiving.addresses import AddressRefusalReason, ForBounces, Place
from pillarbox.receiving.arrival import Arrival, ArrivalFate, ArrivalOutcome
from pillarbox.receiving.receive import MOST_OCTETS
from pillarbox.smtp.inbound import ANSWERS, REFUSALS, InboundHandler, arrival_of, stored_as


class LmtpHandler(InboundHandler):
    """Answers for each recipient. All teams of a message get it in one transaction, or none does."""

    def message(self, session: SmtpSession, content: ReceivedText) -> Verdict:
        return say.TOO_BIG if content.size > MOST_OCTETS else self._receive_each(session, content)

    def _recipient_answer(self, session: SmtpSession, place: Place) -> SessionReply:
        if isinstance(place, AddressRefusalReason):
            return REFUSALS[place]
        session.recipients.append(place)
        return say.RECIPIENT_OK

    async def _receive_each(self, session: SmtpSession, content: ReceivedText) -> SessionReply:
        arrival = arrival_of(session)._replace(client="")
        stored: dict[UUID, SessionReply] = {}
        if arrival.recipients:
            stored = _answers_by_team(arrival, await self._receive(session, arrival, content))
        answers = []
        for place in session.recipients:
            if isinstance(place, ForBounces):
                answers.append(await self._report(session, place, content))
            else:
                answers.append(stored[place.team_id])
        return say.each(answers)


def _answers_by_team(arrival: Arrival, outcome: ArrivalOutcome) -> dict[UUID, SessionReply]:
    """Return the answer to the recipients of each team, with the id of the team's own mail."""
    teams = list(dict.fromkeys([recipient.team_id for recipient in arrival.recipients]))
    if outcome.fate is not ArrivalFate.STORED:
        return dict.fromkeys(teams, ANSWERS[outcome.fate])
    if len(outcome.ids) < len(teams):
        return dict.fromkeys(teams, say.OK)
    return {team: stored_as(email_id) for team, email_id in zip(teams, outcome.ids, strict=True)}
