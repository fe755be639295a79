"""Texts of the screens of events that a team sends, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "events.title": "Ereignisse",
    "events.words": "eigene Ereignisse, Auslöser, Schema",
    "events.defined": "Definiert",
    "events.latest": "Neueste Ereignisse",
    "events.latest.words": "Nutzdaten, Ereignisprotokoll",
    "events.latest.note": "Ein Ereignis bleibt, bis es verteilt ist, und dann mit den Läufen, die es "
    "gestartet hat. Eines, auf das nichts hört, ist weg.",
    "events.none": "Kein Ereignis ist definiert",
    "events.none.text": "Ihr Programm sendet Ereignisse über Kontakte, und Automationen beginnen damit. "
    "Ein Ereignis muss nicht definiert sein; eine Definition hält seine Nutzdaten an ein Schema.",
    "events.none_latest": "Keine Ereignisse",
    "events.none_latest.text": "Nichts wartet, nichts ist gescheitert, und in letzter Zeit wurde kein "
    "Lauf gestartet.",
    "event.title": "Ereignis",
    "event.name": "Name",
    "event.schema": "Schema",
    "event.schema.hint": "`schlüssel: typ` in jeder Zeile, mit einem Typ aus {kinds}. Leer: beliebige "
    "Nutzdaten.",
    "event.starts": "Startet",
    "event.starts_none": "keine eingeschaltete Automation",
    "event.payload": "Nutzdaten",
    "event.payload.hint": "Ein JSON-Objekt oder nichts.",
    "event.accepted": "Angenommen",
    "event.state.waiting": "Wartet",
    "event.state.failed": "Gescheitert",
    "event.state.started": "Startete einen Lauf",
    "event.new": "Ereignis definieren",
    "event.new.words": "Ereignis anlegen, Schema",
    "event.new.lead": "Die Nutzdaten von Ereignissen dieses Namens werden beim Senden am Schema geprüft.",
    "event.no_line": "Schreiben Sie schlüssel: typ in jede Zeile: {line}",
    "event.change": "Schema speichern",
    "event.conflict.text": "Das Schema wurde geändert, während Sie daran gearbeitet haben. Ihres ist "
    "noch hier und nicht gespeichert.",
    "event.delete": "Löschen",
    "event.delete.title": "Diese Definition löschen?",
    "event.delete.text": "Ereignisse dieses Namens werden gesendet und gehört wie bisher, ohne Schema.",
    "event.send": "Ereignis senden",
    "event.send.words": "Automation auslösen, ausprobieren",
    "event.send.lead": "Einem Kontakt ist etwas geschehen: Eingeschaltete Automationen, die mit dem "
    "Ereignis beginnen, laufen für ihn, wirklich.",
    "event.to": "Kontakt",
    "event.to.hint": "Eine Adresse oder die Id eines Kontakts. Eine neue Adresse wird ein Kontakt, wenn "
    "für sie etwas beginnt.",
    "event.no_json": "Die Nutzdaten sind kein JSON.",
    "done.event_defined": "Das Ereignis ist definiert.",
    "done.event_changed": "Das Schema ist gespeichert. Es zählt für Ereignisse von jetzt an.",
    "done.event_deleted": "Die Definition ist gelöscht.",
    "done.event_sent": "Das Ereignis ist angenommen. Was darauf hört, beginnt innerhalb einer Sekunde.",
}
