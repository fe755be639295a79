"""Remote mail servers, many of them, in a process of their own; each has an address of 127/8.

    with remote_servers(folder, {"127.0.0.1": {}, "127.1.0.7": {"RCPT": "550 5.1.1 no such user"}}) as far:
        ...                                   # they listen on far.port; far.journal is their ledger

A mail is in the ledger, on disk, before its 250 is sent. What a server does at a command (`CONNECT`,
`EHLO`, `MAIL`, `RCPT`, `DATA`, `DOT`) is one deed, or a list of `[probability, deed]` from which a generator
draws that is seeded by the server's address; without a deed it does what is usual. Deeds:

- a text that begins with a digit: this reply; `usual`: the usual one;
- `drop`: the connection is reset; `silent`: no answer ever; `tarpit:S`: the usual reply, drop by drop in
  S seconds;
- `garbage`: bytes that are no reply, then the usual one; `early`: the usual reply and one more with it;
- `huge`: the usual code in a reply of many lines; `endless`: in one of more lines than anybody reads;
- `greylist`: 451 until a recipient comes again;
- `at most N` (CONNECT): 421 while so many other sessions are open; `N a second` (MAIL): 451 to whoever comes
  when so many mails began in the second before; both refusals are in the ledger as `limited`;
- `take and drop` (DOT): the mail goes into the ledger and the connection is reset instead of the answer.

Refusals for good (5xx) of a recipient are in the ledger too, so the last word on each recipient is known.
An address that is not named refuses connections.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.ledger import Journal, token_of

TESTS = Path(__file__).parents[1]
PATIENCE = 30.0
LINES = {"huge": 90, "endless": 5000}
DRIP = 0.02

Behaviour = Mapping[str, str | Sequence[tuple[float, str]]]
USUAL = {
    "CONNECT": b"220 far ESMTP\r\n",
    "EHLO": b"250-far\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 SIZE 60000000\r\n",
    "HELO": b"250 far\r\n",
    "MAIL": b"250 2.1.0 ok\r\n",
    "RCPT": b"250 2.1.5 ok\r\n",
    "DATA": b"354 go ahead\r\n",
    "DOT": b"250 2.0.0 taken\r\n",
    "RSET": b"250 2.0.0 ok\r\n",
    "NOOP": b"250 2.0.0 ok\r\n",
    "QUIT": b"221 2.0.0 bye\r\n",
}
IN_DOUBT = frozenset({"endless", "take and drop"})
TAKING = frozenset({"usual", "huge", *IN_DOUBT})
"""Deeds at the final dot with which the mail is taken; in doubt where the client cannot know."""

DOT = b"\r\n.\r\n"


@dataclass
class RemoteServers:
    """The running process, seen from the test."""

    port: int
    journal: Path
    process: subprocess.Popen[str]

    def stop(self) -> None:
        """Reset every session and end."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@contextmanager
def remote_servers(
    folder: Path, tempers: Mapping[str, Behaviour], *, seed: int = 1, port: int = 0
) -> Iterator[RemoteServers]:
    """Yield mail servers on these addresses for as long as the block runs."""
    folder.mkdir(parents=True, exist_ok=True)
    journal, script = folder / "taken.jsonl", folder / "tempers.json"
    script.write_text(json.dumps({"seed": seed, "port": port, "tempers": tempers}))
    process = subprocess.Popen(
        [sys.executable, "-m", "kit.remote_servers", str(journal), str(script)],
        cwd=TESTS,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], PATIENCE)[0], "the far servers did not start"
    made = RemoteServers(int(process.stdout.readline()), journal, process)
    try:
        yield made
    finally:
        made.stop()


class Server:
    """One address with its temper; what all of its sessions share."""

    def __init__(self, address: str, temper: Behaviour, journal: Journal, seed: int) -> None:
        self.address = address
        self.journal = journal
        self.chance = random.Random(f"{seed}/{address}")
        self.seen: set[str] = set()
        self.sessions = 0
        self.open = 0
        self._began: deque[float] = deque()
        self._temper = temper

    def deed(self, command: str) -> str:
        wanted = self._temper.get(command, "usual")
        if isinstance(wanted, str):
            return wanted
        at = self.chance.random()
        for probability, deed in wanted:
            at -= probability
            if at < 0:
                return deed
        return "usual"

    def is_over(self, deed: str) -> bool:
        """Return whether a limit (`at most N`, `N a second`) forbids what has just come."""
        number = int(re.sub(r"\D", "", deed))
        now = time.monotonic()
        if deed.startswith("at most"):
            over = self.open > number
        else:
            while self._began and self._began[0] <= now - 1:
                self._began.popleft()
            over = len(self._began) >= number
            if not over:
                self._began.append(now)
        if over:
            self.journal.write(kind="limited", recipients=[], now=time.time())
        return over

    def refused(self, stage: str, code: int, recipients: Sequence[str]) -> None:
        if code >= 500 and recipients:
            self.journal.write(kind="refused", stage=stage, code=code, recipients=list(recipients))


