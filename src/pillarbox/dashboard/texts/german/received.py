"""Texts of the screens of received emails, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "received.title": "Empfangen",
    "received.words": "eingehende E-Mails, Posteingang, Antworten, Eingang",
    "received.one": "Empfangene E-Mail",
    "received.none": "Noch keine empfangene E-Mail",
    "received.none.text": "E-Mails an eine Domain dieses Teams stehen hier, sobald die Domain empfängt. "
    "Aktivieren Sie den Empfang für eine Domain, und veröffentlichen Sie den MX-Eintrag, den sie zeigt.",
    "received.domains": "Domains",
    "received.at": "Empfangen",
    "received.for": "Eingegangen für",
    "received.from.hint": "ein Name oder eine Adresse",
    "received.headers": "Header",
    "received.header": "Header",
    "received.value": "Wert",
    "received.no_headers": "Die Header sind nicht mehr da: Die Rohnachricht wurde nach Ablauf der "
    "Aufbewahrungsfrist gelöscht.",
    "received.raw": "Rohnachricht herunterladen",
    "received.verdicts": "Prüfungen des Absenders",
    "received.spam": "Spam",
    "received.unknown": "einer unbekannten Domain",
    "received.automatic": "Ein Programm, eine Mailingliste oder ein Massenversender hat sie geschrieben. "
    "Antworten Sie nicht automatisch darauf.",
    "received.other_result": "Die Prüfung von {check} endete mit „{result}“.",
    "verdict.pass": "Bestanden",
    "verdict.fail": "Nicht bestanden",
    "verdict.softfail": "Verdächtig",
    "verdict.neutral": "Neutral",
    "verdict.none": "Keine",
    "verdict.policy": "Nicht akzeptiert",
    "verdict.temperror": "Keine Antwort",
    "verdict.permerror": "Eintrag fehlerhaft",
    "verdict.spam": "Spam",
    "verdict.wanted": "Kein Spam",
    "verdict.spf.pass": "Der Server darf E-Mails für {domain} senden.",
    "verdict.spf.fail": "Der SPF-Eintrag von {domain} verbietet diesem Server, ihre E-Mails zu senden.",
    "verdict.spf.softfail": "Der SPF-Eintrag von {domain} nennt diesen Server nicht und rät zu Misstrauen.",
    "verdict.spf.neutral": "Der SPF-Eintrag von {domain} sagt nichts über diesen Server.",
    "verdict.spf.none": "Für {domain} gibt es keinen SPF-Eintrag.",
    "verdict.spf.temperror": "Das DNS antwortete nicht auf die Frage nach dem SPF-Eintrag von {domain}.",
    "verdict.spf.permerror": "Der SPF-Eintrag von {domain} ist nicht zu verstehen.",
    "verdict.dkim.pass": "Die Signatur von {domain} stimmt: Niemand hat die signierten Teile verändert.",
    "verdict.dkim.fail": "Die Signatur von {domain} stimmt nicht: Die E-Mail wurde verändert oder "
    "anderswo signiert.",
    "verdict.dkim.none": "Die E-Mail hat keine Signatur.",
    "verdict.dkim.policy": "Die Signatur von {domain} wird hier nicht akzeptiert.",
    "verdict.dkim.neutral": "Die Signatur von {domain} lässt sich nicht beurteilen.",
    "verdict.dkim.temperror": "Das DNS antwortete nicht auf die Frage nach dem Schlüssel von {domain}.",
    "verdict.dkim.permerror": "Die Signatur oder der Schlüssel von {domain} ist nicht zu verstehen.",
    "verdict.dmarc.pass": "Die Adresse in From gehört zu {domain}, und SPF oder DKIM bestätigt diese Domain.",
    "verdict.dmarc.fail": "Weder SPF noch DKIM bestätigt {domain}, die Domain in From. Ihre Richtlinie: "
    "{policy}.",
    "verdict.dmarc.none": "Für {domain} gibt es keinen DMARC-Eintrag, also bestätigt nichts die Adresse "
    "in From.",
    "verdict.dmarc.temperror": "Das DNS antwortete nicht auf die Frage nach dem DMARC-Eintrag von {domain}.",
    "verdict.dmarc.permerror": "Der DMARC-Eintrag von {domain} ist nicht zu verstehen.",
    "verdict.spam.spam": "Die E-Mail ist als Spam markiert.",
    "verdict.spam.wanted": "Nichts kennzeichnet die E-Mail als Spam.",
}
