"""Screens of the installation: what an operator sees and does there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.people import Visit, an_operator, heading, logged_in, text_of
from kit.world import Team, World, world
from pillarbox.dashboard.texts import t
from pillarbox.doctor.examination_runs import ExaminationRunner
from pillarbox.people import audit

GLANCE = "/dashboard/installation"
TEAMS = "/dashboard/installation/teams"
ACTS = "/dashboard/installation/acts"
SETTINGS = "/dashboard/installation/settings"
EXAMINATION = "/dashboard/installation/examination"
QUEUE = "/dashboard/installation/queue"
HOSTILE = "<b>Harbor</b><script>alert(1)</script>"


@asynccontextmanager
async def installation(database_url: str, tmp_path: Path) -> AsyncIterator[tuple[World, Team, Visit]]:
    """A team with mail that waits, and the browser of an operator."""
    async with world(database_url, tmp_path, started=False) as here:
        harbor = await here.team("Harbor")
        otto = await an_operator(harbor, "otto@harbor.example")
        yield here, harbor, await logged_in(here, otto)


async def acts_of(here: World) -> list[tuple[str, str | None, str | None]]:
    """What, on what and by whom, without logins."""
    rows = await here.pool.fetch(
        "SELECT what, target, actor FROM audit_entries WHERE what NOT LIKE 'login.%' ORDER BY id"
    )
    return [(row["what"], row["target"], row["actor"]) for row in rows]


async def test_mail_of_a_destination_is_held_back_and_let_go(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (here, harbor, otto):
        await harbor.send(to="ada@quay.example")
        await harbor.send(to="ben@pier.example")
        part = {"team": str(harbor.id), "domain": "quay.example"}
        shown = text_of(await otto.get(QUEUE))
        assert "quay.example Harbor 1 due" in shown
        assert "pillarbox queue drop --all" in shown
        done = await otto.post(f"{QUEUE}/pause", **part, reason="new relay")
        assert done.status_code == 303
        shown = text_of(await otto.follow(done))
        assert "The mail is held back." in shown
        assert "mail to quay.example of Harbor new relay" in shown
        assert "Held back by the operator." in shown
        assert "ben@pier" not in shown
        assert f"pillarbox queue resume --team {harbor.id} --domain quay.example" in shown
        done = await otto.post(f"{QUEUE}/resume", **part)
        assert "Due; waits for a delivery process." in text_of(await otto.follow(done))
        again = await otto.post(f"{QUEUE}/resume", **part)
        assert (again.status_code, "This scope is not paused." in again.text) == (409, True)
        assert await acts_of(here) == [
            ("queue.paused", "quay.example", "otto@harbor.example"),
            ("queue.resumed", "quay.example", "otto@harbor.example"),
        ]


async def test_mail_is_dropped_only_where_its_name_is_typed(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (here, harbor, otto):
        email_id = await harbor.send(to="ada@quay.example")
        kept_id = await harbor.send(to="ben@pier.example")
        await otto.get(f"{QUEUE}?domain=quay.example")
        refused = await otto.post(f"{QUEUE}/drop", domain="quay.example", typed_name="quay")
        assert refused.status_code == 422
        assert "Nothing was dropped. Type quay.example to confirm." in refused.text
        assert await here.pool.fetchval("SELECT count(*) FROM deliveries") == 2
        done = await otto.post(f"{QUEUE}/drop", domain="quay.example", typed_name="quay.example")
        assert done.status_code == 303
        assert (await harbor.email(email_id))["last_event"] == "failed"
        assert (await harbor.email(kept_id))["last_event"] == "queued"
        assert await acts_of(here) == [("queue.dropped", "quay.example", "otto@harbor.example")]


async def test_what_waits_for_its_next_attempt_is_tried_now(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (here, harbor, otto):
        await harbor.send(to="ada@quay.example")
        await here.pool.execute(
            "UPDATE deliveries SET tries = 2, due_at = now() + interval '2 hours', reason = 'greylisted', "
            "last_host = 'mx.quay.example', last_reply = $1",
            f"451 {HOSTILE}",
        )
        shown = await otto.get(f"{QUEUE}?domain=Quay.Example")
        assert HOSTILE not in shown.text
        assert f"mx.quay.example 451 {HOSTILE}" in shown.text.replace("&lt;", "<").replace("&gt;", ">")
        await otto.post(f"{QUEUE}/retry", domain="quay.example")
        assert "Due" in text_of(await otto.get(f"{QUEUE}?domain=quay.example"))
        assert await here.pool.fetchval("SELECT due_at <= now() FROM deliveries")


@pytest.mark.parametrize("query", ["team=nothing", "team=0199a3b0-2c41-7d10-8b52-3e9a6f04c711", "domain=a b"])
async def test_a_part_that_is_not_there_is_said(database_url: str, tmp_path: Path, query: str) -> None:
    async with installation(database_url, tmp_path) as (_, _, otto):
        answer = await otto.get(f"{QUEUE}?{query}")
        assert answer.status_code == 422
        assert 'role="alert"' in answer.text


async def test_power_asks_for_a_recent_login_and_fills_the_form_in_again(
    database_url: str, tmp_path: Path
) -> None:
    async with installation(database_url, tmp_path) as (here, harbor, otto):
        await harbor.send(to="ada@quay.example")
        await otto.get(QUEUE)
        await here.pool.execute("UPDATE person_sessions SET confirmed_at = now() - interval '1 day'")
        asked = await otto.post(f"{QUEUE}/pause", domain="quay.example", reason="new relay")
        assert asked.headers["location"].startswith("/confirm?to=")
        assert f"You asked for: {t('operator.queue.pause')}." in text_of(
            await otto.get(asked.headers["location"])
        )
        assert await here.pool.fetchval("SELECT count(*) FROM paused") == 0
        shown = await otto.get(QUEUE)
        assert 'value="new relay"' in shown.text
        assert 'name="domain" value="quay.example"' in shown.text


async def test_a_team_is_blocked_and_unblocked(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (here, _, otto):
        quay = await here.team(HOSTILE)
        listed = await otto.get(f"{TEAMS}?q=harbor")
        assert HOSTILE not in listed.text
        assert f'href="{TEAMS}/{quay.id}"' in listed.text
        page = f"{TEAMS}/{quay.id}"
        assert heading(await otto.get(page)) == HOSTILE
        shown = text_of(await otto.follow(await otto.post(f"{page}/block")))
        assert "The team is blocked." in shown
        assert f"pillarbox teams unblock {quay.id}" in shown
        assert (await here.pool.fetchval("SELECT status FROM teams WHERE id = $1", quay.id)) == "blocked"
        await otto.post(f"{page}/block")
        await otto.post(f"{page}/unblock")
        assert (await here.pool.fetchval("SELECT status FROM teams WHERE id = $1", quay.id)) == "active"
        acts = [(what, actor) for what, target, actor in await acts_of(here) if target == HOSTILE]
        assert acts == [
            ("team.blocked", "otto@harbor.example"),
            ("team.unblocked", "otto@harbor.example"),
        ]


async def test_limits_are_set_and_what_is_wrong_keeps_what_was_typed(
    database_url: str, tmp_path: Path
) -> None:
    async with installation(database_url, tmp_path) as (here, harbor, otto):
        page = f"{TEAMS}/{harbor.id}"
        await otto.get(page)
        refused = await otto.post(f"{page}/limits", daily_quota="many", monthly_quota="2000")
        assert refused.status_code == 422
        assert 'name="daily_quota" type="text" value="many"' in refused.text
        assert "A number from 0 to" in refused.text
        done = await otto.post(f"{page}/limits", daily_quota="100", monthly_quota="2000")
        assert "The limits hold from the next second on." in text_of(await otto.follow(done))
        await otto.post(f"{page}/limits", daily_quota="100")
        row = await here.pool.fetchrow("SELECT daily_quota, monthly_quota, rate_limit FROM teams")
        assert tuple(row) == (100, None, None)
        assert [what for what, _, _ in await acts_of(here)] == ["team.limits_set", "team.limits_set"]


async def test_a_team_that_is_not_there_is_not_found(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (_, _, otto):
        assert (await otto.get(f"{TEAMS}/0199a3b0-2c41-7d10-8b52-3e9a6f04c711")).status_code == 404


async def test_the_log_of_acts_is_of_all_teams_and_can_be_filtered(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (here, harbor, otto):
        quay = await here.team("Quay")
        await otto.get(f"{TEAMS}/{quay.id}")
        await otto.post(f"{TEAMS}/{quay.id}/block")
        await otto.post(f"{TEAMS}/{harbor.id}/limits", daily_quota="7")
        everything = text_of(await otto.get(ACTS))
        for act in ("login.succeeded", "team.blocked Quay", "daily_quota: 7"):
            assert act in everything
        only = text_of(await otto.get(f"{ACTS}?what=team&team={quay.id}"))
        assert "team.blocked" in only
        assert "team.limits_set" not in only
        assert f"pillarbox people audit --team {quay.id} --what team" in only
        assert "No act fits" in text_of(await otto.get(f"{ACTS}?who=nobody"))
        assert "team.blocked" in text_of(await otto.get(f"{ACTS}?who=OTTO&since=2020-01-01"))
        assert (await otto.get(f"{ACTS}?since=soon")).status_code == 422


async def test_the_log_of_acts_has_pages(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (_, harbor, otto):
        await otto.get(f"{TEAMS}/{harbor.id}")
        for number in range(1, 44):
            await otto.post(f"{TEAMS}/{harbor.id}/limits", daily_quota=str(number))
        first = await otto.get(f"{ACTS}?what=team.limits_set")
        older = first.text.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
        second = text_of(await otto.get(older))
        assert ("daily_quota: 43" in text_of(first), "daily_quota: 4 " in text_of(first)) == (True, True)
        assert ("daily_quota: 3 " in second, "daily_quota: 4 " in second) == (True, False)


async def test_a_filter_of_the_log_looks_through_so_many_entries(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "SCANNED", 3)
    async with installation(database_url, tmp_path) as (_, harbor, otto):
        await otto.get(f"{TEAMS}/{harbor.id}")
        for number in range(1, 6):
            await otto.post(f"{TEAMS}/{harbor.id}/limits", daily_quota=str(number))
        page, seen = await otto.get(f"{ACTS}?what=login"), 1
        assert "Older ones are on the next page" in page.text
        while "login.succeeded" not in page.text:
            older = page.text.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
            page, seen = await otto.get(older), seen + 1
        assert seen == 2


async def test_settings_are_shown_without_secrets(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (here, _, otto):
        given, every = await otto.get(SETTINGS), await otto.get(f"{SETTINGS}?show=all")
        assert "--hostname" in given.text
        assert "found at the start" in given.text
        assert "--webhooks-retries" not in given.text
        assert "--webhooks-retries" in every.text
        for page in (given, every):
            assert here.app.kit.settings.secret_key not in page.text
            assert database_url not in page.text
            assert "(hidden)" in page.text


async def test_the_installation_is_shown_at_a_glance(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (here, harbor, otto):
        await harbor.send(to="ada@quay.example")
        await here.pool.execute(
            "INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at, route) "
            "VALUES (gen_random_uuid(), 'x/1', 4711, 1, 'api,delivery', now(), now(), "
            "'relay:smtp://ann:geheim@relay.example:587')"
        )
        await here.pool.execute("INSERT INTO backups VALUES ('b', '/target', now(), now(), 5000)")
        answer = await otto.get(GLANCE)
        shown = text_of(answer)
        assert "4711" in shown
        assert "api, delivery" in shown
        assert "geheim" not in answer.text
        assert "5.0 kB" in shown
        assert "There is room on the disk" in shown
        assert "Last verify never" in shown


async def test_verify_runs_in_the_background_and_its_result_stays(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (here, harbor, otto):
        await harbor.send(to="ada@quay.example")
        await otto.get(EXAMINATION)
        begun = await otto.post(f"{EXAMINATION}/verify")
        assert begun.status_code == 303
        await here.app.need(ExaminationRunner).settled()
        shown = text_of(await otto.get(EXAMINATION))
        assert "No problem" in shown
        assert "No gaps." in shown
        await here.pool.execute("DELETE FROM recipients")
        await otto.post(f"{EXAMINATION}/verify")
        await here.app.need(ExaminationRunner).settled()
        shown = text_of(await otto.get(EXAMINATION))
        assert "account_unbalanced" in shown
        assert "Last verify never" not in text_of(await otto.get(GLANCE))


async def test_a_run_that_goes_on_is_not_begun_twice(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (here, _, otto):
        await here.pool.execute(
            "INSERT INTO examinations (kind, run_id, started_at, ends_by) "
            "VALUES ('verify', gen_random_uuid(), now(), now() + interval '1 minute')"
        )
        shown = await otto.get(EXAMINATION)
        assert "It runs" in text_of(shown)
        assert "data-poll" in shown.text
        assert 'http-equiv="refresh"' in shown.text
        assert (await otto.post(f"{EXAMINATION}/verify")).status_code == 409
        await here.pool.execute("UPDATE examinations SET ends_by = now() - interval '1 second'")
        assert "Not finished" in text_of(await otto.get(EXAMINATION))
        assert (await otto.post(f"{EXAMINATION}/verify")).status_code == 303
        await here.app.need(ExaminationRunner).settled()


async def test_a_healthy_run_says_what_else_it_found(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (here, _, otto):
        levels = ("warning", "warning", "skipped", "ok")
        checks = [{"level": level, "title": "x", "found": "y", "step": None} for level in levels]
        await here.pool.execute(
            "INSERT INTO examinations (kind, run_id, started_at, ends_by, finished_at, is_healthy, result) "
            "VALUES ('doctor', gen_random_uuid(), now(), now(), now(), true, $1)",
            json.dumps({"checks": checks}),
        )
        shown = text_of(await otto.get(EXAMINATION))
        assert "No problem 2 warnings 1 not looked at" in shown


async def test_findings_are_read_in_the_language_of_the_page(database_url: str, tmp_path: Path) -> None:
    known = {
        "name": "disk",
        "level": "warning",
        "title": "There is room on the disk",
        "found": "1,234 MiB free for /srv/mail",
        "step": "Make room, or shorten what is kept: `--email-retention-days`.",
    }
    gap = {"name": "email_without_recipients", "sentence": "The email has no recipients.", "ids": {"id": "7"}}
    older = {"name": "disk", "level": "ok", "title": "The disk is wide", "found": "none", "step": None}
    async with installation(database_url, tmp_path) as (here, _, otto):
        await here.pool.execute(
            "INSERT INTO examinations (kind, run_id, started_at, ends_by, finished_at, is_healthy, result) "
            "VALUES ('doctor', gen_random_uuid(), now(), now(), now(), true, $1)",
            json.dumps({"checks": [known, older]}),
        )
        await here.pool.execute(
            "INSERT INTO examinations (kind, run_id, started_at, ends_by, finished_at, is_healthy, result) "
            "VALUES ('verify', gen_random_uuid(), now(), now(), now(), false, $1)",
            json.dumps({"gaps": [gap]}),
        )
        german = await otto.get(EXAMINATION, **{"accept-language": "de"})
        assert "Auf dem Datenträger ist Platz 1.234 MiB frei für /srv/mail Schaffen Sie Platz" in text_of(
            german
        )
        assert "email_without_recipients Die E-Mail hat keine Empfänger. id 7" in text_of(german)
        assert '<bdi lang="en">The disk is wide</bdi>' in german.text
        assert german.text.count('<bdi lang="en">') == 1
        english = await otto.get(EXAMINATION)
        assert "There is room on the disk 1,234 MiB free for /srv/mail Make room" in text_of(english)
        glance = await otto.get(GLANCE, **{"accept-language": "de"})
        assert "Backups werden gemacht dieses Programm hat noch keines gemacht" in text_of(glance)
        assert '<bdi lang="en">' not in glance.text


async def test_settings_are_found_by_their_meaning(database_url: str, tmp_path: Path) -> None:
    async with installation(database_url, tmp_path) as (_, _, otto):
        shown = text_of(await otto.get("/dashboard/installation/settings?find=private"))
        assert "--allow-private" in shown
        assert "--hostname" not in shown
        assert "No setting fits" in text_of(await otto.get("/dashboard/installation/settings?find=zebra"))
