"""The environment that the scripts make: from where, with what, and what its user sees meanwhile."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pty
import re
import shutil
import subprocess
import sys
import threading
import venv
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from repository.test_scripts import ROOT, checkout, run

MOST_MEGABYTES = 225
PACKAGE = "harbor_tide-1.0-py3-none-any.whl"


def script_module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "script" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


package_index = script_module("package_index")
interpreters = script_module("interpreters")


class Index(ThreadingHTTPServer):
    """A package index on loopback that holds one small package, and remembers who asked."""

    def __init__(self, folder: Path) -> None:
        asked = self.asked = []

        class Answers(SimpleHTTPRequestHandler):
            def __init__(self, *args: object) -> None:
                super().__init__(*args, directory=str(folder))

            def log_message(self, *args: object) -> None:
                asked.append((self.path, self.headers.get("User-Agent", "")))

        super().__init__(("127.0.0.1", 0), Answers)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/simple"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    folder = tmp_path / "index" / "simple" / "harbor-tide"
    folder.mkdir(parents=True)
    about = "harbor_tide-1.0.dist-info"
    with zipfile.ZipFile(folder / PACKAGE, "w") as file:
        file.writestr("harbor_tide.py", "level = 3\n")
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: harbor-tide\nVersion: 1.0\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    return folder / PACKAGE


@pytest.fixture
def index(tmp_path: Path, wheel: Path) -> Iterator[Index]:
    with Index(tmp_path / "index") as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def small_checkout(folder: Path, wheel: Path) -> Path:
    """A checkout whose only package is the one of the index."""
    shutil.copytree(ROOT / "script", folder / "script")
    (folder / "src").mkdir()
    (folder / "requirements").mkdir()
    shutil.copy2(ROOT / "requirements/uv.txt", folder / "requirements")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "requirements/runtime.txt").write_text(f"harbor-tide==1.0 --hash=sha256:{digest}\n")
    return folder


def level(python: str) -> str:
    asked = [python.strip(), "-c", "import harbor_tide; print(harbor_tide.level)"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((), {}),
        (("global.index-url='https://a.example/s'",), {"UV_DEFAULT_INDEX": "https://a.example/s"}),
        (
            ("global.index-url='https://a.example/s'", "install.index-url='https://b.example/s'"),
            {"UV_DEFAULT_INDEX": "https://b.example/s"},
        ),
        (
            (":env:.index-url='https://c.example/s'", "global.index-url='https://a.example/s'"),
            {"UV_DEFAULT_INDEX": "https://c.example/s"},
        ),
        (
            ("global.extra-index-url='\\nhttps://a.example/s\\nfile:///not/there'",),
            {"UV_INDEX": "https://a.example/s"},
        ),
        (
            ("global.find-links='/ /not/there https://a.example/w'",),
            {"UV_FIND_LINKS": "/,https://a.example/w"},
        ),
        (
            ("global.trusted-host='a.example b.example:8443'",),
            {"UV_INSECURE_HOST": "a.example b.example:8443"},
        ),
        (("global.timeout='180'", "global.retries='2'"), {"UV_HTTP_TIMEOUT": "180", "UV_HTTP_RETRIES": "2"}),
        (
            ("global.proxy='http://p.example:3128'",),
            dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://p.example:3128"),
        ),
        (("global.client-cert='/c.pem'",), {"SSL_CLIENT_CERT": "/c.pem"}),
        (("global.cert='/ca.pem'",), {"SSL_CERT_FILE": "/ca.pem"}),
        (("global.cert='/'",), {"SSL_CERT_DIR": "/"}),
        (("global.keyring-provider='subprocess'",), {"UV_KEYRING_PROVIDER": "subprocess"}),
        (("list.format='columns'", "nonsense", ""), {}),
    ],
)
def test_uv_is_told_what_pip_is_configured_with(lines: tuple[str, ...], expected: dict[str, str]) -> None:
    told = package_index.uv_environment(
        package_index.pip_settings(lines), {"PATH": "/bin", "UV_OFFLINE": "1"}
    )
    told.pop("UV_SYSTEM_CERTS", None)
    assert told == {"PATH": "/bin", **expected}


def test_a_proxy_of_the_environment_is_kept_unless_pip_names_another() -> None:
    around = {"https_proxy": "http://a.example:1", "NO_PROXY": "localhost"}
    assert package_index.uv_environment({}, around).items() >= around.items()
    told = package_index.uv_environment({"proxy": "http://b.example:2"}, around)
    assert (told.get("https_proxy"), told["HTTPS_PROXY"]) == (None, "http://b.example:2")


@pytest.mark.parametrize("name", package_index.CERTIFICATES)
def test_a_bundle_of_certificates_that_pip_would_take_is_taken(name: str) -> None:
    assert package_index.uv_environment({}, {name: "/ca.pem"})["SSL_CERT_FILE"] == "/ca.pem"


def test_options_that_have_no_variable_are_passed_on() -> None:
    said = package_index.uv_options({"no-index": "1", "only-binary": "a,b"})
    assert said[-5:] == ["--no-index", "--only-binary", "a", "--only-binary", "b"]


def test_where_uv_is_not_to_be_had_plain_pip_installs_the_same(
    tmp_path: Path, wheel: Path, index: Index
) -> None:
    folder = small_checkout(tmp_path / "a checkout", wheel)
    configured = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index.url, "PIP_FIND_LINKS": ""}
    done = run(folder, "script/bootstrap", "runtime", **configured)
    assert done.returncode == 0, done.stderr
    assert level(done.stdout) == "3\n"
    assert next(agent for path, agent in index.asked if PACKAGE in path).startswith("pip/")
    assert "pillarbox: fetching the packages with pip\n" in done.stderr
    assert not (folder / ".venv/installing").exists()


@pytest.mark.slow
def test_a_python_without_pip_gets_one_for_the_moment(tmp_path: Path, wheel: Path, index: Index) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    folder = small_checkout(tmp_path / "checkout", wheel)
    configured = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index.url, "PIP_FIND_LINKS": ""}
    bare = str(tmp_path / "bare/bin/python")
    done = run(folder, "script/bootstrap", "runtime", PYTHON=bare, **configured)
    assert done.returncode == 0, done.stderr
    assert level(done.stdout) == "3\n"
    assert not (folder / ".venv/bin/pip").exists()


@pytest.mark.slow
def test_a_package_with_another_hash_is_not_installed(tmp_path: Path, wheel: Path, index: Index) -> None:
    folder = small_checkout(tmp_path / "checkout", wheel)
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    configured = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index.url, "PIP_FIND_LINKS": ""}
    done = run(folder, "script/bootstrap", "runtime", **configured)
    assert done.returncode == 1
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert done.stderr.endswith("pillarbox: the packages could not be installed; the lines above say why\n")


@pytest.mark.slow
def test_uv_takes_the_packages_from_the_index_that_pip_is_configured_with(
    tmp_path: Path, wheel: Path, index: Index
) -> None:
    fetch = [
        getattr(sys, "_base_executable", sys.executable),
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "-d",
        str(tmp_path / "links"),
    ]
    subprocess.run([*fetch, "--require-hashes", "-r", str(ROOT / "requirements/uv.txt")], check=True)
    folder = small_checkout(tmp_path / "a checkout", wheel)
    (tmp_path / "pip.conf").write_text(
        f"[global]\nindex-url = {index.url}\nfind-links = {tmp_path / 'links'}\ntrusted-host = 127.0.0.1\n"
    )
    configured = {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "PIP_FIND_LINKS": str(tmp_path / "links")}
    done = run(folder, "script/bootstrap", "runtime", **configured)
    assert done.returncode == 0, done.stderr
    assert level(done.stdout) == "3\n"
    assert {agent[:3] for path, agent in index.asked if path.startswith("/simple/harbor")} == {"uv/"}


@pytest.mark.slow
def test_a_bare_checkout_is_installed_on_a_terminal_without_a_home(tmp_path: Path) -> None:
    """With blanks in the path, a strict umask, and nobody to own a home."""
    folder = checkout(tmp_path / "a checkout  with blanks")
    kept = {
        name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "SSL_")) or name == "PATH"
    }
    ours, theirs = pty.openpty()
    shown: list[bytes] = []
    reader = threading.Thread(target=read_all, args=(ours, shown))
    reader.start()
    done = subprocess.run(
        [str(folder / "script/pillarbox"), "version"],
        env={**kept, "TERM": "xterm", "HOME": "/nonexistent"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        umask=0o077,
        timeout=600,
    )
    os.close(theirs)
    reader.join()
    screen = b"".join(shown).decode()
    assert (done.returncode, done.stdout) == (0, b"0.1.0\n"), screen
    assert "pillarbox: fetching the packages … " in screen
    lines = [line.rpartition("\x1b[K")[2] for line in screen.split("\r\n")]
    assert lines[-1] == ""
    assert re.fullmatch(r"pillarbox: installed \d+ MB in \d+ s", lines[-2])
    taken = script_module("progress").size_of(folder / ".venv")
    assert taken < MOST_MEGABYTES * 1_000_000
    assert not (folder / ".venv/installing").exists()


def read_all(descriptor: int, into: list[bytes]) -> None:
    """Until the other end of the terminal is closed."""
    while True:
        try:
            data = os.read(descriptor, 4096)
        except OSError:
            break
        if not data:
            break
        into.append(data)
    os.close(descriptor)


def interpreter(folder: Path, name: str, says: str) -> None:
    """A program on the PATH that answers as a Python of that speed."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{says}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("seconds", "taken"),
    [(("0.0040", "0.0030"), "second"), (("0.0030", "0.0040"), "first"), (("0.0030", "0.0029"), "first")],
)
def test_the_fastest_python_is_taken_and_the_first_of_equals(
    tmp_path: Path, seconds: tuple[str, str], taken: str
) -> None:
    interpreter(tmp_path / "a", "python3.12", f"echo {seconds[0]} first")
    interpreter(tmp_path / "b", "python3.11", f"echo {seconds[1]} second")
    interpreter(tmp_path / "b", "python3.13", "exit 1")
    interpreter(tmp_path / "b", "python3", "echo 0.001 old; exit 1")
    found = interpreters.fastest({"PATH": f"{tmp_path / 'a'}:{tmp_path / 'b'}:/not/there"})
    assert found is not None
    assert found.path == taken


def test_the_python_that_is_named_is_taken_however_slow(tmp_path: Path) -> None:
    interpreter(tmp_path / "a", "python3", "echo 0.001 fast")
    found = interpreters.fastest({"PATH": str(tmp_path / "a"), "PYTHON": sys.executable})
    assert found is not None
    assert (Path(found.path).resolve(), found.seconds > 0.001) == (Path(sys.executable).resolve(), True)


def test_without_a_python_none_is_taken(tmp_path: Path) -> None:
    assert interpreters.fastest({"PATH": str(tmp_path)}) is None
