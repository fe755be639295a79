"""`pillarbox verify`: clean on what is healthy; every row that is gone or changed is named (DUR-14)."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from cli.conftest import LARGE, Installation
from kit.brought import INVARIANTS
from kit.receiver import WEBHOOKS, receiver
from kit.webhooks import hook
from kit.world import world
from pillarbox.application import SLICES
from pillarbox.emails.integrity.reconcile import ReconcileResult, examine, reconcile
from pillarbox.kernel.storage.folder import FolderBackend
from pillarbox.webhooks.kinds import KINDS
from work.test_unclaimed_work import DAMAGE as UNCLAIMED

DAY = timedelta(days=1).total_seconds()


def gaps(found: dict[str, Any]) -> set[str]:
    return {gap["name"] for gap in found["gaps"]}


def test_a_healthy_installation_has_no_gap_and_its_account_adds_up(harbor: Installation) -> None:
    found = harbor.json("verify")
    assert found["gaps"] == []
    (mine,) = [account for account in found["accounts"] if account["team"] == "Harbor"]
    parts = ("delivered", "bounced", "failed", "suppressed", "canceled", "pending")
    assert {part: mine[part] for part in parts} == {
        "delivered": 14,
        "bounced": 2,
        "failed": 1,
        "suppressed": 1,
        "canceled": 1,
        "pending": 5,
    }
    assert mine["accepted"] == sum(mine[part] for part in parts)
    assert found["blobs"] == {"named": 1, "unnamed": 0, "collected": 0, "withheld": None}


def test_people_read_the_account_and_the_verdict(harbor: Installation) -> None:
    done = harbor.run("verify")
    assert done.exit_code == 0
    head, *rows = done.stdout.splitlines()
    assert head.split() == [
        "Team",
        "Accepted",
        "Delivered",
        "Bounced",
        "Failed",
        "Suppressed",
        "Canceled",
        "Pending",
    ]
    assert rows[0].split() == ["Harbor", "24", "14", "2", "1", "1", "1", "5"]
    assert rows[-1].startswith("No gaps in 17 emails with 25 recipients of 2 teams")


def test_an_empty_installation_is_clean(empty: Installation) -> None:
    assert empty.json("verify")["ok"] is True


DAMAGE: list[tuple[str, str, str, set[str]]] = [
    (
        "a suppression that no recipient is compared with",
        "mixed",
        "UPDATE suppressions SET address = 'Gone@quay.example' WHERE source_id = $1",
        {"suppression_not_comparable", "suppression_without_cause"},
    ),
    (
        "a manual suppression with a cause",
        "mixed",
        "UPDATE suppressions SET origin = 'manual' WHERE source_id = $1",
        {"manual_suppression_with_source"},
    ),
    (
        "a suppression of who got the mail",
        "mixed",
        "UPDATE suppressions SET address = 'ada@quay.example' WHERE source_id = $1",
        {"suppression_without_cause"},
    ),
    (
        "a content that is gone",
        "plain",
        "DELETE FROM contents WHERE id = $1",
        {"email_without_content"},
    ),
    (
        "recipients that are gone",
        "plain",
        "DELETE FROM recipients WHERE email_id = $1",
        {
            "email_without_recipients",
            "history_without_recipient",
            "metric_differs_from_history",
            "account_unbalanced",
        },
    ),
    (
        "one recipient of several that is gone",
        "scheduled",
        "DELETE FROM recipients WHERE email_id = $1 AND position = 1",
        {
            "recipients_differ_from_addresses",
            "work_without_open_recipient",
            "metric_differs_from_history",
            "account_unbalanced",
        },
    ),
    (
        "a recipient too many",
        "scheduled",
        """
        INSERT INTO recipients (team_id, email_id, position, role, address, mailbox, grp, state)
        SELECT team_id, email_id, 9, role, 'stray@quay.example', mailbox, grp, state
          FROM recipients WHERE email_id = $1 AND position = 0
        """,
        {"recipients_differ_from_addresses", "metric_differs_from_history", "account_unbalanced"},
    ),
    (
        "an email that is gone",
        "mixed",
        "DELETE FROM emails WHERE id = $1",
        {
            "recipient_without_email",
            "history_without_email",
            "work_without_email",
            "metric_differs_from_history",
        },
    ),
    (
        "work of an open recipient that is gone",
        "mixed",
        "DELETE FROM deliveries WHERE email_id = $1",
        {"recipient_without_work"},
    ),
    (
        "work of a scheduled email that is gone",
        "scheduled",
        "DELETE FROM deliveries WHERE email_id = $1 AND grp = 1",
        {"recipient_without_work"},
    ),
    (
        "work that nobody needs any more",
        "plain",
        """
        INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, released, created_at)
        SELECT team_id, email_id, grp, 'quay.example', now(), true, now()
          FROM recipients WHERE email_id = $1
        """,
        {"work_without_open_recipient"},
    ),
    (
        "a fetch that nobody will make",
        "remote file",
        "DELETE FROM jobs WHERE subject_id = $1",
        {"work_without_fetch"},
    ),
    (
        "a state that nothing led to",
        "plain",
        "UPDATE recipients SET state = 'bounced' WHERE email_id = $1",
        {"recipient_differs_from_history"},
    ),
    (
        "a state that there is not",
        "plain",
        "UPDATE recipients SET state = 'vanished' WHERE email_id = $1",
        {"recipient_differs_from_history", "account_unbalanced"},
    ),
    (
        "a mark that nothing led to",
        "plain",
        "UPDATE recipients SET complained_at = now() WHERE email_id = $1",
        {"recipient_differs_from_history"},
    ),
    (
        "a last event that is not the last",
        "mixed",
        "UPDATE emails SET last_event = 'delivered' WHERE id = $1",
        {"last_event_differs_from_history"},
    ),
    (
        "a last event at the wrong time",
        "unreached",
        "UPDATE emails SET last_event_at = last_event_at + interval '1 second' WHERE id = $1",
        {"last_event_differs_from_history"},
    ),
    (
        "an acceptance that history does not know",
        "plain",
        "DELETE FROM timeline WHERE email_id = $1 AND kind = 'queued'",
        {"email_without_opening"},
    ),
    (
        "an outcome that history does not know",
        "plain",
        "DELETE FROM timeline WHERE email_id = $1 AND kind = 'delivered'",
        {
            "recipient_differs_from_history",
            "last_event_differs_from_history",
            "metric_differs_from_history",
        },
    ),
    (
        "history that is gone",
        "canceled",
        "DELETE FROM timeline WHERE email_id = $1",
        {"email_without_opening"},
    ),
    (
        "history of nobody",
        "plain",
        "UPDATE timeline SET position = 7 WHERE email_id = $1 AND position = 0",
        {
            "history_without_recipient",
            "recipient_differs_from_history",
        },
    ),
    (
        "an attachment that is gone",
        "small file",
        "DELETE FROM attachments WHERE content_id = $1",
        {"attachment_missing"},
    ),
    (
        "an attachment of nothing",
        "small file",
        "UPDATE attachments SET content_id = gen_random_uuid() WHERE content_id = $1",
        {"attachment_missing", "attachment_without_content"},
    ),
    (
        "an attachment without its bytes",
        "small file",
        "UPDATE attachments SET data = NULL WHERE content_id = $1",
        {"attachment_without_bytes"},
    ),
    (
        "an attachment that lost a byte",
        "small file",
        "UPDATE attachments SET data = substring(data FROM 2) WHERE content_id = $1",
        {"attachment_without_bytes"},
    ),
]


async def found_after(made_harbor: Installation, damage: str, *arguments: Any) -> ReconcileResult:
    """What is found with that damage done, which is taken back afterwards."""
    conn = await asyncpg.connect(made_harbor.url)
    try:
        await conn.execute("BEGIN")
        await conn.execute(damage, *arguments)
        return await examine(conn, 100, INVARIANTS)
    finally:
        await conn.close()


@pytest.mark.parametrize(
    ("subject", "damage", "named"), [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE]
)
async def test_damage_is_named(made_harbor: Installation, subject: str, damage: str, named: set[str]) -> None:
    """One row deleted or changed by hand: exactly what follows from it is named, with the email's id."""
    email = await made_harbor.id_of(subject)
    found = await found_after(made_harbor, damage, email)
    assert {gap.name for gap in found.gaps} == named
    assert email in {gap.ids.get("email_id") for gap in found.gaps}


