"""Erasing a person: nothing is left but a hash, by which later mail and imports are refused."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import asyncpg
import pytest

from kit.builders import BUILDERS, a_broadcast_with_a_plan
from kit.hostile_rows import COLUMNS, OUR_TABLES
from kit.inbox_rows import an_inbox
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.webhooks import hook
from kit.world import Team, World
from pillarbox.application import SLICES
from pillarbox.contacts.imports.uploads import ImportUploads
from pillarbox.kernel.personal_data import ERASED_ADDRESS, DataSubject
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.mail.smtp.intake import ReceivedText
from pillarbox.personal_data import erasing
from pillarbox.personal_data.queries import ErasureRow
from pillarbox.receiving.arrival import AcceptedRecipient, Arrival
from pillarbox.receiving.receive import MessageReceiver
from pillarbox.suppressions import erased_queries
from pillarbox.suppressions.erased_addresses import IN_PLACE, ErasedAddresses
from pillarbox.timeline.history_queries import about_person

KIM: Final = "kim.o'hara+news@quay.example"

OWN_TEXTS: Final = "the team wrote it for everybody"
OWN_THINGS: Final = "a name or setting of a thing of the team's"
TEAM: Final = "people of the team, whose accounts end in their own way"
FILES_OF_TEAM: Final = "a file that the team has not sent yet"
STAYS: Final[dict[str, str]] = {
    **dict.fromkeys(("broadcasts.html", "broadcasts.sender", "broadcasts.subject"), OWN_TEXTS),
    **dict.fromkeys(
        tuple(f"broadcast_variants.{name}" for name in ("html", "preview_text", "subject", "text")), OWN_TEXTS
    ),
    **dict.fromkeys(("automation_runs.event_name", "broadcast_plans.plan"), OWN_THINGS),
    **dict.fromkeys(("forms.name", "forms.settings", "form_sign_ups.consent_text"), OWN_TEXTS),
    **dict.fromkeys(
        tuple(f"form_sign_ups.{name}" for name in ("client", "email", "network")), "another one signed up"
    ),
    **dict.fromkeys(("oauth_grants.client", "oauth_grants.client_id"), "a program of the team's people"),
    **dict.fromkeys(
        ("template_versions.html", "template_versions.text", "template_versions.subject"), OWN_TEXTS
    ),
    **dict.fromkeys(("template_versions.sender", "emails.sender"), "the sender is the team"),
    **dict.fromkeys(
        (
            "api_keys.display",
            "api_keys.name",
            "automations.name",
            "broadcasts.name",
            "contact_properties.fallback_value",
            "domain_claims.name",
            "domains.name",
            "event_definitions.name",
            "event_definitions.schema",
            "inbox_labels.name",
            "inboxes.name",
            "segments.name",
            "templates.alias",
            "templates.name",
            "topics.description",
            "topics.name",
            "webhooks.endpoint",
        ),
        OWN_THINGS,
    ),
    **dict.fromkeys(
        (
            "audit_entries.actor",
            "audit_entries.user_agent",
            "contact_imports.created_by",
            "team_members.email",
        ),
        TEAM,
    ),
    **dict.fromkeys(
        ("inbox_draft_attachments.content_type", "inbox_draft_attachments.filename"), FILES_OF_TEAM
    ),
    "attachments.content_type": "the type of a file that others were sent",
    "contacts.properties": "what the team knows of another contact",
    "contacts.first_name": "the name of another contact, who gave it",
}
"""Columns that may name the person after the erasure, each with its reason."""

NO_ROWS: Final = frozenset(
    {
        *("automation_triggers", "deliveries", "events", "paused", "webhook_deliveries", "webhook_outcomes"),
        *("erasures", "images", "inbox_agents", "person_sessions", "provider_days", "received_attachments"),
        *("link_checks", "team_invitations", "message_trust"),
    }
)
"""Tables without a row before: work that is done, what is of people of the team, what names nobody, and trust
of messages, which goes with them (`inboxes/trust/test_trust.py`)."""

NAMED: Final = frozenset(
    """
    contacts.address recipients.address recipients.mailbox emails.to_list emails.subject contents.text
    contents.html timeline.detail logs.request_body logs.endpoint attachments.filename audit_entries.target
    webhook_events.payload webhook_attempts.response inbox_messages.sender received_emails.sender
    received_sources.data form_sign_ups.address contact_imports.preview contact_imports.file_name
    contact_bulk_acts.search captured.recipients inbox_drafts.subject
    """.split()  # noqa: SIM905 (prose reads better as prose)
)
"""Columns that name the person before, whatever else does."""


@pytest.fixture
@asynccontextmanager
async def here(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with manual_world(database_url, tmp_path) as found:
        yield found


async def erase(team: Team, address: str = KIM) -> dict[str, Any]:
    """Erase an address, and let the jobs run until it is done."""
    answer = await team.http.post(f"/personal-data/{address}/erase")
    assert answer.status_code == 202, answer.text
    return await carried_out(team, answer.json()["id"])


async def carried_out(team: Team, erasure_id: str) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for _ in range(20):
        clock_of(team.world).advance(30)
        while await run_jobs(team.world):
            pass
        while await team.world.turn():
            pass
        shown = (await team.get(f"/personal-data/erasures/{erasure_id}")).json()
        if shown["status"] == "completed":
            break
    return shown


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("kim@quay.example", True),
        ("<KIM@Quay.Example>", True),
        ("mailto:kim@quay.example?x", True),
        ("/contacts/kim%40quay.example", True),
        (json.dumps("Dear\nkim@quay.example"), True),
        ("Write to kim@quay.example.", True),
        ("joakim@quay.example", False),
        ("x.kim@quay.example", False),
        ("kim@quay.example.org", False),
        ("kim@quay.examples", False),
        ("kim@quay-example", False),
    ],
)
async def test_an_address_is_found_whole(here: World, text: str, is_found: bool) -> None:
    person = DataSubject.of("kim@quay.example")
    found = await here.pool.fetchval(
        "SELECT lower($1) LIKE '%' || $2 || '%' AND lower($1) ~ $3", text, *person.found_by
    )
    assert found is is_found


QUOTED: Final = '"kim lee"@quay.example'


@pytest.mark.parametrize(
    ("address", "text", "is_found"),
    [
        ("hara@quay.example", "o'hara@quay.example", False),
        ("hara@quay.example", "/contacts/o%27hara%40quay.example", False),
        ("hara@quay.example", "'hara@quay.example'", True),
        ("hara@quay.example", "/contacts/%27hara%40quay.example", True),
        ("hara@quay.example", r'{"a":"o\u0027hara@quay.example"}', False),
        ("d@quay.example", "r&d@quay.example", False),
        ("news@quay.example", "/contacts/kim%2Bnews%40quay.example", False),
        ("news@quay.example", "?email=%3Cnews%40quay.example%3E", True),
        (QUOTED, f"Kim <{QUOTED}>", True),
        (QUOTED, json.dumps([f"Kim <{QUOTED}>"]), True),
        ("jürgen@quay.example", "/contacts/j%C3%BCrgen%40quay.example", True),
        ("jürgen@quay.example", "Write to Jürgen@quay.example", True),
    ],
)
async def test_an_address_is_told_from_one_that_ends_with_it(
    here: World, address: str, text: str, is_found: bool
) -> None:
    """What is found is erased, and mail from it is removed: that of another person has to stay."""
    person = DataSubject.of(address)
    found = await here.pool.fetchval(
        "SELECT lower($1) LIKE '%' || $2 || '%' AND lower($1) ~ $3", text, *person.found_by
    )
    assert found is is_found


async def test_lists_lose_an_address_with_quotes_as_a_whole(here: World) -> None:
    person = DataSubject.of(QUOTED)
    given = json.dumps(["ben@quay.example", f"Kim <{QUOTED}>"])
    left = await here.pool.fetchval("SELECT regexp_replace($1, $2, '\"x\"', 'gi')", given, person.quoted)
    assert json.loads(left) == ["ben@quay.example", "x"]


MADE: Final = (  # noqa: SIM905 (prose reads better as prose)
    "email_id attachment_id webhook_id event topic_id segment_id template contact contact_property_id "
    "broadcast_id inbox thread_id draft_id automation_id run_id api_key_id domain_id identifier suppression "
    "form_id import_id bulk_act_id oauth_grant_id"
).split()

OURS: Final = frozenset(
    """
    status kind type role permission origin visibility default_subscription subscription on_conflict
    algorithm tls mode signal direction folder last_event source state bounce_type method stage purpose
    ways what blocked_reason failure_reason revoked_reason paused_for failed_for skipped_for actions
    token_endpoint_auth_method email_key name_key sender_key address_key blob token challenge password
    transports trigger_key region columns segments topics checkpoint variables steps connections
    link_places spf dkim dmarc encoding key fingerprint roles route scopes grant_types address destination
    mailbox selector public_key domain_name email_address receiving_address return_path
    tracking_subdomain events version media color conditions
    """.split()  # noqa: SIM905 (prose reads better as prose)
)
"""Names of columns whose values are the program's own words, or keys by which rows are found."""

