"""The facts that a message states: its sender, how it was authenticated, what deceives, its kind. Pure.

It is found out for all inboxes that get the message, before their locks are taken. What it costs is bounded
by the bounds of the modules that it asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from msgspec import Struct

from pillarbox.domains.names import registrable
from pillarbox.inboxes.trust import confusables
from pillarbox.inboxes.trust.attachment_reasons import attachment_reasons
from pillarbox.inboxes.trust.hidden_words import hidden_reasons
from pillarbox.inboxes.trust.link_texts import disguised_links
from pillarbox.inboxes.trust.message_kinds import beginning, kind_reasons
from pillarbox.inboxes.trust.reasons import TrustReason
from pillarbox.mail.authentication.mail_verdicts import MailVerdicts
from pillarbox.mail.deception.folding import clean
from pillarbox.mail.message.address_fields import NamedAddress
from pillarbox.mail.message.parse import ParsedMessage

MOST_LINKS_NAMED: Final = 5
NOBODY: Final = NamedAddress("")
FREE_MAIL: Final = frozenset(
    """
    gmail.com googlemail.com outlook.com hotmail.com live.com yahoo.com icloud.com me.com aol.com gmx.de
    gmx.net
    web.de proton.me protonmail.com mail.ru yandex.ru qq.com 163.com t-online.de orange.fr laposte.net
    libero.it
    """.split()  # noqa: SIM905 (prose reads better as prose)
)


class MessageSigns(Struct, frozen=True):
    """The facts of a message before anybody is asked. `domain` is the registrable one of `host`,
    the host of its sender's address."""

    address: str
    name: str
    host: str
    domain: str
    sender_key: UUID
    name_key: UUID | None
    is_authenticated: bool
    is_forged: bool
    reasons: tuple[TrustReason, ...]


def signs_of(message: ParsedMessage, mail_from: str, verdicts: MailVerdicts) -> MessageSigns:
    """Return the signs of a message."""
    sender = _sender(message)
    domain = registrable(sender.domain) if sender.domain else ""
    name = (sender.display or "")[: confusables.LONGEST_NAME]
    is_authenticated = _is_authenticated(domain, verdicts)
    reasons = [
        TrustReason("authenticated", {"domain": domain})
        if is_authenticated
        else TrustReason("not_authenticated", {"spf": verdicts.spf.result, "dmarc": verdicts.dmarc.result}),
        *_authentication(message, verdicts),
        *_deception(message, sender, name, domain),
        *hidden_reasons(message.html, message.text, beginning(message)),
        *kind_reasons(message, mail_from),
    ]
    return MessageSigns(
        address=sender.address.lower(),
        name=name,
        host=sender.domain,
        domain=domain,
        sender_key=confusables.address_key(sender.address),
        name_key=confusables.name_key(name),
        is_authenticated=is_authenticated,
        is_forged=verdicts.dmarc.result == "fail" and verdicts.dmarc.policy in ("quarantine", "reject"),
        reasons=tuple(reasons),
    )


def _sender(message: ParsedMessage) -> NamedAddress:
    mailboxes = message.authors.mailboxes
    return next((one for one in mailboxes if "@" in one.address), next(iter(mailboxes), NOBODY))


def _is_authenticated(domain: str, verdicts: MailVerdicts) -> bool:
    """Return whether the domain of the sender stands behind the message: DMARC passes, or there is no record
    of it and what passes is of the same registrable domain."""
    if verdicts.dmarc.result != "none" or not domain:
        return verdicts.dmarc.result == "pass"
    passed = [found.domain for found in verdicts.dkim if found.result == "pass"]
    if verdicts.spf.result == "pass" and verdicts.spf.identity == "mailfrom":
        passed.append(verdicts.spf.domain)
    return any(one is not None and registrable(one.lower()) == domain for one in passed)


def _authentication(message: ParsedMessage, verdicts: MailVerdicts) -> Iterator[TrustReason]:
    if verdicts.dmarc.result == "fail":
        yield TrustReason("dmarc_failed", {"policy": verdicts.dmarc.policy})
    if "arc-seal" in message.named:
        yield TrustReason("forwarded", {"seals": len(message.named["arc-seal"])})
    if verdicts.spam.is_spam:
        yield TrustReason("spam", {"reason": verdicts.spam.reason})


def _deception(message: ParsedMessage, sender: NamedAddress, name: str, domain: str) -> Iterator[TrustReason]:
    shown = _address_in(clean(name))
    if shown is not None and registrable(shown) != domain:
        yield TrustReason("address_in_name", {"shown": name, "domain": domain})
    if sender.domain and confusables.has_mixed_scripts(sender.domain):
        yield TrustReason("mixed_scripts", {"domain": confusables.shown_domain(sender.domain)})
    is_listed = "list-id" in message.named or "list-unsubscribe" in message.named
    elsewhere = sorted(
        {one.domain for one in message.reply_to if one.domain and registrable(one.domain) != domain}
    )
    if elsewhere and not is_listed:
        yield TrustReason("reply_to_elsewhere", {"domains": elsewhere[:5]})
    if message.html and not is_listed:
        # Who sends to many counts clicks by a host of its provider, and says the real one in the text.
        links = disguised_links(message.html)[:MOST_LINKS_NAMED]
        if links:
            yield TrustReason("link_disguised", {"links": [{"shown": a, "host": b} for a, b in links]})
    yield from attachment_reasons(message)


def _address_in(name: str) -> str | None:
    """Return the host of an address that stands in a name; None where there is none."""
    for word in name.replace("<", " ").replace(">", " ").replace("(", " ").replace(")", " ").split():
        local, at, host = word.strip("'\",;[]").rpartition("@")
        if at and local and "." in host:
            return host.lower().rstrip(".")
    return None
