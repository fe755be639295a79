"""The matrix of pages about teams: each page and form, asked for by nobody, by somebody of each role, and by
the owner of another team (TEN-02, TEN-03). A page that is new in the table of routes needs a row."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.people import SESSION, Visit, a_grant, a_person, visit
from kit.world import Team, World, world
from pillarbox.api_keys import keys
from pillarbox.application import SLICES
from pillarbox.kernel.http.routing import Route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.people import sessions
from pillarbox.people.audit import OPERATOR
from pillarbox.people.membership import members
from pillarbox.people.membership.invitations import Invitations, NewInvitation
from pillarbox.people.membership.members import MemberChangeActor
from pillarbox.people.roles import Right, TeamRole, may
from pillarbox.people.sessions import SessionOrigin

PAGES = {
    (route.method, route.path): route
    for one in SLICES
    if one.name == "dashboard"
    for route in one.pages
    if route.path.split("/")[1] == "team"
}

Place = tuple[str, Path]


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("matrix")
    databases.drop(url)


@dataclass(frozen=True, slots=True)
class Row:
    """What a page asks for, what its form says, and whether it changes the team."""

    right: Right | None
    fields: dict[str, str] | None = None
    changes: bool = False


MATRIX = {
    ("GET", "/team"): Row(None),
    ("POST", "/team/switch"): Row(None, {"team": "{team}"}),
    ("POST", "/team/name"): Row(Right.OWN, {"name": "Another {n}"}, changes=True),
    ("POST", "/team/leave"): Row(Right.VIEW, {"typed_name": "{name}"}, changes=True),
    ("GET", "/team/members"): Row(Right.VIEW),
    ("POST", "/team/members/{member_id}/role"): Row(Right.MANAGE, {"role": "member"}, changes=True),
    ("GET", "/team/members/{member_id}/remove"): Row(Right.MANAGE),
    ("POST", "/team/members/{member_id}/remove"): Row(Right.MANAGE, {}, changes=True),
    ("POST", "/team/invitations"): Row(
        Right.MANAGE, {"email": "guest{tag}{n}@matrix.example", "role": "viewer"}, changes=True
    ),
    ("POST", "/team/invitations/{invitation_id}/end"): Row(Right.MANAGE, {}, changes=True),
    ("GET", "/team/keys"): Row(Right.VIEW),
    ("POST", "/team/keys"): Row(Right.USE, {"name": "key {n}", "permission": "full_access"}, changes=True),
    ("POST", "/team/keys/{api_key_id}/delete"): Row(Right.MANAGE, {}, changes=True),
    ("POST", "/team/keys/{api_key_id}/keep"): Row(Right.MANAGE, {}, changes=True),
    ("GET", "/team/programs"): Row(Right.VIEW),
    ("POST", "/team/programs/{oauth_grant_id}/revoke"): Row(Right.MANAGE, {}, changes=True),
    ("GET", "/team/audit"): Row(Right.MANAGE),
}


class Stage:
    """Two teams, and somebody new in one of them for each question."""

    def __init__(self, here: World, ours: Team, theirs: Team, tag: str) -> None:
        self.here = here
        self.ours = ours
        self.theirs = theirs
        self.tag = tag
        self.count = 0

    async def browser(self, team: Team, role: TeamRole) -> Visit:
        """A browser of somebody new with this role, who has just proved who it is."""
        self.count += 1
        person = await a_person(team, f"{self.tag}{self.count}@matrix.example", role, password=False)
        ids = self.here.app.need(Ids)
        async with transaction(self.here.pool) as conn:
            token = await sessions.begin(
                conn, ids.now(), ids.new(), person.id, ["password"], SessionOrigin(None, None)
            )
        assert token is not None
        found = visit(self.here)
        found.cookies[SESSION] = token
        found.csrf = sessions.form_token(token)
        return found

    async def path(self, route: Route) -> str:
        """The route's path, with something new of our team."""
        makers: dict[str, Callable[[], Awaitable[UUID]]] = {
            "member_id": self.a_member,
            "invitation_id": self.an_invitation,
            "api_key_id": self.a_key,
            "oauth_grant_id": self.a_grant,
        }
        return route.path.format(**{name: await makers[name]() for name in route.parameters})

    async def a_member(self) -> UUID:
        self.count += 1
        person = await a_person(
            self.ours, f"{self.tag}{self.count}@matrix.example", TeamRole.VIEWER, password=False
        )
        found = await members.member_of(self.ours.db, person.id)
        assert found is not None
        return found

    async def an_invitation(self) -> UUID:
        self.count += 1
        ids = self.here.app.need(Ids)
        # As the operator does it, who may invite without end.
        await self.here.pool.execute(
            "UPDATE team_invitations SET created_at = created_at - interval '2 days' WHERE team_id = $1",
            self.ours.id,
        )
        made = await self.here.app.need(Invitations).invite(
            self.ours.db,
            MemberChangeActor(OPERATOR, ids.now()),
            email_address(f"{self.tag}{self.count}@matrix.example"),
            TeamRole.VIEWER,
        )
        assert isinstance(made, NewInvitation)
        return made.id

    async def a_key(self) -> UUID:
        self.count += 1
        email = f"{self.tag}{self.count}@matrix.example"
        maker = await a_person(self.ours, email, TeamRole.MEMBER, password=False)
        ids = self.here.app.need(Ids)
        return (await keys.create(self.ours.db, ids, name=f"made {self.count}", created_by=maker.id)).id

    async def a_grant(self) -> UUID:
        self.count += 1
        person = await a_person(
            self.ours, f"{self.tag}{self.count}@matrix.example", TeamRole.MEMBER, password=False
        )
        return await a_grant(self.ours, person)

    async def entries(self, team: Team) -> int:
        """How many acts in this team were recorded."""
        return int(
            await self.here.pool.fetchval("SELECT count(*) FROM audit_entries WHERE team_id = $1", team.id)
        )

    async def ask(
        self, browser: Visit, route: Route, row: Row, path: str, team: Team | None = None
    ) -> tuple[int, str]:
        """Status, and where the answer leads. The browser is of somebody in our team, or in `team`."""
        if route.method == "GET":
            answer = await browser.get(path)
        else:
            name = await self.here.pool.fetchval(
                "SELECT name FROM teams WHERE id = $1", (team or self.ours).id
            )
            values = {"n": self.count, "tag": self.tag, "team": self.ours.id, "name": name}
            fields = {name: text.format(**values) for name, text in (row.fields or {}).items()}
            answer = await browser.post(path, **fields)
        return answer.status_code, answer.headers.get("location", "")


