"""The words of a report that are its reporter's own: nothing that the mail it is about contains.

    text = dsn_own_words.text(message)

Our own mail may say "your account is disabled", and a person may quote a bounce. So what is enclosed,
quoted, or announced as the original has no say: the parts behind the report's text, lines that begin
with `>`, `<blockquote>`, what follows "Original message", header fields and bodies of the returned mail.
What is left out by mistake costs at most a verdict that is less sure; the reverse would suppress people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pillarbox.mail.html import plain_text
from pillarbox.mail.message import charsets, header_block, header_text
from pillarbox.mail.message.mime_parts import ParsedPart
from pillarbox.mail.message.parse import ParsedMessage

STATUS_TYPES: Final = ("message/delivery-status", "message/global-delivery-status")
ORIGINAL_TYPES: Final = (
    *("message/rfc822", "message/global", "text/rfc822-headers", "text/rfc822-header"),
    "message/global-headers",
)
LONGEST_TEXT: Final = 64 * 1024
LONGEST_HTML: Final = 256 * 1024
LONGEST_HEAD: Final = 64 * 1024
SHORTEST_SUBJECT: Final = 4
_TEXTS: Final = ("text/plain", "text/html")

_ORIGINAL: Final = re.compile(
    r"^[ \t*#=_|-]{0,60}(?:"
    r"(?:this is |below (?:is |this line is )|included is |here is )?"
    r"(?:a |the )?copy of (?:the |your )?(?:original )?message|"
    r"(?:the )?(?:header of the )?original message (?:is )?follow|message headers follow|"
    r"(?:begin )?(?:original|forwarded) message(?: headers?)?(?:[ \t:*=_-]|$)|"
    r"unsent message (?:follows|below)|original mail info|"
    r"undelivered message follow|the header of the original message|returned message(?: follow|[ \t]*-)|"
    r"below this line is (?:a copy|the original)|message header follow|"
    r"urspr(?:ü|ue)ngliche (?:nachricht|e-?mail)|weitergeleitete nachricht|message d'origine|"
    r"message (?:original|transféré)|mensaje (?:original|reenviado)|mensagem (?:original|encaminhada)|"
    r"messaggio (?:originale|inoltrato)|oorspronkelijk bericht|doorgestuurd bericht|"
    r"(?:contents?|text|body) of (?:the |your )(?:original )?(?:message|e-?mail)[ \t]*:|"
    r"(?:the )?(?:message (?:that )?you sent|your (?:original )?message) (?:was|follows|is)[ \t]*:|"
    r"(?:oryginalna|przekazana) wiadomość|"
    r"(?:исходное|пересылаемое|оригинальное) сообщение|元のメッセージ|転送メッセージ|"
    r"原始(?:邮件|信件|郵件)|转发邮件|"
    r"(?:return-path|received|x-received|dkim-signature|arc-seal|x-originating-ip|mime-version|"
    r"content-transfer-encoding|list-unsubscribe): ?"
    r")",
    re.IGNORECASE | re.MULTILINE,
)
_WROTE: Final = re.compile(
    r"(?:on|am|le|el|il|em|op|w dniu) .{4,200}"
    r"(?:wrote|schrieb|a écrit|escribió|ha scritto|escreveu|schreef|napisał)\b.{0,100}:"
)
_QUOTED: Final = re.compile(r"[ \t]*(?:>|»|\|[ \t])")
_FIELD: Final = re.compile(
    r"[ \t*]*(?:subject|from|sender|reply-to|cc|bcc|date|message-id|thread-topic|x-[a-z0-9-]{1,60}|"
    r"content-(?:type|disposition|description|language)|in-reply-to|references|user-agent|comments|keywords|"
    r"betreff|von|objet|sujet|de|asunto|assunto|oggetto|da|onderwerp|van|temat|od|тема|от|"
    r"件名|差出人|主题|主旨|主題|发件人|寄件者)[ \t*]*[::](?!//)",
    re.IGNORECASE,
)
_HEADER: Final = re.compile(
    r"\*{0,2}(?:"
    r"(?P<author>from|von|de|da|van|od|от|差出人|发件人|寄件者)|"
    r"(?P<time>date|sent|datum|gesendet|fecha|enviad[oa](?: el| em)?|data|inviato|envoyé|verzonden|wysłano|"
    r"дата|отправлено|送信日時|日付|发送时间|傳送時間|寄件日期)|"
    r"(?P<subject>subject|betreff|objet|sujet|asunto|assunto|oggetto|onderwerp|temat|тема|件名|主题|主旨|主題)|"
    r"to|message-id|content-type|sender|cc|an|à|para|aan|do|кому|宛先|收件人"
    r")[ \t\xa0*|]*[::]",
    re.IGNORECASE,
)
_RETURNED: Final = frozenset(("author", "time", "subject"))
_UNDELIVERABLE: Final = re.compile(
    r"(?:undeliver(?:able|ed)|unzustellbar|nicht zustellbar|non remis(?:e|ible)?|"
    r"no se (?:puede|pudo) entregar|"
    r"não (?:entregue|é possível entregar)|impossibile recapitare|onbestelbaar|failure notice|"
    r"не удается доставить|配信不能|無法傳遞|无法送达|未送达)[^:]{0,30}[::][ \t]*(.{1,998})",
    re.IGNORECASE,
)
"""Subjects of reports that continue with the subject of the mail; others continue with the reason."""


def text(message: ParsedMessage) -> str:
    """Return the reporter's own words in the first text or html part, without quotations."""
    found = _part(message)
    if found is None:
        return ""
    octets = message.content(found)
    if found.content_type != "text/html":
        return own(charsets.decode(octets[:LONGEST_TEXT], found.charset))
    html = charsets.decode_html(octets[:LONGEST_HTML], found.charset)
    return own(plain_text.text_of(html, quotations=False))


