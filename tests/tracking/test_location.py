"""Where a link leads, as it may stand in a header: the same place for a browser (TRK-02)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pillarbox.tracking.routes import location


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://x.example/a%2Fb?q=a+b&c=%20#d%C3%A9", "https://x.example/a%2Fb?q=a+b&c=%20#d%C3%A9"),
        ("https://x.example/?a=1&amp;b|c<d>\"'^`{}\\", "https://x.example/?a=1&amp;b|c<d>\"'^`{}\\"),
        ("https://bücher.example:8443/ü?ü#ü", "https://xn--bcher-kva.example:8443/%C3%BC?%C3%BC#%C3%BC"),
        ("https://Straße.example", "https://xn--strae-oqa.example"),
        ("https://ann:pä@x.example/", "https://ann:p%C3%A4@x.example/"),
        ("https://x.example/a b\r\nSet-Cookie: x", "https://x.example/a%20b%0D%0ASet-Cookie:%20x"),
        ("https://\u202e.example/", "https://%E2%80%AE.example/"),
        ("https://x.example/\ud800", "https://x.example/?"),
        ("http://[::1]:80/", "http://[::1]:80/"),
    ],
)
def test_every_octet_is_kept(url: str, expected: str) -> None:
    found = location(url)
    assert found.replace("%3F", "?") == expected


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_any_text_becomes_one_line_of_visible_ascii(rest: str) -> None:
    """TRK-02."""
    found = location(f"https://{rest}")
    assert found.isascii()
    assert found.isprintable()
    assert " " not in found
