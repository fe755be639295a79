"""Where the signature of a text begins: at `-- `, at a greeting with a name, at a line that a program wrote.

A text without any of them has no signature that could be told from what it says. People write on
behind their greeting, so what stands there is a signature only where it reads like one: a name, no sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MOST_LINES: Final = 12
"""Lines that a signature may have, where it does not begin with `-- ` itself."""
MOST_LINES_BEHIND_DASHES: Final = 30
LONGEST_LINE: Final = 90
LONGEST_NAME: Final = 40

_DELIMITER: Final = "-- "
_LIKE_DELIMITER = re.compile(r"(?:--|—|––)$")
_DECORATION = re.compile(
    r"[ \t]*([-_=~*─━―ー＝＊☆★◇◆■□…・．.+･:;。〜～-])[-_=~*─━―ー＝＊☆★◇◆■□…・．.+･:;。〜～ -]{4,}$"
)
_CONTACT = re.compile(
    r"@|https?:|www\.|〒|[0-9](?:[0-9 ()./-]{5,})[0-9]|\b(?:tel|phone|fax|mobil|tél|móvil)\b|電話|株式会社",
    re.IGNORECASE,
)
_LIST_FOOTER = re.compile(
    r"mailing list|unsubscribe|mailingliste|liste de diffusion|lista de correo", re.IGNORECASE
)

_TARGET = re.compile(r"[<(]https?:[^<>() ]{0,400}[>)]")

_DEVICES = (
    r"(?:iphone|ipad|ipod|android|samsung|galaxy|blackberry|huawei|xiaomi|redmi|pixel|mobile|smartphone"
    r"|handy|mobiltelefon"
    r"|mobilgerät|téléphone|móvil|teléfono|windows phone|phone|htc|sony|oneplus|nokia|tablet|tablette)"
)
_CLIENTS = (
    r"(?:(?:the )?(?:outlook|yahoo|gmail|mail|aol|gmx|web\.de|proton ?mail|spark|k-9 mail|fairemail"
    r"|thunderbird|aqua mail"
    r"|nine|tutanota|tuta|zoho mail|courrier|correo|airmail|mailbird|edison mail|blue ?mail|bluemail"
    r"|superhuman|hey|front|missive))"
)
_REST = (
    r"(?: [^ ,.;]{1,30}){0,6}"
    r"(?:[.,;:!]? ?(?:please|excuse|sorry|pardon|bitte|entschuldig|désolé|disculp).{0,80})?[.!]?"
)
_SENT_FROM = re.compile(
    r"(?:"
    rf"sent (?:from|via|with|using) (?:my |a |an |the )?(?:{_DEVICES}|{_CLIENTS}){_REST}"
    rf"|get (?:outlook|bluemail|blue mail) for{_REST}"
    rf"|sent from my(?: [^ ,.;]{{1,30}}){{0,4}} (?:phone|device|tablet|smartphone){_REST}"
    r"|von (?:meinem|meiner) .{1,60} (?:gesendet|verschickt|verfasst)\.?"
    rf"|gesendet (?:von|mit|über|aus|vom) (?:der |dem )?(?:{_DEVICES}|{_CLIENTS}|my){_REST}"
    r"|diese nachricht wurde von mein.{1,80} gesendet\.?"
    rf"|outlook für .{{1,20}} beziehen|holen sie sich outlook für{_REST}"
    rf"|(?:télécharger|obtenir|obtenez) outlook pour{_REST}|envoyé (?:de|depuis) mon{_REST}"
    rf"|envoyé (?:avec|via|depuis|à partir de|de) (?:l'application )?(?:{_DEVICES}|{_CLIENTS}){_REST}"
    rf"|enviado (?:desde|con|mediante|por) (?:mi )?(?:{_DEVICES}|{_CLIENTS}){_REST}"
    rf"|(?:obtener|descargar) outlook para{_REST}"
    r"|(?:私の)?(?:iphone|ipad|android|スマートフォン|携帯(?:電話)?|ケータイ|galaxy|xperia"
    r"|windows ?版のメール|outlook"
    r"|yahoo!?メール)"
    r"(?:端末)?[^、。]{0,20}(?:から|で|より)送信(?:しました|されました|しています)?。?"
    r"|(?:(?:ios|android|windows) ?版の? ?outlook|outlook for (?:ios|android)) ?を(?:入手|取得"
    r"|ダウンロード)[^、。]{0,20}。?"
    rf"|inviato da(?:l mio)? (?:{_DEVICES}){_REST}|enviado do meu{_REST}|verzonden vanaf mijn{_REST}"
    r")$",
    re.IGNORECASE,
)

_REGARDS = re.compile(
    r"(?:(?:with )?(?:my )?(?:best|kind|kindest|warm|warmest|many)(?: wishes| regards)?|(?:kind |best "
    r"|warm )?regards|br|rgds|yours"
    r"(?: sincerely| truly| faithfully)?|sincerely(?: yours)?|cheers|all the best|best wishes|respectfully"
    r"|cordially|take care"
    r"|(?:mit )?(?:freundlich(?:e|en|em)|best(?:e|en)|viele|vielen|lieb(?:e|en)|schön(?:e|en)|herzlich(?:e"
    r"|en)|sonnige)"
    r"(?: (?:und|&) \w{1,20})? (?:grü(?:ß|ss)(?:e|en)?|gru(?:ß|ss)|wünsche)(?: aus [\w ]{1,30})?|(?:lg|vg"
    r"|mfg|gru(?:ß|ss)|grü(?:ß|ss)e)"
    r"|hochachtungsvoll|(?:bien )?cordialement|(?:bien )?amicalement|sincères salutations"
    r"|salutations(?: distinguées)?"
    r"|bien à (?:vous|toi)|meilleures salutations|cdlt|bonne (?:journée|soirée)|à bientôt|bises"
    r"|(?:un )?(?:cordial(?:es)? )?saludos?(?: cordial(?:es)?)?|(?:muy )?atentamente|un (?:fuerte )?abrazo"
    r"|atte)"
    r"[ \t]*[,.!]{0,2}$",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"(?:thanks|thank you|thx|many thanks|thanks (?:again|a lot|so much|in advance)|thanks (?:and"
    r"|&) regards|thank you (?:very|so) much"
    r"|danke|vielen dank|besten dank|danke (?:im voraus|schön|sehr)|merci|merci (?:d'avance|beaucoup|bien)"
    r"|gracias|muchas gracias|gracias de antemano)[ \t]*[,.!]{1,2}$",
    re.IGNORECASE,
)
_WRITTEN_ON = re.compile(r"[?？]$|^(?:p\.? ?s\b|ps:|n\.?b\.?:|追伸)", re.IGNORECASE)
_NOT_IN_A_NAME = re.compile(r"[0-9]|[:：!！?？。]$|[^\W\d_]{4,}\.$")
_SENTENCE_END = re.compile(r"[.!?。！？]$")
_LABEL = re.compile(r"[^:：]{1,24}[:：] ?\S")
_COMPANY = re.compile(r"\b(?:gmbh|ag|kg|ltd|llc|inc|plc|s\.?a\.?r\.?l|s\.?l|e\. ?v|hrb)\b", re.IGNORECASE)
_NOTICE = re.compile(
    r"print|environment|umwelt|confidential|vertraulich|confidentiel|confidencial|reply to this|view it on",
    re.IGNORECASE,
)
_EXCUSE = re.compile(
    r"excuse|brevity|brief|typo|autocorrect|entschuldig|tippfehler|kürze|désolé|fautes?\b|disculp|erratas?"
    r"|誤字|ご容赦",
    re.IGNORECASE,
)


def end_of_text(lines: Sequence[str]) -> int:
    """Return how many of the lines stand before the signature. A text is never all signature, but for
    its marks."""
    end = _before_delimiter(lines, _without_blank_end(lines, len(lines)))
    end = _without_device(lines, end)
    end = _before_decorated(lines, end)
    return _before_greeting(lines, end)


def _before_delimiter(lines: Sequence[str], end: int) -> int:
    for at in range(max(0, end - 1 - MOST_LINES_BEHIND_DASHES), end):
        if lines[at] == _DELIMITER:
            return at
        if _LIKE_DELIMITER.match(lines[at]) and end - at - 1 <= MOST_LINES:
            behind = lines[at + 1 : end]
            if _are_of_a_signature(behind) or _are_of_a_program(behind):
                return at
    return end


def _without_blank_end(lines: Sequence[str], end: int) -> int:
    while end and not lines[end - 1].strip():
        end -= 1
    return end


def is_of_a_program(line: str) -> bool:
    """Return whether a mail program added this line ("Sent from my iPhone")."""
    line = line.strip().strip("*_").strip()
    return len(line) <= 2 * LONGEST_LINE and _SENT_FROM.match(_without_links(line)) is not None


def _without_links(line: str) -> str:
    """Return the line without the targets that the text of links shows in brackets."""
    return " ".join(_TARGET.sub("", line).replace("[", "").replace("]", "").split())


def _without_device(lines: Sequence[str], end: int) -> int:
    """Return the number of lines before the line of a program, where at most two short lines follow ("excuse
    my brevity")."""
    end = _without_blank_end(lines, end)
    for at in range(end - 1, max(end - 4, -1), -1):
        if is_of_a_program(lines[at]) and all(_goes_with_a_device(line) for line in lines[at + 1 : end]):
            return _without_blank_end(lines, at)
    return end


def _goes_with_a_device(line: str) -> bool:
    line = line.strip()
    if not line or is_of_a_program(line) or _is_name(line):
        return True
    return len(line) <= LONGEST_LINE and bool(_EXCUSE.search(line) or _CONTACT.search(line))


def _before_decorated(lines: Sequence[str], end: int) -> int:
    """Return the number of lines before a drawn line behind which stand an address, a telephone number or
    words about a list."""
    end = _without_blank_end(lines, end)
    found = end
    for at in range(end - 1, max(end - 1 - MOST_LINES, -1), -1):
        if len(lines[at]) > LONGEST_LINE and not _DECORATION.match(lines[at]):
            break
        if _DECORATION.match(lines[at]):
            behind = lines[at + 1 : end]
            if any(_LIST_FOOTER.search(line) for line in behind) or (
                any(_CONTACT.search(line) for line in behind)
                and not any(_is_written_on(line) for line in behind)
                and not (at and lines[at - 1].rstrip().endswith((":", "：")))
            ):
                found = at
    return _without_blank_end(lines, found)


def _before_greeting(lines: Sequence[str], end: int) -> int:
    """Return the number of lines before the greeting with the name and what else the sender is, where
    something stands above it."""
    end = _without_blank_end(lines, end)
    for at in range(end - 1, max(end - 1 - MOST_LINES, 0), -1):
        line = lines[at].strip()
        behind = lines[at + 1 : end]
        is_greeting = _REGARDS.match(line) or (at + 1 < end and _THANKS.match(line))
        if is_greeting and _are_of_a_signature(behind):
            before = _without_blank_end(lines, at)
            return before or end
        if len(line) > LONGEST_LINE:
            break
    return end


def _are_of_a_program(lines: Sequence[str]) -> bool:
    """Return whether the first line is one that a service writes below what it sends ("Reply to
    this email")."""
    said = next((line for line in lines if line.strip()), "")
    return bool(_NOTICE.search(said) or _LIST_FOOTER.search(said))


def _are_of_a_signature(lines: Sequence[str]) -> bool:
    """Return whether the lines behind a greeting are a name and what goes with it, and not what was
    written on."""
    paragraphs = _paragraphs(lines)
    if not paragraphs:
        return True
    said = [line for paragraph in paragraphs for line in paragraph]
    first = said[0]
    if not (_is_name(first) or (_CONTACT.search(first) and not first[0].isdigit())):
        return False
    if any(len(line) > LONGEST_LINE or _is_written_on(line) for line in said):
        return False
    if any(_CONTACT.search(line) or _COMPANY.search(line) for line in said):
        return True
    later = [line for paragraph in paragraphs[1:] for line in paragraph]
    return not any(_LABEL.match(line) or _is_in_small_letters(line, 4) for line in later)


def _paragraphs(lines: Sequence[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            found[-1].append(line.strip())
        elif found[-1]:
            found.append([])
    return [paragraph for paragraph in found if paragraph]


def _is_name(line: str) -> bool:
    return len(line) <= LONGEST_NAME and not _NOT_IN_A_NAME.search(line) and not _is_in_small_letters(line, 3)


def _is_written_on(line: str) -> bool:
    """Return whether the line is a sentence or a question to the reader."""
    line = line.strip()
    if _WRITTEN_ON.search(line):
        return True
    return bool(_SENTENCE_END.search(line)) and len(line.split()) >= 4 and not _NOTICE.search(line)


def _is_in_small_letters(line: str, least: int) -> bool:
    """Return whether these are that many words and most of them begin with a small letter, as in
    a sentence."""
    words = line.split()
    return len(words) >= least and 2 * sum(word[0].islower() for word in words) > len(words)