async def test_an_answer_for_an_email_that_is_gone_is_named_by_its_key(made_harbor: Installation) -> None:
    """A repeated request would be told of an email that does not exist."""
    for subject, key in (("kept", "once"), ("batch 1", "many")):
        email = await made_harbor.id_of(subject)
        found = await found_after(made_harbor, "DELETE FROM emails WHERE id = $1", email)
        (gap,) = [gap for gap in found.gaps if gap.name == "answer_without_email"]
        assert (gap.ids["key"], gap.ids["email_id"]) == (key, email)


@pytest.mark.parametrize(
    "metric",
    [
        "received",
        "sent",
        "delivered",
        "delivery_delayed",
        "failed",
        "suppressed",
        "complained",
        "bounced_permanent",
        "bounced_transient",
        "bounced_undetermined",
    ],
)
async def test_a_metric_that_was_not_counted_right_is_named(made_harbor: Installation, metric: str) -> None:
    found = await found_after(
        made_harbor,
        f"""
        UPDATE metric_increments SET {metric} = {metric} + 1
         WHERE id = (SELECT min(id::text)::uuid FROM metric_increments)
        """,
    )
    (gap,) = [gap for gap in found.gaps if gap.name == "metric_differs_from_history"]
    assert gap.ids["metric"] == metric
    assert gap.ids["written"] == gap.ids["counted"] + 1


