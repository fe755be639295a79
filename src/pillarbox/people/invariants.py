"""The invariants between people, their sessions and their teams."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "team_without_owner",
        "The team {team_id} has {members} members, and no owner among them.",
        """
        SELECT m.team_id, m.team_id AS id, count(*) AS members
          FROM team_members m
         GROUP BY m.team_id
        HAVING NOT bool_or(m.role = 'owner')
         LIMIT $1
        """,
    ),
    Invariant(
        "member_without_person",
        "The member {id} of the team {team_id} is the person {person_id}, who is not there.",
        """
        SELECT m.team_id, m.id, m.person_id
          FROM team_members m
         WHERE m.person_id IS NOT NULL
           AND NOT EXISTS (SELECT FROM people p WHERE p.id = m.person_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "credential_without_person",
        "There is a {kind} of the person {person_id}, who is not there.",
        """
        SELECT '00000000-0000-0000-0000-000000000000'::uuid AS team_id, f.person_id AS id, f.person_id, f.kind
          FROM (SELECT DISTINCT person_id, 'session' AS kind FROM person_sessions
                 UNION SELECT person_id, 'passkey' FROM person_passkeys
                 UNION SELECT person_id, 'subject of a provider' FROM person_openid_links
                 UNION SELECT person_id, 'recovery code' FROM person_recovery_codes
                 UNION SELECT person_id, 'change of address' FROM person_address_changes) AS f
         WHERE NOT EXISTS (SELECT FROM people p WHERE p.id = f.person_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "second_factor_without_seed",
        "The person {id} has confirmed a second factor, and there is no seed of it.",
        """
        SELECT '00000000-0000-0000-0000-000000000000'::uuid AS team_id, p.id
          FROM people p
         WHERE p.totp IS NULL AND p.totp_confirmed_at IS NOT NULL
         LIMIT $1
        """,
    ),
)