SCANNED: Final = """
    SELECT table_name AS "table", column_name AS "column", data_type
      FROM information_schema.columns AS c
      JOIN information_schema.tables USING (table_schema, table_name)
     WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
       AND (data_type IN ('text', 'json', 'jsonb', 'bytea') OR udt_name IN ('_text', '_bytea'))
     ORDER BY 1, 2
"""


async def some_of_everything(team: Team) -> None:
    """Make something of each kind, and what is natural for a person: a contact, mail to it and from it."""
    made: dict[str, str] = {}
    for name in MADE:
        made[name] = await BUILDERS[name](team, made)
    await a_broadcast_with_a_plan(team, {})
    await hook(team, "contact.created", "email.delivered")
    await team.post("/contacts", {"email": KIM, "first_name": "Kim"})
    await team.send(to=f"Kim O'Hara <{KIM}>", subject="To Kim", text=f"Dear {KIM}", attachments=FILES)
    await team.send(to=[KIM, "ben@quay.example"], cc=["ann@quay.example"], subject="Both", text=f"{KIM}, Ben")
    await team.send(to="ben@quay.example", subject=f"About {KIM}", text=f"{KIM} wrote.", reply_to=KIM)
    await a_received(team)
    await signs_up(team, made["form_id"])
    await uploaded(team)
    await team.post("/contacts/bulk-acts", {"action": "unsubscribe", "search": KIM})
    await kept_of_contact(team)
    listed = {"blocked_senders": [KIM], "allowed_recipients": [KIM, "quay.example"]}
    await team.http.put(f"/inboxes/{made['inbox']}/policy", json=listed)
    await team.post("/suppressions", {"email": KIM})
    await team.http.delete(f"/suppressions/{KIM}")
    await team.http.post(f"/emails/{made['email_id']}/cancel")
    while await team.world.turn():
        pass
    detail = '{"host": "mx.quay.example", "reply": "250 ok"}'
    await team.world.pool.execute("UPDATE timeline SET detail = $1 WHERE kind = 'delivered'", detail)
    await team.world.pool.execute("DELETE FROM webhook_deliveries")


