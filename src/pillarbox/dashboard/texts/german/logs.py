"""Texts of the screens of the log of requests, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "logs.title": "API-Protokoll",
    "logs.words": "Anfragen, API-Aufrufe, Fehler, Antworten, Logs",
    "logs.request": "Anfrage",
    "logs.status": "Status",
    "logs.status.2xx": "2xx: ausgeführt",
    "logs.status.4xx": "4xx: abgelehnt",
    "logs.status.5xx": "5xx: fehlgeschlagen",
    "logs.method": "Methode",
    "logs.path": "Pfad",
    "logs.agent": "Programm",
    "logs.arrived": "Eingang",
    "logs.none": "Noch keine Anfrage",
    "logs.none.text": "Hier steht jede Anfrage mit einem API-Schlüssel dieses Teams, mit ihrer Antwort.",
    "logs.none_fit": "Keine Anfrage gefunden",
    "logs.none_fit.text": "Nehmen Sie weniger Filter oder einen längeren Zeitraum.",
    "logs.none_fit.more": "Keine der neuesten Anfragen passt. Ältere stehen auf der nächsten Seite.",
    "log.title": "Anfrage",
    "log.open": "Ergebnis öffnen",
    "log.request_id": "Anfrage-ID",
    "log.request": "Body der Anfrage",
    "log.answer": "Antwort",
    "log.no_body": "Die Anfrage hatte keinen Body.",
    "log.no_answer": "Die Antwort hatte keinen Body oder war eine Datei.",
    "log.again": "Noch einmal senden",
    "log.is_masked": "Geheimnisse und Dateien stehen nicht im Protokoll: Setzen Sie sie an die Stelle von "
    "[redacted].",
}
