"""Texts of the screens of contact properties, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "properties.title": "Eigenschaften",
    "properties.words": "Kontakteigenschaften, eigene Felder, Attribute, Platzhalter, Personalisierung",
    "properties.key": "Schlüssel",
    "properties.key.hint": "1 bis 50 Buchstaben, Ziffern und Unterstriche.",
    "properties.type": "Typ",
    "properties.type.hint": "Schlüssel und Typ lassen sich später nicht ändern.",
    "properties.type.string": "Text",
    "properties.type.number": "Zahl",
    "properties.type.boolean": "Ja oder nein",
    "properties.fallback": "Ersatzwert",
    "properties.fallback.hint": "Steht in E-Mails an Kontakte ohne Wert. Leer heißt: keiner.",
    "properties.created": "Erstellt",
    "properties.example": "In einer E-Mail",
    "properties.none": "Noch keine Eigenschaft",
    "properties.none.text": "Eigenschaften sind, was Sie außer Name und Adresse von Kontakten wissen: ein "
    "Tarif, ein Ort, die Zahl der Bestellungen. E-Mails nennen sie, Segmente und Automatisierungen richten "
    "sich danach.",
    "properties.new": "Eigenschaft anlegen",
    "properties.new.words": "neue Eigenschaft, eigenes Feld",
    "properties.new.lead": "Etwas, wovon jeder Kontakt einen Wert haben kann.",
    "properties.make": "Anlegen",
    "properties.back": "Zurück",
    "properties.no_number": "Geben Sie eine Zahl ein, etwa 12 oder 1.5.",
    "properties.no_boolean": "Geben Sie true oder false ein.",
    "property.title": "Eigenschaft",
    "property.use": "Broadcasts und Vorlagen nennen sie in Klammern; was nach einem Strich steht, gilt für "
    "Kontakte ohne Wert.",
    "property.edit": "Bearbeiten",
    "property.save": "Speichern",
    "property.delete": "Löschen",
    "property.delete.title": "{name} löschen?",
    "property.delete.text": "Alle Werte, die Kontakte davon haben, werden entfernt. Das lässt sich nicht "
    "rückgängig machen.",
    "property.typed_wrong": "Geben Sie den Schlüssel der Eigenschaft ein, um sie zu löschen.",
    "done.property_created": "Die Eigenschaft ist angelegt.",
    "done.property_changed": "Die Eigenschaft ist gespeichert.",
    "done.property_deleted": "Die Eigenschaft ist gelöscht.",
}
