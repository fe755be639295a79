"""`pillarbox people password-login` and `unlink`: how the operator helps where a provider lets people in."""

from __future__ import annotations

from cli.conftest import Installation

ADA = "ada@harbor.example"
LINK = """
    INSERT INTO person_openid_links (issuer, subject, person_id, email, created_at, last_used_at)
    SELECT 'https://id.quay.example', 'ada', id, email, created_at, created_at FROM people
"""
SESSION = """
    INSERT INTO person_sessions (hash, id, person_id, stage, ways, created_at, used_at, ends_at, confirmed_at)
    SELECT 'x', id, id, 'full', '{openid}', created_at, created_at, created_at, created_at FROM people
"""
LEFT = """
    SELECT (SELECT count(*) FROM person_openid_links) + (SELECT count(*) FROM person_sessions) AS left
"""
ACTS = "SELECT what FROM audit_entries WHERE what ~ '^(openid|password)' ORDER BY id"


def test_a_person_is_parted_from_the_provider_and_logged_out(empty: Installation) -> None:
    empty.run("teams", "create", "Harbor", "--email", ADA)
    empty.run("people", "create", ADA)
    empty.sql(LINK)
    empty.sql(SESSION)
    assert "openid" in empty.run("people", "list").stdout
    done = empty.run("people", "unlink", ADA)
    assert done.exit_code == 0, done.stderr
    assert "`pillarbox people reset` prints a link for one" in done.stdout
    assert empty.sql(LEFT)[0]["left"] == 0
    empty.run("people", "unlink", ADA)
    assert [row["what"] for row in empty.sql(ACTS)] == ["openid.removed"]


def test_a_person_may_always_use_a_password_until_it_is_taken_back(empty: Installation) -> None:
    empty.run("teams", "create", "Harbor", "--email", ADA)
    empty.run("people", "create", ADA)
    for _ in range(2):
        done = empty.run("people", "password-login", ADA)
        assert f"{ADA} may always log in by password." in done.stdout
    assert "password always" in empty.run("people", "list").stdout
    empty.run("people", "password-login", ADA, "--remove")
    assert [row["what"] for row in empty.sql(ACTS)] == ["password.login_allowed", "password.login_ended"]
