"""Several machines on one database: two real servers, each with a data folder of its own."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.commands import command, refused
from kit.http_client import http_client
from kit.object_store import object_store
from kit.process import KEY, PATIENCE, Served, connected, served, settled, verified
from kit.world import World
from pillarbox.kernel.postgres.migrations import FOLDER
from pillarbox.kernel.security.ring_check import OtherKeyRing, established, known_keys, lacking
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.settings import create_key_ring_file, settings_of

pytestmark = pytest.mark.sweep

LARGE = {"filename": "chart.bin", "content": b64encode(b"chart" * 600_000).decode()}
GONE = "The blob store cannot be reached right now. Try again later."


def ring_in(folder: Path) -> str:
    return (folder / "secret.key").read_text().strip()


def key_in(folder: Path) -> str:
    return ring_in(folder).partition(":")[0]


async def call(running: Served, method: str, path: str, body: Any = None) -> httpx.Response:
    host, port = running.ready()
    async with http_client(f"http://{host}:{port}", KEY, timeout=PATIENCE) as client:
        return await client.request(method, path, json=body)


def post(running: Served, **fields: Any) -> httpx.Response:
    mail = {"from": "a@harbor.example", "to": "b@quay.example", "subject": "Berth", "text": "12", **fields}
    return asyncio.run(call(running, "POST", "/emails", mail))


def health(running: Served) -> httpx.Response:
    return asyncio.run(call(running, "GET", "/health"))


async def changed(running: Served, status: int) -> httpx.Response:
    """The answer of `/health` once it has this status."""
    async with asyncio.timeout(PATIENCE):
        while (answer := await call(running, "GET", "/health")).status_code != status:
            await asyncio.sleep(0.1)
    return answer


def test_a_second_machine_without_the_key_ring_does_not_start(tmp_path: Path, database_url: str) -> None:
    """SEC-04: it would seal with a key that the first one does not have."""
    one, two = tmp_path / "one", tmp_path / "two"
    with served(one, database_url=database_url, processes="1"):
        sentence = refused(two, database_url=database_url)
        assert f"the key {key_in(one)}" in sentence
        assert f"{two / 'secret.key'} does not exist" in sentence
        assert "--secret-key" in sentence
        assert not two.exists()
        two.mkdir()
        create_key_ring_file(two / "secret.key")
        sentence = refused(two, database_url=database_url)
        assert (
            f"it has the key {key_in(two)}, and the secrets in the database need the key {key_in(one)}"
            in sentence
        )
    ring = ring_in(one)
    (one / "secret.key").unlink()
    assert f"the key {ring.partition(':')[0]}" in refused(one, database_url=database_url)
    assert not (one / "secret.key").exists()
    with served(one, database_url=database_url, processes="1", secret_key=ring) as again:
        assert health(again).status_code == 200


@pytest.mark.slow
def test_a_command_in_an_empty_folder_writes_nothing_there(tmp_path: Path, database_url: str) -> None:
    with served(tmp_path / "one", database_url=database_url, processes="1"):
        pass
    here = tmp_path / "here"
    here.mkdir()
    flags = ("--database-url", database_url)
    assert (
        command(
            "domains",
            "trust",
            "harbor.example",
            "--create",
            *flags[:0],
            "--data",
            str(tmp_path / "one"),
            *flags,
        ).returncode
        == 0
    )
    done = command("domains", "rotate-dkim", "harbor.example", *flags, folder=here)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"need a key ring with the key {key_in(tmp_path / 'one')}" in done.stderr
    assert command("queue", *flags, folder=here).returncode == 0
    found = command("verify", *flags, folder=here)
    assert found.returncode == 2
    assert f"The blob store in {here}/pillarbox-data/blobs is not the one of this database" in found.stderr
    assert list(here.iterdir()) == []


@pytest.mark.slow
def test_a_large_attachment_is_for_all_machines_or_refused(tmp_path: Path, database_url: str) -> None:
    """DUR-01: what one machine accepts the others can read."""
    one, two, shared = tmp_path / "one", tmp_path / "two", f"file:{tmp_path / 'shared'}"
    front: Mapping[str, str] = {"database_url": database_url, "processes": "1", "blob_url": shared}
    with served(one, roles="api", **front) as api:
        two.mkdir()
        shutil.copy(one / "secret.key", two)
        sentence = refused(two, database_url=database_url, roles="delivery,webhooks,jobs")
        assert f"The blob store in {two / 'blobs'} is not the one of this database: it has no id" in sentence
        assert "the same --blob-url" in sentence
        assert not (two / "blobs").exists()
        with served(two, roles="api,delivery,webhooks,jobs", **front):
            assert post(api, attachments=[LARGE]).status_code == 200
            asyncio.run(settled(database_url, PATIENCE))
    verified(one, database_url=database_url, blob_url=shared)


def test_an_object_store_that_is_gone_is_said_to_be_gone(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-02: not that there is no room."""
    flags = {"database_url": database_url, "processes": "1", "blob_url": "s3://mail/box"}
    doctor = ("doctor", "--json", "--data", str(tmp_path / "one"))
    with object_store() as store:
        for name, text in store.environment.items():
            monkeypatch.setenv(name, text)
        with served(tmp_path / "one", **flags) as running:
            assert post(running, attachments=[LARGE]).status_code == 200
            assert "box/store-id" in store.buckets["mail"]
            assert '"name": "blob_store",\n      "level": "ok"' in command(*doctor).stdout
            store.stop()
            answer = post(running, attachments=[LARGE])
            assert (answer.status_code, answer.json()["name"]) == (503, "service_unavailable")
            assert answer.json()["message"] == GONE
            assert int(answer.headers["retry-after"]) > 0
            assert post(running).status_code == 200
            assert asyncio.run(changed(running, 503)).json()["message"] == GONE
            found = command(*doctor).stdout
            assert "it cannot be reached: no connection" in found
            assert "AWS_ENDPOINT_URL" in found
            store.start()
            asyncio.run(changed(running, 200))
            kept = store.buckets.pop("mail")
            assert post(running, attachments=[LARGE]).json()["message"] == GONE
            asyncio.run(changed(running, 503))
            assert "it cannot be reached: NoSuchBucket" in command(*doctor).stdout
            store.buckets["mail"] = kept
            asyncio.run(changed(running, 200))
            assert post(running, attachments=[LARGE]).status_code == 200