async def signs_up(team: Team, form_id: str) -> None:
    """Let the person fill in a form. Their link waits."""
    form = (await team.get(f"/forms/{form_id}")).json()
    answer = await team.world.client(None).post(form["url"], data={"email": KIM})
    assert answer.status_code == 200, answer.text


async def uploaded(team: Team) -> None:
    """Bring a file with the person, whose columns nobody has mapped yet."""

    async def pieces() -> AsyncIterator[bytes]:
        yield f"email,first_name\n{KIM},Kim\n".encode()

    await team.world.app.need(ImportUploads).take(team.db, pieces(), f"{KIM}.csv", "ada@harbor.example")


OF_CONTACT: Final = """
    SELECT c.table_name
      FROM information_schema.columns AS c
      JOIN information_schema.tables USING (table_schema, table_name)
     WHERE c.table_schema = 'public' AND table_type = 'BASE TABLE' AND c.column_name = 'contact_id'
"""
KEPT_OF_CONTACT: Final = """
    WITH engagement AS (
        INSERT INTO contact_engagement (team_id, contact_id, opened_at) VALUES ($1, $2, now())
    )
    INSERT INTO contact_events (team_id, name, contact_id, first_at, last_at, occurrences)
    VALUES ($1, 'order.placed', $2, now(), now(), 1)
"""


async def contact_of(team: Team) -> UUID:
    """Return the id of the person's contact."""
    return UUID((await team.get(f"/contacts/{KIM}")).json()["id"])


