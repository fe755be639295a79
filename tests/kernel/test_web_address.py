"""WH-06: one reading of a URL."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.kernel.network.web_address import BadUrl, parse_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://harbor.example", "https://harbor.example/"),
        ("HTTPS://Harbor.EXAMPLE/Path", "https://harbor.example/Path"),
        ("http://harbor.example:80/", "http://harbor.example/"),
        ("http://harbor.example:8080/", "http://harbor.example:8080/"),
        ("http://harbor.example:/", "http://harbor.example/"),
        ("https://harbor.example./a", "https://harbor.example/a"),
        ("https://harbor.example?q=1#part", "https://harbor.example/?q=1"),
        ("https://harbor.example/a%2Fb?c=%20d&e=f%3D", "https://harbor.example/a%2Fb?c=%20d&e=f%3D"),
        ("https://harbor.example/a b/ä", "https://harbor.example/a%20b/%C3%A4"),
        ("https://harbor.example/a@b:c", "https://harbor.example/a@b:c"),
        ("https://harbor.example//b/../c/./", "https://harbor.example//b/../c/./"),
        ("https://harbor.example/?X-Sig=a+b/c==", "https://harbor.example/?X-Sig=a+b/c=="),
        ("https://hafenstraße.example/", "https://xn--hafenstrae-e4a.example/"),
        ("https://a。b．example/", "https://a.b.example/"),
        ("  https://harbor.example/  ", "https://harbor.example/"),
        ("https://my_host-1.example/", "https://my_host-1.example/"),
        ("https://[2A00:1450:0::1]:8443/x", "https://[2a00:1450::1]:8443/x"),
        ("https://intranet/", "https://intranet/"),
    ],
)
def test_what_is_requested_is_what_was_meant(text: str, url: str) -> None:
    assert str(parse_url(text)) == url


@pytest.mark.parametrize(
    ("host", "meant"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0X7F.0x0.0x0.0x1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("0177.1", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("0x", "0.0.0.0"),
        ("1.2.3", "1.2.0.3"),
        ("1.65535", "1.0.255.255"),
        ("8.8.2056", "8.8.8.8"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("127。0。0。1", "127.0.0.1"),
        ("①②⑦.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[0:0:0:0:0:ffff:7f00:1]", "::ffff:7f00:1"),
    ],
)
def test_odd_spellings_of_an_address_become_the_address(host: str, meant: str) -> None:
    found = parse_url(f"http://{host}/")
    assert found.address is not None
    assert found.host == str(found.address)
    assert found.address == ip_address(meant)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "harbor.example",
            "//harbor.example/",
            "/path",
            "http:",
            "http:/harbor.example",
            "http:harbor.example",
        ),
        *(
            "http://",
            "http:///path",
            "http://:80/",
            "http://?q",
            "ftp://harbor.example/",
            "file:///etc/passwd",
        ),
        *(
            "gopher://harbor.example/",
            "javascript:alert(1)",
            "data:text/plain,x",
            "unix:///run/x.sock",
            "ws://a.example/",
        ),
        *("http://user@harbor.example/", "http://user:pass@harbor.example/", "http://@harbor.example/"),
        *("http://harbor.example@127.0.0.1/", "http://a:b:c/"),
        *(
            "http://harbor.example\\@127.0.0.1/",
            "http://harbor.example\\.evil.example/",
            "http:\\\\harbor.example/",
        ),
        *(
            "http://harbor.example/\r\nHost: x",
            "http://har\tbor.example/",
            "http://harbor.example/\x00",
            "http://\x7f/",
        ),
        *(
            "http://harbor example/",
            "http://harbor.example /",
            "http://%31%32%37.0.0.1/",
            "http://harbor%2eexample/",
        ),
        *("http://harbor..example/", "http://.harbor.example/", "http://./", "http://harbor.example../"),
        *("http://" + "a" * 64 + ".example/", "http://" + "a." * 130 + "example/", "http://har!bor.example/"),
        *("http://harbor.example:0/", "http://harbor.example:65536/", "http://harbor.example:-1/"),
        *("http://harbor.example:8o/", "http://harbor.example:８０/", "http://harbor.example:123456/"),
        *(
            "http://256.1.1.1/",
            "http://1.2.3.256/",
            "http://1.2.3.4.5/",
            "http://4294967296/",
            "http://0x100000000/",
        ),
        *(
            "http://08.0.0.1/",
            "http://1.2.3.08/",
            "http://a.1/",
            "http://1.2..3/",
            "http://foo.0x7f/",
        ),
        *(
            "http://[::1/",
            "http://::1/",
            "http://[]/",
            "http://[::g]/",
            "http://[127.0.0.1]/",
            "http://[v1.x]/",
        ),
        *(
            "http://[fe80::1%25eth0]/",
            "http://[fe80::1%eth0]/",
            "http://[::1]x/",
            "http://[1:2:3:4:5:6:7:8:9]/",
        ),
        *(
            "http://xn--\u00e4/",
            "http://\u200d.example/",
            "http://\udc80.example/",
            "http://harbor.example/\udc80",
        ),
        "http://harbor.example/" + "a" * 8192,
    ],
)
def test_what_is_no_url_for_us(text: str) -> None:
    with pytest.raises(BadUrl):
        parse_url(text)


@given(st.text(alphabet="htps:/.@[]%?#\\0123456789abfx ä。", max_size=30))
def test_any_text_is_a_url_or_not(text: str) -> None:
    """Nothing but BadUrl, and what is read once reads the same again."""
    try:
        found = parse_url("http://" + text)
    except BadUrl:
        return
    again = parse_url(str(found))
    assert (again.origin, again.address) == (found.origin, found.address)
    assert urlsplit(str(found)).hostname == found.host


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b", "https://harbor.example/b"),
        ("b?c", "https://harbor.example/a/b?c"),
        ("//quay.example/b", "https://quay.example/b"),
        ("http://quay.example:8080/b#x", "http://quay.example:8080/b"),
        ("?c=d", "https://harbor.example/a/?c=d"),
    ],
)
def test_a_redirect_is_read_like_the_first_url(location: str, url: str) -> None:
    assert str(parse_url("https://harbor.example/a/").join(location)) == url


@pytest.mark.parametrize(
    "location", ["ftp://quay.example/", "http://u@quay.example/", "http://[::1", "file:///etc/passwd"]
)
def test_a_redirect_to_something_else_is_refused(location: str) -> None:
    with pytest.raises(BadUrl):
        parse_url("https://harbor.example/a/").join(location)


def test_the_origin_tells_hosts_schemes_and_ports_apart() -> None:
    origins = {
        parse_url(text).origin
        for text in ("http://a.example/", "https://a.example/", "http://b.example/", "http://a.example:8080/")
    }
    assert len(origins) == 4
    assert parse_url("http://a.example:80/x").origin == parse_url("http://A.example./y").origin
