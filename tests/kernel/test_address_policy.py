"""WH-06: which addresses count as public."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from pillarbox.kernel.network.address_policy import AddressPolicy, is_own, is_public

NOBODY = AddressPolicy(own=lambda address: False)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255"),
        *("127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255"),
        *(
            "192.0.0.1",
            "192.0.0.170",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
        ),
        *("198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:8.8.8.8"),
        *("64:ff9b::a00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "100:0:0:1::1"),
        *("2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:20::1"),
        *("2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "3fff::1", "4000::1", "5f00::1"),
        *(
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fe80::1%eth0",
            "2a00::1%eth0",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
        ),
    ],
)
def test_what_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))
    assert not NOBODY.permits_text(address, 443)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
        ),
        *("128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0"),
        *("192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255"),
        *("203.0.112.255", "203.0.114.0", "223.255.255.255"),
        *("2000::1", "2001:200::1", "2001:4860:4860::8888", "2001:db7:ffff::1", "2001:db9::1", "2003::1"),
        *("2606:4700::1111", "2a00:1450::1", "3ffe:ffff::1", "3fff:1000::1"),
    ],
)
def test_what_is_public(address: str) -> None:
    assert is_public(ip_address(address))
    assert NOBODY.permits_text(address, 443)


def test_we_refuse_whatever_the_standard_library_calls_not_global() -> None:
    """An independent table: nothing that it knows to be special gets through ours."""
    for high in range(0, 2**16, 7):
        for low in (0, 1, 0x8000, 0xFFFF):
            for address in (ip_address((high << 16) | low), ip_address((high << 112) | low)):
                assert address.is_global or not is_public(address)


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "1.2.3.4.5", "0x7f.0.0.1", "127.1", "[::1]"])
def test_what_is_no_address_is_not_permitted(text: str) -> None:
    assert not NOBODY.permits_text(text, 443)


@pytest.mark.parametrize("port", [0, 1, 22, 25, 79, 81, 110, 143, 442, 444, 465, 587, 993, 1023, 65536, -1])
def test_low_ports_are_closed(port: int) -> None:
    assert not NOBODY.permits_text("8.8.8.8", port)


@pytest.mark.parametrize("port", [80, 443, 1024, 8080, 8443, 65535])
def test_the_web_and_high_ports_are_open(port: int) -> None:
    assert NOBODY.permits_text("8.8.8.8", port)


def test_the_operators_list_opens_its_networks_on_every_port() -> None:
    reach = AddressPolicy([ip_network("10.1.0.0/16"), ip_network("fd00::/8")], own=lambda address: True)
    assert reach.permits_text("10.1.2.3", 25)
    assert reach.permits_text("fd00::1", 22)
    assert not reach.permits_text("10.2.0.1", 443)
    assert not reach.permits_text("::ffff:10.1.2.3", 443)


def test_our_own_addresses_are_refused_even_when_public() -> None:
    assert not AddressPolicy(own=lambda address: str(address) == "8.8.8.8").permits_text("8.8.8.8", 443)


def test_own_addresses_are_those_that_can_be_bound() -> None:
    assert is_own(ip_address("127.0.0.1"))
    assert not is_own(ip_address("192.0.2.1"))
    assert not is_own(ip_address("2001:db8::1"))
