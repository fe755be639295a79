"""WH-06: whatever a URL, a resolver or a redirect says, only permitted addresses are reached."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network

import pytest

from kit.http_outside import LOOPBACK, Zone, answer, client, failure, get, serving
from pillarbox.kernel.network.address_policy import AddressPolicy

PRIVATE = Zone(
    loop_example=["127.0.0.1"],
    loop6_example=["::1"],
    lan_example=["10.0.0.1"],
    mixed_example=["8.8.8.8", "127.0.0.1"],
    mixed6_example=["2606:4700::1111", "fd00::1"],
    mapped_example=["::ffff:127.0.0.1"],
    metadata_example=["169.254.169.254"],
    junk_example=["localhost"],
    public_example=["8.8.8.8"],
    localhost=["127.0.0.1"],
    empty_example=[],
)
REFUSED_HOSTS = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7F.0.0.1",
    "0x7f.1",
    "017700000001",
    "0177.0.0.1",
    "0177.1",
    "00000177.0.0.1",
    "127.0x0.0.01",
    "0",
    "0x",
    "0.0.0.0",
    "00",
    "0.1",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:0:7F00:1]",
    "[::ffff:8.8.8.8]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2001::1]",
    "[2001:db8::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[100::1]",
    "[3fff::1]",
    "[5f00::1]",
    "10.0.0.1",
    "10.1",
    "012.0.0.1",
    "167772161",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.257",
    "3232235521",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "100.64.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "4294967295",
    "１２７.0.0.1",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "127．0．0．1",
    "１２７。１",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "ｌocalhost",
    "loop.example",
    "LOOP.example.",
    "loop。example",
    "loop6.example",
    "lan.example",
    "mixed.example",
    "mixed6.example",
    "mapped.example",
    "metadata.example",
    "junk.example",
]
BAD_URLS = [
    "ftp://127.0.0.1:{port}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "127.0.0.1:{port}",
    "http:/127.0.0.1:{port}/",
    "http:127.0.0.1:{port}",
    "http:///127.0.0.1:{port}/",
    "http://user@127.0.0.1:{port}/",
    "http://public.example@127.0.0.1:{port}/",
    "http://public.example:80@127.0.0.1:{port}/",
    "http://@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@public.example/",
    "http://public.example\\@127.0.0.1:{port}/",
    "http:\\\\127.0.0.1:{port}/",
    "http://127.0.0.1:{port}@public.example/",
    "http://[::1:{port}/",
    "http://::1:{port}/",
    "http://[::1%25lo]:{port}/",
    "http://[fe80::1%lo]:{port}/",
    "http://%31%32%37.0.0.1:{port}/",
    "http://127%2e0.0.1:{port}/",
    "http://127.0.0.1%00:{port}/",
    "http://127.0.0.1:{port}:80/",
    "http://127.0.0.1.1:{port}/",
    "http://256.0.0.1:{port}/",
    "http://127.0.0.08:{port}/",
    "http://0x7f.0.0.0x100:{port}/",
    "http://127..1:{port}/",
    "http://localhost..:{port}/",
    "http://127.0.0.1:0/",
    "http://127.0.0.1:{port}0000/",
    "http://127.0.0.1,public.example:{port}/",
    "http://127.0.0.1;x:{port}/",
    "ws://127.0.0.1:{port}/",
]
LOW_PORTS = [
    f"{host}:{port}" for host in ("8.8.8.8", "public.example") for port in (1, 22, 25, 465, 587, 993, 1023)
]


def test_the_tables_are_long_enough() -> None:
    """WH-06 asks for 120 forms; each host is tried by http and by https."""
    assert 2 * len(REFUSED_HOSTS) + len(BAD_URLS) + len(LOW_PORTS) > 200
    assert len(set(REFUSED_HOSTS)) == len(REFUSED_HOSTS)


async def test_no_spelling_of_a_private_address_is_reached() -> None:
    """WH-06: refused before any connection; the listener on loopback sees nobody."""
    async with serving(answer()) as canary, client(PRIVATE, allow=[]) as outbound:
        for host in REFUSED_HOSTS:
            for scheme in ("http", "https"):
                url = f"{scheme}://{host}:{canary.port}/"
                assert await failure(outbound, url) == "refused", url
        assert canary.connections == 0


async def test_what_is_no_plain_url_is_not_tried() -> None:
    """WH-06."""
    async with serving(answer()) as canary, client(PRIVATE, allow=LOOPBACK) as outbound:
        for form in BAD_URLS:
            assert await failure(outbound, form.replace("{port}", str(canary.port))) == "url", form
        assert canary.connections == 0


async def test_mail_and_other_low_ports_are_refused() -> None:
    """WH-06."""
    async with client(PRIVATE, allow=[]) as outbound:
        for target in LOW_PORTS:
            assert await failure(outbound, f"http://{target}/") == "refused", target


async def test_the_operators_list_opens_an_address() -> None:
    async with serving(answer(b"inside")) as server, client(PRIVATE) as outbound:
        for host in ("127.0.0.1", "loop.example", "0x7f.1", "localhost"):
            assert (await get(outbound, f"http://{host}:{server.port}/")).body == b"inside"
        assert await failure(outbound, f"http://127.0.0.2:{server.port}/") == "refused"


async def test_a_name_that_changes_its_mind_gains_nothing() -> None:
    """WH-06: 127.0.0.2 stands for a public address here, 127.0.0.1 for one that is not."""
    zone = Zone(hook_example=[["127.0.0.2"], ["127.0.0.1"], ["127.0.0.1"]])
    async with (
        serving(answer(b"outside"), host="127.0.0.2") as outside,
        serving(answer(b"inside"), port=outside.port) as canary,
        client(zone, allow=[ip_network("127.0.0.2/32")]) as outbound,
    ):
        url = f"http://hook.example:{outside.port}/"
        assert (await get(outbound, url)).body == b"outside"
        assert zone.asked == ["hook.example"]
        assert await failure(outbound, url) == "refused"
        assert canary.connections == 0


async def test_a_redirect_that_changes_its_mind_gains_nothing() -> None:
    zone = Zone(hook_example=[["127.0.0.2"], ["127.0.0.1"]])
    back = answer(b"", "Location: /again", status="302 Found")
    async with (
        serving(back, host="127.0.0.2") as outside,
        serving(answer(b"inside"), port=outside.port) as canary,
        client(zone, allow=[ip_network("127.0.0.2/32")]) as outbound,
    ):
        assert await failure(outbound, f"http://hook.example:{outside.port}/", redirects=5) == "refused"
        assert (outside.connections, canary.connections) == (1, 0)


async def test_the_socket_checks_once_more_before_it_connects() -> None:
    """WH-06: should an address get past the first check, it gets no further."""
    verdicts = iter([False, True])
    reach = AddressPolicy(own=lambda address: next(verdicts))
    async with client(Zone(hook_example=["8.8.8.8"]), policy=reach) as outbound:
        assert await failure(outbound, "http://hook.example/") == "connect"


@pytest.mark.parametrize(
    "location",
    [
        *(
            "http://127.0.0.2:{port}/",
            "//127.0.0.2:{port}/",
            "http://2130706434:{port}/",
            "http://lan.example/",
        ),
        *(
            "http://[::1]:{port}/",
            "http://mixed6.example:{port}/",
            "http://169.254.169.254/latest/meta-data/",
        ),
    ],
)
async def test_a_redirect_to_a_private_address_is_refused(location: str) -> None:
    """WH-06; contract decision 28: each hop is checked."""
    async with (
        serving(lambda reader, writer: redirect(writer, location)) as server,
        client(PRIVATE) as outbound,
    ):
        assert await failure(outbound, f"http://127.0.0.1:{server.port}/", redirects=5) == "refused"


async def redirect(writer: asyncio.StreamWriter, location: str) -> None:
    port = str(writer.get_extra_info("sockname")[1])
    writer.write(answer(b"", f"Location: {location.replace('{port}', port)}", status="302 Found"))
    await writer.drain()


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "http://user@127.0.0.1/", "http://[::1", "\\\\host\\x"]
)
async def test_a_redirect_to_something_else_is_refused(location: str) -> None:
    async with (
        serving(answer(b"", f"Location: {location}", status="302 Found")) as server,
        client() as outbound,
    ):
        assert await failure(outbound, f"http://127.0.0.1:{server.port}/", redirects=5) == "url"
