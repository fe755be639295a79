"""Lines behind which, or in which, a mail program puts the mail that is answered or handed on.

Three forms: the attribution ("On … wrote:") that stands before a quotation, the separator ("-----Original
Message-----"), and the block of header fields that Outlook writes ("From: … Sent: … Subject: …"). English,
German, French, Spanish and Japanese, and for attributions and fields some more: an attribution with time and
address is one in any language.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LONGEST_ATTRIBUTION: Final = 400
MOST_ATTRIBUTION_LINES: Final = 4
MOST_FIELD_LINES: Final = 12
LONGEST_FIELD: Final = 2000

_QUOTED = re.compile(r"[ \t]{0,3}[>＞]")
_TIME = re.compile(r"[0-9]{1,2}[:.h][0-9]{2}|[0-9]{4}[-/年]|[12][0-9]{3}\b|[0-9]{1,2}時")
_CLOCK = re.compile(r"(?<![0-9.])[0-9]{1,2}[:.h][0-9]{2}(?![0-9]|\.[0-9])|[0-9]{1,2}時")
_ADDRESS = re.compile(r"[^ \t<>\"]@[^ \t<>\"]")
_ADDRESS_OF_AUTHOR = re.compile(r"[<＜(][^ \t<>\"()]+@[^ \t<>\"()]+[>＞)]|@[^ \t<>\"()]+[:：]$")
"""In brackets behind the name, or last. In a sentence it stands bare among the words."""
_NOT_A_MARK = re.compile(r">(?:From |[0-9=])")

_VERBS = re.compile(
    r"(?:(?:wrote|writes|said|geschrieben|a écrit|écrit|escribió|ha scritto|escreveu)(?: (?:le|am|op"
    r"|on) .{0,160})?"
    r"|\b(?:schrieb|schreef) .{0,160}|\bschrieb"
    r"|(?:のメール|のメッセージ|書きました|書き込みました|書いた))[ \t\xa0]*[:：]$",
    re.IGNORECASE,
)
_BEGINS_WITH_A_DATE = re.compile(
    r"(?:on|am|le|el|il|em|op|at|den|dne|dnia|w dniu|på|pe|tarihinde|vào|pada|בתאריך|في)"
    r" .{0,40}?[0-9]|[0-9]{4}[-/年.][0-9]{1,2}[-/月.][0-9]{1,2}"
    r"|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}",
    re.IGNORECASE,
)

_WIDE_GAP = re.compile(r"[:：][ \xa0]{2,}\S")

_DASHES = r"[-_=*－—–─━]{2,}[ \t]*"
_SEPARATOR_WORDS = (
    *(
        "original message",
        "original email",
        "original-nachricht",
        "originalnachricht",
        "original appointment",
    ),
    *("ursprüngliche nachricht", "ursprüngliche e-mail", "message d'origine", "message original"),
    *("message d’origine", "mensaje original", "correo original", "messaggio originale", "mensagem original"),
    *(
        "oorspronkelijk bericht",
        "元のメッセージ",
        "元のメール",
        "オリジナルメッセージ",
        "元のメールメッセージ",
    ),
    "reply message",
)
_FORWARD_WORDS = (
    *("forwarded message", "forwarded email", "forwarded mail", "weitergeleitete nachricht"),
    *("message transféré", "message réexpédié", "mensaje reenviado", "messaggio inoltrato"),
    *("mensagem encaminhada", "doorgestuurd bericht", "転送メッセージ", "転送されたメッセージ"),
    *("forwarded by .{1,100}", "vidarebefordrat meddelande", "videresendt meddelelse", "转发的邮件"),
    *("転送された(?:メール|メッセージ)", "пересылаемое сообщение", "przekazana wiadomość", "הודעה שהועברה"),
    *("הודעה מועברת", "رسالة معاد توجيهها", "yönlendirilen ileti", "iletilen mesaj", "전달된 메시지"),
)
_SEPARATOR = re.compile(
    rf"{_DASHES}(?:{'|'.join((*_SEPARATOR_WORDS, *_FORWARD_WORDS))})[ \t]*{_DASHES}$", re.IGNORECASE
)
_FORWARD = re.compile(rf"{_DASHES}(?:{'|'.join(_FORWARD_WORDS)})[ \t]*{_DASHES}$", re.IGNORECASE)
_ZOHO = re.compile(r"-{2,4}[ \xa0]*(?P<said>[^- ].{3,300}[^- ])[ \xa0]*-{2,4}$")
"""The attribution of Zoho Mail stands between dashes, without a colon."""
_BIDI: Final = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
_BEGIN_FORWARDED = re.compile(
    r"(?:begin forwarded message|anfang der weitergeleiteten (?:nachricht|e-mail)"
    r"|début du message (?:réexpédié|transféré)"
    r"|inicio del mensaje reenviado|inizio messaggio inoltrato|転送されたメッセージ|以下に転送します"
    r"|weitergeleitete nachricht|forwarded message)[ \t\xa0]*[:：]$",
    re.IGNORECASE,
)
_RULE = re.compile(r"[_\-=─━]{10,}$")

_FIELDS: Final = {
    "from": (
        *("from", "von", "de", "expéditeur", "da", "van", "差出人", "送信者", "送信元", "remitente"),
        *("发件人", "寄件者", "寄件人", "보낸 사람", "od", "от", "від", "från", "fra", "kimden", "gönderen"),
        *("lähettäjä", "feladó"),
    ),
    "date": (
        *("sent", "date", "gesendet", "datum", "envoyé", "envoyé le", "date d'envoi", "enviado"),
        *("enviado el", "enviada em"),
        *("fecha", "inviato", "data", "verzonden", "送信日時", "日時", "日付", "送信日"),
        *("发送时间", "发件时间", "日期", "寄件日期", "傳送時間", "보낸 날짜", "날짜", "wysłano", "odesláno"),
        *("отправлено", "дата", "надіслано", "skickat", "sendt", "dato", "gönderildi", "gönderme tarihi"),
        *("tarih", "lähetetty", "elküldve", "dátum"),
    ),
    "to": (
        *("to", "an", "à", "pour", "para", "a", "aan", "宛先", "收件人", "收件者", "받는 사람", "do", "komu"),
        *("кому", "till", "til", "kime", "alıcı", "vastaanottaja", "címzett"),
    ),
    "cc": (
        "cc",
        "kopie",
        "copie",
        "copie à",
        "bcc",
        "reply-to",
        "antwort an",
        "répondre à",
        "importance",
        "priority",
        *("抄送", "副本", "참조", "dw", "kopia", "kopie", "копия", "копія", "kopi", "bilgi", "kopio"),
    ),
    "subject": (
        "subject",
        "betreff",
        "objet",
        "sujet",
        "asunto",
        "oggetto",
        "assunto",
        "onderwerp",
        "件名",
        "題名",
        *("主题", "主旨", "제목", "temat", "předmět", "тема", "ämne", "emne", "konu", "aihe", "tárgy"),
    ),
}
_SENT: Final = frozenset(
    (
        *("sent", "gesendet", "envoyé", "envoyé le", "enviado", "enviado el", "enviada em", "inviato"),
        *("verzonden", "送信日時", "发送时间", "寄件日期", "傳送時間", "보낸 날짜", "wysłano", "odesláno"),
        *("отправлено", "надіслано", "skickat", "sendt", "gönderildi", "lähetetty", "elküldve"),
    )
)
_FORM_FIELDS: Final = frozenset(
    (
        *("message", "your message", "comment", "comments", "question", "nachricht", "ihre nachricht"),
        *("kommentar", "anliegen", "frage", "votre message", "commentaire", "mensaje", "comentario"),
        *("consulta", "メッセージ", "お問い合わせ内容", "ご質問"),
    )
)
"""Names of fields that forms on web pages have and mail programs have not."""
_KIND_OF: Final = {word: kind for kind, words in _FIELDS.items() for word in words}
_FIELD = re.compile(r"[*_]{0,2}(?P<name>[^\W\d_][^:：*_<>@]{0,20}?)[ \t\xa0]*[*_]{0,2}[ \t\xa0]*[:：]")


def is_quoted(line: str) -> bool:
    """Return whether the line is marked as one of another message."""
    return _QUOTED.match(line) is not None


def may_be_own(line: str) -> bool:
    """Return whether the mark may be none: servers write ">From" for "From", and people write ">100"."""
    return _NOT_A_MARK.match(line) is not None


def is_rule(line: str) -> bool:
    """Return whether the line is drawn from one side to the other, as Outlook does before what it quotes."""
    return _RULE.match(line.strip()) is not None


def is_separator(line: str) -> bool:
    """Return whether everything behind this line is another message."""
    line = line.strip().strip("*").strip()
    if len(line) > LONGEST_ATTRIBUTION:
        return False
    return bool(_SEPARATOR.match(line) or _BEGIN_FORWARDED.match(line))


def is_forward(line: str) -> bool:
    """Return whether everything behind this line is a message that is handed on."""
    line = line.strip().strip("*").strip()
    if len(line) > LONGEST_ATTRIBUTION:
        return False
    return bool(_FORWARD.match(line) or _BEGIN_FORWARDED.match(line))


def without_marks(line: str) -> str:
    """Return the line without unseen marks of direction, which Gmail puts around names in Hebrew
    and Arabic."""
    return line if line.isascii() else _BIDI.sub("", line)


@dataclass(frozen=True, slots=True)
class Attribution:
    """How many lines it takes, and whether it is one also where no marked line follows."""

    lines: int
    is_sure: bool


def attribution(lines: Sequence[str], index: int) -> Attribution | None:
    """Return the attribution that begins at this line, which is not empty. It says who wrote, and
    often when."""
    found = _up_to_colon(lines, index)
    if found is None or found.lines == 1 or not _begins_later(lines[index : index + found.lines]):
        return found
    return None


def names_somebody(line: str) -> bool:
    """Return whether it has a time or an address, as a mail program writes them and few people do."""
    return _TIME.search(line) is not None or _ADDRESS.search(line) is not None


def _begins_later(lines: Sequence[str]) -> bool:
    """Return whether the first of these lines is the author's own: those behind it say all that an
    attribution says, and the first is no beginning of one, or is a sentence."""
    first = lines[0].strip()
    if _BEGINS_WITH_A_DATE.match(first) and first[-1] not in ".!?":
        return False
    has_address = _ADDRESS_OF_AUTHOR.search(" ".join(lines)) is not None
    for at in range(1, len(lines)):
        said = " ".join([line.strip() for line in lines[at:]])
        is_complete = _TIME.search(said) is not None and (
            not has_address or _ADDRESS.search(said) is not None
        )
        if is_complete and _judged(said, len(lines) - at) is not None:
            return True
    return False


def _up_to_colon(lines: Sequence[str], position: int) -> Attribution | None:
    joined = ""
    for taken in range(1, MOST_ATTRIBUTION_LINES + 1):
        index = position + taken - 1
        if index >= len(lines):
            return None
        line = lines[index].strip()
        if not line or is_quoted(line) or len(joined) + len(line) > LONGEST_ATTRIBUTION:
            return None
        joined = f"{joined} {line}" if joined else line
        if line[-1] in ":：":
            return _judged(joined, taken)
        if line.endswith("--") and (zoho := _ZOHO.match(joined)):
            return _judged(f"{zoho['said']}:", taken)
        if taken == 1 and (wide := _WIDE_GAP.search(line)):
            # Yahoo writes the first words of the quotation behind the attribution.
            found = _judged(line[: wide.start() + 1], taken)
            return found if found and found.is_sure else None
    return None


def _judged(line: str, lines: int) -> Attribution | None:
    has_address = _ADDRESS.search(line) is not None
    has_time = _TIME.search(line) is not None
    is_dated = has_time and _BEGINS_WITH_A_DATE.match(line) is not None
    if _VERBS.search(line):
        if lines > 1 and not (is_dated or has_address):
            return None
        is_exact = has_address or _CLOCK.search(line) is not None
        return Attribution(lines, is_sure=has_time and is_exact and (is_dated or has_address))
    if has_time and has_address and (is_dated or _ADDRESS_OF_AUTHOR.search(line)):
        return Attribution(lines, is_sure=is_dated and line.rstrip(":： ").endswith(">"))
    return None


def field_lines(lines: Sequence[str], index: int) -> bool:
    """Return whether a block of header fields begins here: who sent it, when, and the subject or
    an address."""
    if _KIND_OF.get(_field_name(lines[index])) != "from":
        return False
    kinds = set()
    has_address = is_sent = False
    blank = 0
    for line in lines[index : index + MOST_FIELD_LINES]:
        if not line.strip():
            # Texts made of HTML may have an empty line behind each field.
            blank += 1
            if blank > 1:
                break
            continue
        name = _field_name(line)
        kind = _KIND_OF.get(name)
        if name in _FORM_FIELDS:
            return False
        if kind is None and blank:
            break
        blank = 0
        if kind is not None:
            kinds.add(kind)
            # Only Outlook names the day so, and forms, which ask for a date, do not.
            is_sent = is_sent or (name in _SENT and _CLOCK.search(line[:LONGEST_FIELD]) is not None)
            has_address = has_address or (
                kind in ("from", "to") and _ADDRESS.search(line[:LONGEST_FIELD]) is not None
            )
    if not {"from", "date"} <= kinds:
        return False
    if "subject" in kinds or (has_address and "to" in kinds):
        return True
    return is_sent and ("to" in kinds or has_address)


def _field_name(line: str) -> str:
    """Return the name of the field in small letters; empty where the line is none."""
    found = _FIELD.match(line.strip()[:60])
    return found["name"].lower().replace("’", "'") if found else ""
