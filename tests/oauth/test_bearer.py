"""Access tokens on the routes of the API (oauth.md 1; RFC 6750, RFC 9068, RFC 9728).

Which route needs which scope is in `test_route_matrix.py`; what makes a signature right in
`test_access_tokens.py`.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from pathlib import Path
from uuid import uuid4

import pytest

from kit.client import error
from kit.manual_world import clock_of, manual_world
from kit.programs import CLIENT_ID, Program, a_grant, a_token, program
from kit.world import World, mail
from pillarbox.kernel.security.authentication import LONGEST_ACCESS_TOKEN
from pillarbox.kernel.security.remembered import REMEMBERED_SECONDS
from pillarbox.logs.writing import RequestLog
from pillarbox.oauth.access_tokens import LIFETIME
from pillarbox.oauth.bearer.tokens import VERIFIED_SECONDS, BearerTokens, GrantsLastUsed
from pillarbox.oauth.grants import Reason, revoke
from pillarbox.oauth.keys import SigningKeys
from pillarbox.people.roles import TeamRole
from pillarbox.teams.bootstrap import TeamStatus, set_status

PUBLIC = "https://mail.harbor.example"
METADATA = f'resource_metadata="{PUBLIC}/.well-known/oauth-protected-resource"'
INVALID = (401, "invalid_token")


def refusal(answer: object) -> tuple[int, str]:
    return error(answer)[:2]  # type: ignore[arg-type]


async def test_answers_tell_a_client_where_to_begin(database_url: str, tmp_path: Path) -> None:
    """RFC 9728 5.1: clients of the MCP begin discovery with this header."""
    async with manual_world(database_url, tmp_path, public_url=PUBLIC) as pillarbox:
        harbor = await pillarbox.team()
        sends = (await program(harbor, ("emails:send",))).acting
        sending_key = harbor.using(await harbor.key(permission="sending_access"))
        expected = {
            "": ((401, "missing_api_key"), f'Bearer realm="pillarbox", {METADATA}'),
            "a.b.c": (INVALID, f'Bearer realm="pillarbox", error="invalid_token", {METADATA}'),
            sends.token: (
                (403, "invalid_permission"),
                f'Bearer realm="pillarbox", error="insufficient_scope", scope="full_access", {METADATA}',
            ),
            sending_key.token: ((401, "restricted_api_key"), 'Bearer realm="pillarbox"'),
        }
        for token, (told, challenge) in expected.items():
            answer = await pillarbox.client(token or None).get("/emails")
            assert refusal(answer) == told
            assert answer.headers["www-authenticate"] == challenge
        unknown = await pillarbox.client("re_unknown").get("/emails")
        assert refusal(unknown) == (403, "invalid_api_key")
        assert "www-authenticate" not in unknown.headers


async def test_only_the_header_counts(pillarbox: World) -> None:
    """RFC 6750 2: tokens in a query or a form are not read; the scheme may be in any case."""
    token = (await program(await pillarbox.team())).token
    anyone = pillarbox.client(None)
    for answer in (
        await anyone.get("/emails", params={"access_token": token}),
        await anyone.post("/emails", data={"access_token": token}),
        await anyone.post("/emails", json={"access_token": token}),
        await anyone.get("/emails", headers={"cookie": f"access_token={token}"}),
        await anyone.get("/emails", headers={"authorization": f"Basic {token}"}),
    ):
        assert refusal(answer) == (401, "missing_api_key")
    for scheme in ("bearer", "BEARER ", "bEaReR"):
        assert (await anyone.get("/emails", headers={"authorization": f"{scheme} {token}"})).is_success


async def test_what_is_no_token_of_ours(pillarbox: World) -> None:
    made = await program(await pillarbox.team())
    head, claims, signature = made.token.split(".")
    changed = urlsafe_b64encode(b"{}").decode()
    for text in (
        f"{head}.{claims}.{signature[:-2]}AA",
        f"{head}.{changed}.{signature}",
        f"{changed}.{claims}.{signature}",
        f"{head}.{claims}.{signature}==",
        f"{head}.{claims}.{'A' * 86}",
        f"{head}.{claims}.A",
        f"{head}.{claims}.",
        f"{head}.{claims}.{'A' * LONGEST_ACCESS_TOKEN}",
    ):
        for _ in range(2):
            assert refusal(await pillarbox.client(text).get("/emails")) == INVALID, text[:80]
    assert (await made.acting.get("/emails")).is_success


async def test_a_token_is_of_the_grant_the_person_and_the_program_that_it_names(pillarbox: World) -> None:
    """Claims that do not fit the row are of another installation's past, after a restore for example."""
    harbor, quay = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
    made = await program(harbor)
    elsewhere = made.ref._replace(team_id=quay.id)
    for text in (
        await a_token(harbor, made.ref, uuid4()),
        await a_token(harbor, made.ref._replace(id=uuid4()), made.person_id),
        await a_token(harbor, elsewhere, made.person_id),
        await a_token(harbor, made.ref, made.person_id, client_id=str(uuid4())),
    ):
        assert refusal(await pillarbox.client(text).get("/emails")) == INVALID