async def kept_of_contact(team: Team) -> None:
    """Write what jobs find out about the contact."""
    await team.world.pool.execute(KEPT_OF_CONTACT, team.id, await contact_of(team))


async def tables_with(pool: Any, contact_id: UUID) -> set[str]:
    """Return the tables with a row of a contact."""
    return {
        row["table_name"]
        for row in await pool.fetch(OF_CONTACT)
        if await pool.fetchval(
            f'SELECT EXISTS (SELECT FROM "{row["table_name"]}" WHERE contact_id = $1)', contact_id
        )
    }


LARGE: Final = b64encode(b"Dear Kim\n" * 40_000).decode()
FILES: Final = [{"content": LARGE, "filename": "kim.txt"}]


async def a_received(
    team: Team,
    subject: str = "Question",
    rest: bytes = b"\r\nHello\r\n",
    to: str = "hello@harbor.example",
) -> None:
    """Make a received mail from the person."""
    raw = f"From: Kim <{KIM}>\r\nTo: {to}\r\nSubject: {subject}\r\n".encode() + rest
    arrival = Arrival(
        client="192.0.2.1",
        helo="mx.quay.example",
        protocol="ESMTP",
        tls=None,
        mail_from=KIM,
        recipients=(AcceptedRecipient(team.id, to),),
    )
    await team.world.app.need(MessageReceiver).take(arrival, ReceivedText(raw, None, len(raw)))


async def faults_of(here: World) -> list[str]:
    """Return what the invariants of the program find."""
    return [
        invariant.name
        for entry in SLICES
        for invariant in entry.invariants
        if await here.pool.fetch(invariant.sql, 1, *invariant.args)
    ]


async def mark_everywhere(team: Team) -> set[str]:
    """Write the address into every text that the rows of the team have; returns the columns."""
    marked = set()
    async with team.world.pool.acquire() as conn, conn.transaction():
        # Without triggers: some tables refuse changes.
        await conn.execute("SET LOCAL session_replication_role = replica")
        for found in await conn.fetch(COLUMNS):
            table, column = found["table"], found["column"]
            if table in OUR_TABLES or table == "erasures" or column in OURS or not found["is_of_team"]:
                continue
            if await mark(conn, team, table, column, found["data_type"]):
                marked.add(f"{table}.{column}")
    return marked


async def mark(conn: Any, team: Team, table: str, column: str, data_type: str) -> bool:
    if data_type.startswith("json"):
        return await mark_json(conn, team, table, column, data_type)
    value = f'"{column}" || $2::text' if data_type == "ARRAY" else f"""left("{column}", 10) || ' ' || $2"""
    try:
        async with conn.transaction():
            status = await conn.execute(
                f'UPDATE "{table}" SET "{column}" = {value} WHERE team_id = $1 AND "{column}" IS NOT NULL',
                team.id,
                KIM,
            )
    except asyncpg.PostgresError:
        return False
    return bool(status != "UPDATE 0")


async def mark_json(conn: Any, team: Team, table: str, column: str, data_type: str) -> bool:
    is_marked = False
    rows = await conn.fetch(
        f'SELECT ctid::text AS place, "{column}"::text AS text FROM "{table}" '
        f'WHERE team_id = $1 AND "{column}" IS NOT NULL',
        team.id,
    )
    for row in rows:
        text = json.dumps(with_address(json.loads(row["text"])))
        is_marked |= KIM in text
        await conn.execute(
            f'UPDATE "{table}" SET "{column}" = $1::text::{data_type} WHERE ctid = $2::text::tid',
            text,
            row["place"],
        )
    return is_marked


def with_address(value: Any) -> Any:
    """Return JSON of the same shape with the address behind each text."""
    match value:
        case str():
            return f"{value} {KIM}"
        case list():
            return [with_address(entry) for entry in value]
        case dict():
            return {key: with_address(entry) for key, entry in value.items()}
    return value


async def empty_tables(team: Team) -> set[str]:
    """Return the tables with columns that could name a person, and no row of the team."""
    rows = await team.world.pool.fetch(COLUMNS)
    tables = {row["table"] for row in rows if row["is_of_team"] and row["column"] not in OURS}
    return {
        table
        for table in tables - OUR_TABLES
        if not await team.world.pool.fetchval(f'SELECT count(*) FROM "{table}" WHERE team_id = $1', team.id)
    }


