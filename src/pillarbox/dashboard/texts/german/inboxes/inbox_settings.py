"""Texts of the list of inboxes and of their settings, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "inboxes.title": "Postfächer",
    "inboxes.words": "E-Mail-Programm, Unterhaltungen, Support, E-Mails beantworten",
    "inboxes.name": "Name",
    "inboxes.name.hint": "Höchstens 64 Zeichen; das Team sieht ihn. Ohne Namen ist es die Adresse.",
    "inboxes.address": "Adresse",
    "inboxes.unread": "Ungelesen",
    "inboxes.last": "Letzte E-Mail",
    "inboxes.none": "Noch kein Postfach",
    "inboxes.none.text": "Ein Postfach ist eine Adresse bei einer Domain dieses Teams, etwa "
    "help@your-domain.example. Seine E-Mails werden zu Unterhaltungen, die Sie hier lesen, ordnen und "
    "beantworten.",
    "inboxes.new": "Postfach anlegen",
    "inboxes.new.words": "neues Postfach, Support-Adresse hinzufügen",
    "inboxes.new.lead": "E-Mails an diese Adresse werden zu Unterhaltungen, die das ganze Team sieht.",
    "inboxes.local": "Adresse vor dem @",
    "inboxes.local.hint": "Zum Beispiel help, support oder rechnung.",
    "inboxes.domain": "Domain",
    "inboxes.domain.hint": "Sie muss für den Versand verifiziert sein und E-Mails empfangen oder "
    "weitergeleitet bekommen.",
    "inboxes.from_name": "Absendername",
    "inboxes.from_name.hint": "Empfänger sehen ihn neben der Adresse. Höchstens 78 Zeichen.",
    "inboxes.forwarding": "E-Mails werden hierher weitergeleitet",
    "inboxes.forwarding.hint": "Das Postfach erhält eine eigene Adresse, an die Ihr Mailserver weiterleitet.",
    "inboxes.make": "Anlegen",
    "inboxes.back": "Zurück",
    "inboxes.no_domain": "Noch keine Domain",
    "inboxes.no_domain.text": "Fügen Sie zuerst die Domain der Adresse hinzu und veröffentlichen Sie die "
    "Einträge, die sie zeigt.",
    "inbox.navigation": "Ordner und Postfächer",
    "inbox.folders": "Ordner",
    "inbox.labels": "Labels",
    "inbox.write": "Neue Nachricht",
    "inbox.settings": "Einstellungen",
    "inbox.receiving_address": "Weiterleiten an",
    "inbox.created": "Angelegt",
    "inbox.names": "Namen",
    "inbox.save": "Speichern",
    "inbox.color": "Farbe",
    "inbox.no_labels": "Noch kein Label. Labels ordnen Unterhaltungen; eine kann mehrere haben.",
    "inbox.label_new": "Neues Label",
    "inbox.label_add": "Label hinzufügen",
    "inbox.label_change": "Ändern",
    "inbox.label_change_one": "Das Label {name} ändern",
    "inbox.label_save": "Label ändern",
    "inbox.label_delete": "Löschen",
    "inbox.label_delete_one": "Das Label {name} löschen",
    "inbox.label_delete.text": "Es wird von jeder Unterhaltung entfernt.",
    "inbox.delete": "Postfach löschen",
    "inbox.delete.title": "{name} löschen?",
    "inbox.delete.text": "Unterhaltungen, Entwürfe und Labels sind sofort weg und lassen sich nicht "
    "zurückholen. Gesendete und empfangene E-Mails bleiben, solange ihre Aufbewahrung es vorsieht.",
    "inbox.typed_wrong": "Geben Sie zum Löschen die Adresse des Postfachs ein.",
    "done.inbox_created": "Das Postfach ist angelegt.",
    "done.inbox_changed": "Das Postfach ist gespeichert.",
    "done.inbox_deleted": "Das Postfach ist gelöscht.",
    "done.label_added": "Das Label ist hinzugefügt.",
    "done.label_changed": "Das Label ist geändert.",
    "done.label_deleted": "Das Label ist gelöscht.",
}