async def test_a_token_never_has_more_than_its_grant(pillarbox: World) -> None:
    """And a token that was asked for with less has less."""
    harbor = await pillarbox.team()
    made = await program(harbor, ("emails:send",))
    more = await a_token(harbor, made.ref, made.person_id, ("full_access", "emails:send"))
    assert refusal(await pillarbox.client(more).get("/emails")) == (403, "invalid_permission")
    both = await program(harbor, ("full_access", "emails:send"))
    less = await a_token(harbor, both.ref, both.person_id, ("emails:send",))
    assert refusal(await pillarbox.client(less).get("/emails")) == (403, "invalid_permission")
    none = await a_token(harbor, both.ref, both.person_id, ())
    assert refusal(await pillarbox.client(none).post("/emails", json={})) == (403, "invalid_permission")
    assert (await both.acting.get("/emails")).is_success


async def test_a_token_ends_after_900_seconds(pillarbox: World) -> None:
    """To the second, also one that this process has verified before."""
    clock = clock_of(pillarbox)
    made = await program(await pillarbox.team())
    assert (await made.acting.get("/emails")).is_success
    clock.advance(LIFETIME.total_seconds() - 1.0)
    assert (await made.acting.get("/emails")).is_success
    clock.advance(1.0)
    for _ in range(2):
        assert refusal(await made.acting.get("/emails")) == INVALID


async def test_a_revoked_grant_is_known_within_a_second_everywhere(pillarbox: World) -> None:
    """In the process that revoked it at once, in others when what they remember is over."""
    clock = clock_of(pillarbox)
    harbor = await pillarbox.team()
    one, other = await program(harbor), await program(harbor)
    assert (await one.acting.get("/emails")).is_success
    assert (await other.acting.get("/emails")).is_success
    assert (await harbor.call("DELETE", f"/oauth/grants/{one.ref.id}")).is_success
    assert refusal(await one.acting.get("/emails")) == INVALID
    assert await revoke(pillarbox.pool, clock.now(), other.ref, Reason.BY_CLIENT)
    clock.advance(REMEMBERED_SECONDS)
    assert refusal(await other.acting.get("/emails")) == INVALID


async def test_a_program_may_no_more_than_its_person(pillarbox: World) -> None:
    """OA-11: tokens end with the membership, with the role that may let programs act, and with the login."""
    harbor = await pillarbox.team()
    for statement in (
        "DELETE FROM team_members WHERE person_id = $1",
        "UPDATE team_members SET role = 'viewer' WHERE person_id = $1",
        "UPDATE people SET disabled_at = created_at WHERE id = $1",
    ):
        made = await program(harbor, role=TeamRole.ADMIN)
        assert (await made.acting.get("/emails")).is_success
        await pillarbox.pool.execute(statement, made.person_id)
        made.forget()
        assert refusal(await made.acting.get("/emails")) == INVALID, statement


async def test_states_of_the_team(pillarbox: World) -> None:
    """Rows 4 and 9 of conventions section 3: they are the team's, whatever the credential."""
    made = await program(await pillarbox.team())
    for status, told in (
        (TeamStatus.BLOCKED, (451, "security_error")),
        (TeamStatus.DISABLED, (403, "restricted_api_key")),
    ):
        await set_status(pillarbox.pool, made.team.id, status)
        made.forget()
        assert refusal(await made.acting.get("/emails")) == told


