"""What a policy means for a recipient and for a sender, and where a footer stands. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from pillarbox.emails.requests.parse import outgoing
from pillarbox.inboxes.policy.rules import (
    InboxPolicy,
    RecipientBlocked,
    RecipientFacts,
    RecipientRefused,
    check_recipients,
    is_person,
    needs_approval,
)
from pillarbox.inboxes.policy.senders import SenderRules
from pillarbox.inboxes.policy.sending import with_footer
from pillarbox.kernel.security.authentication import Caller, Permission

STRANGER = RecipientFacts("eve@evil.example")
CONTACT = RecipientFacts("ada@quay.example", is_contact=True)
WRITER = RecipientFacts("iris@customer.example", has_written=True)


@pytest.mark.parametrize(
    ("fields", "recipient", "problem"),
    [
        ({}, STRANGER, None),
        ({"blocked_recipients": ["evil.example"]}, STRANGER, RecipientBlocked),
        ({"blocked_recipients": ["ada@evil.example"]}, STRANGER, None),
        ({"may_write_to": "contacts"}, STRANGER, RecipientRefused),
        ({"may_write_to": "contacts"}, CONTACT, None),
        ({"may_write_to": "contacts"}, WRITER, RecipientRefused),
        ({"may_write_to": "who_wrote_before"}, WRITER, None),
        ({"may_write_to": "who_wrote_before"}, CONTACT, RecipientRefused),
        ({"may_write_to": "listed"}, WRITER, RecipientRefused),
        ({"may_write_to": "listed", "allowed_recipients": ["evil.example"]}, STRANGER, None),
        ({"may_write_to": "contacts", "allowed_recipients": ["eve@evil.example"]}, STRANGER, None),
        ({"may_write_to": "listed", "allowed_recipients": ["example"]}, STRANGER, RecipientRefused),
        (
            {"allowed_recipients": ["eve@evil.example"], "blocked_recipients": ["evil.example"]},
            STRANGER,
            RecipientBlocked,
        ),
    ],
)
def test_who_may_be_written_to(
    fields: dict[str, Any], recipient: RecipientFacts, problem: type[Exception] | None
) -> None:
    policy = InboxPolicy(**fields)
    if problem is None:
        check_recipients(policy, [CONTACT, recipient] if "may_write_to" not in fields else [recipient])
        return
    with pytest.raises(problem):
        check_recipients(policy, [recipient])


@pytest.mark.parametrize(
    ("approval", "recipients", "is_needed"),
    [
        ("never", [STRANGER], False),
        ("always", [CONTACT], True),
        ("unknown_recipients", [CONTACT, WRITER], False),
        ("unknown_recipients", [CONTACT, STRANGER], True),
    ],
)
def test_when_a_person_has_to_send(approval: str, recipients: list[RecipientFacts], is_needed: bool) -> None:
    assert needs_approval(InboxPolicy(approval=approval), recipients) is is_needed


def test_a_listed_recipient_is_known() -> None:
    policy = InboxPolicy(approval="unknown_recipients", allowed_recipients=["evil.example"])
    assert not needs_approval(policy, [STRANGER])


@pytest.mark.parametrize(
    ("allowed", "blocked", "author", "envelope_sender", "is_blocked"),
    [
        ((), (), "eve@evil.example", "eve@evil.example", False),
        ((), ("evil.example",), "eve@evil.example", "x@list.example", True),
        ((), ("eve@evil.example",), "ada@quay.example", "Eve@Evil.Example", True),
        ((), ("evil.example",), "ada@quay.example", "", False),
        (("quay.example",), (), "ada@quay.example", "", False),
        (("quay.example",), (), "eve@evil.example", "bounce@quay.example", True),
        (("quay.example",), ("ada@quay.example",), "ada@quay.example", "ada@quay.example", True),
        (("quay.example",), (), "", "", True),
        ((), ("xn--bcher-kva.example",), "iris@B\u00fccher.example", "", True),
        ((), ("xn--bcher-kva.example",), "ada@quay.example", "bounce@b\u00fccher.example", True),
        (("iris@xn--bcher-kva.example",), (), "iris@b\u00fccher.example", "", False),
        ((), ("eve@evil.example",), '"Eve"@evil.example', "", True),
        ((), ("evil.example",), "eve.@evil.example", "", True),
    ],
)
def test_whose_mail_is_blocked(
    allowed: tuple[str, ...], blocked: tuple[str, ...], author: str, envelope_sender: str, is_blocked: bool
) -> None:
    rules = SenderRules(frozenset(allowed), frozenset(blocked))
    assert rules.is_blocked(author, envelope_sender) is is_blocked


@pytest.mark.parametrize(
    ("fields", "is_one"),
    [
        ({"person_id": uuid4()}, True),
        ({"person_id": uuid4(), "key_id": uuid4()}, False),
        ({"person_id": uuid4(), "grant_id": uuid4()}, False),
        ({"key_id": uuid4()}, False),
        ({}, False),
    ],
)
def test_only_who_sends_on_the_dashboard_is_a_person(fields: dict[str, Any], is_one: bool) -> None:
    given: dict[str, Any] = {"team_id": uuid4(), "team_number": 1, "key_id": None, **fields}
    caller = Caller(**given, permission=Permission.FULL)
    assert is_person(caller) is is_one


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>Hi</p>", "<p>Hi</p>|"),
        ("<body>Hi</body>", "<body>Hi|</body>"),
        ("<html><BODY>Hi</Body>\n</HTML>\n", "<html><BODY>Hi|</Body>\n</HTML>\n"),
        ("Hi<!-- </body> -->", "Hi<!-- </body> -->|"),
        ("<body>Hi</body><p>More</p>", "<body>Hi</body><p>More</p>|"),
        ("Hi</html>", "Hi</html>|"),
        ("</body>", "|</body>"),
    ],
)
def test_where_a_footer_stands(html: str, expected: str) -> None:
    mail = outgoing(
        {"from": "help@harbor.example", "to": "ada@quay.example", "subject": "Berth 12", "html": html},
        datetime(2026, 10, 3, tzinfo=UTC),
    )
    assert with_footer(mail, "A program").html == expected.replace("|", "<p>A program</p>")
