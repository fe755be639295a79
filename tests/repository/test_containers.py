"""The files of deploy: well formed, in agreement with the program, and their command lines at work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import trustme
import yaml

from kit.process import Lines
from pillarbox.app import SETTINGS
from pillarbox.kernel.settings.settings import Settings, read_settings
from repository.test_scripts import ROOT

DEPLOY = ROOT / "deploy"
FILES = ("compose.yaml", "compose.production.yaml")
SCHEMA = json.loads((Path(__file__).parent / "compose_schema.json").read_text())
TIMEOUT = 60
GRACE = 60
RING = "k1:" + "A" * 43 + "="

NAMED = {
    "BLOB_URL": "s3://mail-blobs",
    "PUBLIC_URL": "https://mail.pillar.example",
    "SPF_VALUE": "v=spf1 a:mx1.pillar.example a:mx2.pillar.example -all",
    "FRONT_NAME": "mx1.pillar.example",
    "DELIVERY_NAME": "mx2.pillar.example",
}
"""What the operator writes into .env."""

HOST, BOX = "172.30.255.1", "172.30.255.2"
"""Addresses of two network namespaces that the test makes; nothing of this machine is reached."""


def interpolated(text: str, values: Mapping[str, str]) -> str:
    """`${NAME:?…}` replaced; a name without a value is an error, as Compose makes it one."""
    return re.sub(r"\$\{(\w+):\?[^}]+\}", lambda found: values[found[1]], text)


def compose(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(interpolated((DEPLOY / name).read_text(), NAMED))
    return found


def image() -> dict[str, str]:
    """The variables that the image sets."""
    return dict(re.findall(r"(PILLARBOX_\w+)=(\S+)", (ROOT / "Dockerfile").read_text()))


def environments() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Of every service: file, name, and the environment of its process."""
    for name in FILES:
        for service, wanted in compose(name)["services"].items():
            given = {key: text for key, text in wanted["environment"].items() if text is not None}
            yield name, service, {**image(), **given}