def test_every_page_about_teams_has_a_row() -> None:
    assert PAGES.keys() == MATRIX.keys()


async def test_each_page_for_each_role(place: Place) -> None:
    async with world(*place, started=False) as here:
        stage = Stage(here, await here.team("Ours"), await here.team("Theirs"), "r")
        for team in (stage.ours, stage.theirs):
            await stage.browser(team, TeamRole.OWNER)
        wrong = []
        for key, row in MATRIX.items():
            for role in TeamRole:
                path, browser = await stage.path(PAGES[key]), await stage.browser(stage.ours, role)
                before = await stage.entries(stage.ours)
                status, leads = await stage.ask(browser, PAGES[key], row, path)
                is_allowed = row.right is None or may(role, row.right)
                is_right = status in (200, 303) if is_allowed else status == 403
                is_kept = await stage.entries(stage.ours) == before + (is_allowed and row.changes)
                if not (is_right and is_kept) or leads.startswith(("/login", "/confirm")):
                    wrong.append((key, role, status, leads))
        assert wrong == []


@pytest.mark.parametrize("key", MATRIX, ids=" ".join)
async def test_a_page_for_nobody_and_for_another_team(place: Place, key: tuple[str, str]) -> None:
    """Without a session: to the login. The owner of another team finds and changes nothing of ours."""
    route, row = PAGES[key], MATRIX[key]
    async with world(*place, started=False) as here:
        stage = Stage(here, await here.team("Ours"), await here.team("Theirs"), f"k{list(MATRIX).index(key)}")
        await stage.browser(stage.theirs, TeamRole.OWNER)
        path = await stage.path(route)
        before = await stage.entries(stage.ours)
        status, leads = await stage.ask(visit(here), route, row, path)
        assert (status, leads.partition("?")[0]) == (303, "/login")
        foreign = await stage.browser(stage.theirs, TeamRole.OWNER)
        status, _ = await stage.ask(foreign, route, row, path, stage.theirs)
        names_ours = bool(route.parameters) or "{team}" in str(row.fields)
        assert status == 404 if names_ours else status in (200, 303)
        assert "Ours" not in (await foreign.get("/team")).text
        assert await stage.entries(stage.ours) == before