def own(words: str) -> str:
    """Return the text without quotations, header fields and the copy of the original mail."""
    words = words[:LONGEST_TEXT].replace("\r\n", "\n").replace("\r", "\n")
    found = _ORIGINAL.search(words)
    if found:
        words = words[: found.start()]
    return "\n".join(_own_lines(words.split("\n")))


def subjects(message: ParsedMessage) -> list[str]:
    """Return the subjects that the original mail may have, by the report's subject and by the
    enclosed header."""
    named_by_report = _UNDELIVERABLE.match(message.subject)
    found = [named_by_report[1]] if named_by_report else []
    for part in message.root.leaves():
        if part.content_type in ORIGINAL_TYPES:
            head = header_block.split_message(message.content(part)[:LONGEST_HEAD]).fields
            named = header_block.first_of_each(head)
            found.append(header_text.decoded(named.get("subject", b"")))
            break
    return [subject for each in found if len(subject := " ".join(each.split())) >= SHORTEST_SUBJECT]


def without(words: str, subjects: Sequence[str]) -> str:
    """Return the words in lower case and without these subjects, wherever they stand."""
    words = " ".join(words.lower().split())
    for subject in subjects:
        words = words.replace(subject.lower(), " ")
    return words


def _part(message: ParsedMessage) -> ParsedPart | None:
    """Return the first text, which the reporter wrote; what stands behind it, or behind the fields, is
    not theirs."""
    root = message.root
    if not root.children and root.content_type.startswith("multipart/"):
        return root
    return _first_text(message, root)


def _first_text(message: ParsedMessage, part: ParsedPart) -> ParsedPart | None:
    if not part.children:
        return part if part.content_type in _TEXTS else None
    if part.content_type == "multipart/alternative":
        forms = [leaf for kind in _TEXTS for leaf in part.leaves() if leaf.content_type == kind]
        return next((form for form in forms if _has_words(message, form)), None)
    for child in part.children:
        if child.content_type in STATUS_TYPES or child.content_type in ORIGINAL_TYPES:
            return None
        found = _first_text(message, child)
        if found is not None:
            return found
    return None


def _has_words(message: ParsedMessage, part: ParsedPart) -> bool:
    return bool(message.raw[part.content_start : min(part.end, part.content_start + LONGEST_TEXT)].strip())


def _own_lines(lines: Sequence[str]) -> Iterator[str]:
    field: int | None = None
    for at, line in enumerate(lines):
        if _begins_original(lines, at):
            return
        indent = len(line) - len(line.lstrip(" \t"))
        if field is not None and line.strip() and indent > field and not _FIELD.match(line):
            continue
        field = indent if _FIELD.match(line) else None
        if field is None and not _QUOTED.match(line):
            yield line


def _begins_original(lines: Sequence[str], index: int) -> bool:
    """Return whether a header with author, date (`Sent` in Outlook) and subject begins here, or
    a quotation."""
    line = lines[index]
    if _WROTE.match(line.strip().lower()[:400]):
        return True
    if not _HEADER.match(line) or (index and _HEADER.match(lines[index - 1])):
        return False
    return {
        found.lastgroup for each in lines[index : index + 12] if (found := _HEADER.match(each))
    } >= _RETURNED