OWN_STORIES = {
    "webhooks",
    "contacts",
    "contact_properties",
    "segments",
    "topics",
    "suppressions",
    "templates",
    "broadcasts",
    "inboxes",
    "people",
    "oauth",
    "events",
    "automations",
    "personal_data",
}
"""Slices whose own tests damage rows for each of their invariants."""


def test_every_kind_of_gap_has_its_story() -> None:
    told = {name for row in DAMAGE for name in row[3]} | {"answer_without_email", "captured_without_bytes"}
    told |= {"received_without_message", "received_attachments_differ", "rollup_levels_differ"}
    told |= {name for _, name in UNCLAIMED}
    others = {invariant.name for one in SLICES if one.name in OWN_STORIES for invariant in one.invariants}
    assert {invariant.name for invariant in INVARIANTS} - others <= told


def test_a_captured_mail_without_bytes_or_with_a_lost_blob_is_named(harbor: Installation) -> None:
    columns = "INSERT INTO captured (team_id, id, email_id, at, mail_from, recipients, sender, subject, size"
    values = "SELECT team_id, gen_random_uuid(), id, created_at, '', '{}', sender, subject, 5"
    harbor.sql(f"{columns}) {values} FROM emails WHERE subject = 'plain'")
    harbor.sql(f"{columns}, blob) {values}, 'captured/lost' FROM emails WHERE subject = 'mixed'")
    found = harbor.json("verify", status=1)
    assert gaps(found) == {"captured_without_bytes", "captured_blob_missing"}


def test_received_mail_that_lost_its_message_an_attachment_or_its_blob_is_named(harbor: Installation) -> None:
    columns = "team_id, id, created_at, sender, to_list, subject, message_id, received_for, attachments"
    more = "recipients, mail_from, client, spf, dkim, dmarc, size, complete"
    values = (
        "team_id, id, created_at, '', '[]', '', '', '[]', 1, '[]', '', '', 'none', 'none', 'none', 2, true"
    )
    harbor.sql(f"INSERT INTO received_emails ({columns}, {more}) SELECT {values} FROM emails")
    harbor.sql(
        "INSERT INTO received_sources (team_id, id, trace, size, blob, parsed)"
        " SELECT team_id, id, '', 2, 'received/lost', '{}' FROM emails WHERE subject = 'plain'"
    )
    found = harbor.json("verify", status=1)
    lost = {"received_without_message", "received_attachments_differ", "received_sources_blob_missing"}
    assert gaps(found) == lost


def test_a_lost_blob_is_named(harbor: Installation) -> None:
    (blob,) = harbor.blobs()
    blob.unlink()
    (gap,) = harbor.json("verify", status=1)["gaps"]
    assert gap["name"] == "attachments_blob_missing"
    assert gap["ids"]["blob"] == f"attachments/{blob.name}"


@pytest.mark.parametrize("change", ["longer", "shorter", "empty"])
def test_a_blob_of_another_size_is_named(harbor: Installation, change: str) -> None:
    (blob,) = harbor.blobs()
    whole = blob.read_bytes()
    blob.write_bytes({"longer": whole + b"!", "shorter": whole[:-1], "empty": b""}[change])
    assert gaps(harbor.json("verify", status=1)) == {"attachments_blob_differs"}


def leave_behind(harbor: Installation, key: str, age: float) -> Path:
    """A blob that a crash left behind, written `age` seconds ago."""
    blob = FolderBackend(harbor.folder / "blobs").path(key)
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(b"left behind")
    os.utime(blob, (time.time() - age, time.time() - age))
    return blob


def test_a_blob_that_a_crash_left_behind_is_no_gap_and_goes_after_a_day(harbor: Installation) -> None:
    old = leave_behind(harbor, "attachments/old", DAY + 60)
    young = leave_behind(harbor, "captured/young", DAY - 600)
    found = harbor.json("verify")
    assert found["blobs"] == {"named": 1, "unnamed": 1, "collected": 1, "withheld": None}
    assert not old.exists()
    assert young.exists()
    assert harbor.json("verify")["blobs"]["named"] == 1


def test_blobs_without_rows_are_only_counted_when_asked(harbor: Installation) -> None:
    old = leave_behind(harbor, "attachments/old", DAY + 60)
    assert harbor.json("verify", "--no-collect")["blobs"]["collected"] == 0
    assert old.exists()


