"""The prefixes of replies and forwards in subjects, by language.

Each row is a language with its marks of replies and of forwards, without the colon. They are compared
folded, so case makes no difference. A mark is one only in front of a colon, so a short word says
little by itself.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

PREFIXES: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "English": (("Re", "Reply"), ("Fw", "Fwd", "Forward")),
    "Afrikaans": (("Antw", "Re"), ("Aanst", "Vs")),
    "Albanian": (("Përgj", "Pgj"), ("Përc",)),
    "Arabic": (("رد", "الرد"), ("إعادة توجيه", "إعادة إرسال", "تحويل")),
    "Armenian": (("Պատ", "Պատասխան"), ("Փոխ",)),
    "Azerbaijani": (("Cvb", "Cavab"), ("Yönl",)),
    "Basque": (("Er", "Erantz"), ("Bir", "Birb")),
    "Belarusian": (("Адк", "Адказ"), ("Пер",)),
    "Bengali": (("উত্তর",), ("ফরোয়ার্ড",)),
    "Bosnian": (("Odg",), ("Proslj",)),
    "Bulgarian": (("Отг", "Отн", "Отговор"), ("Препр", "Прп")),
    "Catalan": (("Re", "Resp"), ("Rv", "Reenv")),
    "Chinese, simplified": (("回复", "答复"), ("转发",)),
    "Chinese, traditional": (("回覆", "回復", "答覆"), ("轉寄", "轉發", "轉傳")),
    "Croatian": (("Odg", "Odgovor"), ("Proslj", "Prosl")),
    "Czech": (("Odp", "Odpověď"), ("Přep", "Předat", "Přeposl")),
    "Danish": (("Sv",), ("Vs", "Videresendt")),
    "Dutch": (("Antw", "Antwoord"), ("Doorst", "Dst")),
    "Estonian": (("Vs", "Vastus"), ("Edasi", "Ed")),
    "Finnish": (("Vs", "Vast"), ("Vl", "Välitetty")),
    "French": (("Re", "Ré", "Rép", "Réf"), ("Tr", "Tfr", "Trans")),
    "Galician": (("Re", "Resp"), ("Rv", "Reenv")),
    "Georgian": (("პას", "პასუხი"), ("გადაგზ",)),
    "German": (("Aw", "Antwort"), ("Wg", "Weitergeleitet")),
    "Greek": (("ΑΠ", "ΣΧΕΤ", "Απάντ"), ("ΠΡΘ", "ΠΡΟΩΘ")),
    "Hebrew": (("השב", "תשובה"), ("הועבר", "העברה")),
    "Hindi": (("उत्तर", "प्रति"), ("अग्रेषित",)),
    "Hungarian": (("Vá", "Válasz"), ("Tov", "Továbbítás", "Továbbítva")),
    "Icelandic": (("Sv", "Svar"), ("Fs", "Framsent")),
    "Indonesian": (("Bls", "Balas"), ("Trs", "Terusan")),
    "Irish": (("Fr", "Freag"), ("Ar agh",)),
    "Italian": (("R", "Rif", "Risp"), ("I", "Inol")),
    "Japanese": (("返信", "返", "回答"), ("転送", "転")),
    "Kazakh": (("Жауап", "Жау"), ("Қайта",)),
    "Korean": (("회신", "답장", "답변"), ("전달",)),
    "Latvian": (("Atb", "Atbilde"), ("Pārs", "Pārsūtīts")),
    "Lithuanian": (("Ats", "Atsakymas"), ("Pers", "Persiųsta")),
    "Macedonian": (("Одг", "Одговор"), ("Препр", "Просл")),
    "Malay": (("Bls", "Balas", "Jwb"), ("Kpd", "Maju")),
    "Norwegian": (("Sv",), ("Vs", "Videresendt")),
    "Persian": (("پاسخ", "جواب"), ("هدایت", "ارسال")),
    "Polish": (("Odp",), ("Pd", "Przek")),
    "Portuguese": (("Res", "Resp", "R"), ("Enc",)),
    "Romanian": (("Răsp", "Rasp"), ("Redir", "Red", "Rdir")),
    "Russian": (("На", "Отв", "Ответ"), ("Пересл", "Перес", "Пер")),
    "Serbian": (("Одг", "Odg"), ("Просл", "Prosl")),
    "Slovak": (("Odp", "Odpoveď"), ("Fwd", "Prep", "Presl")),
    "Slovenian": (("Odg",), ("Posr", "Posred")),
    "Spanish": (("Re", "Resp"), ("Rv", "Reenv")),
    "Swedish": (("Sv",), ("Vb", "Vidarebef")),
    "Thai": (("ตอบ", "ตอบกลับ"), ("ส่งต่อ",)),
    "Turkish": (("Ynt", "Yanıt", "Cvp"), ("İlt", "İlet")),
    "Ukrainian": (("На", "Відп", "Відповідь"), ("Пересл", "Перес")),
    "Urdu": (("جواب",), ("آگے",)),
    "Vietnamese": (("Tl", "Trả lời", "Hồi âm"), ("Ct", "Chuyển tiếp")),
    "Welsh": (("Atb", "Ateb"), ("Yml", "Ymlaen")),
}
"""By language; several have marks in common."""


def folded(text: str) -> str:
    """Return a subject as it is compared: in one normal form, without regard to case and to how long
    blanks are."""
    shown = _UNSEEN.sub("", unicodedata.normalize("NFC", text)).casefold().replace("i\u0307", "i")
    # Of the four letters i of Turkish capitals and small ones are not told apart.
    shown = shown.replace("\u0131", "i")
    return " ".join(shown.split())


_UNSEEN: Final = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def _pattern(marks: set[str]) -> re.Pattern[str]:
    words = "|".join(map(re.escape, sorted(marks, key=lambda mark: (-len(mark), mark))))
    return re.compile(rf"(?:{words}) ?(?:\[[0-9]{{1,5}}\]|\([0-9]{{1,5}}\)|\^[0-9]{{1,5}})? ?[:：] ?")


_FORWARDS: Final = {folded(mark) for _, forwards in PREFIXES.values() for mark in forwards}
_REPLIES: Final = {folded(mark) for replies, _ in PREFIXES.values() for mark in replies}

PREFIX: Final = _pattern(_REPLIES | _FORWARDS)
"""A mark with its number and colon, at the beginning of what is left of a folded subject."""
_FORWARD: Final = _pattern(_FORWARDS)


def begins_with_forward(subject: str | None) -> bool:
    """Return whether the subject begins with the mark of a forward in some language."""
    return _FORWARD.match(folded((subject or "")[:200])) is not None
