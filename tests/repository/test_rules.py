"""Lints of this repository that no standard tool has."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from kit.sources import nodes_of, text_of, tree_of
from pillarbox.app import MANIFESTS
from pillarbox.application import SLICES
from pillarbox.kernel.http.request import ONCE, REPEATABLE
from pillarbox.kernel.settings.page import settings_page
from pillarbox.kernel.work.retention_page import retention_page

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pillarbox"

BANNED_NAMES = {
    "service",
    "services",
    "manager",
    "helper",
    "helpers",
    "utils",
    "util",
    "common",
    "base",
    "misc",
}

MOST_WITHOUT_A_START = 5
"""A package of more modules says in its `__init__` which of them to read first."""

RANDOM_IN = {"kernel/slices.py", "demo/schedule.py"}
"""Handed out from there, for jitter, and for a demo that is the same each time; what must
not be guessed comes from `secrets`."""

REGISTRIES = ("py" + "pi.org", "files.python" + "hosted.org", "/opt/py" + "pi", "registry." + "npmjs")
MACHINE_PATHS = ("/wo" + "rk/", "/ro" + "ot/", "/tm" + "p/v/")


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_a_package_of_many_modules_says_where_to_begin() -> None:
    """Its docstring says "Begin with", and names modules that are there, of it or of others."""
    lost = []
    for folder in sorted({path.parent for path in modules()} - {SOURCE}):
        if len(list(folder.glob("*.py"))) <= MOST_WITHOUT_A_START + 1:
            continue
        text = ast.get_docstring(tree_of(folder / "__init__.py")) or ""
        named = re.findall(r"`([\w/]+\.py)`", text.partition("Begin with")[2])
        if not named or any(
            not (folder / name).is_file() and not (SOURCE / name).is_file() for name in named
        ):
            lost.append(str(folder.relative_to(SOURCE)))
    assert lost == []


LOST = re.compile(
    r"asyncpg\.(\w*Connection\w*Error|CannotConnectNowError|AdminShutdownError|CrashShutdownError|\w*TimeoutError"
    r"|InterfaceError|InternalClientError|QueryCanceledError)\b"
)

OWN_LISTS = {
    "kernel/postgres/database.py": "the list that everybody uses",
    "kernel/postgres/bounded_pool.py": "below it",
    "kernel/process/database_start.py": "a URL that cannot be used looks like a connection that is lost",
}
"""Modules that name exceptions of a lost connection, with the reason."""


def test_how_a_connection_dies_is_known_in_one_place() -> None:
    """`GONE`, `TROUBLE` and `RETRIED` of `kernel.postgres.database`; a list of one's own forgets some."""
    own = {str(path.relative_to(SOURCE)) for path in modules() if LOST.search(text_of(path))}
    assert own == OWN_LISTS.keys()


def test_no_module_adds_to_the_ways_in_which_a_connection_dies() -> None:
    """Whoever catches an OSError beside PostgreSQL's errors means `TROUBLE`."""
    together = []
    for path in modules():
        for node in nodes_of(path):
            if isinstance(node, ast.Tuple):
                caught = {ast.unparse(part) for part in node.elts}
                if "asyncpg.PostgresError" in caught and caught & {"OSError", "TimeoutError", "*GONE"}:
                    together.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert [where for where in together if where.split(":")[0] not in OWN_LISTS] == []


def test_module_names_say_what_is_in_them() -> None:
    names = {path.stem for path in modules()} | {path.parent.name for path in modules()}
    assert names & BANNED_NAMES == set()


def test_every_header_that_is_read_may_be_repeated_or_not() -> None:
    """Whoever reads a header of a request decides what two of them mean (`kernel.http.request`)."""
    read = re.compile(r"""\.(?:raw_)?header\(\s*b?"([^"]+)"\s*\)""")
    names = {name for path in modules() for name in read.findall(text_of(path))}
    assert len(names) > 8
    assert {name for name in names if name.encode() not in ONCE | REPEATABLE} == set()


def test_randomness_is_handed_in() -> None:
    """SEC-08."""
    users = set()
    for path in modules():
        for node in nodes_of(path):
            match node:
                case ast.Import(names=names) if any(name.name == "random" for name in names):
                    users.add(str(path.relative_to(SOURCE)))
                case ast.ImportFrom(module="random"):
                    users.add(str(path.relative_to(SOURCE)))
    assert users <= RANDOM_IN


STANDARD_PARSERS = re.compile(
    r"(?m)^\s*(?:import\s+(?:email|html\.parser|mailbox)\b|from\s+(?:email|html\.parser|mailbox)(?:\.\w+)*\s+import\b)"
    r"|\bmessage_from_(?:bytes|string|file|binary_file)\b|\b(?:Bytes)?(?:Feed|Header)?Parser\(|\bHTMLParser\b"
    r"|import_module\(\s*[\"'](?:email|mailbox)\b"
)


def test_mail_is_not_read_by_the_standard_library() -> None:
    """TRAP-05, TRAP-06: its parsers take minutes for a message of a megabyte, and raise for others."""
    users = [
        str(path.relative_to(SOURCE))
        for path in modules()
        if STANDARD_PARSERS.search(text_of(path).replace("LexborHTMLParser", ""))
    ]
    assert users == []
    for line in (
        "from email.parser import BytesHeaderParser",
        "import email.policy",
        "x = message_from_bytes(raw)",
        "    from email import policy",
        "from html.parser import HTMLParser",
    ):
        assert STANDARD_PARSERS.search(line), line


def tracked_files() -> list[Path]:
    """What git knows; without git, what a checkout would hold."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        folders = ("src", "tests", "bench", "docs", "script", "requirements", "deploy")
        return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [ROOT / name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


def names(text: bytes, forbidden: str) -> bool:
    """Whether the text holds it: a path of a machine only where no other folder stands before it."""
    before = rb"(?<![\w.])" if forbidden.startswith("/") else b""
    return re.search(before + re.escape(forbidden.encode()), text) is not None


@pytest.mark.parametrize("forbidden", [*REGISTRIES, *MACHINE_PATHS])
def test_no_file_names_a_registry_or_a_machine(forbidden: str) -> None:
    holders = [
        str(path.relative_to(ROOT))
        for path in tracked_files()
        if not path.name.startswith("test_rules") and names(path.read_bytes(), forbidden)
    ]
    assert holders == []


def test_the_pages_that_are_made_are_current() -> None:
    made = {"settings.md": settings_page(MANIFESTS), "retention.md": retention_page(SLICES)}
    found = {name: (ROOT / "docs/guide" / name).read_text(encoding="utf-8") for name in made}
    assert found == made, "run script/docs"


def test_pins_carry_hashes_and_no_address() -> None:
    """OPS-09."""
    for name in ("runtime", "dev"):
        pins = (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8")
        packages = re.findall(r"(?m)^[a-z0-9].*?==", pins)
        assert packages
        assert pins.count("--hash=sha256:") >= len(packages)
        assert "://" not in pins


def test_no_instant_is_taken_from_an_id() -> None:
    """Ids may be ahead of the clock; what is due is reckoned from `Ids.now` or the clock itself."""
    users = [str(path.relative_to(SOURCE)) for path in modules() if "stamp().at" in text_of(path)]
    assert users == []


def test_no_write_buffer_has_a_high_mark_of_zero() -> None:
    """Under TLS such a transport pauses and resumes in turn, and who waits for room may wait for ever."""
    limits = re.compile(r"set_write_buffer_limits\((?![^)]*high=[1-9])")
    assert not [path for path in SOURCE.rglob("*.py") if limits.search(text_of(path))]
