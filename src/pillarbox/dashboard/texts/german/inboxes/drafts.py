"""Texts of drafts and of forwarding, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "drafts.title": "Entwürfe",
    "drafts.nobody": "Noch kein Empfänger",
    "drafts.reply": "Antwort",
    "drafts.none": "Kein Entwurf",
    "drafts.none.text": "Was Sie schreiben und speichern, bleibt hier, bis es gesendet ist.",
    "draft.title": "Entwurf",
    "draft.new": "Neue Nachricht",
    "draft.reply": "Antwort",
    "draft.from": "Von",
    "draft.more": "Cc und Bcc",
    "draft.subject.hint": "Bleibt er leer, ist es der Betreff der Unterhaltung.",
    "draft.text": "Nachricht",
    "draft.html.hint": "Der Entwurf wurde mit HTML angelegt. Empfänger sehen es, wo ihr Programm HTML zeigt.",
    "draft.save": "Entwurf speichern",
    "draft.send": "Senden",
    "draft.changed_meanwhile": "Jemand anderes hat den Entwurf geändert, seit Sie ihn geöffnet haben. Ihr "
    "Text ist noch hier: Speichern Sie noch einmal, um ihn an dessen Stelle zu setzen.",
    "draft.discard": "Verwerfen",
    "draft.discard.title": "Diesen Entwurf verwerfen?",
    "draft.discard.text": "Was darin steht, geht verloren.",
    "draft.wrote": "Am {at} schrieb {name}:",
    "forward.title": "Weiterleiten",
    "forward.lead": "Die Nachricht geht mit ihren Anhängen hinaus, unter dem, was Sie schreiben.",
    "forward.note": "Ihre Worte",
    "forward.send": "Senden",
    "done.draft_saved": "Der Entwurf ist gespeichert.",
    "done.draft_discarded": "Der Entwurf ist verworfen.",
    "done.message_sent": "Die Nachricht ist gesendet.",
}
