"""The machine of the measurement."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.kit import tools
from pillarbox.kernel.security import openssl_cpu

ROOT = Path(__file__).parents[2]
SYNCS = 200
SIGNATURES = 500
BLOCK = 8192

SIGNING = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

cores, signatures = map(int, sys.argv[1:])
key = rsa.generate_private_key(65537, 2048)

def sign(_):
    for _ in range(signatures):
        key.sign(b"x" * 256, padding.PKCS1v15(), hashes.SHA256())

with ThreadPoolExecutor(cores) as threads:
    began = time.perf_counter()
    list(threads.map(sign, range(cores)))
    print(cores * signatures / (time.perf_counter() - began))
"""
"""A program of its own: OpenSSL is given the processor when it is loaded, as a worker's does."""


def facts(folder: Path) -> list[str]:
    """Lines that say which machine and which versions; `folder` is where the data will lie."""
    return [
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit()}, load {os.getloadavg()[0]:.2f}",
        f"{os.cpu_count()} cores, {cpu_model()}, {memory_gib():.0f} GiB, Linux {platform.release()}",
        f"Python {platform.python_version()} ({os.path.realpath(sys.executable)})",
        f"{postgres_version()}, {postfix_version()}",
        f"fsync of {BLOCK // 1024} kB in the data folder: {sync_milliseconds(folder):.2f} ms (median); "
        f"RSA-2048 signatures, all cores at it: {signatures_per_second():,.0f}/s",
    ]


def commit() -> str:
    """The checkout's commit; a `+` says that files differ from it."""
    head = _output(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"])
    changed = _output(["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no", "src"])
    return (head or "unknown") + ("+" if changed else "")


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def postgres_version() -> str:
    from pillarbox.kernel.postgres.programs import installation_for

    return _output([str(installation_for(None, None).bin / "postgres"), "--version"]) or "PostgreSQL unknown"


def postfix_version() -> str:
    postconf = tools.find("postconf")
    output = _output([postconf, "-d", "-h", "mail_version"]) if postconf else ""
    return f"Postfix {output}" if output else "no Postfix"


def sync_milliseconds(folder: Path) -> float:
    """Median time of one write that is on the disk when it returns."""
    path = folder / "sync"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, b"\0" * BLOCK * 64, 0)
        os.fsync(descriptor)
        taken = sorted(_one_sync(descriptor, number) for number in range(SYNCS))
    finally:
        os.close(descriptor)
        path.unlink()
    return taken[SYNCS // 2] * 1000


def _one_sync(descriptor: int, number: int) -> float:
    began = time.perf_counter()
    os.pwrite(descriptor, bytes([number % 256]) * BLOCK, number % 64 * BLOCK)
    os.fdatasync(descriptor)
    return time.perf_counter() - began


def signatures_per_second() -> float:
    """RSA-2048 signatures with all cores at it together: no signed mail can be sent faster than that.

    Cores of a virtual machine may be two threads of one real core, so one core alone would say too much.
    """
    command = [sys.executable, "-P", "-c", SIGNING, str(os.cpu_count() or 1), str(SIGNATURES)]
    variables = openssl_cpu.variables(os.environ)
    return float(
        subprocess.run(command, capture_output=True, check=True, env={**os.environ, **variables}).stdout
    )


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""
