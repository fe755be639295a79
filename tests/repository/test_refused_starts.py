"""Starts that settings forbid: one sentence, status 2 that systemd does not repeat, nothing left behind."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kit.prometheus import free_port
from repository.running import supervisor
from repository.test_scripts import ROOT


def refusal(data: Path, *flags: str, status: int = 2) -> str:
    """The sentence of a start that is refused."""
    with supervisor(data, "--processes", "1", *flags, finds_database=False) as running:
        assert running.exit_status() == status, running.log.wait_for_end()
        (line,) = running.log.wait_for_end()
    assert line.startswith("pillarbox: ")
    return line


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("--smtp", "127.0.0.1"), ("--submission", "127.0.0.1")),
        (("--http", "127.0.0.1"), ("--metrics", "127.0.0.1")),
        (("--http", "127.0.0.1"), ("--smtp", "0.0.0.0")),
        (("--http", "localhost"), ("--submission", "127.0.0.1")),
        (("--lmtp", "127.0.0.1"), ("--smtp", "[::]")),
    ],
)
def test_two_listeners_on_one_port(tmp_path: Path, first: tuple[str, str], second: tuple[str, str]) -> None:
    port = free_port()
    given = [(flag, f"{host}:{port}") for flag, host in (first, second)]
    sentence = refusal(tmp_path / "data", *(text for pair in given for text in pair))
    for flag, at in given:
        assert f"{flag} {at}" in sentence
    assert not (tmp_path / "data").exists()


def test_two_submission_listeners_on_one_port(tmp_path: Path) -> None:
    at = f"127.0.0.1:{free_port()}"
    assert "are one port" in refusal(tmp_path / "data", "--submission", f"{at},tls://{at}")


def test_one_port_of_two_addresses_is_no_clash(tmp_path: Path) -> None:
    port = free_port()
    with supervisor(
        tmp_path / "data", "--processes", "1", "--http", f"127.0.0.1:{port}", "--smtp", f"127.0.0.2:{port}"
    ) as running:
        assert list(running.ready()) == ["http", "smtp"]


class Files:
    """Certificates and keys, right and wrong."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        authority, found, another = trustme.CA(), None, None
        found, another = authority.issue_cert("mail.example"), authority.issue_cert("mail.example")
        own = found.cert_chain_pems[0].bytes()
        self.files = {
            "chain": own,
            "key": found.private_key_pem.bytes(),
            "other": another.private_key_pem.bytes(),
            "reversed": authority.cert_pem.bytes() + own,
            "garbage": b"\x00\xffnot PEM at all\n",
            "empty": b"",
            "encrypted": ec.generate_private_key(ec.SECP256R1()).private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(b"secret"),
            ),
        }

    def __getitem__(self, name: str) -> str:
        path = self._folder / f"{name}.pem"
        path.write_bytes(self.files[name])
        return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize(
    ("chain", "key", "part"),
    [
        ("key", "chain", "(--tls-cert) holds no certificate in PEM form but a private key"),
        ("chain", "chain", "(--tls-key) holds no private key in PEM form but a certificate"),
        ("chain", "other", "is not that of the certificate in"),
        ("garbage", "key", "holds no certificate in PEM form."),
        ("chain", "garbage", "holds no private key in PEM form."),
        ("empty", "key", "holds no certificate in PEM form."),
        ("chain", "empty", "holds no private key in PEM form."),
        ("chain", "encrypted", "is encrypted; store it without a password"),
        ("reversed", "key", "must be the first in"),
    ],
)
def test_a_certificate_that_cannot_be_shown(
    tmp_path: Path, files: Files, chain: str, key: str, part: str
) -> None:
    sentence = refusal(tmp_path / "data", "--tls-cert", files[chain], "--tls-key", files[key])
    assert part in sentence
    assert not (tmp_path / "data").exists()


def test_a_refused_start_leaves_only_what_was_there(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = ("--http", f"127.0.0.1:{taken.getsockname()[1]}")
        refusal(tmp_path / "new" / "data", *at, status=1)
        assert list(tmp_path.iterdir()) == []
        data.mkdir()
        refusal(data, *at, status=1)
        assert list(data.iterdir()) == []
        (data / "notes.txt").write_text("mine")
        refusal(data, *at, status=1)
        assert [path.name for path in data.iterdir()] == ["notes.txt"]


def test_a_wrong_key_ring_is_a_wrong_setting(tmp_path: Path, database_url: str) -> None:
    ring = "k1:" + "A" * 43 + "="
    with supervisor(tmp_path / "one", "--database-url", database_url, "--secret-key", ring) as running:
        running.ready()
    other = "k1:" + "B" * 43 + "="
    with supervisor(tmp_path / "two", "--database-url", database_url, "--secret-key", other) as running:
        assert running.exit_status() == 2
        assert "is not the one of this database" in running.log.wait_for_end()[-1]
    assert not (tmp_path / "two").exists()


def test_a_database_url_that_the_driver_refuses(tmp_path: Path) -> None:
    url = "postgresql://127.0.0.1:1/x?sslmode=perhaps"
    sentence = refusal(tmp_path / "data", "--database-url", url)
    assert sentence.startswith("pillarbox: The database URL cannot be used: ")


def test_systemd_does_not_repeat_a_start_that_its_settings_forbid() -> None:
    unit = (ROOT / "deploy" / "pillarbox.service").read_text().splitlines()
    assert "RestartPreventExitStatus=2" in unit
    assert "Restart=on-failure" in unit
