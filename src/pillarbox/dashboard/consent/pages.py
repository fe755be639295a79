"""The page that asks, and its form. Whoever decides has logged in, in the browser in which it began."""

from __future__ import annotations

import unicodedata
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.api_keys.keys import InboxLimit
from pillarbox.dashboard import pages
from pillarbox.dashboard.people import saved_form
from pillarbox.dashboard.people.cookies import cookie
from pillarbox.dashboard.people.local_paths import with_return
from pillarbox.dashboard.people.page_visits import (
    HEADERS,
    Form,
    draw,
    form,
    message_page,
    page,
    see_other,
    to_confirm,
)
from pillarbox.dashboard.teams.inbox_fields import INBOX_FIELDS, inbox_of
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.client_address import client_of
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import InboxRight
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.oauth.authorization import AuthorizationRequest, AuthorizeRefusal
from pillarbox.oauth.browsers import browser_of
from pillarbox.oauth.clients import redirects
from pillarbox.oauth.clients.clients import Client
from pillarbox.oauth.clients.documents import Documents
from pillarbox.oauth.consent import Consent, ConsentOutcome, ConsentTeam
from pillarbox.oauth.failures import OAuthProblem
from pillarbox.oauth.scopes import FULL_ACCESS
from pillarbox.people import audit
from pillarbox.people.audit import Actor
from pillarbox.people.visitors import Visitor, visitor_of

POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{pages.STYLES_HASH}'; img-src 'self' data:; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Without form-action: browsers apply it to where the answer of the form sends them, to any program."""

GONE_HEADERS: Final = {**HEADERS, "referrer-policy": "no-referrer"}
"""Of what sends a browser back to a program."""

PATH: Final = "/oauth/authorize/{authorization}"


class ConsentPages:
    """Pages that the server of authorization asks for."""

    def failure(self, problem: OAuthProblem) -> Reply[Html]:
        if problem.status == 429:
            title, text = t("consent.busy.title"), t("consent.busy.text")
        else:
            title, text = t("consent.failed.title"), t("consent.failed.text", reason=problem.message)
        reply = message_page(title, text, status=problem.status)
        reply.headers.update({**problem.headers, "referrer-policy": "no-referrer"})
        return reply

    async def is_known(self, request: Request) -> bool:
        return await visitor_of(request.use(asyncpg.Pool), request.at, cookie(request)) is not None

    def refusal(self, refusal: AuthorizeRefusal, *, is_known: bool) -> Reply[Html]:
        """Show why a request of a program fails; only a login opens the way on to the program."""
        place = redirects.place(refusal.location)
        name = shown_name(refusal.client.host or refusal.client.name)
        text = t("consent.wrong.text", name=name, place=place, reason=refusal.problem.message)
        link = (refusal.location, t("consent.wrong.link", place=place)) if is_known else None
        reply = message_page(t("consent.failed.title"), text, status=refusal.problem.status, link=link)
        reply.headers.update({**refusal.problem.headers, "referrer-policy": "no-referrer"})
        return reply


@page("GET", PATH, summary="Ask somebody to let a program act")
async def ask(request: Request, visitor: Visitor) -> Reply[Html]:
    """Show the page. Only a person who has proved lately who they are can let in a program that may do
    everything."""
    asked = await _asked(request)
    if asked is None:
        return _over()
    teams = await request.use(Consent).teams_of(visitor.person_id)
    able = [team for team in teams if team.lets_programs_act]
    if able and _needs_proof(request, visitor, asked):
        return see_other(with_return("/confirm", request.path))
    return _drawn(request, visitor, asked, able)


