"""A backup of a server under load, restored elsewhere: every mail that was accepted before is there
(OPS-05)."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.backups import PASSPHRASE, backups
from kit.ledger import Journal, acknowledged
from kit.load import BODY, LoadClient
from kit.process import KEY, environment, served, verified
from pillarbox.kernel.settings.settings import PASSPHRASE_VARIABLE

pytestmark = pytest.mark.sweep

CONTENT = bytes(range(256)) * 1200
"""Larger than what is kept in the database: it is a blob."""

ATTACHMENT = {"filename": "chart.bin", "content": base64.b64encode(CONTENT).decode()}
BEFORE, MEANWHILE = 12, 40


async def command(*words: str) -> str:
    """What `pillarbox …` printed; it must succeed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "pillarbox",
        *words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment() | {PASSPHRASE_VARIABLE: PASSPHRASE},
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return said.decode()


async def readable(client: httpx.AsyncClient, email: str) -> None:
    """Body and attachment of an email, as a program reads them."""
    found: dict[str, Any] = (await client.get(f"/emails/{email}")).raise_for_status().json()
    assert found["text"] == BODY
    listed = (await client.get(f"/emails/{email}/attachments")).raise_for_status().json()
    (file,) = listed["data"]
    path = httpx.URL(file["download_url"]).raw_path.decode()
    assert (await client.get(path)).raise_for_status().content == CONTENT


@pytest.mark.slow
async def test_a_backup_under_load_has_all_that_was_accepted_before(tmp_path: Path) -> None:
    """Captured mail is removed all the time, with its blobs, because its limit is small."""
    target = tmp_path / "target"
    with served(tmp_path / "data", route="capture", capture_limit="1MiB") as running:
        async with LoadClient(running.ready(), KEY, Journal(tmp_path / "ledger"), lines=4) as client:
            to = ["ada@quay.example"]
            for _ in range(BEFORE):
                await client.post(to, attachments=[ATTACHMENT])
            before = [mail.id for mail in acknowledged(tmp_path / "ledger")]
            load = asyncio.create_task(client.post_many(MEANWHILE, 8, lambda _: to, attachments=[ATTACHMENT]))
            await command("backup", str(target), "--data", str(tmp_path / "data"))
            await command("backup", "drill", "--data", str(tmp_path / "data"))
            await load
    (name,) = backups(target)
    assert "whole" in await command("backup", str(target), "--check")
    said = await command("restore", str(target), "--data", str(tmp_path / "elsewhere"))
    assert name in said
    verified(tmp_path / "elsewhere")
    with served(tmp_path / "elsewhere", route="capture") as again:
        host, port = again.ready()
        headers = {"Authorization": f"Bearer {KEY}", "User-Agent": "test"}
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}", headers=headers) as reader:
            for email in before:
                await readable(reader, email)
            # New mail goes; what was open when the backup was made does not.
            sent = await reader.post(
                "/emails",
                json={"from": "a@harbor.example", "to": to, "subject": "new", "text": "x"},
            )
            assert sent.status_code == 200
    assert len(before) == BEFORE
