"""Texts of pages on which people let programs act for them."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "consent.title": "Let this program act for you?",
    "consent.unverified": "unverified",
    "consent.unverified.text": "Nobody has checked who made this program. Go on only if you have just "
    "started it yourself.",
    "consent.calls_itself": "It calls itself",
    "consent.wants": "It wants to",
    "consent.scope.full_access": "do everything in the team that an API key can do: read and send mail, and "
    "change domains, keys, contacts and settings",
    "consent.scope.emails_send": "send mail in the name of the team",
    "consent.sent_to": "Your decision is sent to",
    "consent.local": "The access goes to a program on this computer. Any program here can say that it is "
    "this one.",
    "consent.team": "Team",
    "consent.inbox": "Only in one inbox",
    "consent.inbox_hint": "With an address and a right the program reaches this inbox alone. Without both it "
    "gets all that it wants.",
    "consent.no_inbox.title": "The inbox cannot be granted",
    "consent.no_inbox.text": "Name the address of an inbox of the team, and at least one right. Nothing was "
    "granted: go back, and decide again.",
    "consent.may_not": "Your role does not let programs act for a team. An owner of the team can "
    "change your role.",
    "consent.approve": "Approve",
    "consent.deny": "Deny",
    "consent.later": "You can take this back at any time.",
    "consent.over.title": "There is nothing to decide",
    "consent.over.text": "This request was decided already, it is older than ten minutes, or it began in "
    "another browser. Start again in the program.",
    "consent.failed.title": "The program cannot be let in",
    "consent.failed.text": "What the program has sent is wrong: {reason}. Nothing was passed on to it.",
    "consent.wrong.text": "The program that calls itself {name} is at {place}. What it has sent is wrong: "
    "{reason}. Nothing was passed on to it.",
    "consent.wrong.link": "Go back to {place}",
    "consent.no_logo.title": "No logo",
    "consent.no_logo.text": "The program has none that can be shown.",
    "consent.busy.title": "Too many tries",
    "consent.busy.text": "Please wait a minute and start again in the program.",
}
