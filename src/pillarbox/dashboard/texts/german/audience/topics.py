"""Texts of the screens of topics, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "topics.title": "Themen",
    "topics.words": "Abonnements, Einstellungen, Opt-in, Opt-out, Verteiler",
    "topics.name": "Name",
    "topics.name.hint": "Höchstens 50 Zeichen. Empfänger lesen ihn dort, wo sie wählen, was sie erhalten.",
    "topics.description": "Beschreibung",
    "topics.description.hint": "Höchstens 200 Zeichen; steht unter dem Namen.",
    "topics.default": "Wer nicht gewählt hat",
    "topics.default.hint": "Das lässt sich später nicht ändern: Wer nicht gewählt hat, verlässt sich darauf.",
    "topics.default.opt_in": "Erhält es",
    "topics.default.opt_out": "Erhält es nicht",
    "topics.visibility": "Sichtbarkeit",
    "topics.visibility.hint": "Ein öffentliches Thema steht auf der Seite, auf der Empfänger wählen. Ein "
    "privates sehen dort nur diejenigen, die es erhalten.",
    "topics.visibility.public": "Öffentlich",
    "topics.visibility.private": "Privat",
    "topics.subscribers": "Abonnenten",
    "topics.created": "Erstellt",
    "topics.not_counted": "Die Abonnenten unter so vielen Kontakten zu zählen, dauert einige Sekunden.",
    "topics.count": "Jetzt zählen",
    "topics.none": "Noch kein Thema",
    "topics.none.text": "Ein Thema ist eine Art von E-Mails, etwa Produktneuheiten, die sich einzeln "
    "abbestellen lässt. Nennen Sie eines in einem Broadcast oder in `topic_id` einer E-Mail.",
    "topics.new": "Thema anlegen",
    "topics.new.words": "neues Thema, Abonnement hinzufügen",
    "topics.new.lead": "Eine Art von E-Mails, die jeder für sich wählt. Der Link in diesen E-Mails "
    "bestellt nur dieses Thema ab.",
    "topics.make": "Anlegen",
    "topics.back": "Zurück",
    "topic.title": "Thema",
    "topic.default.opt_in": "Kontakte erhalten diese E-Mails, bis sie sie abbestellen.",
    "topic.default.opt_out": "Kontakte erhalten diese E-Mails erst, wenn sie sie bestellen.",
    "topic.edit": "Bearbeiten",
    "topic.save": "Speichern",
    "topic.delete": "Löschen",
    "topic.delete.title": "{name} löschen?",
    "topic.delete.text": "Niemand kann es mehr wählen. Was gewählt wurde, gilt noch für E-Mails, die "
    "unterwegs sind, und wird dann entfernt.",
    "topic.typed_wrong": "Geben Sie den Namen des Themas ein, um es zu löschen.",
    "done.topic_created": "Das Thema ist angelegt.",
    "done.topic_changed": "Das Thema ist gespeichert.",
    "done.topic_deleted": "Das Thema ist gelöscht.",
}
