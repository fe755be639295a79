"""The operator helps somebody back in who has lost the phone."""

from __future__ import annotations

from cli.conftest import Installation

LOST = "UPDATE people SET totp = 'x', totp_confirmed_at = created_at"
CODE = "INSERT INTO person_recovery_codes SELECT id, 'x' FROM people"
PASSKEY = """
    INSERT INTO person_passkeys (id, person_id, public_key, sign_count, transports, name, created_at)
    SELECT 'x', id, 'x', 0, '{}', 'Phone', created_at FROM people
"""
SESSION = """
    INSERT INTO person_sessions (hash, id, person_id, stage, ways, created_at, used_at, ends_at, confirmed_at)
    SELECT 'x', id, id, 'full', '{password}', created_at, created_at, created_at, created_at FROM people
"""
LEFT = """
    SELECT (SELECT count(*) FROM people WHERE totp IS NOT NULL OR totp_confirmed_at IS NOT NULL)
         + (SELECT count(*) FROM person_recovery_codes) + (SELECT count(*) FROM person_passkeys)
         + (SELECT count(*) FROM person_sessions) AS left
"""
ACTS = "SELECT what FROM audit_entries WHERE what LIKE 'factor.%' OR what LIKE 'passkey.%' ORDER BY what"


def test_a_reset_removes_the_factors_only_where_it_is_told_to(empty: Installation) -> None:
    empty.run("teams", "create", "Harbor", "--email", "ada@harbor.example")
    empty.run("people", "create", "ada@harbor.example")
    for statement in (LOST, CODE, PASSKEY, SESSION):
        empty.sql(statement)
    done = empty.run("people", "reset", "ada@harbor.example")
    assert done.exit_code == 0, done.stderr
    assert empty.sql(LEFT)[0]["left"] == 4
    done = empty.run("people", "reset", "ada@harbor.example", "--factors")
    assert done.exit_code == 0, done.stderr
    assert "/password/reset/" in done.stdout
    assert empty.sql(LEFT)[0]["left"] == 0
    assert [row["what"] for row in empty.sql(ACTS)] == ["factor.removed", "passkey.removed"]
    empty.run("people", "reset", "ada@harbor.example", "--factors")
    assert len(empty.sql(ACTS)) == 2, "there was nothing to remove any more"
