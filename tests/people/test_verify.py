"""`pillarbox verify` finds people, members and credentials that do not fit together."""

from __future__ import annotations

from kit.brought import INVARIANTS
from kit.programs import a_member
from kit.world import World
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.people.invariants import INVARIANTS as OF_PEOPLE

SESSION = """
    INSERT INTO person_sessions (hash, id, person_id, stage, ways, created_at, used_at, ends_at, confirmed_at)
    SELECT sha256(id::text::bytea), id, id, 'full', '{}', created_at, created_at, created_at, created_at
      FROM people
"""
PASSKEY = """
    INSERT INTO person_passkeys (id, person_id, public_key, sign_count, transports, name, created_at)
    SELECT sha256(id::text::bytea), id, '', 0, '{}', '', created_at FROM people
"""
CODE = "INSERT INTO person_recovery_codes (person_id, hash) SELECT id, sha256(id::text::bytea) FROM people"
NOBODY = "'00000000-0000-7000-8000-000000000000'"

DAMAGE: list[tuple[str, set[str]]] = [
    ("UPDATE team_members SET role = 'admin'", {"team_without_owner"}),
    (f"UPDATE team_members SET person_id = {NOBODY} WHERE role = 'member'", {"member_without_person"}),
    (f"UPDATE person_sessions SET person_id = {NOBODY}", {"credential_without_person"}),
    (f"UPDATE person_passkeys SET person_id = {NOBODY}", {"credential_without_person"}),
    (f"UPDATE person_recovery_codes SET person_id = {NOBODY}", {"credential_without_person"}),
    ("DELETE FROM people", {"member_without_person", "credential_without_person"}),
    ("UPDATE people SET totp_confirmed_at = created_at", {"second_factor_without_seed"}),
]


async def test_what_does_not_fit_together_is_named(pillarbox: World) -> None:
    await a_member(await pillarbox.team())
    pool = pillarbox.pool
    for statement in (SESSION, PASSKEY, CODE):
        assert await pool.execute(statement) == "INSERT 0 1"
    assert (await reconcile(pool, 5, INVARIANTS)).gaps == []
    seen: set[str] = set()
    for damage, expected in DAMAGE:
        async with pool.acquire() as conn:
            undone = conn.transaction()
            await undone.start()
            assert not (await conn.execute(damage)).endswith(" 0"), damage
            found = {one.name for one in OF_PEOPLE if await conn.fetch(one.sql, 5, *one.args)}
            await undone.rollback()
        assert found == expected, damage
        seen |= found
    assert seen == {one.name for one in OF_PEOPLE}
