"""Texts of the screens of segments, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "segments.title": "Segmente",
    "segments.one": "Segment",
    "segments.words": "Listen Zielgruppen Gruppen Bedingungen",
    "segments.name": "Name",
    "segments.kind": "Mitglieder",
    "segments.by.hand": "von Hand",
    "segments.by.conditions": "nach Bedingungen",
    "segments.members": "Kontakte",
    "segments.new": "Neues Segment",
    "segments.new.words": "erstellen Liste Zielgruppe Bedingungen",
    "segments.new_by_hand": "Neu, von Hand",
    "segments.new_by_conditions": "Neu, nach Bedingungen",
    "segments.create": "Segment erstellen",
    "segments.save": "Speichern",
    "segments.rename": "Umbenennen",
    "segments.delete": "Segment löschen",
    "segments.delete.text": (
        "Die Kontakte bleiben. Geplante Broadcasts an das Segment schlagen fehl, wenn sie fällig sind."
    ),
    "segments.typed_wrong": "Der Name stimmt nicht überein. Es wurde nichts gelöscht.",
    "segments.conditions": "Bedingungen",
    "segments.conditions.text": "Wer sie erfüllt, ist im Segment. Das wird bei jeder Abfrage neu ermittelt.",
    "segments.edit_conditions": "Bedingungen bearbeiten",
    "segments.as_json": "Als JSON",
    "segments.by_hand": "Die Mitglieder dieses Segments werden von Hand hinzugefügt.",
    "segments.by_hand.text": "Kontakte kommen über die Kontakttabelle, Importe und die API hinein.",
    "segments.changed_meanwhile": (
        "Jemand anderes hat die Bedingungen inzwischen geändert. Prüfen Sie sie, und speichern Sie erneut."
    ),
    "segments.json_long": "Höchstens 16.000 Zeichen.",
    "segments.no_json": "Es muss JSON sein.",
    "segments.none": "Noch kein Segment",
    "segments.none.text": (
        "An ein Segment geht ein Broadcast: an Kontakte, die Sie hinzufügen, oder an alle, die "
        "Bedingungen erfüllen."
    ),
    "segments.nobody": "Noch niemand ist darin",
    "segments.nobody.text": "Wählen Sie in der Tabelle Kontakte und fügen Sie sie diesem Segment hinzu.",
    "segments.nobody_fits": "Niemand passt",
    "segments.nobody_fits.text": "Kein Kontakt erfüllt diese Bedingungen zurzeit.",
    "done.segment_created": "Das Segment ist erstellt.",
    "done.segment_changed": "Das Segment ist gespeichert.",
    "done.segment_deleted": "Das Segment ist gelöscht.",
}