async def test_a_key_that_was_withdrawn_is_known_within_two_minutes(pillarbox: World) -> None:
    """A signature is not remembered for ever: where the signing key was stolen, it is replaced."""
    clock = clock_of(pillarbox)
    made = await program(await pillarbox.team())
    assert (await made.acting.get("/emails")).is_success
    await pillarbox.app.need(SigningKeys).replace()
    clock.advance(VERIFIED_SECONDS)
    assert refusal(await made.acting.get("/emails")) == INVALID


async def test_failed_tokens_count_as_failed_logins(pillarbox: World) -> None:
    """SEC-03, conventions section 7: guessing is slow, and costs no signatures after the sixtieth."""
    guessing = pillarbox.client("a.b.c")
    for _ in range(60):
        assert refusal(await guessing.get("/emails")) == INVALID
    slowed = await guessing.get("/emails")
    assert slowed.status_code == 429
    assert int(slowed.headers["retry-after"]) >= 1


async def test_uses_of_a_grant_are_noted(pillarbox: World) -> None:
    """SEC-06: in the background, also of requests that are refused; the keys of the team are not touched."""
    made = await program(await pillarbox.team(), ("emails:send",))
    assert await last_used(made) is None
    await made.acting.get("/emails")
    await pillarbox.app.need(GrantsLastUsed).flush()
    assert await last_used(made) == pillarbox.clock.now()
    assert await pillarbox.pool.fetchval("SELECT max(last_used_at) FROM api_keys") is None


async def test_mail_that_a_program_sends(pillarbox: World) -> None:
    """It is the team's as any other, no API key stands behind it, and repeated requests are one."""
    harbor = await pillarbox.team()
    await harbor.domain()
    sends = (await program(harbor, ("emails:send",))).acting
    sent = await sends.post("/emails", mail(), idempotency_key="once")
    again = await harbor.post("/emails", mail(), idempotency_key="once")
    assert sent.status_code == 200, sent.text
    assert again.headers["idempotent-replayed"] == "true"
    assert (await harbor.email(sent.json()["id"]))["subject"] == "Berth 12"
    keys = await pillarbox.pool.fetch("SELECT key_id FROM emails")
    assert [row["key_id"] for row in keys] == [None]


async def test_the_log_of_requests_holds_no_token(pillarbox: World) -> None:
    """SEC-05: neither of requests that were let in nor of others, wherever the token stood."""
    harbor = await pillarbox.team()
    acting = (await program(harbor)).acting
    secret = acting.token.rpartition(".")[2]
    for answer in (
        await acting.get(f"/emails?access_token={acting.token}"),
        await acting.post("/topics", {"access_token": acting.token, "name": "x"}),
        await acting.get("/emails/nothing"),
        await acting.post("/topics", {"name": "x", "client_secret": acting.token}),
    ):
        assert answer.status_code < 500
    await pillarbox.app.need(RequestLog).flush()
    rows = await pillarbox.pool.fetch("SELECT logs::text FROM logs")
    assert rows
    assert secret not in "\n".join(row[0] for row in rows)


@pytest.mark.parametrize("is_live", [True, False])
async def test_a_token_verified_once_asks_no_more_than_whether_the_grant_is_live(
    pillarbox: World, is_live: bool
) -> None:
    made = await program(await pillarbox.team())
    tokens = pillarbox.app.need(BearerTokens)
    first = await tokens.find(made.token)
    assert first is not None
    assert first.caller.grant_id == made.ref.id
    await pillarbox.pool.execute("DELETE FROM oauth_keys")
    if not is_live:
        await made.revoke()
    made.forget()
    assert (await tokens.find(made.token) is not None) == is_live


async def test_a_grant_of_an_unknown_scope_lets_nothing_be_done(pillarbox: World) -> None:
    """A scope that a later release gave, after going back to this one."""
    harbor = await pillarbox.team()
    made = await program(harbor)
    ref = await a_grant(harbor, made.person_id, ("domains:read",), client_id=CLIENT_ID)
    token = await a_token(harbor, ref, made.person_id, ("domains:read",))
    assert refusal(await pillarbox.client(token).get("/domains")) == (403, "invalid_permission")


async def last_used(made: Program) -> object:
    found: object = await made.team.db.value(
        "SELECT last_used_at FROM oauth_grants WHERE team_id = $1 AND id = $2", made.ref.id
    )
    return found
