"""The embedded database of a server that starts for the first time, made once and copied.

A server that a test starts makes its database, which is more than half of the processor time of a start. The
copy is what it would have made: a new cluster with the product's database, migrated and empty. Tests of how
the database is made use an empty folder.
"""

from __future__ import annotations

import asyncio
import atexit
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from pillarbox.kernel.postgres.embedded import EmbeddedPostgres
from pillarbox.kernel.postgres.migrations import migrate_url

NAME = "postgres"
"""The folder of the database in a data folder."""


def put_database(data: Path) -> None:
    """Put the database into a data folder that has none."""
    if (data / NAME).exists():
        return
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    # The files belong to the account that the server gives up its rights for.
    subprocess.run(["cp", "-a", str(cluster()), str(data / NAME)], check=True)


@cache
def cluster() -> Path:
    """Return the folder of a database that has been stopped; it is there until this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="pillarbox-cluster-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # Tests call from within a loop.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, make(folder / NAME)).result()
    return folder / NAME


async def make(folder: Path) -> None:
    server = EmbeddedPostgres(folder, durable=False)
    await server.start()
    try:
        await migrate_url(server.url())
    finally:
        await server.stop()