async def named_in(pool: Any, address: str) -> set[str]:
    """Return the columns of the whole database that have the address somewhere."""
    found = set()
    for row in await pool.fetch(SCANNED):
        table, column, kind = row["table"], row["column"], row["data_type"]
        text = f"encode(\"{column}\", 'escape')" if kind == "bytea" else f'"{column}"::text'
        if await pool.fetchval(
            f'SELECT EXISTS (SELECT FROM "{table}" WHERE position(lower($1) IN lower({text})) > 0)', address
        ):
            found.add(f"{table}.{column}")
    return found


def files_with(folder: Path, octets: bytes) -> list[Path]:
    """Return the files of the blob store that have these octets."""
    return [path for path in folder.rglob("*") if path.is_file() and octets in path.read_bytes()]


async def test_nothing_names_a_person_who_was_erased(here: World, tmp_path: Path) -> None:
    """Columns come from the schema: one that is new is marked and scanned by itself."""
    team = await here.team("Harbor")
    await some_of_everything(team)
    assert await empty_tables(team) == NO_ROWS
    contact_id = await contact_of(team)
    assert await tables_with(here.pool, contact_id) >= {"contact_engagement", "contact_events"}
    marked = await mark_everywhere(team)
    assert len(marked) > 55, sorted(marked)
    before = await named_in(here.pool, KIM)
    assert before >= NAMED, sorted(NAMED - before)
    assert files_with(tmp_path, b"Dear Kim")
    done = await erase(team)
    assert done["status"] == "completed", done
    left = await named_in(here.pool, KIM)
    assert await tables_with(here.pool, contact_id) == set()
    more, fewer = sorted(left - STAYS.keys()), sorted(STAYS.keys() - left)
    assert not files_with(tmp_path, b"Dear Kim")
    assert await faults_of(here) == []
    assert more == fewer == [], f"named still: {', '.join(more)}; not any more: {', '.join(fewer)}"


async def test_an_erased_address_gets_no_mail_and_is_no_contact(here: World) -> None:
    team, quay = await here.team("Harbor"), await here.team("Quay")
    for one in (team, quay):
        await one.post("/contacts", {"email": KIM})
        await one.send(to=KIM, subject="Before", text="Hello")
    while await here.turn():
        pass
    done = await erase(team)
    assert (done["status"], done["waiting"]) == ("completed", 0)
    assert KIM not in json.dumps(done)
    email_id = await team.send(to=[KIM, "ben@quay.example"], subject="After", text="Hello")
    alone = await team.send(to=KIM, subject="After", text="Hello")
    while await here.turn():
        pass
    events = (await team.get(f"/emails/{email_id}/events")).json()["data"]
    assert {(e["recipient"], e["event"]) for e in events if e["recipient"]} >= {
        (KIM, "suppressed"),
        ("ben@quay.example", "delivered"),
    }
    assert (await team.get(f"/emails/{alone}")).json()["last_event"] == "suppressed"
    refused = await team.http.post("/contacts", json={"email": KIM.upper()})
    assert refused.status_code == 422
    assert "erased" in refused.json()["message"]
    assert (await quay.get(f"/contacts/{KIM}")).status_code == 200
    assert (await quay.get(f"/personal-data/erasures/{done['id']}")).status_code == 404
    assert (await team.get(f"/personal-data/erasures/{KIM}")).json()["id"] == done["id"]
    await team.http.delete(f"/personal-data/erasures/{done['id']}")
    assert (await team.http.post("/contacts", json={"email": KIM})).status_code == 201


async def test_an_import_skips_who_was_erased(here: World) -> None:
    team = await here.team("Harbor")
    await erase(team)
    upload = await team.http.post(
        "/contacts/imports",
        files={"file": ("people.csv", f"email\n{KIM}\nben@quay.example\n".encode(), "text/csv")},
    )
    assert upload.status_code in (200, 201, 202), upload.text
    while await run_jobs(here):
        pass
    shown = (await team.get(f"/contacts/imports/{upload.json()['id']}")).json()
    assert shown["status"] == "completed", shown
    assert [c["email"] for c in (await team.get("/contacts")).json()["data"]] == ["ben@quay.example"]
    assert KIM not in json.dumps(shown)


