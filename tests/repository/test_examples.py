"""The examples of README and guide do what they say, on a server as a first user has it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from kit.examples import INDENTED, PAGES, ROOT, Example, all_examples, examples_of, server_flags
from repository.running import TESTS, TIMEOUT, Lines, heed_signals

KEY = "re_examples_abcdefghijklmnopqrstuvwx"
RUN = {
    page: [one for one in all_examples() if one.page == page and one.how in ("run", "background")]
    for page in PAGES
}

ALWAYS = {"README.md", *(f"docs/guide/{name}.md" for name in ("capture", "metrics", "smtp", "webhooks"))}
"""What everybody does first; the other pages take a minute and run with --slow."""

WAITING = ("docs/guide/delivery.md", "docs/guide/queue-and-retention.md")
"""Pages that are read while mail waits."""

CAPTURED = "docs/guide/capture.md"
"""The page that is read when a mail was sent."""

SEND = """
curl http://127.0.0.1:8080/emails -H "Authorization: Bearer $KEY" \\
     -d '{"from": "ann@harbor.example", "to": "ben@quay.example", "subject": "Berth 12", "text": "Ready"}'
"""
MAIL_WAITS = f"pillarbox queue pause --domain quay.example\n{SEND}"

STATE = """
if [ -f state.sh ]; then . ./state.sh; fi
set -eu -o allexport
"""
MESSAGE = "From: ada@quay.example\nTo: help@harbor.example\nSubject: Berth 12\n\nIs it free?\n"
PIP = """#!/bin/sh
# What an example installs is one of the packages of the tests.
exec "%s" -c "import importlib.metadata, sys; importlib.metadata.version(sys.argv[1])" "$2"
"""


# What stands in the pages -------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_run_or_says_why_not(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    unmarked = [f"{page}:{one.line}" for one in examples_of(page, text) if one.how is None]
    assert unmarked == [], "write <!-- run --> or <!-- not run: REASON --> above it (tests/kit/examples.py)"
    assert [block.strip() for block in INDENTED.findall(FENCES.sub("", text))] == [], (
        "write it as a fenced block"
    )


FENCES = re.compile(r"```.*?^```$", re.M | re.S)


@pytest.mark.parametrize(
    ("mark", "how", "output"),
    [
        ("<!-- run -->", "run", ""),
        ("<!-- run; output: Nothing waits. -->", "run", "Nothing waits."),
        ("<!-- run in the background; output: ready -->", "background", "ready"),
        ("<!-- run as the server -->", "server", ""),
        ("<!-- not run: needs a public address -->", "not run", ""),
        ("<!-- not run: -->", None, ""),
        ("<!-- later -->", None, ""),
        ("", None, ""),
    ],
)
def test_marks_are_understood(mark: str, how: str | None, output: str) -> None:
    (example,) = examples_of("page.md", f"# A\n\n{mark}\n```sh\ntrue\n```\n")
    assert (example.how, example.output, example.text) == (how, output, "true\n")


# A server, and a terminal beside it ---------------------------------------------------------------


@dataclass
class Terminal:
    """A folder in which the examples run, beside a server that is as after `script/server`."""

    folder: Path
    http: str
    submission: str
    capture_token: str
    program: str

    def environment(self) -> dict[str, str]:
        kept = {
            name: text for name, text in os.environ.items() if not name.startswith(("PILLARBOX_", "RESEND_"))
        }
        return {
            **kept,
            "PATH": f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{kept['PATH']}",
            "PYTHONPATH": str(TESTS.parent / "src"),
            "KEY": KEY,
            "RESEND_API_KEY": KEY,
            "COLUMNS": "200",
        }

    def here(self, text: str) -> str:
        """The text with the addresses, keys and ids of this server."""
        port = self.submission.rpartition(":")[2]
        for there, ours in {
            "127.0.0.1:8080": self.http,
            "127.0.0.1:2587": self.submission,
            '"127.0.0.1", 2587': f'"127.0.0.1", {port}',
            "localhost:3000": self.program,
            "re_…": KEY,
            "TOKEN": self.capture_token,
        }.items():
            text = text.replace(there, ours)
        for word in re.findall(r"/(emails|domains)/\$?ID\b|(emails) show ID", text):
            text = re.sub(r"\$?\bID\b", self.newest(word[0] or word[1]), text)
        return text

    def newest(self, kind: str) -> str:
        """The id of the newest email or domain."""
        return str(self.listed(kind)[0]["id"])

    def listed(self, kind: str) -> list[dict[str, Any]]:
        return list(json.loads(self.asked("GET", kind))["data"])

    def asked(self, method: str, path: str) -> bytes:
        headers = {"Authorization": f"Bearer {KEY}"}
        request = urllib.request.Request(f"http://{self.http}/{path}", headers=headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return bytes(answer.read())

    def forget_domains(self) -> None:
        """Every page begins with its own."""
        for domain in self.listed("domains"):
            self.asked("DELETE", f"domains/{domain['id']}")

    def run(self, text: str, language: str = "sh", status: int = 0) -> str:
        """What the block prints; it must end as it says."""
        source = self.here(text)
        if language == "sh":
            source = f"{STATE}{source}\nset +o allexport\nexport -p >state.sh\n"
        done = subprocess.run(
            ["bash", "-c", source] if language == "sh" else [sys.executable, "-c", source],
            cwd=self.folder,
            env=self.environment(),
            # Whoever is asked says yes.
            input="y\n",
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == status, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def begin(self, text: str) -> tuple[subprocess.Popen[str], Lines]:
        """A command that stays, once it has printed something."""
        process = subprocess.Popen(
            ["bash", "-c", f"{STATE}{self.here(text)}"],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=heed_signals,
            start_new_session=True,
        )
        lines = Lines(process.stdout)
        try:
            lines.wait_for("")
        except AssertionError:
            ended(process)
            raise
        return process, lines


def ended(process: subprocess.Popen[str]) -> None:
    """As Ctrl-C ends what runs in a terminal."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Taken(BaseHTTPRequestHandler):
    """A program that takes webhooks."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def program() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Taken)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory, program: str) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("examples")
    for name, text in {
        "bin/pillarbox": f'#!/bin/sh\nexec "{sys.executable}" -P -m pillarbox "$@"\n',
        "bin/pip": PIP % sys.executable,
        "bin/curl": f'#!/bin/sh\nexec "{shutil.which("curl")}" --silent --show-error --fail-with-body "$@"\n',
        "script/pillarbox": '#!/bin/sh\nexec pillarbox "$@"\n',
        "script/server": '#!/bin/sh\nexec pillarbox serve "$@"\n',
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / ".venv").symlink_to(sys.prefix)
    made = Terminal(folder=folder, http="", submission="", capture_token="", program=program)
    doors = ("--http", "127.0.0.1:0", "--smtp", "off", "--submission", "127.0.0.1:0", "--processes", "1")
    # Nobody answers at that DNS server: what looks up names is told so at once. No limit of requests: people
    # pause between the commands of a page, and this test does not.
    options = ("--dns", "127.0.0.1:9", "--rate-limit", "0", "--initial-api-key", KEY)
    process = subprocess.Popen(
        ["script/server", *doors, *options, *server_flags()],
        cwd=folder,
        env=made.environment(),
        stdout=subprocess.PIPE,
        stderr=(folder / "server.log").open("w"),
        text=True,
        preexec_fn=heed_signals,
        start_new_session=True,
    )
    try:
        out = Lines(process.stdout)
        ready = dict(part.split("=", 1) for part in out.wait_for("ready ").split()[1:])
        made.http, made.submission = ready["http"], ready["submission"]
        made.capture_token = out.wait_for("capture ").partition("token=")[2]
        asyncio.run(call_it_harbor(folder))
        yield made
    finally:
        ended(process)


async def call_it_harbor(folder: Path) -> None:
    """The team of the examples."""
    from pillarbox.kernel.process.secrets_channel import ask

    conn = await asyncpg.connect(ask(folder / "pillarbox-data")["settings"]["database_url"])
    await conn.execute("UPDATE teams SET name = 'Harbor'")
    await conn.close()


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[] if page in ALWAYS else pytest.mark.slow) for page in PAGES if RUN[page]],
)
def test_the_examples_of_a_page_do_what_they_say(terminal: Terminal, page: str) -> None:
    (terminal.folder / "state.sh").unlink(missing_ok=True)
    (terminal.folder / "message.eml").write_text(MESSAGE)
    terminal.forget_domains()
    if page in WAITING:
        terminal.run(MAIL_WAITS)
    if page == CAPTURED:
        terminal.run(SEND)
    running: list[tuple[Example, subprocess.Popen[str], Lines]] = []
    try:
        for example in RUN[page]:
            if example.how == "background":
                running.append((example, *terminal.begin(example.text)))
            else:
                assert example.output in terminal.run(example.text, example.language, example.status), (
                    f"{page}:{example.line}"
                )
        for example, _, lines in running:
            lines.wait_for(example.output)
    finally:
        for _, process, _ in running:
            ended(process)
        if page in WAITING:
            terminal.run("pillarbox queue resume --domain quay.example || true")
