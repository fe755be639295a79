"""API keys of the team. The token of a new one is on the answer to its form, and nowhere after that."""

from __future__ import annotations

from uuid import UUID

from pillarbox.api_keys import keys
from pillarbox.api_keys.credentials import KeyCredentials
from pillarbox.api_keys.keys import CreatedKey
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people import saved_form
from pillarbox.dashboard.people.page_visits import Form, form, see_other
from pillarbox.dashboard.teams.current_team import REFUSED, by, done_text, draw_team, team_db
from pillarbox.dashboard.teams.inbox_fields import INBOX_FIELDS, inbox_of
from pillarbox.domains import overview
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import InboxRight, Permission
from pillarbox.kernel.wire.paging import PAGING, Page, envelope
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.membership import team_keys
from pillarbox.people.membership.members import MemberChange
from pillarbox.people.membership.team_keys import WantedKey
from pillarbox.people.roles import Right, TeamAct
from pillarbox.people.visitors import Visitor
from pillarbox.teams.allowances import Allowances, TooMany

HERE = "/team/keys"
DONE = {"deleted": "keys.deleted", "kept": "keys.kept"}
LONGEST_NAME = 50
ROWS = 50


@screen(
    HERE,
    title="keys.title",
    words="keys.words",
    navigation=NavigationEntry(group="team", order=30, icon="key", keys="k"),
    query={**PAGING, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the API keys of the team."""
    request, rows = visit.request, Page.read(visit.request.query, ROWS)
    return await keys_page(request, visit.visitor, rows, notice=done_text(request, DONE))


@form(
    "POST",
    "/team/keys",
    right=Right.USE,
    confirm=True,
    back=HERE,
    keeps=["name", "permission", "domain", *INBOX_FIELDS],
    summary="Make an API key",
)
async def make(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    try:
        wanted = await wanted_of(team_db(request, visitor), fields)
    except NotFound:
        return await keys_page(request, visitor, status=404, problem="keys.no_inbox", name=fields.get("name"))
    if wanted is None:
        return await keys_page(request, visitor, status=422, problem="keys.not_so", name=fields.get("name"))
    try:
        made = await team_keys.make(
            team_db(request, visitor),
            by(request, visitor),
            request.use(Ids),
            request.use(Allowances),
            wanted,
        )
    except (TooMany, NotFound) as refused:
        missing = "keys.no_domain" if wanted.inbox is None else "keys.no_inbox"
        problem = "keys.too_many" if isinstance(refused, TooMany) else missing
        return await keys_page(request, visitor, status=refused.status, problem=problem)
    return await shown_once(request, visitor, wanted, made)


@form(
    "POST",
    "/team/keys/{api_key_id}/delete",
    while_blocked=True,
    right=Right.USE,
    confirm=True,
    back=HERE,
    summary="Delete an API key",
)
async def delete(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    db = team_db(request, visitor)
    change = await team_keys.remove(db, by(request, visitor), request.uuid("api_key_id"))
    if change is not MemberChange.DONE:
        status, problem = REFUSED[change]
        return await keys_page(request, visitor, status=status, problem=problem)
    request.use(KeyCredentials).forget(db.team_id)
    return see_other(f"{HERE}?done=deleted")


@form(
    "POST",
    "/team/keys/{api_key_id}/keep",
    right=Right.MANAGE,
    confirm=True,
    back=HERE,
    summary="Make an API key the team's own",
)
async def keep(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    db = team_db(request, visitor)
    change = await team_keys.keep(db, by(request, visitor), request.uuid("api_key_id"))
    if change is not MemberChange.DONE:
        status, problem = REFUSED[change]
        return await keys_page(request, visitor, status=status, problem=problem)
    request.use(KeyCredentials).forget(db.team_id)
    return see_other(f"{HERE}?done=kept")


async def wanted_of(db: TeamDb, fields: Form) -> WantedKey | None:
    """Return the key that the form asks for; None where that is no key. Raise NotFound for an inbox that the
    team does not have."""
    name, permission, domain = fields.get("name").strip(), fields.get("permission"), fields.get("domain")
    is_known = permission in [one.value for one in Permission]
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable() or not is_known:
        return None
    if permission == Permission.INBOX.value:
        inbox = await inbox_of(db, fields)
        return None if inbox is None else WantedKey(name, Permission.INBOX, None, inbox)
    limits_domain = permission == Permission.SENDING.value and domain != ""
    if limits_domain and not well_formed(domain):
        return None
    return WantedKey(name, Permission(permission), UUID(domain) if limits_domain else None)


async def shown_once(
    request: Request, visitor: Visitor, wanted_key: WantedKey, created_key: CreatedKey | None
) -> Reply[Html]:
    """Show the list with the new key's token above it."""
    if created_key is None:
        return await keys_page(request, visitor, status=403, problem="team.not_allowed")
    return await keys_page(request, visitor, token=created_key.token, new_token=wanted_key.name)


async def keys_page(
    request: Request,
    visitor: Visitor,
    rows: Page | None = None,
    *,
    status: int = 200,
    problem: str | None = None,
    notice: str | None = None,
    name: str = "",
    token: str | None = None,
    new_token: str = "",
) -> Reply[Html]:
    """Show a page of the list, with what the visitor may do."""
    db, rows, kept = team_db(request, visitor), rows or Page(ROWS), saved_form.kept(request, visitor)
    found = envelope(await keys.shown_page(db, rows), rows, lambda key: key)
    may_use = visitor.may_do(TeamAct.MAKE_KEY)
    return await draw_team(
        "teams/keys.html",
        request,
        visitor,
        HERE,
        title="keys.title",
        status=status,
        problem=problem,
        notice=notice,
        keys=found.data,
        has_more=found.has_more,
        is_first=rows.after is None and rows.before is None,
        domains=await overview.listed(db) if may_use else [],
        rights=[right.value for right in InboxRight],
        may_make=may_use,
        may_delete=visitor.may_do(TeamAct.DELETE_KEY),
        may_delete_all=visitor.may_do(TeamAct.DELETE_KEY, is_own=False),
        may_keep=visitor.may_do(TeamAct.KEEP_KEY),
        name=name or kept.get(HERE, "name"),
        token=token,
        made=new_token,
    )
