"""Patterns of mail servers' texts in other languages than English, like those of `reply_texts`.

German, French, Spanish, Italian, Portuguese, Dutch, Polish, Russian, Japanese and Chinese. Each pattern is
searched in lower-case text without addresses; `\\b` and `\\w` know ASCII only and are not used. A pattern
for a bad address names the recipient and what is wrong with him; one that names the sender goes first.
"""

from __future__ import annotations

from typing import Final


def _near(who: tuple[str, ...], what: tuple[str, ...], gap: str) -> str:
    return rf"(?:{'|'.join(who)}){gap}(?:{'|'.join(what)})"


_GAP = r"[^.!?;\n]{0,50}"
_SHORT_GAP = r"[^.!?;,:\n]{0,40}"
_CJK_GAP = r"[^。!?;,、\n]{0,20}"

_MISSING: Final = (
    *("unbekannt", "nicht bekannt", "existier[a-z]* nicht", "nicht vorhanden", "nicht gefunden", "ungültig"),
    *("inconnue?", "inexistante?", "n'existe pas", "introuvable", "pas été trouvé", "non trouvée?"),
    *(
        "desconocid[oa]",
        "no existe",
        "inexistente",
        "no encontrad[oa]",
        "no se (?:ha )?enc[ou]",
        "inválid[oa]",
    ),
    *("sconosciut[oa]", "non esiste", "non trovat[oa]", "non (?:è )?valid[oa]"),
    *("desconhecid[oa]", "não existe", "não (?:foi )?encontrad[oa]"),
    *("onbekend", "bestaat niet", "niet gevonden", "niet bekend", "ongeldig"),
    *("nieznan[yae]", "nie istnieje", "nie (?:został[ay]? )?znalezion", "nie odnaleziono"),
    *("не существует", "не найден", "неизвест", "не зарегистрирован"),
)
_UNUSABLE: Final = (
    *("deaktiviert", "désactivée?", "deshabilitad[oa]", "desactivad[oa]", "disabilitat[oa]"),
    *("disattivat[oa]", "desativad[oa]", "uitgeschakeld", "удал[её]н",),
)  # fmt: skip
_CJK_MISSING: Final = (
    *("存在しま", "存在しない", "見つかりま", "見つからな", "不明", "無効"),
    *("不存在", "未找到", "找不到", "无效", "無效", "已注销", "已停用"),
)
_REJECTED: Final = (
    *("abgelehnt", "verweigert", "gesperrt", "rejeté", "refusé", "rechazad", "rifiutat", "rejeitad"),
    *("geweigerd", "odrzucon", "отклон", "заблокирован", "拒否", "拒绝", "拒絕"),
)

_SENDERS: Final = (
    *("absender", "expéditeur", "remitente", "mittente", "remetente", "afzender", "nadawc", "отправител"),
)  # fmt: skip
_CJK_SENDERS: Final = ("送信者", "送信元", "差出人", "发件人", "寄件人", "寄件者", "发信人")

SENDER: Final = "|".join(
    (
        _near(_SENDERS, (*_MISSING, *_UNUSABLE, *_REJECTED), _GAP),
        _near(_CJK_SENDERS, (*_CJK_MISSING, *_REJECTED), _CJK_GAP),
    )
)

_RECIPIENTS: Final = (
    *(
        "empfänger",
        "empfaenger",
        "benutzer",
        "postfach",
        "adressat",
        "e-?mail-?adresse",
        "(?:ziel|mail)adresse",
    ),
    *("utilisateur", "destinataire", "bo[îi]te (?:aux lettres|de réception|mail|e-?mail)", "adresse e-?mail"),
    *("usuario", "destinatari[oa]", "buzón", "casilla", "dirección de (?:correo|e-?mail)"),
    *("utente", "casella", "indirizzo (?:di posta|e-?mail)"),
    *(
        "usuário",
        "utilizador",
        "destinatário",
        "caixa (?:postal|de correio|de entrada)",
        "endereço de e-?mail",
    ),
    *("gebruiker", "ontvanger", "postvak", "e-?mailadres"),
    *("użytkownik", "odbiorc", "adresat", "skrzynk"),
    *("пользовател", "получател", "почтовый ящик", "ящик", "адресат", "адрес получ", "учетная запись"),
)
_CJK_RECIPIENTS: Final = (
    *("宛先", "あて先", "受信者", "メールアドレス", "ユーザ", "メールボックス"),
    *("收件人", "用户", "用戶", "邮箱", "郵箱", "信箱", "收件地址", "邮件地址"),
)

BAD_ADDRESS: Final = "|".join(
    (
        _near(_RECIPIENTS, (*_MISSING, *_UNUSABLE), _SHORT_GAP),
        r"unbekannte[rn]? (?:empfänger|benutzer|nutzer)",
        r"kein(?:en?)? (?:solche[rsn]? )?(?:benutzer|postfach|empfänger)(?: mit| unter| namens| vorhanden)",
        r"(?:destinataire|utilisateur)s? inconnus?|aucun (?:utilisateur|destinataire)",
        r"onbekende (?:gebruiker|ontvanger)|nieznan[yae] (?:użytkownik|odbiorca|adresat)",
        r"nie ma (?:takiego|takiej) (?:użytkownika|adresata|skrzynki)",
        r"(?:нет такого|неизвестный|несуществующий) (?:пользовател|получател|адресат|(?:почтов[а-я]* )?ящик)",
        _near(_CJK_RECIPIENTS, _CJK_MISSING, _CJK_GAP),
        r"无此用户|無此用戶|没有此用户|查无此人|查無此人",
    )
)

_STORES: Final = (
    *("postfach", "mailbox", "briefkasten", "speicherplatz", "quota", "kontingent"),
    *("bo[îi]te (?:aux lettres|de réception|mail|e-?mail)", "messagerie", "espace", "stockage"),
    *("buzón", "casilla", "cuota", "espacio", "almacenamiento"),
    *("casella", "spazio", "caixa", "cota", "espaço", "armazenamento"),
    *("postvak", "postbus", "opslagruimte", "skrzynk", "limit ", "przestrze"),
    *("ящик", "квот", "мест[оа]"),
)
_FULL: Final = (
    *("voll(?![a-zäöü])", "überschritten", "überfüllt", "erschöpft", "ausgelastet"),
    *("plein", "dépass", "saturé", "épuisé", "insuffisant"),
    *("llen[oa]", "excedid[oa]", "superad[oa]", "agotad[oa]", "insuficiente", "sobrepas"),
    *("pien[ao]", "superat[ao]", "esaurit[ao]", "insufficiente"),
    *("chei[ao]", "ultrapassad[ao]", "esgotad[ao]", "lotad[ao]"),
    *("vol(?![a-z])", "overschreden", "pełn", "przepełnion", "przekroczon", "zapełnion"),
    *("переполн", "превышен", "исчерпан", "полон", "заполнен"),
)
_CJK_STORES: Final = (
    *("メールボックス", "受信箱", "受信トレイ", "容量", "ディスク"),
    *("邮箱", "郵箱", "信箱", "空间", "空間", "配额", "配額", "收件箱"),
)
_CJK_FULL: Final = (
    "いっぱい",
    "一杯",
    "超過",
    "超え",
    "満杯",
    "不足",
    "上限",
    "满",
    "滿",
    "超限",
    "超出",
    "超过",
    "用完",
)

MAILBOX_FULL: Final = "|".join((_near(_STORES, _FULL, _SHORT_GAP), _near(_CJK_STORES, _CJK_FULL, _CJK_GAP)))
