"""One mailbox, parsed strictly: the only address parser of Pillarbox (API, SMTP, CSV).

Accepted are `user@host` and `Name <user@host>`, where the name is a quoted string, plain text in any
script, RFC 2047 encoded words, or a mix. Plain text may hold anything but the characters that would
make a list, a group, a route or a comment of it: `<`, `>`, `@`, `,`, `;`, `:`, `(`, `)` and the
backslash; a name with one of these must be quoted. So `J. O'Neil & Co. [Berlin] <j@x.example>` is a
mailbox, `Doe, John <j@x.example>` is not. The local part is a dot-atom or a quoted string of RFC 5321
4.1.2, in UTF-8 where RFC 6531 allows it; the domain is a host name of at least two labels and never an
address literal.

The parser walks once from left to right, so its time is linear in a text whose length is capped. The domain
follows the last unquoted `@`; there is never more than one.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import idna

from pillarbox.mail.message import encoded_words
from pillarbox.mail.message.encoded_words import FORBIDDEN

LONGEST_TEXT = 2048
LONGEST_LOCAL = 64
LONGEST_DOMAIN = 255
LONGEST_ADDRESS = 254
"""A path has at most 256 octets, two of them the angle brackets (RFC 5321, 4.5.3.1.3)."""

FORMS = "The email address needs to follow the `user@host` or `Name <user@host>` format."

_BLANKS = " \t"
_PLAIN_NAME = re.compile(r'[^ \t"<>@,;:()\\]+')
_QUOTED_STOP = re.compile(r'["\\]')
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.\-\u0080-\U0010ffff]+")
_ASCII_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_JOINERS = "\u200c\u200d"

_REFUSED_SPECIALS = {
    "<": "It has more than one `<`.",
    ">": "It has a `>` without `<`.",
    "@": "A name that holds `@` must be quoted.",
    ",": "A list is not accepted here, and a name that holds a comma must be quoted.",
    ";": "A group is not accepted here, and a name that holds `;` must be quoted.",
    ":": "A group is not accepted here, and a name that holds `:` must be quoted.",
    "(": "Comments are not accepted, and a name that holds parentheses must be quoted.",
    ")": "Comments are not accepted, and a name that holds parentheses must be quoted.",
    "\\": "A name that holds a backslash must be quoted.",
}


class AddressError(ValueError):
    """Text that is no acceptable mailbox; `reason` is a sentence for the person who sent it."""

    def __init__(self, what: str) -> None:
        self.reason = f"{what} {FORMS}"
        super().__init__(self.reason)


@dataclass(frozen=True, slots=True)
class Mailbox:
    """A mailbox as it may stand in From or To.

    `local` is the local part without its quotes, its case kept; `domain` is in A-labels and lower case.
    """

    local: str
    domain: str
    display: str | None = None

    @property
    def addr_spec(self) -> str:
        """The address as it goes over the wire; the local part is quoted when it has to be."""
        return f"{wire_local(self.local)}@{self.domain}"

    @property
    def key(self) -> str:
        """The form in which two addresses are compared: all in lower case, the domain in A-labels."""
        written = self.addr_spec
        if written.isascii():
            return written.lower()
        # Again after lower case: some small letters with a mark have no capital of one character. Quotes come
        # last, because one character of Greek has the normal form `;`.
        local = unicodedata.normalize("NFC", unicodedata.normalize("NFC", self.local).lower())
        return f"{wire_local(local)}@{self.domain}"

    @property
    def needs_smtputf8(self) -> bool:
        """Whether the address can only be given to a server that announces SMTPUTF8 (RFC 6531)."""
        return not self.local.isascii()


def parse_mailbox(text: str) -> Mailbox:
    """Return the one mailbox that `text` is, or raise AddressError."""
    if len(text) > LONGEST_TEXT:
        raise AddressError(f"It is longer than {LONGEST_TEXT} characters.")
    if FORBIDDEN.search(text):
        raise AddressError("It holds a control character or line break.")
    text = text.strip(_BLANKS)
    if not text:
        raise AddressError("It is empty.")
    if not text.endswith(">"):
        local, domain = _addr_spec(text)
        return Mailbox(local, domain, None)
    display, start = _display(text)
    local, domain = _addr_spec(text[start + 1 : -1].strip(_BLANKS))
    return Mailbox(local, domain, display)


def parse_domain(text: str) -> str:
    """Return a host name of two labels or more, in A-labels and lower case (IDNA 2008, UTS
    46 non-transitional)."""
    if text.startswith("["):
        raise AddressError("IP addresses are not accepted as domain.")
    domain = text.lower() if text.isascii() else text
    if not domain.isascii() or "xn--" in domain:
        domain = _a_labels(domain)
    if len(domain) > LONGEST_DOMAIN:
        raise AddressError(f"Its domain is longer than {LONGEST_DOMAIN} octets.")
    labels = domain.split(".")
    if len(labels) < 2:
        raise AddressError("Its domain needs at least one dot.")
    if not all(map(_LABEL.fullmatch, labels)):
        raise AddressError("Its domain is not a valid host name.")
    if labels[-1].isdigit():
        raise AddressError("IP addresses are not accepted as domain.")
    return domain


def wire_local(local: str) -> str:
    """Return the local part in RFC 5321 form: a dot-atom as it is, anything else as a quoted string."""
    if _ASCII_ATOMS.fullmatch(local) or _is_dot_atom(local):
        return local
    return '"' + local.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _a_labels(domain: str) -> str:
    if len(domain) > LONGEST_DOMAIN:
        raise AddressError(f"Its domain is longer than {LONGEST_DOMAIN} octets.")
    try:
        return idna.encode(domain, uts46=True, std3_rules=True, transitional=False).decode("ascii")
    except UnicodeError:
        raise AddressError("Its domain is not a valid internationalized domain name.") from None


def _display(text: str) -> tuple[str | None, int]:
    """Return the decoded display name, and where the `<` after it stands."""
    words: list[str] = []
    plain_since: int | None = None
    at = 0
    while at < len(text):
        if text[at] in _BLANKS:
            at += 1
        elif text[at] == "<":
            break
        elif text[at] == '"':
            if plain_since is not None:
                words.append(_decoded(text[plain_since:at]))
                plain_since = None
            quoted, at = _quoted(text, at)
            words.append(quoted.replace("\t", " "))
        else:
            found = _PLAIN_NAME.match(text, at)
            if found is None:
                raise AddressError(_REFUSED_SPECIALS[text[at]])
            plain_since = at if plain_since is None else plain_since
            at = found.end()
    if at == len(text):
        raise AddressError("It has a `>` without `<`.")
    if plain_since is not None:
        words.append(_decoded(text[plain_since:at]))
    return " ".join(word for word in words if word) or None, at


def _decoded(plain: str) -> str:
    """Return an unquoted run of the name: white space collapsed, encoded words decoded once."""
    decoded = encoded_words.decode(" ".join(word for word in plain.replace("\t", " ").split(" ") if word))
    if FORBIDDEN.search(decoded):
        raise AddressError("An encoded word of its name holds a control character or line break.")
    return decoded.replace("\t", " ").strip(" ")


def _quoted(text: str, index: int) -> tuple[str, int]:
    """Return the content of the quoted string that opens at `index`, without the backslashes of its pairs,
    and the place after its closing quote. AddressError where there is none."""
    pieces: list[str] = []
    index += 1
    while (stop := _QUOTED_STOP.search(text, index)) is not None:
        pieces.append(text[index : stop.start()])
        index = stop.end()
        if stop[0] == '"':
            return "".join(pieces), index
        pieces.append(text[index : index + 1])
        index += 1
    raise AddressError("A quoted string in it does not end.")


def _addr_spec(text: str) -> tuple[str, str]:
    """Return the local part (without quotes) and domain of a bare address."""
    if text.startswith("@"):
        raise AddressError("It has no local part, and source routes are not accepted.")
    local, at = _local(text)
    if text[at : at + 1] != "@":
        raise AddressError(_trouble_at(text, at))
    domain = parse_domain(text[at + 1 :])
    octets = len(wire_local(local).encode())
    if octets > LONGEST_LOCAL:
        raise AddressError(f"Its local part is longer than {LONGEST_LOCAL} octets.")
    if octets + 1 + len(domain) > LONGEST_ADDRESS:
        raise AddressError(f"It is longer than {LONGEST_ADDRESS} octets.")
    return local, domain


def _local(text: str) -> tuple[str, int]:
    if text.startswith('"'):
        local, at = _quoted(text, 0)
        if not local or "\t" in local:
            raise AddressError("Its quoted local part is empty or holds a tab.")
    else:
        found = _ATOMS.match(text)
        if found is None:
            raise AddressError(_trouble_at(text, 0))
        local, at = found[0], found.end()
        if local.startswith(".") or local.endswith(".") or ".." in local:
            raise AddressError("Dots in its local part must stand between other characters.")
    # An encoded word here would name another mailbox to readers that decode it (RFC 2047, 5 rule 3).
    if "=?" in local:
        raise AddressError("Encoded words are not accepted inside the address.")
    if not local.isascii() and not all(map(_may_stand_in_local, local)):
        raise AddressError("Its local part holds an invisible character.")
    return local, at


def _may_stand_in_local(character: str) -> bool:
    return character.isprintable() or character in _JOINERS


def _is_dot_atom(local: str) -> bool:
    if not local or not _ATOMS.fullmatch(local):
        return False
    return not (local.startswith(".") or local.endswith(".") or ".." in local)


def _trouble_at(text: str, index: int) -> str:
    if index >= len(text):
        return "It has no `@`."
    if text[index] in _BLANKS:
        return "It holds white space outside quotes."
    return {**_REFUSED_SPECIALS, "<": "Nothing may follow the `>`."}.get(
        text[index], f"It holds `{text[index]}` at a place where that is not allowed."
    )
