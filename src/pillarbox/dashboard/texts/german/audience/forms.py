"""Texts of the screens of sign-up forms, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "forms.title": "Anmeldeformulare",
    "forms.words": "Formular, anmelden, abonnieren, Double-Opt-in, Newsletter, einbetten, Einwilligung",
    "forms.new": "Neues Formular",
    "forms.name": "Bezeichnung",
    "forms.state": "Zustand",
    "forms.open": "Offen",
    "forms.closed": "Geschlossen",
    "forms.shown": "Angezeigt",
    "forms.sent": "Verschickte Mails",
    "forms.confirmed": "Bestätigt",
    "forms.created": "Erstellt",
    "forms.none": "Noch kein Anmeldeformular",
    "forms.none.text": "Ein Formular ist eine eigene Seite und ein Schnipsel für Ihre Website. Wer seine "
    "Adresse "
    "angibt, klickt in einer Mail und wird erst dann Kontakt; die Einwilligung wird festgehalten.",
    "forms.none.viewer": "Mitglieder des Teams legen Formulare an, über die man sich anmeldet.",
    "form.title": "Anmeldeformular",
    "form.visit": "Seite öffnen",
    "form.edit": "Bearbeiten",
    "form.edit.conflict": "Inzwischen hat jemand anderes das Formular geändert. Ihre Eingaben sind noch da: "
    "Öffnen "
    "Sie das Formular in einem anderen Tab, vergleichen Sie, und laden Sie diese Seite neu, bevor Sie "
    "speichern.",
    "form.open": "Formular öffnen",
    "form.close": "Formular schließen",
    "form.is_closed": "Das Formular ist geschlossen: Seine Seite ist nicht erreichbar, und es wird nichts "
    "verschickt.",
    "form.delete": "Löschen",
    "form.delete.title": "Dieses Formular löschen?",
    "form.delete.text": "Seine Seite verschwindet, und Links, die niemand angeklickt hat, gelten nicht mehr. "
    "Kontakte bleiben, ebenso ihre Einwilligungen.",
    "form.delete.other_name": "Geben Sie den Namen des Formulars genau so ein, wie er angezeigt wird.",
    "form.sign_ups": "Neueste Anmeldungen",
    "form.no_sign_ups": "Noch keine Anmeldung",
    "form.no_sign_ups.text": "Stellen Sie die Seite oder den Schnipsel dorthin, wo man sie findet.",
    "form.address": "Adresse",
    "form.asked_at": "Angefragt",
    "form.consent": "Einwilligung",
    "form.asked_from": "Angefragt von {address}",
    "form.confirmed_from": "Bestätigt von {address}",
    "form.status.waiting": "Wartet auf den Klick",
    "form.status.confirmed": "Bestätigt",
    "form.status.expired": "Nicht bestätigt",
    "form.put_it_up": "Verwenden",
    "form.address_of_page": "Die Seite:",
    "form.snippet": "Schnipsel des Formulars",
    "form.snippet.text": "Oder fügen Sie dies in Ihre eigene Website ein. Es braucht kein Skript; gestalten "
    "Sie es, "
    "wie Sie möchten.",
    "form.preview": "Vorschau",
    "form.try": "In der Vorschau zeigen",
    "form.save": "Formular speichern",
    "form.name.hint": "Nur Ihr Team sieht ihn.",
    "form.fields": "Was das Formular fragt",
    "form.fields.hint": "Die E-Mail-Adresse wird immer gefragt. Fragen Sie wenig: Jedes Feld kostet "
    "Anmeldungen.",
    "form.field.key": "Feld {number}",
    "form.field.label": "Beschriftung",
    "form.field.label.of": "Beschriftung von Feld {number}",
    "form.field.required": "Pflicht",
    "form.key.first_name": "Vorname",
    "form.key.last_name": "Nachname",
    "form.where_to": "Wohin die Personen kommen",
    "form.segment": "In das Segment",
    "form.segment.none": "Kein Segment",
    "form.topics": "Themen, die sie bekommen",
    "form.lets_choose": "Besucher wählen unter diesen Themen",
    "form.redirect": "Seite nach dem Formular",
    "form.redirect.hint": "Leer: unsere Seite, die auf das Postfach verweist.",
    "form.confirmed_url": "Seite nach dem Klick in der Mail",
    "form.words": "Wortlaut",
    "form.words.hint": "Leere Texte sind unsere, in der Sprache des Besuchers.",
    "form.text.title": "Überschrift",
    "form.text.text": "Einleitung",
    "form.text.button": "Schaltfläche",
    "form.text.consent": "Einwilligung (wird mit jeder Anmeldung festgehalten)",
    "form.text.sent": "Text nach dem Formular",
    "form.text.confirmed": "Text nach dem Klick in der Mail",
    "form.mail": "Mail zur Bestätigung",
    "form.from": "Absender",
    "form.from.hint": "Eine Adresse einer verifizierten Domain.",
    "form.subject": "Betreff",
    "form.template": "Vorlage",
    "form.template.ours": "Unser Text",
    "form.template.hint": "Eine veröffentlichte Vorlage mit der Textvariablen `CONFIRM_URL`, zu der die "
    "Schaltfläche "
    "führt.",
    "form.look": "Aussehen",
    "form.look.hint": "Leer: wie Ihre Abbestellseite aussieht.",
    "done.form_created": "Das Formular ist da. Stellen Sie es dorthin, wo man es findet.",
    "done.form_saved": "Das Formular ist gespeichert.",
    "done.form_opened": "Das Formular ist offen.",
    "done.form_closed": "Das Formular ist geschlossen.",
    "done.form_deleted": "Das Formular ist gelöscht.",
    "sign_up.email": "E-Mail-Adresse",
    "sign_up.topics": "Was möchten Sie bekommen?",
    "sign_up.trap": "Lassen Sie dies leer",
    "sign_up.button": "Anmelden",
    "sign_up.consent": "Sie sind einverstanden, dass {team} an diese Adresse schreibt. Sie können sich "
    "jederzeit über "
    "einen Link in jeder Mail abmelden.",
    "sign_up.wrong.missing": "Bitte füllen Sie dieses Feld aus.",
    "sign_up.wrong.invalid": "Das sieht nicht richtig aus. Bitte prüfen Sie es.",
    "sign_up.sent": "Bitte sehen Sie in Ihr Postfach",
    "sign_up.sent.text": "Wenn diese Adresse aufgenommen werden kann, finden Sie dort eine Mail mit einem "
    "Link. "
    "Klicken Sie ihn zur Bestätigung an. Nach einigen Minuten nichts da? Sehen Sie auch beim Spam nach.",
    "sign_up.confirm": "Bestätigen",
    "sign_up.confirm.text": "Drücken Sie die Schaltfläche, um Mails an {address} zu bekommen.",
    "sign_up.confirmed": "Vielen Dank",
    "sign_up.confirmed.text": "Ihre Adresse ist bestätigt.",
    "sign_up.expired": "Dieser Link ist abgelaufen",
    "sign_up.expired.text": "Ein Link gilt drei Tage. Melden Sie sich noch einmal an, um einen neuen zu "
    "bekommen.",
    "sign_up.again": "Noch einmal anmelden",
    "sign_up.not_understood": "Dieses Formular war nicht lesbar",
    "sign_up.not_understood.text": "Bitte gehen Sie zurück und senden Sie es noch einmal.",
    "sign_up.too_many": "Zu viele Anmeldungen",
    "sign_up.too_many.text": "Bitte versuchen Sie es später noch einmal.",
    "sign_up.unavailable": "Das Formular ist gerade nicht nutzbar",
    "sign_up.unavailable.text": "Bitte versuchen Sie es später noch einmal. Es wurde nichts gespeichert.",
    "sign_up.mail.subject": "Bitte bestätigen: {title}",
    "sign_up.mail.ask": "Jemand, vermutlich Sie, hat die Adresse {address} angegeben, um Mails von "
    "„{title}“ zu "
    "bekommen. Bitte bestätigen Sie, dass Sie das möchten.",
    "sign_up.mail.or_copy": "Oder öffnen Sie diese Adresse:",
    "sign_up.mail.not_you": "Sie waren es nicht? Dann tun Sie nichts: Ohne den Klick bekommen Sie keine "
    "weitere Mail.",
}
