"""Imports of contacts as a client makes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from kit.world import Team, world

BOUNDARY = "a-boundary-of-tests"
ENDED = ("completed", "failed")


@asynccontextmanager
async def importing_team(database_url: str, folder: Path) -> AsyncIterator[Team]:
    """Yield a team of a running Pillarbox."""
    async with world(database_url, folder) as pillarbox:
        yield await pillarbox.team()


def fields_of(**fields: Any) -> dict[str, str]:
    """Return the form fields: text as it is, everything else as JSON."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}


async def post(team: Team, file: bytes | str, **fields: Any) -> httpx.Response:
    """Send POST /contacts/imports with a file of this content."""
    content = file.encode() if isinstance(file, str) else file
    return await team.http.post(
        "/contacts/imports", files={"file": ("people.csv", content, "text/csv")}, data=fields_of(**fields)
    )


async def accepted(team: Team, file: bytes | str, **fields: Any) -> str:
    """Return the id of an import that was accepted."""
    answer = await post(team, file, **fields)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert list(made) == ["object", "id"]
    return str(made["id"])


async def ended(team: Team, import_id: str, seconds: float = 60.0) -> dict[str, Any]:
    """Return the import once it has ended."""
    async with asyncio.timeout(seconds):
        while (found := (await team.get(f"/contacts/imports/{import_id}")).json())["status"] not in ENDED:
            await asyncio.sleep(0.02)
    return dict(found)


async def imported(team: Team, file: bytes | str, **fields: Any) -> dict[str, Any]:
    """Import a file; the import when it has ended."""
    return await ended(team, await accepted(team, file, **fields))


async def counts(team: Team, file: bytes | str, **fields: Any) -> tuple[int, ...]:
    """Return the total, created, updated, skipped and failed rows of a file that is imported whole."""
    found = await imported(team, file, **fields)
    assert found["status"] == "completed", found
    return tuple(found["counts"].values())


async def errors(team: Team, import_id: str) -> list[tuple[int, str | None, str]]:
    """Return the first hundred row errors of an import."""
    answer = await team.get(f"/contacts/imports/{import_id}/errors?limit=100")
    assert answer.status_code == 200, answer.text
    return [(one["row"], one["email"], one["reason"]) for one in answer.json()["data"]]


async def reasons(team: Team, file: bytes | str, **fields: Any) -> list[tuple[int, str | None, str]]:
    """Return the errors of a file."""
    return await errors(team, (await imported(team, file, **fields))["id"])


async def contact(team: Team, address: str) -> dict[str, Any]:
    """Return a contact of the team."""
    answer = await team.get(f"/contacts/{address}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def form(*parts: tuple[str, bytes] | tuple[str, bytes, str]) -> bytes:
    """Return a multipart form of these parts, in their order: name and content, and the name of a file."""
    made = b""
    for name, content, *file in parts:
        more = f'; filename="{file[0]}"' if file else ""
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
        made += head.encode() + content + b"\r\n"
    return made + f"--{BOUNDARY}--\r\n".encode()


async def post_form(team: Team, body: bytes | AsyncIterator[bytes]) -> httpx.Response:
    """Send POST /contacts/imports with this body; chunked where it is an iterator."""
    headers = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
    return await team.http.post("/contacts/imports", content=body, headers=headers)
