"""The answer is never given before what it promises is on disk (DUR-01)."""

from __future__ import annotations

import asyncio
import base64
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.ledger import Journal
from kit.load import LoadClient
from kit.process import KEY, first_team, settled, worker_processes
from kit.remote_servers import remote_servers
from pillarbox.kernel.postgres.embedded import EmbeddedPostgres
from pillarbox.kernel.postgres.migrations import migrate_url
from repository.running import children_of

DELAY = 0.3
ATTACHING = 10.0


@asynccontextmanager
async def slow_disk(folder: Path, processes: Sequence[int]) -> AsyncIterator[None]:
    """Every fsync and fdatasync of these processes and of their children to come takes `DELAY` longer."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    report = folder / "strace"
    tracing = subprocess.Popen(
        [
            "strace",
            "-f",
            "-e",
            "trace=fsync,fdatasync",
            "-e",
            f"inject=fsync,fdatasync:delay_exit={round(DELAY * 1_000_000)}",
            "-o",
            str(report),
            *(word for pid in processes for word in ("-p", str(pid))),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        await attached(processes, tracing)
        yield
    finally:
        tracing.send_signal(signal.SIGINT)
        tracing.communicate()
    assert "fdatasync" in report.read_text() or "fsync" in report.read_text()


async def attached(processes: Sequence[int], tracing: subprocess.Popen[str]) -> None:
    """Return when all of them are traced; skip where that is not allowed."""
    end = time.monotonic() + ATTACHING
    while not all(tracer_of(pid) for pid in processes):
        if tracing.poll() is not None or time.monotonic() > end:
            tracing.kill()
            pytest.skip(f"strace may not attach here: {tracing.communicate()[1].strip()[:200]}")
        await asyncio.sleep(0.02)


def tracer_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("TracerPid:")[2].split()[0])


async def seconds_for(courier: LoadClient, **fields: object) -> float:
    started = time.monotonic()
    assert await courier.post(["{token}@quay.example"], **fields)
    return time.monotonic() - started


async def test_no_answer_before_the_commit_is_synced(tmp_path: Path) -> None:
    """DUR-01: with a disk that takes its time, every answer takes at least as long."""
    server = EmbeddedPostgres(tmp_path / "postgres")
    await server.start()
    try:
        url = server.url()
        await migrate_url(url)
        await first_team(url)
        assert server.pid is not None
        with (
            remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far,
            worker_processes(url, tmp_path, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
        ):
            async with slow_disk(tmp_path, [server.pid, *children_of(server.pid)]):
                await asyncio.to_thread(workers.start)
                async with LoadClient(workers.at, KEY, Journal(tmp_path / "ledger")) as courier:
                    took = [await seconds_for(courier)]
                    took += await asyncio.gather(*(seconds_for(courier) for _ in range(30)))
            assert min(took) >= DELAY
            async with LoadClient(workers.at, KEY, Journal(tmp_path / "ledger")) as courier:
                assert min([await seconds_for(courier) for _ in range(5)]) < DELAY
            await settled(url, 30)
    finally:
        await server.stop()


async def test_no_answer_before_a_large_attachment_is_synced(database_url: str, tmp_path: Path) -> None:
    """DUR-01: the file and its folder are synced, then the row that names it is committed."""
    await first_team(database_url)
    large = {"filename": "chart.bin", "content": base64.b64encode(bytes(300 * 1024)).decode()}
    with (
        remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far,
        worker_processes(database_url, tmp_path, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
    ):
        pid = await asyncio.to_thread(workers.start)
        async with LoadClient(workers.at, KEY, Journal(tmp_path / "ledger")) as courier:
            async with slow_disk(tmp_path, [pid]):
                assert await seconds_for(courier, attachments=[large]) >= 2 * DELAY
            assert min([await seconds_for(courier, attachments=[large]) for _ in range(5)]) < 2 * DELAY
        await settled(database_url, 30)
