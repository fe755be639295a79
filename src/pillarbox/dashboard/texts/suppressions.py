"""Texts of the screens of suppressed addresses."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "suppressions.title": "Suppressions",
    "suppressions.words": "suppressed, blocked, bounce list, complaints, do not send",
    "suppressions.address": "Address",
    "suppressions.since": "Since",
    "suppressions.origin": "Origin",
    "suppressions.origin.bounce": "Bounce",
    "suppressions.origin.complaint": "Complaint",
    "suppressions.origin.manual": "By hand",
    "suppressions.erased": "People who were erased get no mail either; their addresses are not kept.",
    "suppressions.csv": "Suppressions as CSV",
    "suppressions.none": "No address is suppressed",
    "suppressions.none.text": "Hard bounces and complaints put addresses on this list by themselves, and "
    "mail to them is skipped. Bring the list of another service with you:",
    "suppressions.import": "Command that imports a list",
    "suppressions.none_fit": "No address fits",
    "suppressions.none_fit.text": "The team may write to the addresses that you search for.",
    "suppressions.add": "Suppress addresses",
    "suppressions.add.words": "block an address, do not send",
    "suppressions.add.lead": "No mail of this team goes to these addresses any more. Other recipients of "
    "the same mail still get it.",
    "suppressions.addresses": "Addresses",
    "suppressions.addresses.hint": "At most 100, on lines of their own or with commas between them.",
    "suppressions.no_address": "Enter at least one address.",
    "suppressions.too_many": "These are {count} addresses; at most 100 can be added at once. Import "
    "longer lists by the command pillarbox suppressions import.",
    "suppressions.not_so": "Nothing was added, because these are no addresses: {texts}",
    "suppressions.none_chosen": "Choose the addresses to take off the list first.",
    "suppressions.remove": "Take the chosen ones off the list",
    "suppressions.remove.text": "Later mail goes out to them again.",
    "done.suppressions_added": "The addresses are suppressed.",
    "done.suppressions_removed": "The addresses are off the list.",
    "done.suppression_removed": "The address is off the list.",
    "suppression.title": "Suppressed address",
    "suppression.why": "Why is it suppressed?",
    "suppression.cause.bounce": "A mail server said that there is no such address.",
    "suppression.cause.complaint": "The recipient reported a mail of this team as spam.",
    "suppression.cause.manual": "Somebody of the team or one of its programs put it on the list.",
    "suppression.added_by": "Added by",
    "suppression.imported": "No mail is known: the entry was imported.",
    "suppression.mail_gone": "The mail is removed since: emails are kept for a limited time.",
    "suppression.event": "Event",
    "suppression.host": "Said by",
    "suppression.reply": "Answer",
    "suppression.report": "Report",
    "suppression.reason": "Reason",
    "suppression.mail": "Email",
    "suppression.effect": "Mail of this team to the address is skipped, with the event email.suppressed.",
    "suppression.remove": "Take off the list",
    "suppression.remove.title": "Take {address} off the list?",
    "suppression.remove.text.bounce": "Later mail goes out again. If the address bounces once more, it "
    "comes back on the list.",
    "suppression.remove.text.complaint": "Do this only if the person asked for your mail: further "
    "complaints harm the reputation of your domain.",
    "suppression.remove.text.manual": "Later mail goes out again.",
}
