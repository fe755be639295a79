"""`pillarbox serve`: ready line, drain, restarts, and no orphans whoever is killed (OPS-03)."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import ssl
import threading
import urllib.request
from http.client import HTTPException
from pathlib import Path

import asyncpg
import pytest
import trustme

from repository.running import TIMEOUT, Running, Watched, supervisor


def cut_off(running: Running) -> None:
    with pytest.raises((OSError, HTTPException)):
        running.get("/slow")


def test_the_first_start_prints_key_link_and_the_ready_line_and_a_signal_ends_it(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data") as running:
        listeners = running.ready()
        family = Watched(running.family())
        assert set(listeners) == {"http"}
        assert not listeners["http"].endswith(":0")
        assert int(running.get()) in running.workers()
        running.send(signal.SIGTERM)
        assert running.exit_status() == 0
        assert family.all_ended()
        lines = running.out.wait_for_end()
    assert re.fullmatch(r"api key re_abcdefgh_0123456789 \(.*\)", lines[0])
    assert re.fullmatch(rf"capture http://{listeners['http']}/capture\?token=[\w-]{{32}}", lines[1])
    assert lines[2:] == [f"ready http={listeners['http']}"]
    assert not (tmp_path / "data/run/supervisor.json").exists()


def test_later_starts_print_no_key(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data", "--processes", "1") as first:
        first.ready()
    with supervisor(tmp_path / "data", "--processes", "1", "--route", "direct") as second:
        second.ready()
        assert [line.split()[0] for line in second.out.all] == ["ready"]


def test_a_key_that_the_operator_gave_is_not_printed(tmp_path: Path) -> None:
    key = "re_operator_0123456789"
    with supervisor(tmp_path / "data", "--processes", "1", "--initial-api-key", key) as running:
        running.ready()
    assert key not in "\n".join(running.out.all + running.log.all)


def test_a_running_request_is_finished_before_the_exit(tmp_path: Path) -> None:
    replies = []
    with supervisor(tmp_path / "data") as running:
        running.ready()
        asking = threading.Thread(target=lambda: replies.append(running.get("/slow")))
        asking.start()
        running.log.wait_for("slow.began")
        running.send(signal.SIGTERM)
        running.log.wait_for("supervisor.stopping")
        (tmp_path / "data/released").touch()
        asking.join(TIMEOUT)
        assert running.exit_status() == 0
    assert len(replies) == 1
    assert (tmp_path / f"data/stopped-{replies[0]}").exists()


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data") as running:
        running.ready()
        family = Watched(running.family())
        asking = threading.Thread(target=lambda: cut_off(running))
        asking.start()
        running.log.wait_for("slow.began")
        running.send(signal.SIGTERM)
        running.log.wait_for("supervisor.stopping")
        running.send(signal.SIGTERM)
        assert running.exit_status() == 128 + signal.SIGTERM
        assert family.all_ended()
        asking.join(TIMEOUT)
    with supervisor(tmp_path / "data") as again:
        again.ready()


def test_a_signal_during_the_start_ends_it_cleanly(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data", "--log-level", "debug") as running:
        running.log.wait_for("starting PostgreSQL")
        running.send(signal.SIGINT)
        assert running.exit_status() == 0
        assert [line for line in running.out.all if line.startswith("ready")] == []


def test_one_folder_has_one_supervisor(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data") as running:
        running.ready()
        with supervisor(tmp_path / "data") as second:
            assert second.exit_status() == 1
            who = f"process {running.process.pid} on {socket.gethostname()}"
            assert second.log.wait_for_end() == [
                f"pillarbox: Another Pillarbox ({who}) already runs with the data folder {tmp_path / 'data'}."
            ]
        assert running.get()


def test_a_killed_worker_is_replaced(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data") as running:
        running.ready()
        victim, survivor = running.workers()
        os.kill(victim, signal.SIGKILL)
        running.log.wait_for("worker.ready")
        workers = running.workers()
        assert survivor in workers
        assert victim not in workers
        assert len(workers) == 2
        assert running.get()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_dead_supervisor_leaves_no_orphan_and_the_next_one_starts(
    tmp_path: Path, number: signal.Signals
) -> None:
    with supervisor(tmp_path / "data") as running:
        running.ready()
        processes = running.family()
        assert len(processes) > 3
        family = Watched(processes)
        running.send(number)
        assert running.exit_status() == -number
        with supervisor(tmp_path / "data") as again:
            again.ready()
            assert family.all_ended()


def test_a_killed_database_is_started_again_under_the_same_address(tmp_path: Path) -> None:
    async def teams(url: str) -> object:
        conn = await asyncpg.connect(url)
        try:
            return await conn.fetchval("SELECT count(*) FROM teams")
        finally:
            await conn.close()

    with supervisor(tmp_path / "data", "--processes", "1") as running:
        running.ready()
        url, workers = running.note()["database_url"], running.workers()
        os.kill(running.postmaster(), signal.SIGKILL)
        running.log.wait_for("postgres.restarted")
        assert asyncio.run(teams(url)) == 0
        assert running.workers() == workers


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        with supervisor(tmp_path / "data", "--http", at) as running:
            assert running.exit_status() == 1
            complaint = running.log.wait_for_end()[-1]
    assert complaint == f"pillarbox: Cannot listen on {at} (http): another program uses this port."


def test_the_ready_line_names_the_smtp_listeners_of_the_role(tmp_path: Path) -> None:
    listeners = ("--smtp", "127.0.0.1:0", "--submission", "127.0.0.1:0,tls://127.0.0.1:0,127.0.0.1:0")
    with supervisor(tmp_path / "one", "--processes", "1", *listeners) as running:
        found = running.ready()
        assert list(found) == ["http", "smtp", "submission"]
        at = r"127\.0\.0\.1:[1-9]\d+"
        assert re.fullmatch(rf"{at},tls://{at},{at}", found["submission"])
        assert running.note()["listeners"] == ["http", "smtp", "submission", "submissions", "submission-2"]
    listeners = (*listeners, "--lmtp", "127.0.0.1:0")
    with supervisor(tmp_path / "two", "--processes", "1", "--roles", "api,jobs", *listeners) as running:
        assert list(running.ready()) == ["http"]


def test_the_lmtp_listener_is_named_when_it_is_open(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data", "--processes", "1", "--lmtp", "127.0.0.2:0") as running:
        found = running.ready()
        assert list(found) == ["http", "lmtp"]
        assert re.fullmatch(r"127\.0\.0\.2:[1-9]\d+", found["lmtp"])
        assert running.note()["listeners"] == ["http", "lmtp"]


def test_workers_that_never_start_end_the_start(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data", factory="repository.small_app:build_broken") as running:
        assert running.exit_status() == 1
        running.log.wait_for("this application never starts")
        assert running.log.wait_for_end()[-1] == (
            "pillarbox: The worker processes do not start; the log says why."
        )


def test_an_unreachable_database_is_one_sentence(tmp_path: Path, database_url: str) -> None:
    missing = re.sub(r"///\w+", "///no_such_database", database_url)
    with supervisor(tmp_path / "data", "--database-url", missing) as running:
        assert running.exit_status() == 1
        (line,) = running.log.wait_for_end()
        assert line.startswith("pillarbox: The database refuses the connection")


def test_a_named_database_is_used_and_no_other_is_started(tmp_path: Path, database_url: str) -> None:
    with supervisor(tmp_path / "data", "--database-url", database_url) as running:
        running.ready()
        assert sorted(running.children()) == sorted([running.fork_server(), *running.workers()])
        assert not (tmp_path / "data/postgres").exists()


def test_secrets_are_neither_arguments_nor_environment(tmp_path: Path) -> None:
    """SEC: other accounts of the machine can read both."""
    with supervisor(tmp_path / "data") as running:
        running.ready()
        ring = (tmp_path / "data/secret.key").read_text().strip()
        for pid in [running.fork_server(), *running.workers()]:
            seen = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
            assert ring.encode() not in seen
            assert b"PILLARBOX_" not in seen


def test_what_is_in_the_data_folder_is_private(tmp_path: Path) -> None:
    """SEC-09: umask 077."""
    with supervisor(tmp_path / "data") as running:
        running.ready()
        open_to_others = [path for path in (tmp_path / "data").rglob("*") if path.lstat().st_mode & 0o077]
    assert open_to_others == []


def test_the_metrics_endpoint_adds_up_all_workers(tmp_path: Path) -> None:
    """OPS-06."""
    with supervisor(tmp_path / "data", "--metrics", "127.0.0.1:0") as running:
        assert set(running.ready()) == {"http", "metrics"}
        for _ in range(8):
            running.get()
        assert "small_app_requests_total 8.0" in running.get("/metrics", listener="metrics")
        os.kill(running.workers()[0], signal.SIGKILL)
        running.log.wait_for("worker.ready")
        assert "small_app_requests_total 8.0" in running.get("/metrics", listener="metrics")


def test_without_the_role_there_is_no_http_listener(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data", "--roles", "delivery,jobs", "--processes", "1") as running:
        assert running.ready() == {}
        assert running.out.all[-1] == "ready"


def test_with_a_certificate_the_listener_speaks_https(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    flags = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    with supervisor(tmp_path / "data", "--processes", "1", *flags) as running:
        url = f"https://{running.ready()['http']}/"
        with urllib.request.urlopen(url, timeout=TIMEOUT, context=trusting) as reply:
            assert int(reply.read()) in running.workers()
        assert running.note()["public_url"] + "/" == url
