"""Where the processor's time goes, by function: accepting alone, then accepting and delivering.

py-spy watches one of two workers under full load. Beside the functions stands what each program took per
mail, which says what bounds the throughput next: on two cores the sum of all programs does.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

from bench.kit import load, tools
from bench.kit.processes import Meter, shares, tree
from bench.kit.results import Report, ended
from bench.kit.server import Server, serving
from bench.kit.sinks import smtp_sink

CONNECTIONS = 50
SAMPLES_PER_SECOND = 200
SHOWN = 22
PACKAGES = "site-packages/"


def measure(report: Report) -> None:
    try:
        tools.need("wrk", "smtp-sink")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    if tools.find("py-spy") is None:
        report.skip("functions", "py-spy is not on this machine")
    with smtp_sink(report.folder) as sink:
        route = f"relay:smtp://127.0.0.1:{sink.port}"
        with serving(report, report.folder / "accept", route=route, roles="api") as server:
            phase(report, server, "accepting alone")
        with serving(report, report.folder / "deliver", route=route) as server:
            phase(report, server, "accepting and delivering")


def phase(report: Report, server: Server, name: str) -> None:
    seconds = 4 if report.short else 20
    server.trust()
    singles = load.single_mails(report.folder)
    load.wrk(server, singles, connections=CONNECTIONS, seconds=1)
    out = report.folder / f"{name.replace(' ', '-')}.stacks"
    meters: list[Meter] = []
    spies: list[subprocess.Popen[bytes]] = []

    def watch() -> None:
        meters.append(Meter(server.process.pid))
        if command := spy(server, out, seconds):
            spies.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    stored = server.number("SELECT count(*) FROM emails")
    finished = delivered(server)
    answered = load.wrk(server, singles, connections=CONNECTIONS, seconds=seconds + 2, watch=watch)
    used = meters[0].used() | {"wrk": answered.cpu}
    mails = int(server.number("SELECT count(*) FROM emails") - stored)
    report.note(
        f"{name}: {mails / answered.seconds:,.0f} accepts/s and "
        f"{(delivered(server) - finished) / answered.seconds:,.0f} deliveries/s with the profiler on"
    )
    report.note(f"{shares(used, mails)} accepted; cores used {sum(used.values()) / answered.seconds:.2f}")
    for process in spies:
        process.wait(60)
    if out.exists():
        show(report, out)


def spy(server: Server, out: Path, seconds: float) -> list[str]:
    """The command that samples one worker; empty without py-spy."""
    path = tools.find("py-spy")
    if path is None:
        return []
    worker = tree(server.process.pid).workers[0]
    command = [path, "record", "--pid", str(worker), "--output", str(out), "--format", "raw", "--function"]
    return [*command, "--rate", str(SAMPLES_PER_SECOND), "--duration", str(round(seconds)), "--nonblocking"]


def delivered(server: Server) -> float:
    return server.number("SELECT count(*) FROM timeline WHERE kind = 'delivered'")


def show(report: Report, out: Path) -> None:
    """Three tables: time in a function itself, time under a function, time by package."""
    own: Counter[str] = Counter()
    under: Counter[str] = Counter()
    places: Counter[str] = Counter()
    total = 0
    for line in out.read_text(encoding="utf-8").splitlines():
        stack, _, text = line.rpartition(" ")
        if not text.isdigit():
            continue
        frames, count = stack.split(";"), int(text)
        total += count
        own[frames[-1]] += count
        places[place(frames[-1])] += count
        for frame in set(frames):
            under[frame] += count
    for title, table in (
        ("in the function itself", own),
        ("under the function", under),
        ("by place", places),
    ):
        report.note(f"{title} (% of {total:,} samples)")
        for name, count in table.most_common(SHOWN):
            print(f"      {count / max(1, total) * 100:5.1f}  {name}")


def place(frame: str) -> str:
    """What a frame `function (file:line)` belongs to: a file of ours, else the package or module."""
    path = frame.rpartition("(")[2].partition(":")[0].rstrip(")")
    path = path.rpartition(PACKAGES)[2]
    return path if path.startswith("pillarbox/") else path.partition("/")[0]


if __name__ == "__main__":
    ended("profile", measure, __doc__)
