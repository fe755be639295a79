"""`pillarbox send`: a test mail through the API of a running server, followed to its end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from kit.world import World, world
from pillarbox.cli import program
from pillarbox.cli.send import KEY_VARIABLES, URL_VARIABLES
from pillarbox.kernel.storage.data_folder import LOCK_FILE, RUN_FOLDER, write_note


def send(folder: Path, *arguments: str, **environment: str) -> Result:
    clean: dict[str, str | None] = {"PILLARBOX_API_KEY": None, "RESEND_API_KEY": None}
    command = ["send", "--data", str(folder), *arguments]
    return CliRunner().invoke(program(), command, env={**clean, **environment})


async def sent(pillarbox: World, folder: Path, token: str, *arguments: str) -> Result:
    return await asyncio.to_thread(send, folder, "--url", pillarbox.url, *arguments, PILLARBOX_API_KEY=token)


async def test_a_test_mail_goes_to_the_simulator_and_is_followed(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        done = await sent(pillarbox, tmp_path, team.token)
        assert done.exit_code == 0, done.output
        first, *steps, last = done.stdout.splitlines()
        [email] = (await team.get("/emails")).json()["data"]
        assert first == (
            f"Accepted: email {email['id']}, from onboarding@pillarbox.test to delivered@pillarbox.test."
        )
        assert [line.split()[2] for line in steps] == ["queued", "sent", "delivered"]
        assert "by simulator - 250 2.0.0 Accepted by the simulator." in steps[-1]
        assert last == "Delivered."


async def test_what_is_given_is_what_is_sent(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        options = ["--from", "Bo <bo@harbor.example>", "--to", "ada@quay.example", "--to", "ADA@quay.example"]
        done = await sent(pillarbox, tmp_path, team.token, *options, "--subject", "Tide", "--text", "Low")
        assert done.exit_code == 0, done.output
        [listed] = (await team.get("/emails")).json()["data"]
        email = await team.email(listed["id"])
        assert (email["from"], email["subject"], email["text"]) == ("Bo <bo@harbor.example>", "Tide", "Low")
        assert email["to"] == ["ada@quay.example", "ADA@quay.example"]


@pytest.mark.parametrize(
    ("fates", "status", "verdict"),
    [
        (["complained"], 0, "Delivered."),
        (["bounced"], 1, "Not delivered."),
        (["suppressed"], 1, "Not delivered."),
        (["delivered", "bounced"], 1, "Delivered to some recipients only."),
    ],
)
async def test_the_status_tells_what_became_of_it(
    database_url: str, tmp_path: Path, fates: list[str], status: int, verdict: str
) -> None:
    async with world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        to = [text for fate in fates for text in ("--to", f"{fate}@resend.dev")]
        done = await sent(pillarbox, tmp_path, team.token, *to)
        assert done.exit_code == status
        assert done.stdout.splitlines()[-1] == verdict


async def test_a_mail_that_is_still_on_its_way_is_status_3(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as pillarbox:
        team = await pillarbox.team()
        done = await sent(pillarbox, tmp_path, team.token, "--wait", "0.2")
        assert done.exit_code == 3
        assert done.stdout.splitlines()[-1].startswith("Still on its way: `pillarbox emails show ")
        done = await sent(pillarbox, tmp_path, team.token, "--wait", "0")
        assert (done.exit_code, len(done.stdout.splitlines())) == (0, 2)


async def test_machines_get_the_whole_story(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        done = await sent(pillarbox, tmp_path, team.token, "--json")
        story: dict[str, Any] = json.loads(done.stdout)
        assert (story["final"], story["recipients"]) == (True, {"delivered@pillarbox.test": "delivered"})
        assert [event["event"] for event in story["events"]] == ["queued", "sent", "delivered"]


async def test_a_sending_key_sends_but_cannot_follow(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        token = await team.key(permission="sending_access")
        done = await sent(pillarbox, tmp_path, token)
        assert (done.exit_code, done.stdout.splitlines()[-1]) == (
            0,
            "Accepted; what becomes of it was not followed.",
        )


async def test_the_server_on_the_data_folder_is_found(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        (tmp_path / RUN_FOLDER).mkdir()
        (tmp_path / LOCK_FILE).touch()
        write_note(tmp_path, {"http": pillarbox.url})
        done = await asyncio.to_thread(send, tmp_path, RESEND_API_KEY=team.token)
        assert done.exit_code == 0, done.output


async def test_a_refusal_of_the_server_is_one_line(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        done = await sent(pillarbox, tmp_path, team.token, "--to", "nobody")
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.startswith("pillarbox: The server refused with 422: Invalid `to` field.")
        done = await sent(pillarbox, tmp_path, "re_abcdefgh_0123456789abcdefghijklmn")
        assert done.exit_code == 1
        assert "re_abcdefgh" not in done.output + done.stderr


async def test_a_slow_rate_is_waited_for(database_url: str, tmp_path: Path) -> None:
    """The follower takes part of the team's requests; being told to slow down is no failure."""
    async with world(database_url, tmp_path, rate_limit="2") as pillarbox:
        team = await pillarbox.team()
        done = await sent(pillarbox, tmp_path, team.token)
        assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "Delivered.")


@pytest.mark.parametrize("variable", ["RESEND_API_URL", "RESEND_BASE_URL"])
async def test_the_server_that_the_sdks_are_told_is_asked(
    database_url: str, tmp_path: Path, variable: str
) -> None:
    """Unless another one is named on the command line."""
    async with world(database_url, tmp_path / "server") as pillarbox:
        team = await pillarbox.team()
        given = {"PILLARBOX_API_KEY": team.token, variable: f"{pillarbox.url}/"}
        done = await asyncio.to_thread(sent_from, tmp_path, **given)
        assert (done.exit_code, "Delivered." in done.output) == (0, True), done.output + done.stderr
        wrong = await asyncio.to_thread(sent_from, tmp_path, "--url", "http://127.0.0.1:1", **given)
        assert "http://127.0.0.1:1 cannot be reached" in wrong.stderr
        other = await asyncio.to_thread(sent_from, tmp_path, "--data", str(tmp_path / "none"), **given)
        assert pillarbox.url not in other.stderr


@pytest.mark.parametrize("text", ["nowhere", "ftp://127.0.0.1", "http://", "http://[::1", "http://h:port"])
def test_a_url_that_is_none_is_a_wrong_setting(tmp_path: Path, text: str) -> None:
    done = sent_from(tmp_path, PILLARBOX_API_KEY="re_x", RESEND_API_URL=text)
    assert done.exit_code == 2
    assert done.stderr.startswith("pillarbox: RESEND_API_URL: ")
    assert "is not a URL" in done.stderr


def sent_from(folder: Path, *arguments: str, **environment: str) -> Result:
    """`pillarbox send` in a folder where nothing is, with these variables."""
    clean: dict[str, str | None] = dict.fromkeys((*KEY_VARIABLES, *URL_VARIABLES))
    return CliRunner().invoke(program(), ["send", *arguments], env={**clean, **environment})


def test_no_server_is_one_line(tmp_path: Path) -> None:
    done = send(tmp_path, "--url", "http://127.0.0.1:1", "--key", "re_abcdefgh_0123456789abcdefghijklmn")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("pillarbox: The server at http://127.0.0.1:1 cannot be reached: ")


def test_a_key_is_needed(tmp_path: Path) -> None:
    done = send(tmp_path)
    assert (done.exit_code, done.stderr) == (
        1,
        "pillarbox: An API key is needed: set PILLARBOX_API_KEY, or use --key.\n",
    )
