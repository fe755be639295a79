"""RFC 2047 encoded words: text outside ASCII in phrases and unstructured header fields.

Writing always uses UTF-8 and never divides a character (RFC 2047 section 5). Reading knows a fixed
list of charsets: Python's codec registry also holds compressors and escape decoders that have no
business in mail.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

FORBIDDEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that no header text may hold: control characters, Unicode line ends, lone surrogates. A tab is a
blank."""

LONGEST_WORD = 75
FRAME = len("=?UTF-8?Q??=")
SHORTEST_WIDTH = 32
"""Room that is taken even when a line has less left: a frame and the longest character in Q form."""

# The only octets that may stand for themselves in a phrase (RFC 2047, 5 rule 3); a blank becomes "_".
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!*+-/")
_ONE_OCTET = bytes(sorted(_PLAIN)) + b" "
_Q_FORM = tuple("_" if n == 0x20 else chr(n) if n in _PLAIN else f"={n:02X}" for n in range(256))

_ENCODED_WORD = re.compile(r"=\?([A-Za-z0-9_-]{1,40})(?:\*[A-Za-z0-9-]{1,40})?\?([QqBb])\?([!->@-~]*)\?=")

_LOOSE_MIDDLE = re.compile(r"\?[QqBb]\?")

_CODECS: dict[str, tuple[str, ...]] = {
    "utf-8": ("utf-8", "utf8"),
    "ascii": ("us-ascii", "ascii"),
    "cp1252": ("iso-8859-1", "latin1", "windows-1252", "cp1252"),
    "gb18030": ("gb2312", "gbk", "gb18030"),
    "big5": ("big5",),
    "shift_jis": ("shift_jis", "shift-jis"),
    "iso2022_jp": ("iso-2022-jp",),
    "euc_jp": ("euc-jp",),
    "euc_kr": ("euc-kr", "ks_c_5601-1987"),
    "koi8_r": ("koi8-r",),
    "koi8_u": ("koi8-u",),
    **{f"iso8859_{n}": (f"iso-8859-{n}",) for n in (2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)},
    **{f"cp{n}": (f"windows-{n}", f"cp{n}") for n in (1250, 1251, 1253, 1254, 1255, 1256, 1257, 1258)},
}
CHARSETS = {name: codec for codec, names in _CODECS.items() for name in names}


def encode(text: str, first_width: int = LONGEST_WORD) -> list[str]:
    """Return `text` as encoded words of at most 75 characters; the first fits `first_width` where that
    is possible.

    The words belong together: a reader drops the white space between them (RFC 2047 section 6.2).
    """
    octets = text.encode()
    beyond = len(octets.translate(None, _ONE_OCTET))
    if len(octets) + 2 * beyond <= len(octets) * 4 // 3:
        return [f"=?UTF-8?Q?{word}?=" for word in _q_words(text, first_width)]
    if FRAME + (len(octets) + 2) // 3 * 4 <= first_width:
        return [f"=?UTF-8?B?{_base64(octets)}?="]
    return [f"=?UTF-8?B?{word}?=" for word in _b_words(text, first_width)]


def _q_words(text: str, first_width: int) -> Iterator[str]:
    """Yield the text in Q encoding, in pieces for one encoded word each, without its frame."""
    width = max(first_width, SHORTEST_WIDTH) - FRAME
    word: list[str] = []
    used = 0
    for character in text:
        form = "".join([_Q_FORM[octet] for octet in character.encode()])
        if used + len(form) > width:
            yield "".join(word)
            word, used, width = [], 0, LONGEST_WORD - FRAME
        word.append(form)
        used += len(form)
    yield "".join(word)


def _b_words(text: str, first_width: int) -> Iterator[str]:
    """Yield the text in base64, in pieces for one encoded word each, without its frame."""
    width = (max(first_width, SHORTEST_WIDTH) - FRAME) // 4 * 3
    word = bytearray()
    for character in text:
        octets = character.encode()
        if len(word) + len(octets) > width:
            yield _base64(word)
            word, width = bytearray(), (LONGEST_WORD - FRAME) // 4 * 3
        word += octets
    yield _base64(word)


def _base64(octets: bytes | bytearray) -> str:
    return binascii.b2a_base64(octets, newline=False).decode("ascii")


def decode(text: str) -> str:
    """Return `text` with its encoded words decoded; a word that cannot be decoded stays as it stands."""
    if "=?" not in text:
        return text
    out: list[str] = []
    # Old writers split characters between words, so adjacent words of one charset are joined before decoding.
    held, codec = b"", ""
    end = 0
    for found in _ENCODED_WORD.finditer(text):
        between = text[end : found.start()]
        end = found.end()
        octets = _octets(found)
        if octets is None:
            out += (_text(held, codec), between, found[0])
            held, codec = b"", ""
            continue
        charset = CHARSETS[found[1].lower()]
        adjacent = codec != "" and not between.strip(" \t")
        if adjacent and charset == codec:
            held += octets
            continue
        out += (_text(held, codec), "" if adjacent else between)
        held, codec = octets, charset
    return "".join((*out, _text(held, codec), text[end:]))


def are_harmless(text: str) -> bool:
    """Return whether every encoded word in `text` is well formed, of a known charset and free of
    control characters.

    Readers differ in what they take for an encoded word, so anything that resembles one is judged (TRAP-01).
    """
    if FORBIDDEN.search(decode(text)):
        return False
    rest = _ENCODED_WORD.sub(lambda word: word[0] if _octets(word) is None else "", text)
    return not ("=?" in rest and _LOOSE_MIDDLE.search(rest))


def _octets(word: re.Match[str]) -> bytes | None:
    """Return the octets of the word, or None when its charset is unknown or its base64 is broken."""
    if word[1].lower() not in CHARSETS:
        return None
    try:
        if word[2] in "Qq":
            return binascii.a2b_qp(word[3], header=True)
        return binascii.a2b_base64(word[3] + "=" * (-len(word[3]) % 4))
    except binascii.Error:
        return None


def _text(octets: bytes, codec: str) -> str:
    return octets.decode(codec, "replace") if octets else ""
