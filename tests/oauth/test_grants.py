"""The grants that the API lists and revokes (oauth.md 8)."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

import resend

from kit.client import error
from kit.manual_world import clock_of
from kit.programs import CLIENT_ID, a_grant, a_member, program
from kit.world import World
from pillarbox.oauth.grants import Reason

DATABASE_STYLE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00")
ISO_STYLE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ITEM = ["id", "client_id", "scopes", "resource", "created_at", "revoked_at", "revoked_reason", "client"]


async def test_grants_are_listed_with_those_that_were_revoked(pillarbox: World) -> None:
    harbor, quay = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
    first, second = await program(harbor, ("emails:send",)), await program(harbor, name="Pen")
    await program(quay)
    await first.revoke(Reason.REFRESH_TOKEN_REUSE)
    answer = (await harbor.get("/oauth/grants")).json()
    assert list(answer) == ["object", "has_more", "data"]
    assert (answer["object"], answer["has_more"]) == ("list", False)
    newer, older = answer["data"]
    assert list(newer) == list(older) == ITEM
    assert (newer["id"], older["id"]) == (str(second.ref.id), str(first.ref.id))
    assert (newer["scopes"], older["scopes"]) == (["full_access"], ["emails:send"])
    assert newer["client"] == {"name": "Pen", "logo_uri": None}
    assert (newer["client_id"], newer["resource"]) == (CLIENT_ID, None)
    assert (newer["revoked_at"], newer["revoked_reason"]) == (None, None)
    assert older["revoked_reason"] == "refresh_token_reuse"
    assert DATABASE_STYLE.fullmatch(newer["created_at"])
    assert DATABASE_STYLE.fullmatch(older["revoked_at"])


async def test_pages_of_grants(pillarbox: World) -> None:
    """Twenty unless a limit says otherwise (conventions section 10)."""
    harbor = await pillarbox.team()
    person = await a_member(harbor)
    made = [str((await a_grant(harbor, person)).id) for _ in range(22)][::-1]

    async def page(query: str) -> tuple[list[str], bool]:
        body = (await harbor.get(f"/oauth/grants{query}")).json()
        return [item["id"] for item in body["data"]], body["has_more"]

    assert await page("") == (made[:20], True)
    assert await page("?limit=100") == (made, False)
    assert await page(f"?limit=1&after={made[0]}") == (made[1:2], True)
    assert await page(f"?limit=2&before={made[2]}") == (made[:2], False)
    assert await page(f"?after={made[-1]}") == ([], False)
    for query in ("limit=0", "limit=101", "limit=x", "after=x", f"after={made[0]}&before={made[1]}"):
        assert error(await harbor.get(f"/oauth/grants?{query}"))[:2] == (422, "validation_error"), query


async def test_a_grant_is_revoked_for_good(pillarbox: World) -> None:
    """A second time answers what was written the first time, whoever revoked it."""
    clock = clock_of(pillarbox)
    harbor = await pillarbox.team()
    made, other = await program(harbor), await program(harbor)
    answer = await harbor.call("DELETE", f"/oauth/grants/{made.ref.id}")
    assert answer.status_code == 200
    body = answer.json()
    assert list(body) == ["object", "id", "revoked_at", "revoked_reason"]
    assert (body["object"], body["id"]) == ("oauth_grant", str(made.ref.id))
    assert body["revoked_reason"] == "revoked_from_api"
    assert ISO_STYLE.fullmatch(body["revoked_at"])
    clock.advance(60.0)
    assert (await harbor.call("DELETE", f"/oauth/grants/{made.ref.id}")).json() == body
    await other.revoke(Reason.BY_CLIENT)
    again = (await harbor.call("DELETE", f"/oauth/grants/{other.ref.id}")).json()
    assert again["revoked_reason"] == "revoked_by_client"
    assert len(await acts(pillarbox, harbor.id)) == 1


async def test_a_program_may_revoke_grants_and_its_own_too(pillarbox: World) -> None:
    """Any credential with full access; the log of acts says which program did it, and for whom."""
    made = await program(await pillarbox.team())
    answer = await made.acting.call("DELETE", f"/oauth/grants/{made.ref.id}")
    assert answer.status_code == 200
    assert error(await made.acting.get("/oauth/grants"))[:2] == (401, "invalid_token")
    assert await acts(pillarbox, made.team.id) == [
        ("grant.revoked", made.person_id, None, made.ref.id, str(made.ref.id))
    ]


async def test_unknown_grants(pillarbox: World) -> None:
    harbor, quay = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
    theirs = await program(quay)
    for grant_id in (uuid4(), theirs.ref.id):
        answer = await harbor.call("DELETE", f"/oauth/grants/{grant_id}")
        assert error(answer) == (404, "not_found", "OAuth grant not found")
    malformed = await harbor.call("DELETE", "/oauth/grants/x")
    assert error(malformed)[:2] == (422, "invalid_parameter")
    assert (await theirs.acting.get("/oauth/grants")).is_success


async def test_the_official_python_sdk_lists_and_revokes_grants(running: World) -> None:
    """Its classes `OAuthGrants` and `OAuthGrant`."""
    harbor = await running.team()
    one, two = await program(harbor, ("emails:send",)), await program(harbor)
    before = resend.api_url, resend.api_key
    resend.api_url, resend.api_key = running.url, harbor.token
    try:
        page = await resend.OAuthGrants.list_async({"limit": 1})
        assert (page["has_more"], [grant["id"] for grant in page["data"]]) == (True, [str(two.ref.id)])
        rest = await resend.OAuthGrants.list_async({"after": str(two.ref.id)})
        assert [grant["client"]["name"] for grant in rest["data"]] == ["Quill"]
        assert [grant["scopes"] for grant in rest["data"]] == [["emails:send"]]
        revoked = await resend.OAuthGrants.revoke_async(str(one.ref.id))
        assert (revoked["object"], revoked["revoked_reason"]) == ("oauth_grant", "revoked_from_api")
    finally:
        resend.api_url, resend.api_key = before


async def acts(pillarbox: World, team_id: UUID) -> list[tuple[object, ...]]:
    """What the log of acts says: what, the person, the key, the grant, and what it was done to."""
    rows = await pillarbox.pool.fetch(
        "SELECT what, person_id, key_id, grant_id, target FROM audit_entries WHERE team_id = $1 ORDER BY id",
        team_id,
    )
    return [tuple(row) for row in rows]
