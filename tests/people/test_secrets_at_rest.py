"""No secret that was issued stands in clear in what an installation keeps (architecture 2.12)."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b32decode, b64encode, urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

from kit.address_changes import HERE
from kit.oauth_flow import allowed, ask, refresh, register
from kit.people import Visit, a_person, logged_in, recovery_codes, visit
from kit.webhooks import hook
from kit.world import Team, World, world
from pillarbox.capture.reading import Reader
from pillarbox.emails.own_mail import sealed_queries
from pillarbox.people.factors.totp import code_of, step_at

LINKS = re.compile(r"/(?:password/reset|invitation|account/address/link)/([\w-]{20,})")
SEED = re.compile(r">((?:[A-Z2-7]{4} ){4,}[A-Z2-7]{1,4})<")
SOFT_BREAK = re.compile(rb"=\r?\n")


def forms(secret: str) -> Iterator[bytes]:
    """How a secret may stand in a file."""
    raw = secret.encode()
    yield raw
    yield raw.hex().encode()
    yield json.dumps(secret)[1:-1].replace("/", "\\/").encode()
    for encode in (b64encode, urlsafe_b64encode):
        for shift in range(3):
            known = (shift + len(raw)) * 8 // 6
            yield encode(b"x" * shift + raw)[(shift * 8 + 5) // 6 : known]


def test_a_secret_is_found_in_every_form() -> None:
    secret = "re_abcdefgh_0123456789"
    for shift in range(3):
        text = b64encode(b"abc"[:shift] + secret.encode() + b"tail")
        assert any(form in text for form in forms(secret))


def found_in(folder: Path, secrets: dict[str, str]) -> list[str]:
    """Which secrets stand in the files of a folder, and where."""
    wanted = [(name, form) for name, secret in secrets.items() for form in set(forms(secret))]
    found = []
    for path in folder.rglob("*"):
        try:
            content = path.read_bytes() if path.is_file() else b""
        except FileNotFoundError:
            continue
        unfolded = SOFT_BREAK.sub(b"", content) if b"=\n" in content or b"=\r\n" in content else b""
        found += [f"{name} in {path}" for name, form in wanted if form in content or form in unfolded]
    return found


async def captured_tokens(pillarbox: World) -> list[str]:
    """The tokens of the links that were captured, read as the page of captured mail does."""
    reader = pillarbox.app.need(Reader)
    sources = [
        await reader.source(await reader.row(row["id"]), 1 << 20)
        for row in await pillarbox.pool.fetch("SELECT id FROM captured")
    ]
    return [token for one in sources for token in LINKS.findall(SOFT_BREAK.sub(b"", one).decode())]


async def mailed_tokens(pillarbox: World, count: int) -> list[str]:
    """The same, once there are so many."""
    async with asyncio.timeout(20):
        while len(tokens := await captured_tokens(pillarbox)) < count:
            await asyncio.sleep(0.05)
    return tokens


async def second_factor(pillarbox: World, browser: Visit) -> dict[str, str]:
    """Turn on a second factor, and return what the phone was given and the recovery codes."""
    await browser.get("/account")
    shown = await browser.follow(await browser.post("/account/factor/begin"))
    [groups] = SEED.findall(shown.text)
    seed = groups.replace(" ", "")
    shown_code = code_of(b32decode(seed + "=" * (-len(seed) % 8)), step_at(pillarbox.clock.now()))
    done = await browser.post("/account/factor", code=shown_code)
    codes = recovery_codes(done)
    assert len(codes) >= 8, done.text
    return {
        "seed of the second factor": seed,
        **{f"recovery code {number}": code for number, code in enumerate(codes)},
    }


async def issued(pillarbox: World, team: Team) -> dict[str, str]:
    """Use the installation, and return every secret that it gave out."""
    webhook = await hook(team)
    key = (await team.post("/api-keys", {"name": "crane"})).json()["token"]
    ada = await a_person(team, "ada@rest.example")
    browser = await logged_in(pillarbox, ada)
    answer = await browser.send("/team/members", "/team/invitations", email="kim@rest.example", role="member")
    assert answer.headers.get("location") == "/team/members?done=invited", answer.text
    await browser.get(HERE)
    await browser.post(HERE, email="ada@new.example")
    await visit(pillarbox).send("/password/lost", email=ada.email)
    program = await allowed(pillarbox)
    again = await refresh(pillarbox, program.client_id, program.tokens["refresh_token"])
    cookies = {f"cookie {name}": value for name, value in browser.cookies.items() if "form" not in name}
    tokens = await mailed_tokens(pillarbox, 3)
    code = await (await ask(browser, (await register(pillarbox))["client_id"])).approve()
    return {
        "code that no program has exchanged": code,
        **await second_factor(pillarbox, browser),
        "webhook secret": webhook.secret,
        "webhook secret without its prefix": webhook.secret.removeprefix("whsec_"),
        "API key": key,
        "access token": program.tokens["access_token"],
        "refresh token": program.tokens["refresh_token"],
        "second refresh token": again.json()["refresh_token"],
        **cookies,
        **{f"link {number}": token for number, token in enumerate(tokens)},
    }


async def test_no_issued_secret_is_in_the_files_of_a_used_installation(
    database_url: str, tmp_path: Path
) -> None:
    """SEC-04: neither in the database, its log of writes and its earlier rows, nor in blobs."""
    async with world(database_url, tmp_path, route="capture") as pillarbox:
        team = await pillarbox.team()
        secrets = await issued(pillarbox, team)
        assert await sealed_queries.remove_done(pillarbox.pool) >= 3, (
            "what was delivered has no link any more"
        )
        await pillarbox.pool.execute("CHECKPOINT")
        backend = await pillarbox.pool.fetchval("SELECT pg_backend_pid()")
        cluster = Path(f"/proc/{backend}/cwd").resolve()
        assert (cluster / "pg_wal").is_dir()
        stored = await asyncio.to_thread(found_in, cluster, {"a name": "ada@rest.example"})
        assert stored, "what is in clear is found"
        found = await asyncio.to_thread(found_in, cluster, secrets)
    assert found + found_in(tmp_path, secrets) == []
