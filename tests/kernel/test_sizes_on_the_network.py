"""Requests, answers and blobs of every size pass in clear and over TLS, however the peer reads and writes.

The peers are `kit.blocking_peer` and Python's blocking HTTP server; our side runs on both event loops.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Literal

import pytest

from kit.blocking_peer import (
    AT_ONCE,
    NOT_TO_THE_END,
    ONE_OCTET,
    SLOWLY,
    BlockingPeer,
    Reading,
    Writing,
    blocking_peer,
)
from kit.http_outside import LOOPBACK
from kit.object_store import ObjectStore
from kit.smtp_listener import on_each_loop
from kit.smtp_sink import TlsAuthority
from pillarbox.kernel.network.fetch_result import FetchError, HttpLimits
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.network.web_address import parse_url
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.webhooks.dispatch.posting import LIMITS

pytestmark = pytest.mark.sweep

AUTHORITY = TlsAuthority()
SIZES = [1_000, 200_000, 2_000_000, 40_000_000]
SLOWLY_WRITTEN = Writing(octets=300_000, piece=4_000, pause=0.0005)
OCTET_BY_OCTET = Writing(octets=20_000, piece=1)
NOT_WRITTEN_TO_THE_END = Writing(octets=10_000_000, stop_after=3_000_000)

Tls = Literal["clear", "implicit"]
each_kind = pytest.mark.parametrize("tls", ["clear", "implicit"])


def url_of(peer: BlockingPeer) -> str:
    return f"{'http' if peer.tls == 'clear' else 'https'}://127.0.0.1:{peer.port}/in"


# Webhooks ---------------------------------------------------------------------------------------------


async def post(tls: Tls, body: bytes, reading: Reading, total: float = 60.0) -> None:
    """Two requests with this body, on one connection."""
    limits = replace(LIMITS, total=total)
    with blocking_peer(tls, reading, AUTHORITY, http=Writing()) as peer:
        outbound = Outbound(allow=LOOPBACK, tls=AUTHORITY.trust())
        try:
            for _ in range(2):
                assert (await outbound.post(parse_url(url_of(peer)), {}, body, limits)).status == 200
        finally:
            await outbound.close()
        assert peer.received == [(len(body), hashlib.sha256(body).hexdigest())] * 2


@pytest.mark.parametrize("size", SIZES)
@each_kind
@on_each_loop
async def test_a_webhook_of_each_size_arrives(tls: Tls, size: int) -> None:
    await post(tls, b"{" * size, AT_ONCE)


@pytest.mark.parametrize(("reading", "size"), [(SLOWLY, 500_000), (ONE_OCTET, 50_000)])
@each_kind
@on_each_loop
async def test_a_webhook_arrives_at_a_slow_receiver(tls: Tls, reading: Reading, size: int) -> None:
    await post(tls, b"{" * size, reading)


@each_kind
@on_each_loop
async def test_a_receiver_that_stops_reading_is_given_up(tls: Tls) -> None:
    with pytest.raises(FetchError, match="did not answer in time"):
        await post(tls, b"{" * 20_000_000, NOT_TO_THE_END, total=0.5)


@each_kind
@on_each_loop
async def test_a_long_answer_to_a_webhook_is_cut(tls: Tls) -> None:
    with blocking_peer(tls, AT_ONCE, AUTHORITY, http=Writing(octets=40_000_000)) as peer:
        outbound = Outbound(allow=LOOPBACK, tls=AUTHORITY.trust())
        answer = await outbound.post(parse_url(url_of(peer)), {}, b"{}", LIMITS)
        await outbound.close()
        assert (answer.status, answer.cut, len(answer.body)) == (200, True, LIMITS.max_bytes)


# Fetches ----------------------------------------------------------------------------------------------


async def fetch(tls: Tls, writing: Writing, total: float = 60.0) -> None:
    limits = HttpLimits(max_bytes=50_000_000, total=total)
    with blocking_peer(tls, AT_ONCE, AUTHORITY, http=writing) as peer:
        outbound = Outbound(allow=LOOPBACK, tls=AUTHORITY.trust())
        try:
            answer = await outbound.fetch("GET", url_of(peer), limits)
        finally:
            await outbound.close()
        assert (answer.status, answer.body) == (200, b"a" * writing.octets)


@pytest.mark.parametrize("size", SIZES)
@each_kind
@on_each_loop
async def test_a_file_of_each_size_is_fetched(tls: Tls, size: int) -> None:
    await fetch(tls, Writing(octets=size))


@pytest.mark.parametrize("writing", [SLOWLY_WRITTEN, OCTET_BY_OCTET])
@each_kind
@on_each_loop
async def test_a_file_is_fetched_from_a_slow_server(tls: Tls, writing: Writing) -> None:
    await fetch(tls, writing)


@each_kind
@on_each_loop
async def test_a_server_that_stops_writing_is_given_up(tls: Tls) -> None:
    with pytest.raises(FetchError, match="did not answer in time"):
        await fetch(tls, NOT_WRITTEN_TO_THE_END, total=0.5)


# Blobs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@each_kind
async def test_a_blob_of_each_size_is_kept_in_an_object_store(
    tls: Tls, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObjectStore(None if tls == "clear" else AUTHORITY.server)
    store.start()
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    try:
        blobs = BlobStore.open("s3://mail/kept")
        data = bytes(range(250)) * (size // 250)
        await blobs.put("raw/one", data)
        assert await blobs.get("raw/one") == data
        assert b"".join([part async for part in blobs.stream("raw/one")]) == data
        await blobs.close()
    finally:
        store.stop()
