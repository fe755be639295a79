"""Octets that say they are in some charset, as text (INB-04).

Labels are those of the WHATWG Encoding Standard and what old mail programs wrote besides. They lead to
decoders on a fixed list: Python's registry also holds compressors, escape decoders and UTF-7, none of
which has any business in mail; only plain text, which nobody reads as markup, is decoded from UTF-7 as well
(docs/decisions/0030). Whatever the octets are, the text is valid Unicode without NUL.

Mail lies about its charsets, so a declaration is believed only as far as the octets allow: ASCII with high
octets is read as UTF-8 or windows-1252. Text that is broken nearly everywhere in its declared charset is read
in the next one that fits.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder

REPLACEMENT = "\ufffd"

_LABELS: dict[str, str] = {
    "utf_8": "utf-8 utf8 unicode-1-1-utf-8 utf_8 x-unicode20utf8 unicode11utf8 utf-8-sig utf8mb4 cesu-8",
    "ascii": "us-ascii ascii ansi_x3.4-1968 iso-ir-6 iso646-us us ansi_x3.4-1986 iso_646.irv:1991 7bit 646",
    "cp1252": "windows-1252 cp1252 x-cp1252 iso-8859-1 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 "
    "iso-ir-100 latin1 latin-1 l1 8859_1 cp819 ibm819 csisolatin1 x-ansi ansi",
    "iso8859_2": "iso-8859-2 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 latin2 l2 csisolatin2",
    "iso8859_3": "iso-8859-3 iso8859-3 iso_8859-3 latin3 l3 csisolatin3",
    "iso8859_4": "iso-8859-4 iso8859-4 iso_8859-4 latin4 l4 csisolatin4",
    "iso8859_5": "iso-8859-5 iso8859-5 iso_8859-5 cyrillic csisolatincyrillic",
    "iso8859_6": "iso-8859-6 iso8859-6 iso_8859-6 iso-8859-6-e iso-8859-6-i arabic csisolatinarabic asmo-708",
    "iso8859_7": "iso-8859-7 iso8859-7 iso_8859-7 greek greek8 csisolatingreek sun_eu_greek",
    "iso8859_8": "iso-8859-8 iso8859-8 iso_8859-8 iso-8859-8-i iso-8859-8-e hebrew visual logical",
    "iso8859_10": "iso-8859-10 iso8859-10 latin6 l6 csisolatin6",
    "iso8859_13": "iso-8859-13 iso8859-13",
    "iso8859_14": "iso-8859-14 iso8859-14",
    "iso8859_15": "iso-8859-15 iso8859-15 iso_8859-15 latin9 latin-9 l9 csisolatin9",
    "iso8859_16": "iso-8859-16 iso8859-16",
    "cp1250": "windows-1250 cp1250 x-cp1250",
    "cp1251": "windows-1251 cp1251 x-cp1251 win-1251",
    "cp1253": "windows-1253 cp1253 x-cp1253",
    "cp1254": "windows-1254 cp1254 x-cp1254 iso-8859-9 iso8859-9 iso_8859-9 latin5 l5 csisolatin5",
    "cp1255": "windows-1255 cp1255 x-cp1255",
    "cp1256": "windows-1256 cp1256 x-cp1256",
    "cp1257": "windows-1257 cp1257 x-cp1257",
    "cp1258": "windows-1258 cp1258 x-cp1258",
    "cp874": "windows-874 cp874 tis-620 dos-874 iso-8859-11 iso8859-11",
    "cp866": "ibm866 cp866 866 csibm866",
    "cp850": "ibm850 cp850 850",
    "cp437": "ibm437 cp437 437",
    "koi8_r": "koi8-r koi8 koi koi8_r cskoi8r",
    "koi8_u": "koi8-u koi8-ru",
    "mac_roman": "macintosh mac x-mac-roman csmacintosh",
    "mac_cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "gb18030": "gb18030 gbk gb2312 gb_2312 gb_2312-80 csgb2312 csiso58gb231280 chinese iso-ir-58 x-gbk cp936",
    "hz": "hz-gb-2312 hz",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5 cp950",
    "cp932": "shift_jis shift-jis sjis x-sjis ms_kanji ms932 windows-31j csshiftjis cp932",
    "euc_jp": "euc-jp cseucpkdfmtjapanese x-euc-jp eucjp",
    "iso2022_jp_ext": "iso-2022-jp csiso2022jp iso-2022-jp-1 iso-2022-jp-ms cp50220 cp50221",
    "iso2022_jp_2": "iso-2022-jp-2",
    "cp949": "euc-kr ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 korean windows-949 cp949 cseuckr "
    "euckr uhc",
    "iso2022_kr": "iso-2022-kr csiso2022kr",
    "utf_16": "utf-16 utf16 unicode ucs-2 iso-10646-ucs-2 csunicode",
    "utf_16_le": "utf-16le unicodefeff",
    "utf_16_be": "utf-16be unicodefffe",
    "utf_32": "utf-32 utf32",
}
CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}

_META = re.compile(rb"<meta[^>]{0,1024}?charset\s{0,8}=[\"'\s]{0,8}([A-Za-z0-9_:.\-]{1,40})", re.IGNORECASE)
_META_WITHIN = 4096
_LABEL_NOISE = " \t\r\n\"';"
_BOMS = ((b"\xef\xbb\xbf", "utf_8"), (b"\xff\xfe", "utf_16_le"), (b"\xfe\xff", "utf_16_be"))

UTF_7 = frozenset(("utf-7", "utf7", "unicode-1-1-utf-7", "x-unicode-2-0-utf-7", "csunicode11utf7"))
_SURROGATES = re.compile("[\ud800-\udfff]")

_HIGH = bytes(range(128, 256))
_SEVEN_BIT_OR_WIDE = ("iso2022", "hz", "utf_16", "utf_32")

BLOCK = 256 * 1024
MOST_BROKEN = 3
"""A declared charset is given up when more than one in so many octets beyond ASCII is broken in it."""


def codec_of(label: str | None) -> str | None:
    """Return the decoder that a charset label stands for, None when there is none."""
    if not label:
        return None
    return CODECS.get(label) or CODECS.get(label.strip(_LABEL_NOISE).lower())


def decode(octets: bytes, label: str | None = None) -> str:
    """Return the text that `octets` most probably are; `label` is the declared charset (receiving.md 3)."""
    codec = codec_of(label)
    if octets.isascii() and codec in (None, "utf_8", "ascii", "cp1252"):
        text = octets.decode("ascii")
        return text.replace("\0", REPLACEMENT) if "\0" in text else text
    for mark, unicode_codec in _BOMS:
        if octets.startswith(mark):
            return _clean(octets[len(mark) :].decode(unicode_codec, "replace"))
    return _clean(_decoded(octets, codec))


def decode_plain(octets: bytes, label: str | None = None) -> str:
    """Return the decoded plain text, which may be UTF-7 (RFC 2152)."""
    # Each of its names has a 7; looking for that is all that other labels cost.
    if label is None or "7" not in label:
        return decode(octets, label)
    if label.strip(_LABEL_NOISE).lower() not in UTF_7 or not octets.isascii():
        return decode(octets, label)
    return _clean(_SURROGATES.sub(REPLACEMENT, octets.decode("utf_7", "replace")))


def decode_html(octets: bytes, label: str | None = None) -> str:
    """Return the decoded HTML, which may declare its charset itself when the part does not."""
    if codec_of(label) is None and (found := _META.search(octets, 0, _META_WITHIN)) is not None:
        inner = found[1].decode("ascii").lower()
        # What could be read as ASCII up to here is not UTF-16, whatever it says (WHATWG, 13.2.3.2).
        label = "utf-8" if (codec_of(inner) or "").startswith(("utf_16", "utf_32")) else inner
    return decode(octets, label)


def _decoded(octets: bytes, declared: str | None) -> str:
    for codec in (declared, "utf_8"):
        if codec is None or codec == "ascii":
            continue
        try:
            return octets.decode(codec)
        except UnicodeError:
            text = _with_replacements(octets, codec)
            if _is_mostly_right(text, octets, codec):
                return text
    return _with_replacements(octets, "cp1252")


def _with_replacements(octets: bytes, codec: str) -> str:
    """Return the text with U+FFFD for what is broken; in blocks, between which other threads may run."""
    if len(octets) <= BLOCK:
        return octets.decode(codec, "replace")
    decoder = getincrementaldecoder(codec)("replace")
    pieces = [decoder.decode(octets[at : at + BLOCK]) for at in range(0, len(octets), BLOCK)]
    return "".join([*pieces, decoder.decode(b"", True)])


def _is_mostly_right(text: str, octets: bytes, codec: str) -> bool:
    """Return whether so little is broken that the declaration is true and the octets are damaged."""
    suspects = len(octets)
    if not codec.startswith(_SEVEN_BIT_OR_WIDE):
        suspects -= len(octets.translate(None, _HIGH))
    return text.count(REPLACEMENT) * MOST_BROKEN <= suspects


def _clean(text: str) -> str:
    return text.replace("\0", REPLACEMENT) if "\0" in text else text