@form("POST", PATH, summary="Let a program act, or do not")
async def decide(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    """Send the browser back to the program, with a code or with a refusal."""
    decision, team_id = fields.get("decision"), fields.get("team_id")
    asked = await _asked(request)
    if asked is None:
        return _over()
    if decision == "deny":
        return _sent(await _denied(request, visitor))
    if decision != "approve" or not well_formed(team_id):
        return message_page(t("form.unreadable.title"), t("form.unreadable.text"), status=400)
    if _needs_proof(request, visitor, asked):
        return to_confirm(request, visitor, fields, ["team_id", *INBOX_FIELDS])
    inbox = None
    if any(fields.get(name) for name in INBOX_FIELDS):
        inbox = await _inbox_of(request, visitor, asked, UUID(team_id), fields)
        if inbox is None:
            return message_page(t("consent.no_inbox.title"), t("consent.no_inbox.text"), status=422)
    return _sent(await _approved(request, visitor, UUID(team_id), inbox))


@page("GET", f"{PATH}/logo", summary="Show the logo of a program")
async def logo(request: Request, visitor: Visitor) -> Reply[Html]:
    """Show the picture, fetched by us, for the browser in which the program asks."""
    asked = await _asked(request)
    url = None if asked is None else asked.client.logo_uri
    address = client_of(request.client)
    found = None if url is None else await request.use(Documents).logo(request.at, url, address)
    if found is None:
        return message_page(t("consent.no_logo.title"), t("consent.no_logo.text"), status=404)
    return Reply(found.octets, headers={**HEADERS, "content-security-policy": POLICY}, media=found.media)


async def _asked(request: Request) -> AuthorizationRequest | None:
    consent = request.use(Consent)
    return await consent.waiting(request.at, request.param("authorization"), browser_of(request))


def _needs_proof(request: Request, visitor: Visitor, asked: AuthorizationRequest) -> bool:
    return FULL_ACCESS in asked.scopes and not visitor.is_confirmed(request.at)


def _actor(request: Request, visitor: Visitor) -> Actor:
    return audit.visitor_actor(request, visitor)


async def _inbox_of(
    request: Request, visitor: Visitor, asked: AuthorizationRequest, team_id: UUID, fields: Form
) -> InboxLimit | None:
    """Return the one inbox that the person chose for the program; None where that cannot be granted."""
    teams = await request.use(Consent).teams_of(visitor.person_id)
    is_member = any(team.id == team_id and team.lets_programs_act for team in teams)
    if not is_member or FULL_ACCESS not in asked.scopes:
        return None
    try:
        return await inbox_of(TeamDb(request.use(asyncpg.Pool), team_id), fields)
    except NotFound:
        return None


async def _approved(
    request: Request, visitor: Visitor, team_id: UUID, inbox: InboxLimit | None
) -> ConsentOutcome:
    return await request.use(Consent).approve(
        request.use(Ids).stamp(),
        request.param("authorization"),
        browser_of(request),
        _actor(request, visitor),
        team_id,
        inbox,
    )


async def _denied(request: Request, visitor: Visitor) -> ConsentOutcome:
    return await request.use(Consent).deny(
        request.at,
        request.param("authorization"),
        browser_of(request),
        _actor(request, visitor),
        visitor.team_id,
    )


def _sent(decided: ConsentOutcome) -> Reply[Html]:
    if decided.may_not:
        return message_page(t("refused.title"), t("refused.text"), status=403)
    if decided.is_without_inbox:
        return message_page(t("consent.no_inbox.title"), t("consent.no_inbox.text"), status=422)
    if decided.location is None:
        return _over()
    return Reply.html("", 303, {**GONE_HEADERS, "location": decided.location})


def _over() -> Reply[Html]:
    return message_page(t("consent.over.title"), t("consent.over.text"), status=400)


def _drawn(
    request: Request, visitor: Visitor, asked: AuthorizationRequest, able: list[ConsentTeam]
) -> Reply[Html]:
    client, kept = asked.client, saved_form.kept(request, visitor)
    return draw(
        "consent/ask.html",
        visitor=visitor,
        headers={"content-security-policy": POLICY},
        who=shown_name(client.host or client.name),
        name=shown_name(client.name) if client.host else None,
        is_unverified=client.host is None and not client.is_verified,
        logo=f"{request.path}/logo" if client.logo_uri else None,
        place=redirects.place(asked.redirect_uri),
        is_local=_is_local(client, asked.redirect_uri),
        scopes=[_in_words(name) for name in asked.scopes],
        teams=able,
        rights=[right.value for right in InboxRight] if FULL_ACCESS in asked.scopes else [],
        team_id=kept.get(request.path, "team_id", str(visitor.team_id)),
        kept=kept,
        action=request.path,
    )


def _in_words(scope: str) -> str:
    return t("consent.scope.full_access") if scope == FULL_ACCESS else t("consent.scope.emails_send")


def _is_local(client: Client, redirect_uri: str) -> bool:
    """Return whether any program on the person's machine could be what gets the access, in the name of a
    site."""
    return client.host is not None and redirects.is_loopback(redirect_uri)


def shown_name(text: str) -> str:
    """Return the program's name without characters that are invisible or change the direction of text."""
    return "".join(each for each in text if unicodedata.category(each) not in ("Cf", "Cc", "Zl", "Zp"))
