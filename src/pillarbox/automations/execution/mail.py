"""Carrying out `send_email`: an email of the published template, accepted by the one door for mail.

The mail is made with no transaction open. Then the email and the status of its step are one commit: a crash
leaves both or neither, so nothing goes out twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from msgspec import structs

from pillarbox.automations.execution import contact_queries
from pillarbox.automations.execution.facts import RunFacts, RunSubject, facts_of
from pillarbox.automations.execution.state import RunLocks, is_for_nobody, write
from pillarbox.automations.execution.walks import StepFailure
from pillarbox.automations.execution.work_queries import ClaimedStep
from pillarbox.automations.graphs.evaluation import EvaluationInput
from pillarbox.automations.graphs.graph import Graph, SendEmailStep
from pillarbox.automations.graphs.resolving import Mismatch, ResolvedValue, resolved
from pillarbox.emails.accept import Accept, AuthorizedEmail
from pillarbox.emails.commits import TransactionHook
from pillarbox.emails.copies import TopicRules
from pillarbox.emails.outgoing import BY_AUTOMATION, OutgoingEmail, TemplatesTooLarge, UsedTemplate
from pillarbox.emails.permitted_senders import PolicyLimitReached, PolicyRefusal
from pillarbox.emails.requests.parse import outgoing
from pillarbox.emails.requests.templating import TemplateRendering
from pillarbox.emails.rows import PreparedEmail
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.security.authentication import Caller, Permission
from pillarbox.kernel.wire.problems import Forbidden, NotFound, Problem
from pillarbox.templates.published import PublishedTemplate, published
from pillarbox.templates.variables import MissingVariable, Scalar
from pillarbox.usage.quotas import DailyQuotaExceeded, MonthlyQuotaExceeded

TEMPORARY: Final = frozenset({409, 429})
"""Answers, beside those from 500 on, that say nothing about the mail itself."""


class StepOutdated(Exception):  # noqa: N818 - what was made is not sent
    """A step of a commit may not be carried out any more."""


class MailSkipped:
    """The contact does not want this mail."""


class ContactGone:
    """There is no contact."""


Made = OutgoingEmail | StepFailure | MailSkipped | ContactGone


@dataclass(frozen=True, slots=True)
class MailMaker:
    """Makes the mail of steps; writes nothing."""

    templating: TemplateRendering
    topics: TopicRules

    async def made(
        self, db: TeamDb, send_email_steps: Sequence[tuple[SendEmailStep, RunFacts]], now: datetime
    ) -> list[Made]:
        """Return the mail of each of these steps, rendered, or why there is none."""
        topics = {config.topic_id for config, _ in send_email_steps if config.topic_id is not None}
        live = await self.topics.live(db, topics) if topics else set[UUID]()
        asked = [
            (db.team_id, config.topic_id, known.address)
            for config, known in send_email_steps
            if config.topic_id is not None and known.address is not None
        ]
        async with db.transaction() as inside:
            refused = await self.topics.refused(inside.connection, asked) if asked else set()
        templates = await published(db, {config.template for config, _ in send_email_steps})
        made: list[Made] = []
        for config, known in send_email_steps:
            if known.contact is None:
                made.append(ContactGone())
            elif known.contact.unsubscribed:
                made.append(MailSkipped())
            elif config.topic_id is not None and config.topic_id not in live:
                made.append(StepFailure("topic_not_found", f"There is no topic `{config.topic_id}`."))
            elif (db.team_id, config.topic_id, known.address) in refused:
                made.append(MailSkipped())
            else:
                made.append(_outgoing(config, templates, known, now))
        return await self._rendered(db, made)

    async def _rendered(self, db: TeamDb, outgoing_emails: Sequence[Made]) -> list[Made]:
        mails = [one for one in outgoing_emails if isinstance(one, OutgoingEmail)]
        rendered = iter(await self.templating.rendered(db, mails))
        found: list[Made] = []
        for one in outgoing_emails:
            if not isinstance(one, OutgoingEmail):
                found.append(one)
                continue
            result = next(rendered)
            if isinstance(result, TemplatesTooLarge) and len(outgoing_emails) > 1:
                raise result
            found.append(failure_of(result) if isinstance(result, Problem) else result)
        return found


@dataclass(frozen=True, slots=True)
class MailSteps:
    """Carries out steps that send."""

    runs: RunLocks
    accept: Accept
    maker: MailMaker

    async def carry_out(self, team_id: UUID, items: Sequence[ClaimedStep]) -> None:
        """Send all mail in one commit. Where one of several cannot be sent for what only the commit knows,
        this raises, and each is to be tried alone."""
        db = TeamDb(self.runs.pool, team_id)
        team = await contact_queries.sending_team(db)
        if team is None:
            return
        caller = Caller(
            team_id,
            team.number,
            None,
            Permission.FULL,
            daily_quota=team.daily_quota,
            monthly_quota=team.monthly_quota,
        )
        mails: list[tuple[ClaimedStep, AuthorizedEmail]] = []
        others: list[tuple[ClaimedStep, StepFailure | MailSkipped | ContactGone]] = []
        for item, made in zip(items, await self._made(db, items), strict=True):
            found = await self._checked(caller, made)
            if isinstance(found, AuthorizedEmail):
                mails.append((item, found))
            else:
                others.append((item, found))
        if others:
            await self._without_mail(team_id, others)
        if mails:
            await self._send(caller, mails)

    async def _send(self, caller: Caller, mails: Sequence[tuple[ClaimedStep, AuthorizedEmail]]) -> None:
        items = [item for item, _ in mails]

        async def work(conn: Connection, drafts: Sequence[PreparedEmail]) -> None:
            inside = TeamDb(conn, caller.team_id)
            runs = await self.runs.open(inside, items)
            steps = self.runs.ours(runs, items)
            if len(steps) < len(items):
                raise StepOutdated
            for (item, walk), draft in zip(steps, drafts, strict=True):
                walk.finish(item.position, output={"email_id": str(draft.id)})
            await write(inside, [one.walk for one in runs.values()])

        try:
            await self.accept.store(
                caller,
                [checked for _, checked in mails],
                answer=lambda _: b"",
                hook=TransactionHook(caller.team_id, work),
            )
        except StepOutdated:
            if len(mails) > 1:
                raise
            # The run is over, or is to be cancelled, which opening it does.
            async with self.runs.opened(caller.team_id, items):
                pass
        except Problem as problem:
            if len(mails) > 1:
                raise
            await self.runs.fail(items[0], failure_of(problem))

    async def _without_mail(
        self,
        team_id: UUID,
        claimed_steps: Sequence[tuple[ClaimedStep, StepFailure | MailSkipped | ContactGone]],
    ) -> None:
        results = {(item.run_id, item.position): result for item, result in claimed_steps}
        async with self.runs.opened(team_id, [item for item, _ in claimed_steps]) as (_, steps):
            for item, walk in steps:
                result = results[item.run_id, item.position]
                if walk.is_over:
                    continue
                if isinstance(result, StepFailure):
                    walk.fail(item.position, result)
                elif isinstance(result, ContactGone):
                    is_for_nobody(walk, item.position)
                else:
                    walk.skip(item.position)

    # Making it -------------------------------------------------------------------------------------

    async def _made(self, db: TeamDb, items: Sequence[ClaimedStep]) -> list[Made]:
        """Return the mail of each step, rendered, or why there is none."""
        configs = [await self._config(db, item) for item in items]
        subjects = [RunSubject(item.run_id, item.contact_id, item.event_name) for item in items]
        graphs = [await self._graph(db, item) for item in items]
        facts = await facts_of(db, subjects, graphs)
        wanted = [(config, facts[item.run_id]) for item, config in zip(items, configs, strict=True)]
        return await self.maker.made(db, wanted, self.runs.clock.now())

    async def _checked(
        self, caller: Caller, outgoing: Made
    ) -> AuthorizedEmail | StepFailure | MailSkipped | ContactGone:
        """Return the mail once the team may send it, else why it is not sent."""
        if not isinstance(outgoing, OutgoingEmail):
            return outgoing
        try:
            return await self.accept.check(caller, outgoing)
        except Problem as problem:
            return failure_of(problem)

    async def _graph(self, db: TeamDb, item: ClaimedStep) -> Graph:
        return await self.runs.versions.graph(db, item.automation_id, item.version)

    async def _config(self, db: TeamDb, item: ClaimedStep) -> SendEmailStep:
        config = (await self._graph(db, item)).steps[item.position].config
        assert isinstance(config, SendEmailStep)
        return config


def _outgoing(
    config: SendEmailStep, templates: Mapping[str, PublishedTemplate], known: RunFacts, now: datetime
) -> Made:
    """Return the mail as a request would describe it, parsed as one."""
    assert known.contact is not None
    template = templates.get(config.template)
    if template is None:
        return StepFailure("template_not_found", f"There is no template `{config.template}`.")
    if not template.is_published:
        return StepFailure("template_not_published", f"The template `{config.template}` is not published.")
    if template.content is None:
        raise TemplatesTooLarge
    if not (config.sender or template.content.sender):
        return StepFailure("missing_from", "Neither the step nor its template says who sends.")
    if not (config.subject or template.content.subject):
        return StepFailure("missing_subject", "Neither the step nor its template has a subject.")
    used = _used(config, template, known.event())
    if isinstance(used, StepFailure):
        return used
    reply_to = config.reply_to
    body = {
        "from": config.sender,
        "to": [known.contact.email],
        "subject": config.subject,
        "reply_to": list(reply_to) if isinstance(reply_to, tuple) else reply_to,
        "topic_id": None if config.topic_id is None else str(config.topic_id),
        "template": {"id": config.template},
    }
    try:
        mail = outgoing(body, now, templates, source=BY_AUTOMATION)
    except Problem as problem:
        return failure_of(problem)
    return structs.replace(mail, template=used)


def _used(
    config: SendEmailStep, template: PublishedTemplate, facts: EvaluationInput
) -> UsedTemplate | StepFailure:
    """Return the template with the values of what it declares; those that came through fields are other
    people's."""
    assert template.content is not None
    values = dict(config.variables or ())
    given: dict[str, Scalar] = {}
    foreign: set[str] = set()
    for variable in template.content.variables:
        if variable.key not in values:
            continue
        found = resolved(values[variable.key], variable.type, facts, takes_json=True)
        if isinstance(found, Mismatch):
            message = f"The value of `{variable.key}` does not fit. {found.reason}"
            return StepFailure("invalid_variable", message)
        if isinstance(found, ResolvedValue):
            given[variable.key] = found.value
            if found.is_foreign:
                foreign.add(variable.key)
    return UsedTemplate(template, given, frozenset(foreign))


def failure_of(problem: Problem) -> StepFailure:
    """Return the failure of the step whose email met this problem; raise the problem again where it is
    temporary."""
    # A limit of the sender's inbox is no trouble that passes: tried again, the mails that it allows would
    # count once more, and none of them be sent.
    if isinstance(problem, DailyQuotaExceeded | MonthlyQuotaExceeded | PolicyLimitReached):
        return StepFailure("quota_exceeded", problem.message)
    if problem.status >= 500 or problem.status in TEMPORARY:
        raise problem
    if isinstance(problem, MissingVariable):
        return StepFailure("missing_variable", problem.message)
    if isinstance(problem, PolicyRefusal):
        return StepFailure("refused_by_policy", problem.message)
    if isinstance(problem, Forbidden):
        return StepFailure("domain_not_verified", problem.message)
    if isinstance(problem, NotFound):
        return StepFailure("topic_not_found", problem.message)
    return StepFailure(problem.name, problem.message)
