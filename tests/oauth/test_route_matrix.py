"""Who may call which route, made from the route table, so that a new route joins by itself (OA-11, TEN-03,
oauth.md 1, conventions section 3).

Each route that needs a credential is asked for with each kind of credential, with a thing that is there and a
body that is valid. Where one is refused nothing may have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from kit.brought import ROUTES
from kit.builders import NEEDED_QUERY, Made, body_of, label, made_for
from kit.client import error
from kit.dumps import rows_of
from kit.manual_world import manual_world
from kit.programs import program
from kit.world import Team, World
from pillarbox.api_keys import keys
from pillarbox.kernel.http.routing import Access, Route, TokenScope
from pillarbox.people.roles import TeamRole

pytestmark = pytest.mark.sweep

GUARDED = [entry for entry in ROUTES if entry.needs is not Access.PUBLIC]

SENDING_SCOPE = {
    "POST /emails": ("/email", "/emails/sending", "/email/sending"),
    "POST /broadcasts/{broadcast_id}/send": (),
}
"""What a token of `emails:send` may call, with its other names; nothing else (oauth.md 1)."""

UNKNOWN_IS_FINE = {
    "DELETE /segments/{segment_id}",
    "DELETE /audiences/{audience_id}",
}
"""Routes that answer with the name that was asked for, whatever is behind it."""

AUTHENTICATION = {
    "missing_api_key",
    "invalid_api_key",
    "invalid_token",
    "invalid_permission",
    "restricted_api_key",
    "suspended_api_key",
}

Refusal = tuple[int, str]
Expected = Callable[[Route], Refusal | None]


def always(status: int, name: str) -> Expected:
    return lambda _: (status, name)


def sending_token(entry: Route) -> Refusal | None:
    return None if label(entry) in SENDING_SCOPE else (403, "invalid_permission")


def sending_key(entry: Route) -> Refusal | None:
    return (401, "restricted_api_key") if entry.needs is Access.FULL else None


class Credential(NamedTuple):
    """One kind of credential of the team, and what each route answers to it; None: it is let in."""

    name: str
    team: Team
    expected: Expected


async def test_each_route_lets_in_and_refuses_each_credential(database_url: str, tmp_path: Path) -> None:
    """OA-11, TEN-02, TEN-03."""
    async with manual_world(database_url, tmp_path, trusted_proxy="127.0.0.1") as pillarbox:
        harbor = await pillarbox.team("Harbor")
        credentials = await credentials_of(harbor)
        stranger = (await program(await pillarbox.team("Quay"), role=TeamRole.ADMIN)).acting
        for number, entry in enumerate(GUARDED):
            made = await made_for(harbor, entry)
            before = await rows_of(pillarbox.pool, harbor.id)
            for one in credentials:
                if refusal := one.expected(entry):
                    answer = await ask(one.team, entry, made, number)
                    what = f"{label(entry)} with {one.name}: {answer.text[:200]}"
                    assert error(answer)[:2] == refusal, what
                    is_by_role = one.expected is by_members_role
                    assert challenged(answer) == (refusal[1] != "suspended_api_key" and not is_by_role), what
            if entry.parameters:
                found = await ask(stranger, entry, made, number)
                assert found.status_code == foreign_status(entry), f"{label(entry)}: {found.text[:200]}"
            assert await rows_of(pillarbox.pool, harbor.id) == before, label(entry)
            for one in credentials:
                if one.expected(entry) is None:
                    answer = await ask(one.team, entry, made, number)
                    what = f"{label(entry)} with {one.name}: {answer.text[:200]}"
                    assert answer.status_code < 500, what
                    assert answer.json().get("name") not in AUTHENTICATION, what


async def test_a_program_that_may_do_everything_uses_every_route(pillarbox: World) -> None:
    """With what each route needs, a token of `full_access` gets the answer that an API key gets."""
    harbor = await pillarbox.team("Harbor")
    acting = (await program(harbor, role=TeamRole.ADMIN)).acting
    for entry in (entry for entry in GUARDED if entry.parameters):
        answer = await ask(acting, entry, await made_for(harbor, entry))
        assert answer.status_code < 300, f"{label(entry)}: {answer.text[:200]}"


def test_the_scope_for_sending_is_on_the_routes_of_the_contract_alone() -> None:
    found = {label(entry): entry.aliases for entry in ROUTES if entry.token_scope is TokenScope.SEND}
    assert found == SENDING_SCOPE


async def test_the_other_names_of_a_route_need_the_same_scope(pillarbox: World) -> None:
    harbor = await pillarbox.team("Harbor")
    acting = (await program(harbor, ("emails:send",))).acting
    for entry in GUARDED:
        for path in entry.aliases:
            answer = await acting.call(entry.method, path.format(**dict.fromkeys(entry.parameters, "x")))
            assert (answer.json().get("name") in AUTHENTICATION) == (label(entry) not in SENDING_SCOPE)


# Who asks ------------------------------------------------------------------------------------------


async def credentials_of(harbor: Team) -> list[Credential]:
    """Everybody who may want something of the team."""
    pillarbox = harbor.world
    by_role = {role: await program(harbor, role=role) for role in TeamRole}
    sending = await program(harbor, ("emails:send",))
    both = await program(harbor, ("full_access", "emails:send"), TeamRole.ADMIN)
    revoked = await program(harbor)
    await revoked.revoke()
    nobody = Team(pillarbox, harbor.id, "", pillarbox.client(None))
    return [
        Credential("no credential", nobody, always(401, "missing_api_key")),
        Credential("a cookie", with_cookie(pillarbox, harbor), always(401, "missing_api_key")),
        Credential("a suspended key", await suspended_key(harbor), always(403, "suspended_api_key")),
        Credential("a sending key", harbor.using(await harbor.key(permission="sending_access")), sending_key),
        Credential("a viewer's program", by_role[TeamRole.VIEWER].acting, always(401, "invalid_token")),
        Credential("a revoked program", revoked.acting, always(401, "invalid_token")),
        Credential("a program that sends", sending.acting, sending_token),
        Credential("an admin's program with both scopes", both.acting, let_in),
        Credential("a member's program", by_role[TeamRole.MEMBER].acting, by_members_role),
        *(Credential(f"an {role.value}'s program", by_role[role].acting, let_in) for role in TRUSTED),
    ]


TRUSTED = (TeamRole.ADMIN, TeamRole.OWNER)
OF_OTHERS = {
    "PATCH /api-keys/{api_key_id}",
    "DELETE /api-keys/{api_key_id}",
    "DELETE /oauth/grants/{oauth_grant_id}",
}
"""What members may not change of what others have made; people/test_acts_by_role.py has all of it."""


def by_members_role(entry: Route) -> Refusal | None:
    return (403, "invalid_permission") if label(entry) in OF_OTHERS else None


def let_in(_: Route) -> Refusal | None:
    return None


def with_cookie(pillarbox: World, team: Team) -> Team:
    """Cookies mean nothing here, whatever they are called."""
    client = pillarbox.client(None)
    client.headers["cookie"] = f"__Host-pillarbox={team.token}"
    return Team(pillarbox, team.id, "", client)


def foreign_status(entry: Route) -> int:
    """What another team's program is told (TEN-02); `api/test_cross_team.py` has the few that say 200."""
    return 200 if label(entry) in UNKNOWN_IS_FINE else 404


async def suspended_key(team: Team) -> Team:
    token = await team.key(name="to be suspended")
    [found] = [key for key in await keys.listed(team.db) if key.name == "to be suspended"]
    assert await keys.suspend(team.db, found.id)
    return team.using(token)


async def ask(team: Team, entry: Route, ids: Made, number: int = 0) -> httpx.Response:
    """`number` is a client address of its own: failed authentications of one address are limited."""
    body = body_of(entry.method, entry.path, ids)
    path = entry.path.format(**ids) + NEEDED_QUERY.get(entry.path, "")
    address = f"192.0.2.{number}"
    return await team.call(entry.method, path, body if entry.takes_body else None, x_forwarded_for=address)


def challenged(answer: httpx.Response) -> bool:
    return answer.headers.get("www-authenticate", "").startswith('Bearer realm="pillarbox"')
