"""Phrases by which mails address a machine, as rules. `instructions.py` finds them in a text.

A rule is run where one of its stems is in the text. Gaps between words are bounded and possessive, so time is
linear. Patterns are folded like the text: accents may stand in them and count for nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, get_args

from pillarbox.mail.deception.folding import folded

InstructionCode = Literal[
    "ignore_instructions",
    "new_role",
    "reveal_prompt",
    "addresses_machine",
    "keep_secret",
    "send_data_out",
    "tool_call",
    "chat_markup",
    "skip_approval",
]
"""The things that phrases ask for."""

CODES: Final[tuple[InstructionCode, ...]] = get_args(InstructionCode)


class Phrase(NamedTuple):
    """A rule. `stems` are parts of words of which each match has one."""

    code: InstructionCode
    language: str
    stems: tuple[str, ...]
    pattern: re.Pattern[str]
    is_latin: bool


_STEP: Final = r"(?:\W{1,12}+\w++)"
_GAP: Final = rf"{_STEP}{{0,4}}?\W{{1,12}}+"
_NEAR: Final = rf"{_STEP}{{0,2}}?\W{{1,12}}+"

_OVERRIDES: Final = {
    # Verbs, qualities and things, in any of the usual orders of the language.
    "en": (
        "ignor(?:e|ing) disregard(?:ing)? forget override overrul\\w+ bypass discard abandon not\\W+follow "
        "stop\\W+following not\\W+obey",
        "previous prior above earlier preceding all any your existing original system developer safety",
        "instructions? prompts? directives? guidelines? guardrails rules constraints programming "
        "training commands? orders system\\W+messages?",
    ),
    "de": (
        "ignorier\\w* vergiss vergessen missacht\\w* übergeh\\w* verwirf verwerfen",
        "vorherig\\w* vorig\\w* bisherig\\w* obig\\w* früher\\w* vorange\\w* all\\w* dein\\w* ihre\\w*",
        "anweisung\\w* instruktion\\w* befehl\\w* regeln vorgaben richtlinien (?:system)?prompts?",
    ),
    "fr": (
        "ignor\\w+ oubli\\w+ néglig\\w+ pas\\W+compte",
        "précédent\\w* antérieur\\w* dessus toutes? tous tes vos initial\\w*",
        "instructions? consignes? directives? ordres règles prompts?",
    ),
    "es": (
        "ignor\\w+ olvid\\w+ descart\\w+ caso\\W+omiso",
        "anterior\\w* previ\\w+ arriba tod[ao]s tus sus",
        "instruccion\\w* indicacion\\w* órdenes reglas directrices prompts?",
    ),
    "it": (
        "ignor\\w+ dimentic\\w+ trascur\\w+",
        "precedent\\w* anterior\\w* sopra tutt[ei] tue tuoi",
        "istruzion\\w* direttiv\\w* regole ordini prompts?",
    ),
    "pt": (
        "ignor\\w+ esque[cç]\\w+ desconsider\\w+",
        "anterior\\w* prévi\\w+ acima tod[ao]s suas tuas",
        "instruç(?:ão|ões) diretriz\\w* regras ordens comandos prompts?",
    ),
    "nl": (
        "negeer negeren vergeet vergeten",
        "vorige eerdere voorgaande bovenstaande alle je jouw uw",
        "instructies? opdrachten regels aanwijzingen richtlijnen prompts?",
    ),
    "pl": (
        "z?ignoruj\\w* pomiń\\w* zapomnij\\w*",
        "poprzedni\\w* wcześniejsz\\w* powyższ\\w* wszystki\\w* swoj\\w*",
        "instrukcj\\w* poleceni\\w* polecen zasad\\w* reguł\\w* prompt\\w*",
    ),
    "sv": (
        "ignorera glöm bortse",
        "tidigare föregående ovanstående alla dina",
        "instruktion\\w* regler anvisning\\w* prompt\\w*",
    ),
    "id": ("abaikan lupakan", "sebelumnya semua atas", "instruksi perintah aturan prompt"),
    "tr": (
        "yok\\W+say\\w* unut\\w* görmezden dikkate\\W+alma\\w*",
        "önceki yukar\\w+ tüm bütün",
        "talimat\\w* komut\\w* kural\\w* yönerge\\w* prompt\\w*",
    ),
    "ru": (
        "игнорируй\\w* проигнорируй\\w* игнорировать забудь\\w* отмени\\w*",
        "предыдущ\\w* прежн\\w* вс[еёю] выше\\w* свои твои",
        "инструкци\\w* указани\\w* правил\\w* команд\\w* промпт\\w*",
    ),
    "uk": (
        "ігноруй\\w* проігноруй\\w* забудь\\w*",
        "попередн\\w* усі всі вище\\w* свої",
        "інструкці\\w* вказівк\\w* правил\\w* команд\\w*",
    ),
    "ar": (
        "تجاهل\\w* انس[َى]?",
        "السابقة أعلاه جميع كل",
        "التعليمات تعليمات\\w* الأوامر التوجيهات",
    ),
}

_UNSPACED: Final = {
    "zh": (
        "(?:忽略|无视|無視|忘记|忘記|不要理会|不要理會).{0,6}(?:之前|先前|以上|前面|上述|所有|此前|原有|一切).{0,8}"
        "(?:指令|指示|提示|规则|規則|说明|說明|命令|设定|設定)",
        "忽略 无视 無視 忘记 忘記 不要理",
    ),
    "ja": (
        "(?:以前|これまで|上記|先ほど|前|すべて|全て|全部)の.{0,10}(?:指示|命令|プロンプト|ルール|指令).{0,6}(?:無視|忘れ|破棄)",
        "無視 忘れ 破棄",
    ),
    "ko": (
        "(?:이전|앞선|위의|모든|기존).{0,10}(?:지시|지침|명령|프롬프트|규칙).{0,8}(?:무시|잊)",
        "무시 잊",
    ),
    "hi": (
        "(?:पिछले|पहले|सभी|पूर्व).{0,12}(?:निर्देश|आदेश|नियम).{0,14}(?:अनदेखा|अनदेखी|नज़रअंदाज़|भूल)",
        "निर्देश आदेश नियम",
    ),
}

_MODEL: Final = (
    r"(?:a\W?i|llms?|large\W+language\W+models?|language\W+models?|chat\W?bots?|chatgpt|copilot|gpt(?:\W?\d)?"
    r"|(?:a\W?i|virtual|automated|e?\W?mail|digital)\W+(?:assistants?|agents?|systems?|models?|bots?))"
)

_OTHERS: Final[tuple[tuple[InstructionCode, str, str, str], ...]] = (
    (
        "ignore_instructions",
        "en",
        "instruction objective task",
        r"\byour\W+(?:new|updated|real|actual|true|only)\W+(?:instructions?|task|objective|goal)\W+(?:is|are|now)\b",
    ),
    (
        "new_role",
        "en",
        "now pretend mode",
        r"\b(?:you\W+are\W+now|from\W+now\W+on\W+you\W+(?:are|act\W+as))\W+(?:an?\W+|the\W+)?(?:\w+\W+)?"
        r"(?:a\W?i|assistant|agent|bot|model|dan|admin\w*|root|unrestricted|acting|operating|unbound|no\W+longer)\b"
        r"|\b(?:enter|enable|activate|switch\W+to|you\W+are(?:\W+now)?\W+in)\W+(?:\w+\W+)?"
        r"(?:developer|dan|god|jailbreak|debug|admin|unrestricted)\W+mode\b"
        r"|\bdo\W+anything\W+now\b|\bpretend\W+(?:to\W+be|you\W+are|that\W+you\W+are)\W+(?:an?\W+|the\W+)?(?:\w+\W+)?"
        r"(?:a\W?i|assistant|agent|bot|model|admin\w*|system|user|owner)\b",
    ),
    (
        "new_role",
        "de",
        "bist sind",
        r"\b(?:du\W+bist|sie\W+sind)\W+(?:jetzt|nun|ab\W+sofort|ab\W+jetzt)\W+(?:eine?\W+)?(?:\w+\W+)?"
        r"(?:ki|assistent\w*|agent\w*|bot|modell|admin\w*)\b",
    ),
    (
        "new_role",
        "fr",
        "es etes",
        r"\b(?:tu\W+es|vous\W+êtes)\W+(?:maintenant|désormais)\W+(?:une?\W+)?(?:\w+\W+)?(?:ia|assistante?|agent|robot|modèle|admin\w*)\b",
    ),
    (
        "new_role",
        "es",
        "eres",
        r"\b(?:ahora\W+eres|eres\W+ahora|a\W+partir\W+de\W+ahora\W+eres)\W+(?:una?\W+)?(?:\w+\W+)?(?:ia|asistente|agente|bot|modelo|admin\w*)\b",
    ),
    (
        "reveal_prompt",
        "en",
        "prompt instructions configuration",
        rf"\b(?:reveal|print|repeat|output|leak|disclose|show|display|dump|summari[sz]e|tell\W+me){_GAP}"
        r"(?:system\W+prompts?|(?:your|initial|hidden|internal|secret)\W+(?:\w+\W+)?(?:prompts?|instructions|configuration))\b",
    ),
    (
        "reveal_prompt",
        "de",
        "prompt anweisung",
        rf"\b(?:zeig\w*|verrat\w*|nenne?\w*|wiederhol\w*|gib\w*|drucke?){_GAP}(?:system\W?prompts?|deine?n?\W+(?:\w+\W+)?(?:prompts?|anweisungen))\b",
    ),
    (
        "reveal_prompt",
        "fr",
        "prompt consigne instruction",
        rf"\b(?:révèle\w*|affiche\w*|montre\w*|répète\w*|donne\w*){_GAP}(?:prompt\W+système|(?:ton|tes|vos|votre)\W+(?:\w+\W+)?(?:prompts?|consignes|instructions))\b",
    ),
    (
        "addresses_machine",
        "en",
        "you ai llm model bot gpt copilot assistant agent",
        rf"\b(?:if|when|since|because|as)\W+you(?:\W+are|\W?re)\W+(?:an?\W+|the\W+)?(?:\w+\W+)?{_MODEL}\b"
        rf"|\b(?:attention|notes?|message|notice|instructions?|directive|commands?|warning)"
        rf"(?:\W+(?:to|for))?(?:\W+(?:the|all|any|every|our))?\W{{1,12}}+{_MODEL}\b"
        rf"|\b(?:hello|hi|dear|hey)\W{{1,12}}+(?!a\W?i\W+(?!assistant|agent|model)){_MODEL}\b"
        rf"|\b(?:note|message|instructions?)\W+(?:to|for)\W+(?:the\W+)?(?:assistant|agent|model|bot)\b"
        rf"|\b{_MODEL}\W+(?:that\W+|which\W+|who\W+)?(?:reads?|reading|process(?:es|ing)|summari[sz](?:es|ing)|handl(?:es|ing)|pars(?:es|ing))"
        r"\W+(?:this|these|the)\W+(?:e?\W?mail|message|text|inbox|thread|mail)\b",
    ),
    (
        "addresses_machine",
        "de",
        "ki sprachmodell assistent",
        r"\b(?:wenn|falls|da)\W+(?:du|sie)\W+(?:eine?\W+)?(?:\w+\W+)?(?:ki|sprachmodell|assistent|bot|llm)\b"
        r"|\b(?:hinweis|nachricht|anweisung\w*|achtung|mitteilung)\W+(?:an|für)\W+(?:die\W+|den\W+|das\W+|alle\W+)?"
        r"(?:ki\w*|sprachmodelle?|assistent\w*|llms?)\b",
    ),
    (
        "addresses_machine",
        "fr",
        "ia assistant modele intelligence",
        r"\bsi\W+(?:tu\W+es|vous\W+êtes)\W+(?:une?\W+)?(?:ia|intelligence\W+artificielle|assistant|modèle\W+de\W+langage|agent)\b"
        r"|\b(?:note|message|instructions?|attention)\W+(?:à|pour|aux?)\W+(?:l\W|les\W+|la\W+|le\W+)?(?:ia|assistants?|modèles?\W+de\W+langage)\b",
    ),
    (
        "addresses_machine",
        "es",
        "ia asistente modelo inteligencia agente",
        r"\bsi\W+eres\W+(?:una?\W+)?(?:ia|inteligencia\W+artificial|asistente|modelo\W+de\W+lenguaje|agente)\b"
        r"|\b(?:nota|mensaje|instrucci\w+|atención)\W+(?:para|a)\W+(?:la\W+|el\W+|los\W+|las\W+)?(?:ia|asistentes?|modelos?\W+de\W+lenguaje)\b",
    ),
    (
        "addresses_machine",
        "it",
        "ia assistente modello intelligenza agente",
        r"\bse\W+sei\W+(?:una?\W+|un\W)?(?:ia|intelligenza\W+artificiale|assistente|modello\W+linguistico|agente)\b",
    ),
    (
        "addresses_machine",
        "pt",
        "ia assistente modelo inteligencia agente",
        r"\bse\W+(?:você\W+é|és)\W+(?:uma?\W+)?(?:ia|inteligência\W+artificial|assistente|modelo\W+de\W+linguagem|agente)\b",
    ),
    (
        "keep_secret",
        "en",
        "user owner human operator",
        rf"\b(?:do\W+not|don\W?t|never|without)(?:\W+\w+){{0,2}}?\W+(?:tell|inform|mention|notify|alert|warn|ask|show|"
        rf"telling|informing|mentioning|notifying|alerting|warning|asking|showing){_NEAR}(?:users?|owners?|humans?|operators?)\b",
    ),
    (
        "keep_secret",
        "de",
        "nutzer anwender",
        rf"\bohne{_NEAR}(?:be)?nutzer\w*{_NEAR}(?:informier\w+|frag\w+|sagen|benachrichtig\w+)\b"
        rf"|\b(?:sag|sage|erwähne?|informiere?|verrate?|zeige?){_NEAR}(?:benutzer|nutzer|anwender)\w*{_NEAR}nichts?\b",
    ),
    (
        "keep_secret",
        "fr",
        "utilisateur",
        rf"\bsans{_NEAR}(?:informer|prévenir|avertir|demander)\b{_STEP}{{0,2}}?\W{{1,12}}+utilisateur\w*\b"
        rf"|\bne{_NEAR}(?:rien|pas){_GAP}utilisateur\w*\b",
    ),
    (
        "keep_secret",
        "es",
        "usuario",
        rf"\bsin\W+(?:informar|avisar|preguntar|decir)\w*{_NEAR}usuario\w*\b|\bno\W+(?:le\W+)?(?:digas|informes|menciones|avises){_GAP}usuario\w*\b",
    ),
    (
        "send_data_out",
        "en",
        "forward send mail upload post transmit exfiltrate copy leak",
        rf"\b(?:forward|send|e\W?mail|upload|post|transmit|exfiltrate|copy|leak){_GAP}"
        r"(?:inbox|mailbox|api\W+keys?|passwords?|secrets?|credentials|access\W+tokens?|contacts|conversations?|chat\W+history|"
        r"memory|environment\W+variables|all\W+(?:the\W+|your\W+|my\W+|of\W+the\W+|recent\W+)?(?:e\W?mails|messages|mails|files))\b"
        rf"{_STEP}{{0,6}}?\W{{1,12}}+(?:to|at)\W{{1,12}}+\S{{0,64}}?(?:@|://)",
    ),
    (
        "send_data_out",
        "de",
        "sende schick leite",
        rf"\b(?:sende\w*|schick\w*|leite\w*|übermittle\w*){_GAP}(?:alle\W+(?:\w+\W+)?(?:e?\W?mails|nachrichten|dateien)|passwört\w*|api\W?schlüssel|zugangsdaten|postfach|kontakte)\b"
        rf"{_STEP}{{0,6}}?\W{{1,12}}+an\W{{1,12}}+\S{{0,64}}?(?:@|://)",
    ),
    (
        "tool_call",
        "en",
        "_",
        r"\b(?:send|reply|forward|delete|read|search|list|get|create|move|archive|write|execute|run|fetch|download|upload|draft|update|approve)"
        r"_(?:to_|all_)?(?:e?mails?|messages?|threads?|drafts?|files?|inbox|contacts?|commands?|code|shell|url|http|events?|payments?|"
        r"passwords?|requests?|sends?)\b",
    ),
    (
        "tool_call",
        "en",
        "tool function",
        r"\b(?:call|invoke|execute|run|use)\W+(?:the|your)\W+(?:\w+\W+)?"
        r"(?:e?\W?mail|send|search|browser|shell|file|transfer|forward|delete|payment)\w*\W+(?:tools?|functions?)\b",
    ),
    (
        "chat_markup",
        "",
        "<| inst] sys>> > role ## system untrusted",
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|begin_of_text|start_header_id|eot_id)\|>"
        r"|\[/?inst\]|<</?sys>>|</?(?:system|assistant|human|function_calls?|tool_calls?|tool_use|tool_result"
        r"|function_results?|system[-_](?:prompt|message|reminder)|instructions?)(?: [^<>]{0,40})?>"
        r"|#{2,4} ?(?:system|instructions?|assistant|human) ?:"
        r"|[\"']role[\"'] ?: ?[\"'](?:system|assistant|tool|developer)[\"']"
        r"|\b(?:begin|end)(?: of)? (?:the )?(?:system (?:prompt|message)|untrusted (?:data|content))\b",
    ),
    (
        "chat_markup",
        "",
        "system",
        r"(?:^|[.!?:>\])} -] ?)\[?system (?:prompt|message|override|instructions?|note|command|update)\]?:",
    ),
    (
        "skip_approval",
        "en",
        "approv confirm authori permission",
        r"\b(?:skip|bypass|without|(?:do\W+not|don\W?t)\W+(?:ask|wait)\W+for|no\W+need\W+for|needs?\W+no)"
        r"\W+(?:any\W+|the\W+|further\W+)?(?:human|user|manual|owner|operator)\W?s?\W+(?:approval|confirmation|authori[sz]ation|permission|review)\b"
        r"|\b(?:skip|bypass)\W+(?:the\W+)?(?:approval|confirmation)\b|\bdo\W+not\W+(?:ask|wait)\W+for\W+(?:any\W+)?(?:approval|confirmation)\b",
    ),
    (
        "addresses_machine",
        "ru",
        "если",
        r"\bесли\W+(?:ты|вы)\W+(?:\w+\W+)?(?:ии|языковая\W+модель|ассистент|бот|нейросеть)\b",
    ),
    (
        "addresses_machine",
        "zh",
        "人工智能 语言模型 語言模型 大模型 助手 ai",
        "(?:如果你是|如果您是|作为|作為|致).{0,6}(?:ai|人工智能|语言模型|語言模型|大模型|助手)",
    ),
    (
        "addresses_machine",
        "ja",
        "ai 人工知能 言語モデル",
        "(?:あなたが|もしあなたが).{0,6}(?:ai|人工知能|言語モデル)",
    ),
)


def _pattern(text: str) -> re.Pattern[str]:
    """Return the pattern with its letters folded as those of the text are; what is ASCII stays."""
    text = unicodedata.normalize("NFKC", text)
    return re.compile("".join([one if one.isascii() else folded(one) for one in _joint(text)]))


def _joint(text: str) -> str:
    """Return the pattern with one `\\b` for all of its choices: it is looked for once at each place."""
    first, *others = text.split(r"|\b")
    if not others or not first.startswith(r"\b") or not all(map(_is_closed, (first, *others))):
        return text
    return rf"\b(?:{'|'.join([first[2:], *others])})"


def _is_closed(text: str) -> bool:
    return text.count("(") == text.count(")")


def _choice(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


def _stems(words: str) -> tuple[str, ...]:
    """Return the letters by which the words begin, as they stand in a folded text."""
    return tuple(
        folded(unicodedata.normalize("NFKC", found[0]))
        for word in words.split()
        if (found := re.search(r"[^\W_]{2,}", word.replace("z?", "").replace("\\W+", " "))) is not None
    )


def _whole(stems: str) -> tuple[str, ...]:
    """Return stems that are written as such, folded."""
    return tuple(folded(unicodedata.normalize("NFKC", one)) for one in stems.split())


def _overrides() -> Iterator[Phrase]:
    for language, (verbs, qualities, things) in _OVERRIDES.items():
        verb, quality, thing = _choice(verbs), _choice(qualities), _choice(things)
        pattern = (
            rf"\b{verb}{_GAP}(?:{quality}{_NEAR}{thing}|{thing}{_NEAR}{quality})\b"
            rf"|\b{quality}{_NEAR}{thing}{_GAP}{verb}\b"
        )
        yield Phrase(
            code="ignore_instructions",
            language=language,
            stems=_stems(verbs),
            pattern=_pattern(pattern),
            is_latin=_is_latin(verbs),
        )
    for language, (pattern, stems) in _UNSPACED.items():
        yield Phrase(
            code="ignore_instructions",
            language=language,
            stems=_whole(stems),
            pattern=_pattern(pattern),
            is_latin=False,
        )


def _others() -> Iterator[Phrase]:
    for code, language, stems, pattern in _OTHERS:
        yield Phrase(
            code=code,
            language=language,
            stems=_whole(stems),
            pattern=_pattern(pattern),
            is_latin=_is_latin(stems),
        )


def _is_latin(words: str) -> bool:
    return all(one < "\u0250" for one in words)


PHRASES: Final = (*_overrides(), *_others())
