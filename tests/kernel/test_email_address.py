"""Addresses of the audience: one form that is compared, another that is shown."""

from __future__ import annotations

from uuid import UUID

import pytest

from pillarbox.kernel.wire.email_address import BARE, EmailAddress, NotAnAddress, email_address, identifier

ID = "b7f0c9de-2a4e-4f0c-9a93-2f1f3a9d6b11"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Kim@Orchard.Example ", EmailAddress("kim@orchard.example", None)),
        ("kim+news@orchard.example", EmailAddress("kim+news@orchard.example", None)),
        ("KIM@B\u00fccher.Example", EmailAddress("kim@xn--bcher-kva.example", "kim@b\u00fccher.example")),
        ("kim@xn--bcher-kva.example", EmailAddress("kim@xn--bcher-kva.example", None)),
        ("J\u030c@orchard.example", EmailAddress("\u01f0@orchard.example", None)),
        ('"\u037e"@orchard.example', EmailAddress('";"@orchard.example', None)),
    ],
)
def test_an_address_is_compared_in_one_form_and_shown_as_given(text: str, expected: EmailAddress) -> None:
    assert email_address(text) == expected
    assert expected.shown == (expected.given or expected.address)
    assert identifier(expected.shown) == identifier(expected.address) == expected.address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kim",
        "@orchard.example",
        "Kim <kim@orchard.example>",
        "a@b",
        "a@b.example,",
        "\u037e@orchard.example",
        "\u0130" * 32 + "@orchard.example",
    ],
)
def test_what_is_no_bare_address_is_refused_with_the_accepted_form(text: str) -> None:
    with pytest.raises(NotAnAddress) as refused:
        email_address(text)
    assert refused.value.reason.endswith(BARE)
    assert "Name <" not in refused.value.reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ID, UUID(ID)),
        (ID.upper(), UUID(ID)),
        ("Ada.King@analytical.example", "ada.king@analytical.example"),
        ("not-an-id", None),
        ("a@@b", None),
        (f"{{{ID}}}", None),
    ],
)
def test_a_path_names_an_id_or_an_address(text: str, expected: UUID | str | None) -> None:
    assert identifier(text) == expected