def test_a_store_that_looks_like_another_ones_is_left_alone(harbor: Installation) -> None:
    """More blobs without rows than with: deleting those may be deleting somebody's mail."""
    old = [leave_behind(harbor, f"{folder}/old", DAY + 60) for folder in ("attachments", "captured")]
    kept = harbor.json("verify")["blobs"]
    assert (kept["unnamed"], kept["collected"]) == (2, 0)
    assert "another installation" in kept["withheld"]
    assert harbor.json("verify", "--collect")["blobs"]["collected"] == 2
    assert not any(path.exists() for path in old)


def test_the_blob_of_a_file_that_is_being_fetched_is_never_collected(harbor: Installation) -> None:
    """A fetch that a crash interrupted writes the same blob again and then names it."""
    [(attachment,)] = harbor.sql("SELECT id FROM attachments WHERE size IS NULL")
    blob = leave_behind(harbor, f"attachments/{attachment}", DAY + 60)
    assert harbor.json("verify", "--collect")["blobs"]["unnamed"] == 0
    assert blob.exists()


def test_other_folders_of_the_store_are_left_alone(harbor: Installation) -> None:
    blob = leave_behind(harbor, "inbound/old", DAY + 60)
    assert harbor.json("verify", "--collect")["blobs"]["unnamed"] == 0
    assert blob.exists()


def test_long_lists_of_gaps_are_cut_and_say_so(harbor: Installation) -> None:
    harbor.sql("DELETE FROM contents")
    found = harbor.json("verify", "--limit", "3", status=1)
    assert sum(gap["name"] == "email_without_content" for gap in found["gaps"]) == 3
    assert "email_without_content" in found["more"]


def test_people_read_what_is_wrong_with_which_email(harbor: Installation) -> None:
    email = harbor.email("mixed")
    harbor.sql("DELETE FROM deliveries WHERE email_id = $1", email)
    done = harbor.run("verify")
    assert done.exit_code == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("GAP")]
    assert line.startswith(
        "GAP recipient_without_work: The recipient at position 2 is delivery_delayed, "
        f"but no work item carries group 0. [email {email}, team "
    )


async def test_beside_a_live_server_there_is_never_a_false_gap(database_url: str, tmp_path: Path) -> None:
    """Mail is accepted, released, canceled and delivered meanwhile, and told of; every snapshot is whole."""
    fates = ("delivered", "bounced", "complained", "suppressed")
    async with receiver() as at, world(database_url, tmp_path, **WEBHOOKS) as pillarbox:
        team = await pillarbox.team()
        await hook(team, *[kind for kind in KINDS if kind.startswith("email.")], endpoint=at.url)
        await pillarbox.pool.execute("UPDATE webhooks SET since = since - interval '1 hour'")

        async def one_after_the_other(number: int) -> None:
            for _ in range(15):
                await team.send(to=[f"{fate}@pillarbox.test" for fate in fates] + [f"{number}@quay.example"])
                email = await team.send(scheduled_at="in 1 second", attachments=[LARGE])
                if number % 2:
                    await team.post(f"/emails/{email}/cancel")

        senders = [asyncio.create_task(one_after_the_other(number)) for number in range(4)]
        looks = 0
        while not all(sender.done() for sender in senders) or looks < 5:
            found = await reconcile(pillarbox.pool, 5, INVARIANTS)
            assert found.gaps == []
            looks += 1
        await asyncio.gather(*senders)
        assert found.recipients > 200
        assert len(at.arrivals) > 50


def test_verify_writes_nothing(harbor: Installation) -> None:
    before = harbor.sql(
        "SELECT pg_current_xact_id_if_assigned(), relname, n_tup_upd FROM pg_stat_user_tables"
    )
    harbor.run("verify")
    after = harbor.sql("SELECT pg_current_xact_id_if_assigned(), relname, n_tup_upd FROM pg_stat_user_tables")
    assert before == after


def test_a_result_is_kept_where_that_is_asked(harbor: Installation) -> None:
    assert harbor.run("verify", "--keep").exit_code == 0
    [row] = harbor.sql("SELECT kind, is_healthy, result::text FROM examinations WHERE kind = 'verify'")
    assert (row["kind"], row["is_healthy"]) == ("verify", True)
    assert '"object": "verification"' in row["result"]


def test_what_cannot_be_verified_is_not_called_clean(harbor: Installation) -> None:
    """Status 2: neither health nor a thousand gaps may be read out of a store that does not answer."""
    (harbor.folder / "no-folder").touch()
    done = harbor.run("verify", "--blob-url", f"file:{harbor.folder}/no-folder")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "pillarbox: The blob store cannot be read: ENOTDIR.\n"
