"""`pillarbox verify` finds grants and tokens that do not fit together."""

from __future__ import annotations

from kit.brought import INVARIANTS
from kit.programs import program
from kit.world import World
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.oauth.invariants import INVARIANTS as OF_OAUTH

TOKEN = """
    INSERT INTO oauth_refresh_tokens (hash, team_id, grant_id, client_id, created_at, expires_at)
    SELECT sha256(id::text::bytea || $1::bytea), team_id, id, client_id, created_at, created_at
      FROM oauth_grants
"""
CODE = """
    INSERT INTO oauth_codes (hash, team_id, grant_id, client_id, redirect_uri, challenge, created_at,
                             expires_at)
    SELECT sha256(id::text::bytea), team_id, id, client_id, '', '', created_at, created_at FROM oauth_grants
"""
REGISTERED = """
    INSERT INTO oauth_clients (id, name, redirect_uris, grant_types, token_endpoint_auth_method, scopes,
                               created_at)
    SELECT client_id::uuid, 'Quill', '{}', '{}', 'none', '{}', created_at FROM oauth_grants
"""

DAMAGE: list[tuple[str, set[str]]] = [
    ("UPDATE oauth_grants SET revoked_at = created_at", {"oauth_grant_half_revoked"}),
    ("UPDATE oauth_grants SET revoked_reason = 'code_reuse'", {"oauth_grant_half_revoked"}),
    ("DELETE FROM team_members WHERE role = 'member'", {"oauth_grant_of_no_member"}),
    ("UPDATE oauth_clients SET disabled_at = created_at", {"oauth_grant_of_disabled_client"}),
    ("DELETE FROM oauth_grants", {"oauth_token_without_grant"}),
    ("UPDATE oauth_codes SET grant_id = team_id", {"oauth_token_without_grant"}),
    ("UPDATE oauth_refresh_tokens SET rotated_at = NULL", {"oauth_several_refresh_tokens"}),
]


async def test_what_does_not_fit_together_is_named(pillarbox: World) -> None:
    await program(await pillarbox.team())
    pool = pillarbox.pool
    for number in (b"1", b"2"):
        await pool.execute(TOKEN, number)
        await pool.execute("UPDATE oauth_refresh_tokens SET rotated_at = created_at")
    await pool.execute(TOKEN, b"3")
    await pool.execute(CODE)
    await pool.execute(REGISTERED)
    assert (await reconcile(pool, 5, INVARIANTS)).gaps == []
    seen: set[str] = set()
    for damage, expected in DAMAGE:
        async with pool.acquire() as conn:
            undone = conn.transaction()
            await undone.start()
            assert not (await conn.execute(damage)).endswith(" 0"), damage
            found = {one.name for one in OF_OAUTH if await conn.fetch(one.sql, 5, *one.args)}
            await undone.rollback()
        assert found == expected, damage
        seen |= found
    assert seen == {one.name for one in OF_OAUTH}