async def test_mail_that_is_still_to_go_out_ends(here: World) -> None:
    team = await here.team("Harbor")
    alone = await team.send(to=KIM, subject="Soon", text="Hello", scheduled_at="in 2 days")
    both = await team.send(
        to=[KIM, "ben@quay.example"], subject="Soon", text="Hello", scheduled_at="in 2 days"
    )
    answer = await team.http.post(f"/personal-data/{KIM}/erase")
    clock_of(here).advance(30)
    while await run_jobs(here):
        pass
    assert (await team.get(f"/emails/{alone}")).json()["last_event"] == "suppressed"
    shown = (await team.get(f"/personal-data/erasures/{answer.json()['id']}")).json()
    assert (shown["status"], shown["waiting"]) == ("waiting", 1)
    clock_of(here).advance(2 * 24 * 3600)
    while await here.turn():
        pass
    assert (await carried_out(team, answer.json()["id"]))["status"] == "completed"
    assert (await team.get(f"/emails/{both}")).json()["to"] == [ERASED_ADDRESS, "ben@quay.example"]
    assert await faults_of(here) == []


async def test_accepting_and_sending_ask_once_whether_anybody_was_erased(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement that they run anyway tells."""
    team = await here.team("Harbor")
    to = [KIM, "ben@quay.example"]
    before = await team.send(to=to, subject="Soon", text="Hello", scheduled_at="in 1 hour")
    await team.http.post(f"/personal-data/{KIM}/erase")

    async def asked_again(*_: object) -> bool:
        raise AssertionError("asked once more")

    monkeypatch.setattr(erased_queries, "has_erased", asked_again)
    after = await team.send(to=to, subject="Now", text="Hello")
    clock_of(here).advance(3700)
    while await here.turn():
        pass
    for email_id in (before, after):
        events = (await team.get(f"/emails/{email_id}/events")).json()["data"]
        assert {(e["recipient"], e["event"]) for e in events if e["recipient"]} >= {
            (KIM, "suppressed"),
            ("ben@quay.example", "delivered"),
        }


async def test_hashes_of_an_import_are_those_of_single_addresses(here: World) -> None:
    team, erased = await here.team("Harbor"), here.app.need(ErasedAddresses)
    addresses = [f"kim{number}@quay.example" for number in range(IN_PLACE + 1)]
    many = await erased.hashes(team.id, addresses)
    assert list(many.values()) == addresses
    assert many[await erased.hash_of(team.id, addresses[-1])] == addresses[-1]


async def test_an_erasure_that_is_interrupted_goes_on(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process ends behind any step: nothing is done twice, and nothing is left."""
    team = await here.team("Harbor")
    await team.post("/contacts", {"email": KIM})
    for number in range(12):
        await team.send(to=KIM, subject=f"Mail {number}", text="Hello")
    while await here.turn():
        pass
    steps = 0

    async def ends_now_and_then(name: str) -> None:
        nonlocal steps
        if name == "personal_data.step_committed":
            steps += 1
            if steps % 3 == 0:
                raise RuntimeError("the process ends")

    monkeypatch.setattr(erasing.faults, "point", ends_now_and_then)
    monkeypatch.setattr("pillarbox.emails.personal.personal_data.STEP", 5)
    done = await erase(team)
    assert done["status"] == "completed", done
    assert steps > 10
    assert not await named_in(here.pool, KIM)
    counted = await here.pool.fetchval("SELECT count(*) FROM recipients WHERE address = $1", ERASED_ADDRESS)
    assert counted == 12
    again = await erase(team)
    assert (again["id"], again["status"]) == (done["id"], "completed")


async def test_history_of_others_is_not_read_for_an_erasure(here: World) -> None:
    """A mail has fifty recipients at most, and a step a hundred mails."""
    team = await here.team("Harbor")
    email_id = await team.send(to=[KIM, "ben@quay.example", "ann@quay.example"], subject="x", text="x")
    while await here.turn():
        pass
    await here.pool.execute(
        """UPDATE timeline SET detail = '{"reply": "250 ok"}' WHERE position IS NOT NULL"""
    )
    read = await about_person(team.db, [UUID(email_id)], KIM, DataSubject.of(KIM).needle)
    assert read
    assert all(event.is_own for event in read)


async def test_an_erasure_that_is_asked_for_again_looks_at_what_was_passed(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of the second request names the address, and is written behind the place of the first."""
    team = await here.team("Harbor")
    await team.post("/contacts", {"email": KIM})
    asked = False

    async def asks_behind_requests(name: str) -> None:
        nonlocal asked
        place = await here.pool.fetchval("SELECT part FROM erasures")
        if name == "personal_data.step_committed" and place == "webhook_events" and not asked:
            asked = True
            await team.http.post(f"/personal-data/{KIM}/erase")

    monkeypatch.setattr(erasing.faults, "point", asks_behind_requests)
    done = await erase(team)
    assert asked
    assert done["status"] == "completed", done
    assert await named_in(here.pool, KIM) == set()
    assert await faults_of(here) == []


async def test_an_erasure_that_is_asked_for_again_while_it_ends_begins_anew(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = await here.team("Harbor")
    ended: list[UUID] = []
    by_id = erasing.queries.by_id

    async def asked_again(db: TeamDb, erasure_id: UUID) -> ErasureRow | None:
        row = await by_id(db, erasure_id)
        if row is not None and row.completed_at is not None and not ended:
            ended.append(erasure_id)
            await team.http.post(f"/personal-data/{KIM}/erase")
        return row

    monkeypatch.setattr(erasing.queries, "by_id", asked_again)
    done = await erase(team)
    assert ended
    assert done["status"] == "completed"
    assert await faults_of(here) == []


async def test_a_step_locks_an_inbox_for_few_threads(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    team = await here.team("Harbor")
    inbox = await an_inbox(team, "support")
    for number in range(5):
        await a_received(team, f"Question {number}", to=inbox.address)
    counted = "SELECT count(*) FROM inbox_threads"
    left = [await here.pool.fetchval(counted)]

    async def counts(name: str) -> None:
        if name == "personal_data.step_committed":
            left.append(await here.pool.fetchval(counted))

    monkeypatch.setattr(erasing.faults, "point", counts)
    monkeypatch.setattr("pillarbox.inboxes.personal_data.THREADS", 2)
    done = await erase(team)
    assert done["status"] == "completed", done
    assert sorted(set(left), reverse=True) == [5, 3, 1, 0]
    assert await named_in(here.pool, KIM) == set()


async def test_an_erasure_without_its_job_is_a_gap(here: World) -> None:
    team = await here.team("Harbor")
    await team.http.post(f"/personal-data/{KIM}/erase")
    assert await faults_of(here) == []
    await here.pool.execute("DELETE FROM jobs WHERE kind = 'personal_data.erase'")
    assert await faults_of(here) == ["erasure_without_job"]


async def test_the_file_of_a_person_has_what_is_held(here: World) -> None:
    team, quay = await here.team("Harbor"), await here.team("Quay")
    await team.post("/contacts", {"email": KIM, "first_name": "Kim"})
    await team.send(to=KIM, subject="Your invoice", text="Twelve lanterns")
    await quay.send(to=KIM, subject="Another team's", text="x")
    await a_received(team)
    await a_received(team, "Long", b"Content-Type: text/html\r\n\r\n" + b"<p>tide</p>\r\n" * 40_000)
    while await here.turn():
        pass
    answer = await team.get(f"/personal-data/{KIM}")
    assert "attachment" in answer.headers["content-disposition"]
    found = answer.json()
    assert found["contacts"][0]["first_name"] == "Kim"
    assert [mail["subject"] for mail in found["emails"]] == ["Your invoice"]
    assert found["emails"][0]["text"] == "Twelve lanterns"
    assert "delivered" in [event["kind"] for event in found["emails"][0]["events"]]
    assert [(mail["subject"], mail["text"]) for mail in found["received_emails"]] == [
        ("Question", "Hello\n"),
        ("Long", None),
    ]
    assert found["received_emails"][1]["html"].count("tide") == 40_000
    assert found["requests"]
    assert "Another team" not in answer.text
    nobody = (await team.get("/personal-data/nobody@quay.example")).json()
    assert [name for name, value in nobody.items() if value == []] == [
        *(
            "contacts",
            "form_sign_ups",
            "events",
            "automation_runs",
            "inbox_messages",
            "received_emails",
            "emails",
        ),
        *("requests", "suppressions", "acts"),
    ]
