"""Texts of the screens of suppressed addresses, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "suppressions.title": "Sperrliste",
    "suppressions.words": "gesperrte Adressen, blockiert, Bounces, Beschwerden, nicht senden",
    "suppressions.address": "Adresse",
    "suppressions.since": "Seit",
    "suppressions.origin": "Herkunft",
    "suppressions.origin.bounce": "Bounce",
    "suppressions.origin.complaint": "Beschwerde",
    "suppressions.origin.manual": "Von Hand",
    "suppressions.erased": "Auch gelöschte Personen erhalten keine E-Mails; ihre Adressen "
    "werden nicht behalten.",
    "suppressions.csv": "Sperrliste als CSV",
    "suppressions.none": "Keine Adresse ist gesperrt",
    "suppressions.none.text": "Hard Bounces und Beschwerden setzen Adressen von selbst auf diese Liste; "
    "E-Mails an sie werden übersprungen. Bringen Sie die Liste eines anderen Dienstes mit:",
    "suppressions.import": "Befehl, der eine Liste importiert",
    "suppressions.none_fit": "Keine Adresse gefunden",
    "suppressions.none_fit.text": "An die gesuchten Adressen darf das Team schreiben.",
    "suppressions.add": "Adressen sperren",
    "suppressions.add.words": "Adresse blockieren, nicht senden",
    "suppressions.add.lead": "An diese Adressen geht keine E-Mail dieses Teams mehr. Andere Empfänger "
    "derselben E-Mail erhalten sie weiterhin.",
    "suppressions.addresses": "Adressen",
    "suppressions.addresses.hint": "Höchstens 100, eine pro Zeile oder durch Kommas getrennt.",
    "suppressions.no_address": "Geben Sie mindestens eine Adresse ein.",
    "suppressions.too_many": "Das sind {count} Adressen; auf einmal gehen höchstens 100. Importieren Sie "
    "längere Listen mit dem Befehl pillarbox suppressions import.",
    "suppressions.not_so": "Es wurde nichts hinzugefügt, denn dies sind keine Adressen: {texts}",
    "suppressions.none_chosen": "Wählen Sie zuerst die Adressen aus, die von der Liste genommen werden "
    "sollen.",
    "suppressions.remove": "Ausgewählte von der Liste nehmen",
    "suppressions.remove.text": "Spätere E-Mails gehen wieder an sie.",
    "done.suppressions_added": "Die Adressen sind gesperrt.",
    "done.suppressions_removed": "Die Adressen stehen nicht mehr auf der Liste.",
    "done.suppression_removed": "Die Adresse steht nicht mehr auf der Liste.",
    "suppression.title": "Gesperrte Adresse",
    "suppression.why": "Warum ist sie gesperrt?",
    "suppression.cause.bounce": "Ein Mailserver hat gemeldet, dass es diese Adresse nicht gibt.",
    "suppression.cause.complaint": "Der Empfänger hat eine E-Mail dieses Teams als Spam gemeldet.",
    "suppression.cause.manual": "Jemand aus dem Team oder eines seiner Programme hat sie auf die Liste "
    "gesetzt.",
    "suppression.added_by": "Hinzugefügt von",
    "suppression.imported": "Es ist keine E-Mail bekannt: Der Eintrag wurde importiert.",
    "suppression.mail_gone": "Die E-Mail ist inzwischen gelöscht: E-Mails werden nur begrenzte Zeit "
    "aufbewahrt.",
    "suppression.event": "Ereignis",
    "suppression.host": "Gemeldet von",
    "suppression.reply": "Antwort",
    "suppression.report": "Bericht",
    "suppression.reason": "Grund",
    "suppression.mail": "E-Mail",
    "suppression.effect": "E-Mails dieses Teams an die Adresse werden übersprungen, mit dem Ereignis "
    "email.suppressed.",
    "suppression.remove": "Von der Liste nehmen",
    "suppression.remove.title": "{address} von der Liste nehmen?",
    "suppression.remove.text.bounce": "Spätere E-Mails gehen wieder hinaus. Gibt es noch einen Bounce, "
    "kommt die Adresse zurück auf die Liste.",
    "suppression.remove.text.complaint": "Tun Sie das nur, wenn die Person Ihre E-Mails verlangt hat: "
    "Weitere Beschwerden schaden der Reputation Ihrer Domain.",
    "suppression.remove.text.manual": "Spätere E-Mails gehen wieder hinaus.",
}