class Session(asyncio.Protocol):
    """One connection. Commands are answered in their order, one after the other."""

    def __init__(self, servers: Mapping[str, Server]) -> None:
        self._servers = servers
        self._buffer = bytearray()
        self._busy = False
        self._in_content = False
        self._mail_refusal = 0
        self._recipients: list[str] = []
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server = self._servers[transport.get_extra_info("sockname")[0]]
        self._server.sessions += 1
        self._server.open += 1
        self._name = f"{self._server.address}/{self._server.sessions}"
        self._task = asyncio.ensure_future(self._run())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._more.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.open -= 1
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        self._more = asyncio.Event()
        await self._answer("CONNECT", "")
        while True:
            line = await self._until(b"\r\n")
            verb, _, argument = line.decode("utf-8", "replace").strip().partition(" ")
            await self._command(verb.upper(), argument)

    async def _until(self, end: bytes) -> bytes:
        searched = 0
        while (at := self._buffer.find(end, searched)) < 0:
            searched = max(0, len(self._buffer) - len(end) + 1)
            self._more.clear()
            await self._more.wait()
        found = bytes(self._buffer[: at + len(end)])
        del self._buffer[: at + len(end)]
        return found

    async def _command(self, verb: str, argument: str) -> None:
        if verb == "MAIL":
            self._recipients = []
            self._mail_refusal = code if (code := await self._answer("MAIL", argument)) >= 400 else 0
        elif verb == "RCPT":
            await self._recipient(argument)
        elif verb == "DATA":
            await self._data()
        elif verb in USUAL:
            await self._answer(verb, argument)
            if verb == "QUIT":
                self._transport.close()
        else:
            self._transport.write(b"500 5.5.2 unknown command\r\n")

    async def _recipient(self, argument: str) -> None:
        match = re.match(r"TO:<(.*)>", argument, re.IGNORECASE)
        address = match[1].lower() if match else ""
        if self._mail_refusal:
            self._server.refused("MAIL", self._mail_refusal, [address])
            self._transport.write(b"503 5.5.1 MAIL first\r\n")
            return
        code = await self._answer("RCPT", address)
        self._server.refused("RCPT", code, [address])
        if code < 400:
            self._recipients.append(address)

    async def _data(self) -> None:
        if not self._recipients:
            self._transport.write(b"554 5.5.1 no valid recipients\r\n")
            return
        code = await self._answer("DATA", "")
        if code != 354:
            self._server.refused("DATA", code, self._recipients)
            return
        content = await self._until(DOT)
        deed = self._server.deed("DOT")
        if deed in TAKING or deed[0] == "2" or deed.startswith("tarpit"):
            self._take(content, answered=deed not in IN_DOUBT)
        code = await self._carry_out("drop" if deed == "take and drop" else deed, "DOT", "")
        self._server.refused("DOT", code, self._recipients)
        self._recipients = []

    def _take(self, content: bytes, *, answered: bool) -> None:
        head = content.partition(b"\r\n\r\n")[0].decode("utf-8", "replace").replace("\r\n ", " ")
        fields = dict(line.split(": ", 1) for line in head.split("\r\n") if ": " in line)
        self._server.journal.write(
            kind="taken",
            token=token_of(fields.get("Subject", "")),
            message_id=fields.get("Message-ID", ""),
            recipients=self._recipients,
            session=self._name,
            answered=answered,
            now=time.time(),
        )

    async def _answer(self, command: str, argument: str) -> int:
        return await self._carry_out(self._server.deed(command), command, argument)

    async def _carry_out(self, deed: str, command: str, argument: str) -> int:
        """Do it; the code that was given, or 0 for none."""
        usual = USUAL[command]
        deed, _, number = deed.partition(":") if deed.startswith("tarpit") else (deed, "", "")
        if re.match(r"\d{3} ", deed):
            usual = deed.encode() + b"\r\n"
        elif deed == "drop":
            self._transport.abort()
        elif deed == "silent":
            await asyncio.Event().wait()
        elif deed == "garbage":
            usual = self._server.chance.randbytes(40).replace(b"\n", b"!") + b"\r\n" + usual
        elif deed == "early":
            usual += b"250 2.0.0 and that too\r\n"
        elif deed in LINES:
            usual = (usual[:3] + b"-" + b"x" * 70 + b"\r\n") * LINES[deed] + usual
        elif deed.startswith("at most"):
            if self._server.is_over(deed):
                self._transport.write(b"421 4.7.0 too many connections from you\r\n")
                self._transport.close()
                return 421
        elif deed.endswith("a second"):
            if self._server.is_over(deed):
                usual = b"451 4.7.1 too many mails from you, slow down\r\n"
        elif deed == "greylist" and argument not in self._server.seen:
            self._server.seen.add(argument)
            usual = b"451 4.7.1 greylisted, please come back\r\n"
        elif deed == "tarpit":
            await self._drip(usual, float(number))
            usual = b""
        self._transport.write(usual)
        match = re.match(rb"[0-9]{3}", usual or USUAL[command])
        return int(match[0]) if match and deed != "drop" else 0

    async def _drip(self, reply: bytes, seconds: float) -> None:
        pieces = max(1, round(seconds / DRIP))
        size = -(-len(reply) // pieces)
        for at in range(0, len(reply), size):
            self._transport.write(reply[at : at + size])
            await asyncio.sleep(DRIP)


async def serve(journal: Journal, script: dict[str, Any]) -> None:
    """Listen until the test is gone."""
    servers = {
        address: Server(address, temper, journal, script["seed"])
        for address, temper in script["tempers"].items()
    }
    loop = asyncio.get_running_loop()
    port = script["port"]
    for address in servers:
        listener = await loop.create_server(lambda: Session(servers), address, port, backlog=256)
        port = listener.sockets[0].getsockname()[1]
    print(port, flush=True)
    gone = asyncio.Event()
    loop.add_reader(sys.stdin, gone.set)
    await gone.wait()


if __name__ == "__main__":
    asyncio.run(serve(Journal(Path(sys.argv[1])), json.loads(Path(sys.argv[2]).read_text())))
