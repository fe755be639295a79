"""Texts of what is known about the sender of a message."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "trust.title": "Trust",
    "trust.level.trusted": "Trusted",
    "trust.level.known": "Known",
    "trust.level.unknown": "Unknown",
    "trust.level.suspicious": "Suspicious",
    "trust.means.trusted": "The team has written to this sender, and the domain confirms the message.",
    "trust.means.known": "The sender is known, and the domain confirms the message.",
    "trust.means.unknown": "Nobody here knows the sender, or nothing confirms who wrote.",
    "trust.means.suspicious": "Something about this message deceives. Open no link or attachment, and do not "
    "answer before you have asked in another way.",
    "trust.authenticated": "SPF or DKIM shows that the message comes from the domain of its sender.",
    "trust.not_authenticated": "Nothing shows that the message comes from the domain of its sender.",
    "trust.dmarc_failed": "The domain says how its mail is recognised, and this message is not so.",
    "trust.forwarded": "The message was forwarded and carries ARC seals, which are not verified.",
    "trust.spam": "The message was filed as spam.",
    "trust.written_to": "An inbox of this team has written to this address before.",
    "trust.contact": "The address is that of a contact of this team.",
    "trust.answers_ours": "The message answers one that this inbox has sent.",
    "trust.first_contact": "It is the first message from this address to this inbox.",
    "trust.name_of_known": "The name shown is, or looks like, that of a known sender with another address.",
    "trust.name_of_team": "The name shown looks like that of this team, but the address is not the team's.",
    "trust.address_in_name": "The name shown is an address of another domain than the real one.",
    "trust.own_domain_forged": "The sender claims a domain of this team, and nothing shows that it is so.",
    "trust.look_alike_domain": "The domain of the sender looks like a known one, and is another.",
    "trust.known_domain_as_label": "The domain of the sender contains a known one, and belongs to somebody "
    "else.",
    "trust.mixed_scripts": "The domain of the sender mixes letters of several alphabets.",
    "trust.reply_to_elsewhere": "Answers would go to another domain than the sender's.",
    "trust.link_disguised": "The text of a link shows another host than it leads to.",
    "trust.attachment_disguised": "An attachment is something else than its name or type says.",
    "trust.attachment_name_reversed": "The name of an attachment has characters that turn its direction.",
    "trust.attachment_executable": "An attachment is a program.",
    "trust.attachment_active": "An attachment can run scripts or macros.",
    "trust.attachment_encrypted": "An attachment is encrypted, so nothing can be said of its content.",
    "trust.list": "The message came by a mailing list.",
    "trust.bulk": "The message was sent to many.",
    "trust.auto_reply": "A program answers for the sender.",
    "trust.delivery_report": "The message reports what became of another one.",
    "trust.calendar": "The message has a date for a calendar.",
    "trust.verification_code": "The message has a code by which somebody confirms who they are.",
    "trust.hidden_text": "The message has text that people do not see.",
    "trust.hidden_instructions": "Text that people do not see addresses a machine.",
    "trust.instructions": "The text addresses a machine.",
}