SERVICES = [pytest.param(name, service, id=service) for name, service, _ in environments()]


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """What the production file mounts: secrets and a certificate."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "tls").mkdir()
    (tmp_path / "secrets/database_url").write_text("postgresql://ann@db.example/pillarbox\n")
    (tmp_path / "secrets/secret_key").write_text(f"{RING}\n")
    made = trustme.CA().issue_cert("mail.pillar.example")
    made.private_key_pem.write_to_path(tmp_path / "tls/privkey.pem")
    for pem in made.cert_chain_pems:
        pem.write_to_path(tmp_path / "tls/fullchain.pem", append=True)
    return tmp_path


def environment_of(name: str, service: str, mounted: Path) -> dict[str, str]:
    """The environment of a service, with the mounted files where they are here."""
    (found,) = [around for file, one, around in environments() if (file, one) == (name, service)]
    places = {
        "/run/secrets": str(mounted / "secrets"),
        "/tls": str(mounted / "tls"),
        "/data": str(mounted / service),
    }
    return {
        key: re.sub("^(/run/secrets|/tls|/data)", lambda at: places[at[0]], text)
        for key, text in found.items()
    }


def settings_of(name: str, service: str, mounted: Path) -> Settings:
    return read_settings(SETTINGS, {}, environment_of(name, service, mounted))


@pytest.mark.parametrize("name", FILES)
def test_a_compose_file_is_well_formed(name: str) -> None:
    found = compose(name)
    jsonschema_rs.validate(SCHEMA, found)
    used = [volume for service in found["services"].values() for volume in service["volumes"]]
    assert {text.partition(":")[0] for text in used if not text.startswith(".")} == set(found["volumes"])
    asked = {secret for service in found["services"].values() for secret in service.get("secrets", [])}
    assert asked == set(found.get("secrets", {}))


@pytest.mark.parametrize(
    "wrong",
    [{"prots": ["1:1"]}, {"ports": [8080]}, {"cap_drop": []}, {"environment": {"A": 1}}, {"build": "."}],
)
def test_the_schema_refuses_what_is_wrong(wrong: dict[str, Any]) -> None:
    found = compose("compose.yaml")
    found["services"]["pillarbox"].update(wrong)
    assert not jsonschema_rs.is_valid(SCHEMA, found)


@pytest.mark.parametrize(("name", "service"), SERVICES)
def test_the_settings_of_a_service_are_settings_and_its_ports_are_listened_on(
    name: str, service: str, mounted: Path
) -> None:
    settings = settings_of(name, service, mounted)
    wanted = compose(name)["services"][service]
    listening = {settings.http.port} if "api" in settings.roles else set()
    if "smtp" in settings.roles:
        assert settings.smtp is not None
        listening |= {settings.smtp.port, *(found.at.port for found in settings.submission)}
    assert {int(text.rpartition(":")[2]) for text in wanted.get("ports", [])} == listening
    assert settings.data == mounted / service
    assert any(volume.endswith(":/data") for volume in wanted["volumes"])
    assert int(wanted["stop_grace_period"].removesuffix("s")) >= GRACE


def test_both_nodes_of_production_do_all_work_with_the_same_secrets(mounted: Path) -> None:
    front, delivery = (settings_of(FILES[1], name, mounted) for name in ("front", "delivery"))
    assert {*front.roles, *delivery.roles} == set(read_settings(SETTINGS, {}, {}).roles)
    assert front.hostname != delivery.hostname
    for shared in ("database_url", "secret_key", "public_url", "blob_url", "route", "spf_value"):
        assert front.given[shared] == delivery.given[shared], shared


def test_on_a_laptop_everything_is_published_on_loopback_alone() -> None:
    for port in compose("compose.yaml")["services"]["pillarbox"]["ports"]:
        assert port.startswith("127.0.0.1:")


def test_the_image_is_built_of_files_that_exist_and_runs_without_rights() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    sent = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for line in lines:
        if line.startswith("COPY "):
            words = [word for word in line.split()[1:] if not word.startswith("--")]
            for word in words[:-1]:
                assert (ROOT / word).exists(), word
                assert word in sent, f"{word} is not sent to the builder"
    assert lines.index("USER pillarbox") < lines.index('ENTRYPOINT ["pillarbox"]')
    assert "VOLUME /data" in lines
    exposed = next(line for line in lines if line.startswith("EXPOSE")).split()[1:]
    assert exposed == [
        image()[f"PILLARBOX_{name}"].rpartition(":")[2] for name in ("HTTP", "SMTP", "SUBMISSION")
    ]


def test_the_systemd_unit_is_one_that_systemd_reads(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not here")
    unit = (DEPLOY / "pillarbox.service").read_text()
    (tmp_path / "pillarbox.service").write_text(
        re.sub("^ExecStart=.*", "ExecStart=/bin/true", unit, flags=re.M)
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "pillarbox.service")],
        capture_output=True,
        text=True,
    )
    complaints = [line for line in done.stderr.splitlines() if "pillarbox.service" in line]
    assert complaints == []


@contextmanager
def serving(around: Mapping[str, str], *inside: str, **replaced: str) -> Iterator[Lines]:
    """The command of the image with that environment, in the namespaces that `inside` enters."""
    kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "PILLARBOX_PROCESSES": "1"}
    process = subprocess.Popen(
        [*inside, sys.executable, "-P", "-m", "pillarbox", "serve"],
        env={**kept, **around, **replaced},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        Lines(process.stderr)
        yield Lines(process.stdout)
    finally:
        process.terminate()
        process.wait(TIMEOUT)


def health(data: Path, *inside: str) -> subprocess.CompletedProcess[str]:
    command = [*inside, sys.executable, "-I", str(DEPLOY / "health.py")]
    return subprocess.run(command, env={"PILLARBOX_DATA": str(data)}, capture_output=True, text=True)


class Namespaces:
    """A host and a container: two network namespaces with one cable between them, and none to others."""

    def __init__(self, stack: ExitStack) -> None:
        self.host = self._entering(stack)
        self.box = self._entering(stack)
        cable = ["link", "add", "outside", "type", "veth", "peer", "name", "inside", "netns"]
        self._ip(self.host, *cable, self.box[2])
        for place, end, address in ((self.host, "outside", HOST), (self.box, "inside", BOX)):
            self._ip(place, "addr", "add", f"{address}/30", "dev", end)
            self._ip(place, "link", "set", end, "up")
            self._ip(place, "link", "set", "lo", "up")

    def _entering(self, stack: ExitStack) -> list[str]:
        """The words that run a command in a new namespace."""
        holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        stack.callback(holder.wait)
        stack.callback(holder.kill)
        ours = os.readlink("/proc/self/ns/net")
        deadline = time.monotonic() + TIMEOUT
        while os.readlink(f"/proc/{holder.pid}/ns/net") == ours:
            assert time.monotonic() < deadline, "unshare made no namespace"
            time.sleep(0.01)
        return ["nsenter", "-t", str(holder.pid), "-n", "--"]

    def _ip(self, place: list[str], *words: str) -> None:
        subprocess.run([*place, "ip", *words], check=True)


def may_have_namespaces() -> bool:
    try:
        return subprocess.run(["unshare", "--net", "ip", "link"], capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not may_have_namespaces(), reason="network namespaces may not be made here")
def test_the_printed_link_works_on_the_machine_around_the_container(mounted: Path) -> None:
    around = environment_of("compose.yaml", "pillarbox", mounted)
    with ExitStack() as stack:
        places = Namespaces(stack)
        said = stack.enter_context(serving(around, *places.box))
        said.wait_for("ready http=0.0.0.0:8080 smtp=0.0.0.0:2525 submission=0.0.0.0:2587")
        link = said.wait_for("capture ").removeprefix("capture ")
        assert link.startswith("http://127.0.0.1:8080/capture?token=")
        # The published port of the machine leads to the container's address, under the machine's name.
        path = link.removeprefix("http://127.0.0.1:8080")
        assert asked(places.host, path, "127.0.0.1:8080") == "303"
        assert asked(places.host, path, "evil.example") == "403"
        assert asked(places.host, "/capture?token=wrong", "127.0.0.1:8080") == "403"
        assert health(mounted / "pillarbox", *places.box).returncode == 0
        assert health(mounted / "pillarbox", *places.host).returncode == 1, "the check asks its own container"


def asked(place: list[str], path: str, host: str) -> str:
    """The status of a request from a namespace to the container."""
    program = (
        "import http.client, sys; path, host = sys.argv[1:]; "
        f"ask = http.client.HTTPConnection('{BOX}', 8080, timeout=20); "
        "ask.request('GET', path, headers={'Host': host}); print(ask.getresponse().status)"
    )
    command = [*place, sys.executable, "-I", "-c", program, path, host]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_both_nodes_of_production_serve_and_are_well(database_url: str, mounted: Path) -> None:
    """With this test's database, a folder in place of the bucket, and free ports."""
    (mounted / "secrets/database_url").write_text(f"{database_url}\n")
    blobs = {"PILLARBOX_BLOB_URL": f"file:{mounted / 'blobs'}"}
    ports = {
        "PILLARBOX_HTTP": "127.0.0.1:0",
        "PILLARBOX_SMTP": "127.0.0.1:0",
        "PILLARBOX_SUBMISSION": "127.0.0.1:0,tls://127.0.0.1:0",
    }
    front, delivery = (environment_of(FILES[1], name, mounted) for name in ("front", "delivery"))
    assert health(mounted / "front").returncode == 1, "nothing runs yet"
    with serving(front, **blobs, **ports) as first, serving(delivery, **blobs) as second:
        ready = first.wait_for("ready ")
        assert re.fullmatch(r"ready http=\S+ smtp=\S+ submission=\S+,tls://\S+", ready)
        assert second.wait_for("ready") == "ready"
        keys = [line for line in (*first.all, *second.all) if line.startswith("api key ")]
        assert len(keys) == 1
        for node in ("front", "delivery"):
            found = health(mounted / node)
            assert found.returncode == 0, found.stdout
    assert health(mounted / "front").returncode == 1