@pytest.mark.slow
def test_a_start_without_its_object_store_goes_on_and_stores_nothing_until_the_ids_were_compared(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {"database_url": database_url, "processes": "1", "blob_url": "s3://mail"}
    with object_store() as store:
        for name, text in store.environment.items():
            monkeypatch.setenv(name, text)
        kept = store.buckets.pop("mail")
        with served(tmp_path / "one", **flags) as running:
            assert health(running).json()["message"] == GONE
            assert post(running, attachments=[LARGE]).json()["message"] == GONE
            store.buckets["mail"] = kept
            asyncio.run(changed(running, 200))
            assert post(running, attachments=[LARGE]).status_code == 200
        store.buckets["mail"] = {}
        assert "The blob store of --blob-url is not the one of this database" in refused(
            tmp_path / "one", **flags
        )


def test_a_copied_data_folder_disturbs_nobody(tmp_path: Path) -> None:
    original, copy = tmp_path / "data", tmp_path / "copy"
    with served(original, processes="1") as running:
        assert post(running).status_code == 200
        # A temporary file of the running database may vanish meanwhile, which cp complains about.
        subprocess.run(["cp", "-a", str(original), str(copy)], check=False)
        assert (copy / "postgres/PG_VERSION").is_file()
        sentence = refused(copy)
        assert f"is a copy that was made while Pillarbox (process {running.process.pid} on " in sentence
        assert f"remove {copy / 'run/supervisor.json'}" in sentence
        found = command("queue", "--data", str(copy))
        assert (found.returncode, found.stderr) == (1, sentence + "\n")
        assert post(running).status_code == 200
        assert command("queue", "--data", str(original)).returncode == 0
    shutil.rmtree(copy)
    subprocess.run(["cp", "-a", str(original), str(copy)], check=True)
    with served(original, processes="1") as one, served(copy, processes="1") as two:
        assert [post(each).status_code for each in (one, two)] == [200, 200]
        assert one.database_url != two.database_url
        two.stop()
        assert health(one).status_code == 200


def test_a_killed_server_starts_again_in_its_own_folder(tmp_path: Path) -> None:
    with served(tmp_path / "data", processes="1") as running:
        running.process.kill()
        running.process.wait(PATIENCE)
    assert (tmp_path / "data/run/supervisor.json").exists()
    with served(tmp_path / "data", processes="1") as again:
        assert post(again).status_code == 200


@pytest.mark.slow
def test_the_key_ring_is_rotated_machine_by_machine(tmp_path: Path, database_url: str) -> None:
    """SEC-04: at every step each of them can read what the other one seals."""
    old, new = (f"{name}:{b64encode(bytes([at]) * 32).decode()}" for at, name in enumerate(("old", "new")))
    blobs = f"file:{tmp_path / 'shared'}"
    flags = {"database_url": database_url, "processes": "1", "blob_url": blobs}
    one, two = tmp_path / "one", tmp_path / "two"
    domain = {"name": "harbor.example"}
    hook = {"endpoint": "https://hook.example/", "events": ["email.sent"]}
    with served(one, secret_key=old, **flags) as first:
        assert asyncio.run(call(first, "POST", "/domains", domain)).status_code == 201
        with served(two, secret_key=f"{old},{new}", **flags) as second:
            first.stop()
            with served(one, secret_key=f"{new},{old}", **flags) as again:
                made = asyncio.run(call(again, "POST", "/webhooks", hook)).json()
                seen = asyncio.run(call(second, "GET", f"/webhooks/{made['id']}"))
                assert seen.json()["signing_secret"] == made["signing_secret"]
                assert health(second).status_code == 200
                assert "need the key new" in refused(tmp_path / "three", secret_key=old, **flags)
                # The second machine has missed a restart: it still encrypts with the old key.
                done = command("keyring", "reseal", "--data", str(one))
                assert done.stdout.startswith("1 value encrypted again, with the key new.")
                assert "still encrypts with old: restart every server with new" in done.stdout
                assert done.returncode == 1
                late = asyncio.run(call(second, "POST", "/domains", {"name": "quay.example"}))
                assert late.status_code == 201
                assert "need the key old" in refused(tmp_path / "three", secret_key=new, **flags)
                second.stop()
                done = command("keyring", "reseal", "--data", str(one))
                assert done.stdout.startswith("1 value encrypted again, with the key new.")
                assert "No value needs old any more." in done.stdout
                assert done.returncode == 0
    assert command("keyring", "show", "--data", str(one), "--database-url", database_url).returncode == 1
    with served(one, secret_key=new, **flags) as last:
        assert command("keyring", "show", "--data", str(one)).returncode == 0
        assert health(last).status_code == 200


def test_a_process_that_is_left_behind_by_a_new_key_says_so(tmp_path: Path, database_url: str) -> None:
    old, new = (f"{name}:{b64encode(bytes([at]) * 32).decode()}" for at, name in enumerate(("old", "new")))
    flags = {"database_url": database_url, "processes": "1", "blob_url": f"file:{tmp_path / 'shared'}"}
    with (
        served(tmp_path / "one", secret_key=old, **flags) as behind,
        served(tmp_path / "two", secret_key=f"{new},{old}", **flags) as ahead,
    ):
        made = asyncio.run(call(ahead, "POST", "/domains", {"name": "harbor.example"}))
        assert made.status_code == 201
        answer = asyncio.run(changed(behind, 503))
    assert answer.json()["message"] == "A key of the key ring is missing on this server. Try again later."


@pytest.mark.slow
async def test_mail_whose_key_is_lost_is_held_and_named(tmp_path: Path, database_url: str) -> None:
    """DKIM-05; it goes as soon as there is a ring with the key."""
    one, lost = tmp_path / "one", tmp_path / "lost.key"
    flags = {"database_url": database_url, "processes": "1"}
    with served(one, **flags) as running:
        assert (await call(running, "POST", "/domains", {"name": "harbor.example"})).status_code == 201
    key = key_in(one)
    (one / "secret.key").rename(lost)
    done = await asyncio.to_thread(
        command, "keyring", "abandon", key, "--data", str(one), "--database-url", database_url
    )
    assert done.returncode == 0, done.stderr
    assert "The DKIM key of the domain harbor.example needs the key" in done.stdout
    with served(one, **flags) as running:
        assert (await call(running, "GET", "/health")).status_code == 200
        mail = {"from": "a@harbor.example", "to": "b@quay.example", "subject": "Berth", "text": "12"}
        assert (await call(running, "POST", "/emails", mail)).status_code == 200
        async with connected(database_url) as conn, asyncio.timeout(PATIENCE):
            while not (
                held := await conn.fetch(
                    "SELECT reason, tries FROM deliveries WHERE owner IS NULL AND due_at > '9000-01-01'"
                )
            ):
                await asyncio.sleep(0.05)
        assert key in held[0]["reason"]
        assert held[0]["tries"] == 0
        found = await asyncio.to_thread(command, "verify", "--data", str(one))
        assert found.returncode == 1
        assert (
            f"GAP secret_unreadable: The DKIM key of the domain harbor.example needs the key {key}"
            in found.stdout
        )
    (one / "secret.key").write_text(f"{ring_in(one)},{lost.read_text().strip()}")
    with served(one, **flags):
        await settled(database_url, PATIENCE)
    verified(one, database_url=database_url)


async def test_two_machines_that_start_at_once_do_not_make_two_key_rings(
    tmp_path: Path, database_url: str
) -> None:
    async def begin(name: str) -> str:
        (tmp_path / name).mkdir()
        settings = settings_of({"data": str(tmp_path / name), "database_url": database_url})
        async with connected(database_url) as conn:
            return await established(conn, settings)

    ended = await asyncio.gather(begin("one"), begin("two"), return_exceptions=True)
    assert [type(each) for each in ended if not isinstance(each, str)] == [OtherKeyRing]
    assert len([name for name in ("one", "two") if (tmp_path / name / "secret.key").exists()]) == 1


async def test_a_database_of_an_earlier_release_knows_its_keys_after_the_migration(running: World) -> None:
    """Nothing was written down before; what is sealed says with which key."""
    team = await running.team()
    await team.domain()
    await team.post("/webhooks", {"endpoint": "https://hook.example/", "events": ["email.sent"]})
    ring = running.app.need(KeyRing)
    await running.pool.execute("DELETE FROM key_ring_keys")
    migration = (FOLDER / "0017_key_ring_and_blob_store.sql").read_text()
    await running.pool.execute(migration[migration.index("INSERT INTO") :])
    (known,) = await known_keys(running.pool)
    assert known.id == ring.active_id
    assert lacking(ring, [known]) == []
    assert lacking(KeyRing([(known.id, bytes(32))]), [known]) == [known.id]
