"""Texts of the settings of the page to unsubscribe, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "unsubscribe_page.title": "Abbestellseite",
    "unsubscribe_page.words": "Logo, Farben, Branding, E-Mail-Einstellungen, abbestellen, Abmeldeseite",
    "unsubscribe_page.lead": "Diese Seite sehen Empfänger hinter dem Abbestell-Link Ihrer E-Mails. Was "
    "leer ist, bleibt, wie es ist.",
    "unsubscribe_page.heading": "Titel",
    "unsubscribe_page.logo": "Adresse des Logos",
    "unsubscribe_page.logo.hint": "Sie beginnt mit https://. Der Browser jedes Empfängers lädt das Bild "
    "von dort.",
    "unsubscribe_page.text": "Text unter dem Titel",
    "unsubscribe_page.text.hint": "Zum Beispiel wer dem Empfänger schreibt und warum.",
    "unsubscribe_page.footer": "Text am Ende",
    "unsubscribe_page.footer.hint": "Zum Beispiel Ihre Postanschrift.",
    "unsubscribe_page.colors": "Farben",
    "unsubscribe_page.page_color": "Seite",
    "unsubscribe_page.text_color": "Text",
    "unsubscribe_page.button_color": "Schaltflächen",
    "unsubscribe_page.colors.hint": "Als #rrggbb. Mit einer eigenen Farbe sieht die Seite im hellen und "
    "im dunklen Modus gleich aus.",
    "unsubscribe_page.in_language": "Texte auf",
    "unsubscribe_page.in_language.hint": "Für Leser, deren Browser diese Sprache verlangt. Was leer "
    "ist, ist wie oben.",
    "unsubscribe_page.language": "Vorschau auf",
    "unsubscribe_page.save": "Speichern",
    "unsubscribe_page.try": "Ohne Speichern ansehen",
    "unsubscribe_page.preview": "Vorschau",
    "unsubscribe_page.not_saved": "Es wurde nichts gespeichert: siehe die Felder unten.",
    "unsubscribe_page.too_long": "Der Text ist zu lang.",
    "unsubscribe_page.no_logo": "Eine Adresse beginnt mit https:// und nennt einen Host und ein Bild.",
    "unsubscribe_page.no_color": "Eine Farbe besteht aus # und sechs Ziffern oder Buchstaben von a bis f: "
    "#0b57b5.",
    "unsubscribe_page.hard_to_read": "Das ist auf der Seite nicht lesbar: Text braucht einen Kontrast von "
    "4,5, Schaltflächen brauchen 3 (WCAG AA).",
    "unsubscribe_page.topic.1": "Versionshinweise",
    "unsubscribe_page.topic.2": "Neues aus dem Hafen",
    "done.unsubscribe_page": "Die Seite ist gespeichert: Empfänger sehen sie ab jetzt so.",
}
