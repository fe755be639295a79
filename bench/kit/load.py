"""Load on the HTTP API: wrk with keep-alive connections, and the mails that it sends."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.kit import tools
from bench.kit.server import KEY, SENDER, Server

SCRIPT = Path(__file__).with_name("load.lua")
VARIATIONS = 200
DESTINATIONS = 20
HTML_BYTES = 2700
TEXT_BYTES = 1100
BATCH = 100
LONGEST = 1800
WORDS = (  # noqa: SIM905 (prose reads better as prose)
    "account invoice delivery month please order thank you the customer team of and open update "
    "your payment to review service a new plan for with this message before after settings details"
).split()


@dataclass(frozen=True, slots=True)
class Answered:
    """What wrk saw: complete answers, other than 2xx or 3xx among them, latency in milliseconds, and
    the processor time in seconds that wrk itself took."""

    requests: int
    seconds: float
    refused: int
    broken: int
    p50: float
    p99: float
    worst: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.requests / self.seconds if self.seconds else 0.0

    @property
    def trouble(self) -> str:
        """Empty when every answer was good."""
        return f"{self.refused} refused, {self.broken} broken" if self.refused or self.broken else ""


def mail(number: int, *, destinations: int = DESTINATIONS) -> dict[str, object]:
    """A mail of about 4 kB, different for each number."""
    chance = random.Random(number)
    name = f"{chance.choice(WORDS)}.{number}"
    return {
        "from": SENDER,
        "to": [f"{name}@inbox{number % destinations}.example"],
        "subject": f"Your {chance.choice(WORDS)} {chance.choice(WORDS)} no. {number}",
        "html": f"<p>{prose(chance, HTML_BYTES - 7)}</p>",
        "text": prose(chance, TEXT_BYTES),
    }


def body(number: int) -> bytes:
    """The mail as a request's body."""
    return json.dumps(mail(number)).encode()


def prose(chance: random.Random, length: int) -> str:
    words = []
    size = 0
    while size < length:
        words.append(chance.choice(WORDS))
        size += len(words[-1]) + 1
    lines = [" ".join(words[at : at + 11]) for at in range(0, len(words), 11)]
    return "\n".join(lines)[:length]


def single_mails(folder: Path) -> Path:
    """Requests of one mail each."""
    return write(folder / "single.txt", (("POST", "/emails", mail(number)) for number in range(VARIATIONS)))


def batches(folder: Path, size: int = BATCH) -> Path:
    """Requests of `size` mails each."""
    rows = (
        ("POST", "/emails/batch", [mail(number * size + at) for at in range(size)]) for number in range(20)
    )
    return write(folder / "batch.txt", rows)


def reads(path: Path, paths: Iterable[str]) -> Path:
    return write(path, (("GET", name, None) for name in paths))


def write(path: Path, rows: Iterable[tuple[str, str, object]]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for method, target, body in rows:
            file.write(f"{method}\t{target}\t{'' if body is None else json.dumps(body)}\n")
    return path


def wrk(
    server: Server,
    requests: Path,
    *,
    connections: int,
    seconds: float = LONGEST,
    most: int = 0,
    threads: int = 2,
    pause: int = 0,
    key: str = KEY,
    watch: Callable[[], None] = lambda: None,
) -> Answered:
    """Load for some seconds, or until `most` answers came; each connection waits `pause` milliseconds before
    a request. `watch` is called as soon as wrk runs."""
    threads = min(threads, connections)
    each = -(-most // threads) if most else 0
    command = [tools.program("wrk"), f"-t{threads}", f"-c{connections}", f"-d{max(1, round(seconds))}s"]
    command += ["--timeout", "60s", "-s", str(SCRIPT), server.url, "--"]
    command += [key, str(requests), str(each), str(threads)]
    stopped = requests.with_suffix(".stopped")
    stopped.unlink(missing_ok=True)
    process = subprocess.Popen(
        [*command, str(stopped), str(pause)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        watch()
        if most:
            # wrk sleeps until its time is over or a signal comes, even when all its threads have stopped.
            tools.wait_for(lambda: size(stopped) >= threads or process.poll() is not None, "wrk", seconds)
            process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=seconds + 120)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _answered(output, used)


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _answered(output: str, used: float) -> Answered:
    line = next((line for line in reversed(output.splitlines()) if line.startswith("{")), None)
    if line is None:
        raise RuntimeError(f"wrk did not finish: {output.strip()[-500:]}")
    seen = json.loads(line)
    return Answered(
        requests=seen["requests"],
        seconds=seen["microseconds"] / 1e6,
        refused=seen["refused"],
        broken=seen["broken"] + seen["timeout"],
        p50=seen["p50"] / 1000,
        p99=seen["p99"] / 1000,
        worst=seen["max"] / 1000,
        cpu=used,
    )


def percentile(values: Sequence[float], of_hundred: float) -> float:
    """The value that so many of a hundred do not exceed."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(len(ranked) * of_hundred / 100))]
