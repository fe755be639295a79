"""Writes the records that a domain publishes in DNS, as lines of a zone file. They are more than the API's
`records`: keys in rotation, the proof of an open claim, and the DMARC record that large receivers want."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pillarbox.domains.claims.queries import DomainClaim
from pillarbox.domains.dns.records import Record, records_of
from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.keys import KeyState, PublishedKey
from pillarbox.domains.names import registrable
from pillarbox.domains.queries import Domain

TTL: Final = 3600
DMARC: Final = "v=DMARC1; p=none;"
DMARC_PURPOSE: Final = "DMARC"
LONGEST_STRING: Final = 255
UNCHECKED: Final = "-"

TRACKING_NOTE: Final = (
    "for links and pictures of tracked mail; mail is sent without them until it is verified"
)
KEY_NOTES: Final = {
    KeyState.WAITING: "publish it: this key signs as soon as it is seen",
    KeyState.RETIRING: "keep it until {until}: mail signed with it may be under way",
}


@dataclass(frozen=True, slots=True)
class ZoneLine:
    """One record under its full name. `value` is without quotes; `status` is `-` for what is not checked.
    `replaces` has the values in DNS that must go, as a name may have one SPF record only."""

    purpose: str
    owner: str
    type: str
    value: str
    priority: int | None = None
    status: str = UNCHECKED
    note: str = ""
    replaces: Sequence[str] = ()

    @property
    def text(self) -> str:
        """As it stands in a zone file (RFC 1035, 5)."""
        return f"{self.owner}. {TTL} IN {self.type} {self._data()}"

    def _data(self) -> str:
        if self.type == "TXT":
            return _strings(self.value)
        if self.type == "MX":
            return f"{self.priority} {self.value}."
        return f"{self.value}." if self.type == "CNAME" else self.value


def zone_lines(
    domain: Domain,
    keys: Sequence[PublishedKey],
    here: MailInstallation,
    *,
    proof: bool,
    claim: DomainClaim | None = None,
) -> list[ZoneLine]:
    """Return everything that should be in DNS for the domain now."""
    if domain.claim_id is not None:
        return [] if claim is None else [claim_line(claim)]
    lines = [_line(record, domain) for record in records_of(domain, here, proof=proof)]
    if any(line.purpose == "DKIM" for line in lines):
        lines += [key_line(key, domain) for key in keys if key.state is not KeyState.SIGNING]
    if domain.sending:
        lines.append(dmarc_line(domain))
    return lines


def claim_line(claim: DomainClaim) -> ZoneLine:
    """Return the proof that an open claim asks for."""
    note = "proves the claim; the domain's own records follow once it is completed"
    return ZoneLine("Claim", claim.name, "TXT", claim.token, status=claim.status.value, note=note)


def key_line(key: PublishedKey, domain: Domain) -> ZoneLine:
    """Return the record of a key that does not sign now."""
    until = "" if key.retires_at is None else key.retires_at.date().isoformat()
    return ZoneLine(
        "DKIM",
        f"{key.selector}._domainkey.{domain.name}",
        "TXT",
        f"p={key.public_key}",
        note=KEY_NOTES[key.state].format(until=until),
    )


def dmarc_line(domain: Domain) -> ZoneLine:
    """Return the smallest DMARC record; all mail that Pillarbox sends is aligned with it."""
    note = "recommended; if you have one already, keep yours"
    return ZoneLine(DMARC_PURPOSE, f"_dmarc.{domain.name}", "TXT", DMARC, note=note)


def snippet(lines: Iterable[ZoneLine]) -> str:
    """Return the lines as a piece of a zone file, what is to be known about one as a comment before it."""
    texts = []
    for line in lines:
        if line.note:
            texts.append(f"; {line.note}")
        texts += [f"; instead of {quoted(value)}" for value in line.replaces]
        texts.append(line.text)
    return "\n".join(texts)


def nsupdate_script(lines: Sequence[ZoneLine]) -> str:
    """Return the lines as commands of `nsupdate` (RFC 2136). The DMARC record stands in an update of its own,
    which is refused where the name has a record already."""
    own = [line for line in lines if line.purpose != DMARC_PURPOSE]
    texts = ["; nsupdate -k your-key.conf < this-file"]
    for line in own:
        texts += [f"update delete {line.owner}. {line.type} {_strings(value)}" for value in line.replaces]
        texts.append(f"update add {line.text}")
    if own:
        texts.append("send")
    for line in lines:
        if line.purpose == DMARC_PURPOSE:
            texts += [f"; {line.note}", f"prereq nxrrset {line.owner}. {line.type}"]
            texts += [f"update add {line.text}", "send"]
    return "\n".join(texts) + "\n"


def _line(record: Record, domain: Domain) -> ZoneLine:
    owner = record.name
    if record.record != "Receiving":
        owner = ".".join(part for part in (owner, registrable(domain.name)) if part)
    return ZoneLine(
        purpose=record.record,
        owner=owner,
        type=record.type,
        value=record.value.strip('"') if record.type == "TXT" else record.value,
        priority=record.priority if isinstance(record.priority, int) else None,
        status=record.status,
        note=TRACKING_NOTE if record.record == "Tracking" else "",
    )


def _strings(value: str) -> str:
    return " ".join(quoted(part) for part in pieces(value))


def pieces(value: str) -> list[str]:
    """Return the strings of a TXT record (RFC 1035, 3.3.14)."""
    return [value[at : at + LONGEST_STRING] for at in range(0, len(value), LONGEST_STRING)] or [""]


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
