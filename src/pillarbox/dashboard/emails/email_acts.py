"""Cancels or sends again several chosen emails of the list, with a result for each."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.dashboard.emails.email_list import HERE, emails_page
from pillarbox.dashboard.frame.screens import act
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.emails.inbox_mail import originals
from pillarbox.emails.insights.origin import origin_of
from pillarbox.emails.own_mail.redaction import MARK
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.process.byte_budget import ByteBudget
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.problems import Forbidden, Invalid, Problem, ServerOverloaded
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.audit import Act

MOST_CANCELED: Final = 100
MOST_RESENT: Final = 20
MIB: Final = 1024 * 1024
MOST_OCTETS: Final = 10 * MIB
"""Octets of the attachments of an email that is sent again from the list; it is read into memory."""

AT_ONCE: Final = 64 * MIB
"""Octets that emails which are sent again have together in one process."""

COST: Final = 6
"""Octets in memory for each octet of an email: as it is stored, as base64, as JSON, and as read from it."""

WAIT: Final = 5

FIELDS: Final = ("from", "to", "cc", "bcc", "reply_to", "subject", "html", "text", "topic_id")


class EmailResult(NamedTuple):
    """The result for one chosen email. `problem` says why nothing was done, None where it was."""

    email_id: str
    problem: str | None


class CopiesInMemory:
    """Bounds the emails that are sent again at once in this process: one form of a team, so many octets."""

    def __init__(self) -> None:
        self._budget = ByteBudget(AT_ONCE)
        self._teams: set[UUID] = set()

    @contextmanager
    def turn_of(self, team_id: UUID) -> Iterator[None]:
        """Hold the turn of the team; ServerOverloaded where it has one already."""
        if team_id in self._teams:
            raise ServerOverloaded(t("emails.resend_runs"), WAIT)
        self._teams.add(team_id)
        try:
            yield
        finally:
            self._teams.remove(team_id)

    @asynccontextmanager
    async def room(self, weight: int) -> AsyncIterator[None]:
        """Hold so many octets; ServerOverloaded where they cannot be had in time."""
        share = self._budget.of(weight)
        try:
            async with asyncio.timeout(WAIT):
                await share.take()
        except TimeoutError:
            raise ServerOverloaded(t("emails.resend_waits"), WAIT) from None
        try:
            yield
        finally:
            share.give()


@act(f"{HERE}/cancel", title="emails.cancel", back=HERE, records=Act.EMAILS_CANCELED)
async def cancel(visit: Visit, form: Form) -> Reply[Html]:
    """Cancel the chosen emails that are scheduled."""

    async def cancel_one(email_id: str) -> None:
        await visit.post(f"/emails/{email_id}/cancel")

    return await _each(visit, form, cancel_one, MOST_CANCELED, "emails_canceled")


@act(f"{HERE}/resend", title="emails.resend", back=HERE, records=Act.EMAILS_RESENT)
async def resend(visit: Visit, form: Form) -> Reply[Html]:
    """Send the chosen emails once more. A form that is sent twice sends each of them once."""
    key, copies = form.get("key"), visit.request.use(CopiesInMemory)

    async def send_one(email_id: str) -> None:
        async with copies.room(await _weight_of(visit, email_id)):
            await visit.post("/emails", await copy_of(visit, email_id), key=f"{key}:{email_id}")

    if not well_formed(key):
        return await emails_page(visit, status=422, problem=t("emails.old_form"))
    with copies.turn_of(visit.team_id):
        return await _each(visit, form, send_one, MOST_RESENT, "emails_resent")


async def copy_of(visit: Visit, email_id: str) -> dict[str, Any]:
    """Return the body of `POST /emails` for the email once more; Invalid where it cannot be sent so."""
    email = await visit.get(f"/emails/{email_id}", shown=False)
    origin = await origin_of(visit.db, UUID(email["id"]))
    if origin is not None and origin.broadcast_id is not None:
        raise Invalid(t("emails.no_resend.broadcast"))
    if MARK._asdict() in email["tags"]:
        raise Invalid(t("emails.no_resend.own_mail"))
    optional = {
        "tags": email["tags"],
        "headers": dict(origin.headers) if origin is not None else {},
        "attachments": await _attachments(visit, UUID(email["id"])),
    }
    return {
        **{name: email[name] for name in FIELDS if email[name] is not None},
        **{name: value for name, value in optional.items() if value},
    }


async def _weight_of(visit: Visit, email_id: str) -> int:
    """Return about how many octets of memory it takes to send the email again."""
    octets = await originals.body_octets(visit.db, UUID(email_id))
    sizes = sum(file.size or 0 for file in await originals.files(visit.db, UUID(email_id)))
    return COST * (octets + min(sizes, MOST_OCTETS))


async def _attachments(visit: Visit, email_id: UUID) -> list[dict[str, Any]]:
    """Return the attachments of the email as a request has them; Invalid where they are too large."""
    files = await originals.files(visit.db, email_id)
    if sum(file.size or 0 for file in files) > MOST_OCTETS:
        raise Invalid(t("emails.no_resend.attachments", count=MOST_OCTETS // MIB))
    blobs = visit.request.use(BlobStore)
    found = []
    for file in files:
        request = {"filename": file.filename, "content_type": file.content_type, "content_id": file.cid}
        if file.size is None:
            request["path"] = file.url
        else:
            octets = await originals.octets(visit.db, blobs, file.id)
            request["content"] = await in_thread_if_large(len(octets), _base64, octets)
        found.append(request)
    return found


def _base64(octets: bytes) -> str:
    return b64encode(octets).decode("ascii")


async def _each(
    visit: Visit, form: Form, work: Callable[[str], Awaitable[None]], limit: int, done: str
) -> Reply[Html]:
    """Do the work for each chosen email. Where all went well, return to the list, else say what did not."""
    if visit.visitor.is_team_blocked:
        raise Forbidden(t("team.blocked"))
    ids = chosen(form)
    if not ids:
        return await emails_page(visit, status=422, problem=t("emails.none_chosen"))
    if len(ids) > limit:
        return await emails_page(visit, status=422, problem=t("emails.too_many", count=limit))
    visit.acts_on(ids[0], count=len(ids))
    results = [EmailResult(email_id, await _problem_of(work, email_id)) for email_id in ids]
    done_ids = [result.email_id for result in results if result.problem is None]
    if done_ids:
        visit.has_acted(done_ids[0], count=len(done_ids))
    if all(result.problem is None for result in results):
        return visit.to(HERE, done=done)
    refused = sum(result.problem is not None for result in results)
    problem = t("emails.refused", count=refused, total=len(results))
    return await emails_page(
        visit, status=422, problem=problem, results=await _named(visit, results), done=f"result.{done}"
    )


async def _problem_of(work: Callable[[str], Awaitable[None]], email_id: str) -> str | None:
    try:
        await work(email_id)
    except Problem as problem:
        if problem.status >= 500:
            raise
        return problem.message
    return None


async def _named(visit: Visit, results: Sequence[EmailResult]) -> list[Mapping[str, Any]]:
    """Return the results with the subjects of their emails."""
    named: list[Mapping[str, Any]] = []
    for result in results:
        email = await visit.find(f"/emails/{result.email_id}", shown=False)
        named.append({**result._asdict(), "subject": None if email is None else email["subject"]})
    return named


def chosen(form: Form) -> list[str]:
    """Return the ids that a form of a list has chosen, each once."""
    return list(dict.fromkeys(value.lower() for value in form.every("id") if well_formed(value)))
