"""The program of the guide, by an independent client library: discovery, registration, consent in Chromium,
tokens, calls, renewal and revocation (OA-08, oauth.md 10).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.browser import Chromium, chromium
from kit.examples import all_examples
from kit.people import PASSWORD, a_person
from kit.world import world

PAGE = "docs/guide/oauth.md"
OPEN = "Open in a browser: "


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


async def test_the_program_of_the_guide_is_let_in_and_revokes_itself(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    [text] = [one.text for one in all_examples() if one.page == PAGE and one.language == "python"]
    file = tmp_path / "tide_table.py"
    file.write_text(text)
    async with world(database_url, tmp_path / "data", started=False) as pillarbox, browser.tab() as tab:
        harbor = await pillarbox.team()
        await harbor.domain()
        ada = await a_person(harbor, "ada@quay.example")
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-P", str(file), pillarbox.url, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert program.stdout is not None
            said = (await asyncio.wait_for(program.stdout.readline(), 60)).decode()
            assert said.startswith(OPEN)
            await tab.open(said.removeprefix(OPEN).strip())
            await tab.run(f"document.getElementById('email').value = {ada.email!r}")
            await tab.run(f"document.getElementById('password').value = {PASSWORD!r}")
            await tab.presses("Log in")
            assert "Tide table" in await tab.run("document.body.innerText")
            await tab.presses("Approve")
            assert await tab.run("document.body.innerText") == "You may close this page."
            rest, _ = await asyncio.wait_for(program.communicate(), 60)
        finally:
            if program.returncode is None:
                program.kill()
                await program.wait()
        assert rest.decode().splitlines() == ["['harbor.example']", "200", "invalid_token"]
        assert program.returncode == 0
        [grant] = (await harbor.get("/oauth/grants")).json()["data"]
        assert (grant["client"]["name"], grant["revoked_reason"]) == ("Tide table", "revoked_by_client")
        assert tab.violations == []
