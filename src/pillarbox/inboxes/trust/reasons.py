"""The reasons of a level of trust, as codes and as sentences (inboxes.md 6.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

Level = Literal["trusted", "known", "unknown", "suspicious"]


class TrustReason(NamedTuple):
    """One thing that is known about a message; `code` is a key of SENTENCES."""

    code: str
    detail: Mapping[str, Any] = {}


SENTENCES: Final = {
    # Who.
    "authenticated": "SPF or DKIM shows that the message comes from the domain of its sender.",
    "not_authenticated": "Nothing shows that the message comes from the domain of its sender.",
    "dmarc_failed": "The domain of the sender says how its mail is recognised, and this message is not so.",
    "forwarded": "The message was forwarded and carries ARC seals, which are not verified.",
    "spam": "The message was filed as spam.",
    "written_to": "An inbox of this team has written to this address before.",
    "contact": "The address is that of a contact of this team.",
    "answers_ours": "The message answers one that this inbox has sent.",
    "first_contact": "It is the first message from this address to this inbox.",
    # Deception.
    "name_of_known": "The name shown is, or looks like, that of a known sender with another address.",
    "name_of_team": "The name shown is, or looks like, that of this team, and the address is not the team's.",
    "address_in_name": "The name shown is an address of another domain than the real one.",
    "own_domain_forged": "The sender claims a domain of this team, and nothing shows that it is so.",
    "look_alike_domain": "The domain of the sender looks like a known one, and is another.",
    "known_domain_as_label": "The domain of the sender contains a known one, and belongs to somebody else.",
    "mixed_scripts": "The domain of the sender mixes letters of several alphabets.",
    "reply_to_elsewhere": "Answers would go to another domain than the sender's.",
    "link_disguised": "The text of a link shows another host than it leads to.",
    "attachment_disguised": "An attachment is something else than its name or type says.",
    "attachment_name_reversed": "The name of an attachment has characters that turn its direction.",
    "attachment_executable": "An attachment is a program.",
    "attachment_active": "An attachment can run scripts or macros.",
    "attachment_encrypted": "An attachment is encrypted, so nothing can be said of its content.",
    "hidden_text": "The message has text that people do not see.",
    "hidden_instructions": "Text that people do not see addresses a machine.",
    "instructions": "The text addresses a machine.",
    # Kind.
    "list": "The message came by a mailing list.",
    "bulk": "The message was sent to many.",
    "auto_reply": "A program answers for the sender.",
    "delivery_report": "The message reports what became of another one.",
    "calendar": "The message has a date for a calendar.",
    "verification_code": "The message has a code by which somebody confirms who they are.",
}
"""The sentence of each code."""

KINDS: Final = ("list", "bulk", "auto_reply", "delivery_report", "calendar", "verification_code")

STRONG: Final = frozenset(
    {
        *("spam", "name_of_known", "name_of_team", "address_in_name", "own_domain_forged"),
        *("look_alike_domain", "known_domain_as_label", "mixed_scripts", "link_disguised"),
        *("attachment_disguised", "attachment_name_reversed", "attachment_executable"),
        "hidden_instructions",
    }
)
"""One of these makes a message suspicious, whoever sent it."""

WEAK: Final = frozenset(
    {"dmarc_failed", "reply_to_elsewhere", "attachment_active", "attachment_encrypted", "instructions"}
)
"""Two of these make a message suspicious whose sender is not known."""
