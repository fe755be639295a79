"""Texts of pages for people who got a mail or the link of one, and who have no account here, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "recipient.no_link": "Hinter diesem Link ist nichts",
    "recipient.no_link.text": "Vielleicht ist er unvollständig: Kopieren Sie ihn ganz.",
    "unsubscribe.title": "E-Mail-Einstellungen",
    "unsubscribe.for": "Für {address}.",
    "unsubscribe.for_sender": "Für {address}, wohin eine E-Mail von {sender} ging.",
    "unsubscribe.not_understood": "Es wurde nichts geändert",
    "unsubscribe.not_understood.text": "Öffnen Sie den Link der E-Mail noch einmal, und benutzen Sie die "
    "Schaltflächen dort.",
    "unsubscribe.too_many": "Zu viele Anfragen",
    "unsubscribe.too_many.text": "Es wurde nichts geändert. Versuchen Sie es in einer Minute noch einmal.",
    "unsubscribe.left_all": "Sie haben alles abbestellt. Sie erhalten keine dieser E-Mails mehr.",
    "unsubscribe.came_back": "Sie erhalten wieder E-Mails.",
    "unsubscribe.left": "Sie erhalten keine E-Mails mehr zum Thema {topic}.",
    "unsubscribe.joined": "Sie erhalten E-Mails zum Thema {topic}.",
    "unsubscribe.nothing": "Ihre Auswahl ist gespeichert; es hat sich nichts geändert.",
    "unsubscribe.still_out": "Sie haben weiterhin alles abbestellt und erhalten deshalb keine E-Mails, "
    "bis Sie sie wieder bestellen.",
    "unsubscribe.undo": "Rückgängig machen",
    "unsubscribe.all_again": "Wieder alles abbestellen",
    "unsubscribe.again": "Wieder bestellen",
    "unsubscribe.leave": "Abbestellen",
    "unsubscribe.leave_topic": "{topic} abbestellen",
    "unsubscribe.join_topic": "{topic} wieder bestellen",
    "unsubscribe.is_out": "Sie haben alles abbestellt",
    "unsubscribe.is_out.text": "Keine dieser E-Mails wird an Sie gesendet, was auch immer unten gewählt ist.",
    "unsubscribe.not_topic": "Dazu erhalten Sie keine E-Mails.",
    "unsubscribe.leave.text": "Sie erhalten dann keine dieser E-Mails mehr.",
    "unsubscribe.choices": "Was Sie erhalten",
    "unsubscribe.topics": "E-Mails zu diesen Themen",
    "unsubscribe.save": "Auswahl speichern",
    "unsubscribe.all": "Alles abbestellen",
    "unsubscribe.all.text": "Sie erhalten dann keine dieser E-Mails mehr, gleich zu welchem Thema.",
    "shared.brand": "geteilte E-Mail",
    "shared.from": "Von",
    "shared.to": "An",
    "shared.date": "Datum",
    "shared.left_out": "{count} Bilder von anderswo sind nicht geladen.",
    "shared.left_out.singular": "{count} Bild von anderswo ist nicht geladen.",
    "shared.is_cut": "Diese E-Mail ist zu groß, um ganz gezeigt zu werden: Hier ist ihr Anfang.",
    "shared.text_is_cut": "Dieser Text ist zu lang, um ganz gezeigt zu werden: Hier ist sein Anfang.",
    "shared.no_text": "Diese E-Mail hat keinen Text.",
    "shared.frame": "Das HTML der E-Mail",
    "shared.busy": "Diese Seite ist gerade ausgelastet",
    "shared.busy.text": "Es werden zu viele Seiten erzeugt. Bitte versuchen Sie es gleich noch einmal.",
    "shared.expired": "Dieser Link ist abgelaufen",
    "shared.expired.text": "Bitten Sie den Absender des Links um einen neuen.",
}
