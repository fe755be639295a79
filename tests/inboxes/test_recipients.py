"""Whom a reply goes to (inboxes.md 6.2; section 11: self, plus variants, Reply-To, outbound original)."""

from __future__ import annotations

import pytest

from pillarbox.inboxes.sending.recipients import (
    InboxAddresses,
    MessageAddressees,
    Recipients,
    readable,
    reply,
)

OWN = InboxAddresses(["help@harbor.example", "abc234@in.mail.example"])


def keys(recipients: Recipients) -> tuple[list[str], ...]:
    return tuple([named.mailbox.key for named in one] for one in recipients)


def inbound(**fields: object) -> MessageAddressees:
    return MessageAddressees(True, **{"sender": "Iris Vale <iris@customer.example>", **fields})  # type: ignore[arg-type]


def outbound(**fields: object) -> MessageAddressees:
    return MessageAddressees(False, **{"sender": "Mina <help@harbor.example>", **fields})  # type: ignore[arg-type]


CASES = {
    "the sender": (inbound(), False, (["iris@customer.example"], [])),
    "Reply-To before the sender": (
        inbound(reply_to=["desk@customer.example", "Bob <bob@customer.example>"]),
        False,
        (["desk@customer.example", "bob@customer.example"], []),
    ),
    "not the others of To and Cc": (
        inbound(to=["help@harbor.example", "kai@x.example"], cc=["ola@x.example"]),
        False,
        (["iris@customer.example"], []),
    ),
    "all: the others of To and Cc are copied": (
        inbound(to=["help@harbor.example", "kai@x.example"], cc=["ola@x.example"]),
        True,
        (["iris@customer.example"], ["kai@x.example", "ola@x.example"]),
    ),
    "all: who is answered is not copied as well": (
        inbound(to=["HELP@harbor.example", "IRIS@customer.example"], cc=["iris@customer.example"]),
        True,
        (["iris@customer.example"], []),
    ),
    "all: neither the inbox nor its plus variants": (
        inbound(
            to=["help+88@harbor.example", "abc234@in.mail.example", "ABC234+x@in.mail.example"],
            cc=["Help+@HARBOR.example", "helper@harbor.example"],
        ),
        True,
        (["iris@customer.example"], ["helper@harbor.example"]),
    ),
    "all: each once, whatever the case": (
        inbound(to=["kai@x.example"], cc=["KAI@X.example", "ola@x.example", "Ola <ola@x.example>"]),
        True,
        (["iris@customer.example"], ["kai@x.example", "ola@x.example"]),
    ),
    "the inbox's own message to itself": (inbound(sender="help@harbor.example"), False, ([], [])),
    "the inbox's own message to itself and others goes to these": (
        inbound(
            sender="Mina <help@harbor.example>", to=["iris@customer.example"], cc=["help@harbor.example"]
        ),
        False,
        (["iris@customer.example"], []),
    ),
    "all: the inbox's own message to itself and others": (
        inbound(
            sender="help+x@harbor.example",
            to=["help@harbor.example", "iris@customer.example"],
            cc=["ola@x.example"],
        ),
        True,
        (["iris@customer.example"], ["ola@x.example"]),
    ),
    "a form that writes as the inbox names who has filled it in": (
        inbound(sender="help@harbor.example", to=["help@harbor.example"], reply_to=["iris@customer.example"]),
        False,
        (["iris@customer.example"], []),
    ),
    "a Reply-To without an address is none": (
        inbound(reply_to=["undisclosed"]),
        False,
        (["iris@customer.example"], []),
    ),
    "Reply-To is the inbox": (inbound(reply_to=["help+form@harbor.example"]), False, ([], [])),
    "our own message goes to whom it went": (
        outbound(to=["iris@customer.example"], cc=["ola@x.example"], reply_to=["boss@harbor.example"]),
        False,
        (["iris@customer.example"], []),
    ),
    "all, our own message: its Reply-To and its Cc": (
        outbound(to=["iris@customer.example"], cc=["ola@x.example"], reply_to=["boss@harbor.example"]),
        True,
        (["boss@harbor.example"], ["ola@x.example"]),
    ),
    "all, our own message: a Reply-To that is the inbox does not count": (
        outbound(to=["iris@customer.example"], cc=["ola@x.example"], reply_to=["help+1@harbor.example"]),
        True,
        (["iris@customer.example"], ["ola@x.example"]),
    ),
    "a local part that is a plus alone is no variant": (
        inbound(to=["+@harbor.example", "+help@harbor.example"]),
        True,
        (["iris@customer.example"], ["+@harbor.example", "+help@harbor.example"]),
    ),
    "what mail cannot be sent to is left out": (
        inbound(to=["undisclosed", "root@localhost", "x@[192.0.2.1]", "kai@x.example"]),
        True,
        (["iris@customer.example"], ["kai@x.example"]),
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_a_reply_goes_to(what: str) -> None:
    original, to_all, expected = CASES[what]
    assert keys(reply(original, OWN, to_all=to_all)) == (*expected, [])


def test_what_is_asked_for_is_copied_besides() -> None:
    found = reply(
        inbound(cc=["ola@x.example"]),
        OWN,
        to_all=True,
        cc=readable(["kai@x.example", "OLA@x.example", "help@harbor.example"]),
        bcc=readable(["boss@x.example", "kai@x.example", "help+1@harbor.example"]),
    )
    assert keys(found) == (["iris@customer.example"], ["ola@x.example", "kai@x.example"], ["boss@x.example"])
    assert len(found) == 4


def test_names_stay_and_names_that_cannot_be_written_go() -> None:
    found = readable(["Iris Vale <iris@customer.example>", "Vale, Iris (x) <vale@customer.example>"])
    assert [named.text for named in found] == ["Iris Vale <iris@customer.example>", "vale@customer.example"]
