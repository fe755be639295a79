"""Texts of the file of a person, and of its erasure, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "person.title": "Personenbezogene Daten",
    "person.words": "Datenschutz, DSGVO, Auskunft, Person exportieren, löschen, Recht auf Vergessenwerden",
    "person.lead": "Was das Team zu einer Adresse gespeichert hat, als Datei, und die Löschung. Die "
    "Adresse muss nicht die eines Kontakts sein.",
    "person.address": "Adresse",
    "person.look_up": "Nachsehen",
    "person.no_address": "Geben Sie eine vollständige Adresse ein, etwa kim@quay.example.",
    "person.file": "Personenbezogene Daten zu einer Adresse",
    "person.save": "Alle Daten speichern",
    "person.erase": "Person löschen",
    "person.erase.title": "Daten zu {address} löschen?",
    "person.erase.text": "Der Kontakt, E-Mails an und von dieser Adresse und alles andere, was sie nennt, "
    "werden endgültig gelöscht. Es gehen keine E-Mails mehr an sie; dafür bleibt ein Hash der Adresse.",
    "person.typed_wrong": "Geben Sie die Adresse ein, um ihre Daten zu löschen.",
    "person.is.unknown": "Die Daten zu dieser Adresse wurden nicht gelöscht.",
    "person.is.in_progress": "Die Daten zu dieser Adresse werden gerade gelöscht.",
    "person.is.waiting": "Die Daten zu dieser Adresse sind bis auf laufende E-Mails gelöscht.",
    "person.is.completed": "Die Daten zu dieser Adresse sind gelöscht. Es gehen keine E-Mails an sie.",
    "person.erasures": "Gelöschte Personen",
    "person.erasure": "Löschung",
    "person.status": "Stand",
    "person.status.in_progress": "Läuft",
    "person.status.waiting": "Wartet",
    "person.status.completed": "Abgeschlossen",
    "person.waiting": "{count} Zeilen warten auf E-Mails und Webhooks",
    "person.waiting.singular": "{count} Zeile wartet auf eine E-Mail oder einen Webhook",
    "person.rows": "Zeilen",
    "person.begun": "Begonnen",
    "person.completed": "Abgeschlossen",
    "person.allow": "E-Mails wieder erlauben",
    "person.allow.title": "E-Mails an diese Adresse wieder erlauben?",
    "person.allow.text": "Tun Sie das nur, wenn die Person E-Mails bestellt hat. Was gelöscht ist, bleibt "
    "gelöscht.",
    "person.none": "Niemand wurde gelöscht",
    "person.none.text": "Wer darum bittet, wird auf der Seite des Kontakts gelöscht oder hier anhand der "
    "Adresse. Die Liste zeigt nie Adressen: Es wird keine behalten.",
    "done.person_erasing": "Die Löschung hat begonnen. Es gehen keine E-Mails mehr an die Adresse.",
    "done.person_allowed": "E-Mails an die Adresse sind wieder möglich.",
}
