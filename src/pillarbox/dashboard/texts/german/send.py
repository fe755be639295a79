"""Texts of the form that sends an email, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "send.title": "Senden",
    "send.words": "neue E-Mail, schreiben, verfassen, Test-E-Mail, ausprobieren, Vorlage",
    "send.written": "Selbst schreiben",
    "send.from_template": "Aus Vorlage",
    "send.lead": "Zum Ausprobieren: Die E-Mail geht denselben Weg wie eine, die über die API gesendet wird.",
    "send.template": "Vorlage",
    "send.choose": "Diese Vorlage verwenden",
    "send.no_templates": "Noch keine veröffentlichte Vorlage",
    "send.no_templates.text": "Veröffentlichen Sie zuerst eine Vorlage; ihre Variablen füllen Sie dann "
    "hier aus.",
    "send.templates": "Vorlagen",
    "send.variables": "Variablen",
    "send.fallback": "Wenn leer: {value}",
    "send.from_hint": "Eine Adresse einer verifizierten Domain, mit oder ohne Namen.",
    "send.from_template_hint": "Wenn leer: wie in der Vorlage.",
    "send.to_hint": "Eine Adresse pro Zeile oder mehrere, durch Kommas getrennt.",
    "send.more": "Cc, Bcc und Reply-To",
    "send.html": "HTML",
    "send.text": "Text",
    "send.text_hint": "Wenn leer: aus dem HTML erzeugt, sofern es eines gibt.",
    "send.scheduled_at": "Senden um",
    "send.scheduled_hint": "Wenn leer: sofort. Sonst auf Englisch „in 1 hour“, „tomorrow at 9am "
    "Europe/Berlin“ oder eine ISO-Zeit; ohne Zeitzone gilt UTC.",
    "send.send": "Senden",
    "send.too_long": "Die Inhalte jener E-Mail sind für dieses Formular zu lang und fehlen deshalb.",
    "send.no_files": "Die Anhänge jener E-Mail werden nicht übernommen.",
    "done.email_sent": "Die E-Mail ist angenommen.",
}
