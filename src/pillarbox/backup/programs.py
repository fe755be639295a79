"""Running pg_dump and pg_restore: the wheel's, or those that `--pg-bin` names."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from pillarbox.backup.failure import BackupError
from pillarbox.kernel.postgres.programs import PostgresInstallation, installation_for
from pillarbox.kernel.storage.backend import PART

LOCK_WAIT = "60s"
"""For a table that a migration is changing at this moment."""

DATA = re.compile(r"^\d+; \d+ \d+ TABLE DATA \S+ (\S+) ")


class Programs:
    """pg_dump and pg_restore of one installation of PostgreSQL."""

    def __init__(self, bin_dir: Path | None) -> None:
        self._installation: PostgresInstallation = installation_for(bin_dir, None)

    @property
    def major(self) -> int:
        return self._installation.major

    def refuse_newer(self, server: int) -> None:
        """Raise BackupError where the server is of a newer major version than pg_dump, which then cannot read
        it."""
        if server > self.major:
            raise BackupError(
                f"The database is PostgreSQL {server}, but pg_dump here is of version {self.major}, which "
                f"cannot dump it: install the client programs of PostgreSQL {server} and name their folder "
                "with --pg-bin."
            )

    async def dump(self, url: str, snapshot: str) -> AsyncIterator[bytes]:
        """Yield the dump of an exported snapshot, in pieces; BackupError where pg_dump fails."""
        address, environment = without_password(url)
        process = await self._start(
            "pg_dump",
            "--format=custom",
            "--compress=1",
            "--no-owner",
            "--no-privileges",
            "--no-password",
            f"--lock-wait-timeout={LOCK_WAIT}",
            f"--snapshot={snapshot}",
            f"--dbname={address}",
            environment=environment,
        )
        assert process.stdout is not None
        complaint = asyncio.create_task(_rest(process.stderr))
        try:
            while chunk := await process.stdout.read(PART):
                yield chunk
            if await process.wait() != 0:
                raise BackupError(f"pg_dump failed: {_last_line(await complaint)}")
        finally:
            await _end(process)
            complaint.cancel()

    async def tables_in(self, dump: Path) -> list[str]:
        """Return the tables whose rows a dump has; BackupError where it cannot be read."""
        listing = await self._output("pg_restore", "--list", str(dump))
        return [found[1] for line in listing.splitlines() if (found := DATA.match(line))]

    async def restore(self, dump: Path, url: str, without_rows_of: str, scratch: Path) -> None:
        """Load a dump into an empty database, all or nothing, but for the rows of one table."""
        listing = await self._output("pg_restore", "--list", str(dump))
        kept = [line for line in listing.splitlines() if not _has_rows_of(line, without_rows_of)]
        chosen = scratch / "restore.list"
        chosen.write_text("\n".join(kept) + "\n", encoding="utf-8")
        address, environment = without_password(url)
        await self._output(
            "pg_restore",
            "--exit-on-error",
            "--single-transaction",
            "--no-owner",
            "--no-privileges",
            "--no-password",
            f"--use-list={chosen}",
            f"--dbname={address}",
            str(dump),
            environment=environment,
        )

    async def _output(self, program: str, *arguments: str, environment: dict[str, str] | None = None) -> str:
        process = await self._start(program, *arguments, environment=environment or {})
        try:
            said, complaint = await process.communicate()
        finally:
            await _end(process)
        if process.returncode != 0:
            raise BackupError(f"{program} failed: {_last_line(complaint)}")
        return said.decode(errors="replace")

    async def _start(
        self, program: str, *arguments: str, environment: dict[str, str]
    ) -> asyncio.subprocess.Process:
        theirs = {name: text for name, text in os.environ.items() if name.startswith("PG")}
        if home := os.environ.get("HOME"):
            theirs["HOME"] = home
        try:
            return await asyncio.create_subprocess_exec(
                str(self._installation.bin / program),
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**theirs, **self._installation.environment(), **environment},
            )
        except OSError as failure:
            raise BackupError(f"{program} cannot be run: {failure.strerror}.") from None


def without_password(url: str) -> tuple[str, dict[str, str]]:
    """Return the URL as others on this machine may see it, and the environment that carries the password."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    password = parts.password if parts.password is not None else dict(query).get("password")
    names = [(name, value) for name, value in query if name != "password"]
    place = parts.netloc
    if "@" in place:
        user, _, host = place.rpartition("@")
        place = f"{user.partition(':')[0]}@{host}"
    bare = urlunsplit((parts.scheme, place, parts.path, urlencode(names, quote_via=quote), ""))
    # urlunsplit leaves the empty host out, which libpq needs to see.
    if not place and not bare.startswith(f"{parts.scheme}://"):
        bare = bare.replace(f"{parts.scheme}:", f"{parts.scheme}://", 1)
    return bare, {"PGPASSWORD": unquote(password)} if password else {}


def _has_rows_of(line: str, table: str) -> bool:
    found = DATA.match(line)
    return found is not None and found[1] == table


async def _rest(stream: asyncio.StreamReader | None) -> bytes:
    return b"" if stream is None else await stream.read()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a program that is not needed any more."""
    if process.returncode is None:
        process.kill()
        await process.wait()


def _last_line(output: bytes) -> str:
    """Return the complaint of a program, as the end of a sentence."""
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line] or lines
    return errors[0].partition("error: ")[2] or errors[0] if errors else "it ended without a word."
