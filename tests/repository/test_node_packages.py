"""npm packages are pinned with integrity sums, without addresses, and installed outside of the checkout."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kit.node_packages import script
from repository.test_scripts import ROOT

PINS = ROOT / "requirements" / "node"
NAMES = sorted(folder.name for folder in PINS.iterdir())
EXACT = re.compile(r"\d+\.\d+\.\d+")
PACKAGE, VERSION = "harbor-tide", "1.2.3"


@pytest.mark.parametrize("name", NAMES)
def test_every_package_is_pinned_by_version_and_sum(name: str) -> None:
    assert sorted(path.name for path in (PINS / name).iterdir()) == ["package-lock.json", "package.json"]
    wanted = json.loads((PINS / name / "package.json").read_text())
    assert all(EXACT.fullmatch(version) for version in wanted["dependencies"].values())
    text = (PINS / name / "package-lock.json").read_text()
    assert "://" not in text, "script/node_packages.py --pin writes locks without addresses"
    entries = json.loads(text)["packages"]
    assert entries.pop("")["dependencies"] == wanted["dependencies"]
    for path, entry in entries.items():
        assert EXACT.match(entry["version"]), path
        assert entry["integrity"].startswith("sha512-"), path


def test_continuous_integration_installs_every_set_of_packages() -> None:
    assert "for pins in requirements/node/*/; do" in (ROOT / ".ci/run").read_text()


class Registry(ThreadingHTTPServer):
    """An npm registry on loopback that has one small package."""

    def __init__(self) -> None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for name, text in {
                "package.json": json.dumps({"name": PACKAGE, "version": VERSION, "main": "index.js"}),
                "index.js": "module.exports = 'rising';\n",
            }.items():
                member = tarfile.TarInfo(f"package/{name}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        self.archive = buffer.getvalue()
        self.integrity = "sha512-" + base64.b64encode(hashlib.sha512(self.archive).digest()).decode()
        super().__init__(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server_port}/"


class Answers(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        if self.path.endswith(".tgz"):
            return self.answer(self.server.archive)
        about = {
            "name": PACKAGE,
            "version": VERSION,
            "dist": {
                "tarball": f"{self.server.url}{PACKAGE}/-/{PACKAGE}-{VERSION}.tgz",
                "integrity": self.server.integrity,
            },
        }
        document = {"name": PACKAGE, "dist-tags": {"latest": VERSION}, "versions": {VERSION: about}}
        return self.answer(json.dumps(document).encode())

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed (Debian package npm)")
    with Registry() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("npm_config_registry", server.url)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
        monkeypatch.setenv("npm_config_fetch_retries", "0")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield server
        server.shutdown()


def pins(folder: Path, integrity: str) -> Path:
    """The pins of a set `tides` that has the one package."""
    (folder / "tides").mkdir(parents=True)
    wanted = {"name": "tides", "dependencies": {PACKAGE: VERSION}}
    lock = {
        "name": "tides",
        "lockfileVersion": 3,
        "requires": True,
        "packages": {
            "": wanted,
            f"node_modules/{PACKAGE}": {"version": VERSION, "integrity": integrity},
        },
    }
    (folder / "tides" / "package.json").write_text(json.dumps(wanted))
    (folder / "tides" / "package-lock.json").write_text(json.dumps(lock))
    return folder


def test_packages_are_installed_once_in_the_users_cache(registry: Registry, tmp_path: Path) -> None:
    wanted = pins(tmp_path / "pins", registry.integrity)
    assert script.install("tides", wanted) is None
    folder = script.folder_of("tides", wanted)
    assert folder.is_relative_to(tmp_path / "cache")
    assert (folder / "node_modules" / PACKAGE / "index.js").is_file()
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    registry.shutdown()
    assert script.install("tides", wanted) is None


def test_a_package_with_another_sum_is_refused(registry: Registry, tmp_path: Path) -> None:
    other = "sha512-" + base64.b64encode(bytes(64)).decode()
    wanted = pins(tmp_path / "pins", other)
    why = script.install("tides", wanted)
    assert why is not None
    assert "EINTEGRITY" in why
    assert not script.is_installed(script.folder_of("tides", wanted))


def test_without_a_registry_the_reason_is_said(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    why = script.install("tides", pins(tmp_path / "pins", registry.integrity))
    assert why is not None
    assert "ECONNREFUSED" in why
