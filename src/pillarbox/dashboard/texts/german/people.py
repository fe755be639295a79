"""Texts of pages for setting up, logging in, and one's own account, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "frame.logout": "Abmelden",
    "frame.skip": "Zum Inhalt springen",
    "failed.title": "Das hat nicht geklappt",
    "missing.title": "Diese Seite gibt es nicht",
    "missing.text": "Die Adresse ist unvollständig, oder die Seite ist umgezogen. Ein abgesendetes "
    "Formular lässt sich nicht über seine Adresse öffnen.",
    "missing.link": "Von vorn beginnen",
    "gone.title": "Das gibt es nicht",
    "gone.text": "Es wurde gelöscht, gehört einem anderen Team, oder seine Adresse ist unvollständig "
    "({problem}).",
    "maintenance.title": "Gleich wieder da",
    "maintenance.text": "Diese Pillarbox wird gerade gewartet. Alles kann gelesen werden, geändert wurde "
    "nichts. Versuchen Sie es in einigen Minuten noch einmal.",
    "too_large.title": "Das war zu viel",
    "too_large.text": "Das Formular war größer, als diese Website annimmt. Es wurde nichts geändert.",
    "form.unreadable.title": "Das Formular ist nicht lesbar",
    "form.unreadable.text": "Gehen Sie zurück, laden Sie die Seite neu, und senden Sie das Formular noch "
    "einmal.",
    "form.foreign.title": "Dieses Formular gilt nicht",
    "form.foreign.text": "Es war zu lange offen, es kam nicht von dieser Website, oder der Browser "
    "speichert keine Cookies.",
    "form.foreign.link": "Von vorn beginnen",
    "refused.title": "Das dürfen Sie nicht",
    "refused.operators": "Diese Seite ist für Betreiber der Installation. Auf dem Server macht `pillarbox "
    "people operator ADDRESS` ein Konto zu einem solchen.",
    "refused.text": "Ihre Rolle in diesem Team erlaubt das nicht. Ein Inhaber des Teams kann Ihre Rolle "
    "ändern.",
    "refused.link": "Zurück",
    "language.title": "Sprache",
    "language.browser": "Wie der Browser",
    "language.save": "Sprache verwenden",
    "language.other": "Andere Sprache",
    "field.email": "E-Mail-Adresse",
    "field.name": "Ihr Name",
    "field.password": "Passwort",
    "account.title": "Ihr Konto",
    "account.team": "Team",
    "login.title": "Anmelden",
    "login.submit": "Anmelden",
    "login.lost": "Passwort vergessen",
    "login.wrong": "Die Adresse oder das Passwort ist falsch.",
    "login.wait_or_prove": "Zu viele Versuche. Bitte warten Sie {seconds} Sekunden, und versuchen Sie es "
    "noch einmal. Falls andere versuchen, in Ihr Konto zu gelangen, müssen Sie nicht warten: Nehmen Sie "
    "einen Passkey oder einen Browser, in dem Sie schon angemeldet waren. Oder lassen Sie sich einen Link "
    "senden („Passwort vergessen“), öffnen Sie ihn in diesem Browser, und melden Sie sich mit Ihrem "
    "bisherigen Passwort an.",
    "login.wait": "Zu viele Versuche. Bitte warten Sie {seconds} Sekunden, und versuchen Sie es noch einmal.",
    "login.done.reset": "Ihr Passwort ist geändert. Melden Sie sich mit dem neuen an.",
    "login.done.logout": "Sie sind abgemeldet.",
    "login.too_many.title": "Zu viele Versuche",
    "field.new_password": "Neues Passwort",
    "password.hint": "Mindestens 10 Zeichen; gern mehrere Wörter.",
    "password.short": "Es ist zu kurz: mindestens {shortest} Zeichen.",
    "password.long": "Es ist zu lang: höchstens {longest} Zeichen.",
    "password.common": "Dieses Passwort benutzen zu viele Menschen. Nehmen Sie eines, das schwerer zu "
    "erraten ist.",
    "password.own": "Das ist Ihre eigene Adresse oder Ihr eigener Name. Nehmen Sie etwas, das schwerer zu "
    "erraten ist.",
    "set_up.title": "Konto einrichten",
    "set_up.text": "Wählen Sie ein Passwort. Damit und mit Ihrer E-Mail-Adresse melden Sie sich künftig an.",
    "set_up.submit": "Einrichten und anmelden",
    "set_up.taken": "Zu dieser Adresse gibt es schon ein Konto.",
    "set_up.no_address": "Das ist keine E-Mail-Adresse.",
    "set_up.gone.title": "Dieser Link gilt nicht mehr",
    "set_up.gone.text": "Er gilt einmal, sieben Tage lang. Der Betreiber dieser Pillarbox kann einen "
    "neuen erstellen: pillarbox people create.",
    "lost.title": "Passwort vergessen",
    "lost.text": "Geben Sie Ihre E-Mail-Adresse ein; wir senden einen Link für ein neues Passwort dorthin.",
    "lost.submit": "Link senden",
    "lost.sent.title": "Sehen Sie in Ihrem Posteingang nach",
    "lost.sent.text": "Gibt es zu dieser Adresse ein Konto, ist ein Link unterwegs. Er gilt eine halbe "
    "Stunde.",
    "reset.title": "Neues Passwort wählen",
    "reset.text": "Danach sind Sie auf allen Geräten abgemeldet.",
    "reset.submit": "Passwort ändern",
    "reset.gone.title": "Dieser Link gilt nicht mehr",
    "reset.gone.text": "Er gilt einmal, eine halbe Stunde lang. Fordern Sie einen neuen an.",
    "confirm.title": "Sind Sie es?",
    "confirm.text": "Geben Sie Ihr Passwort noch einmal ein: Dafür ist eine aktuelle Anmeldung nötig.",
    "confirm.prove": "Weisen Sie sich noch einmal aus: Dafür ist eine aktuelle Anmeldung nötig.",
    "confirm.kept": "Ihre Eingaben bleiben erhalten.",
    "confirm.act": "Sie wollten: {act}.",
    "confirm.again": "Sie sind es. Noch ist nichts geschehen: Klicken Sie noch einmal auf die Schaltfläche.",
    "confirm.submit": "Weiter",
    "confirm.wrong": "Das Passwort ist falsch.",
    "login.openid": "Mit {name} anmelden",
    "login.openid.other": "Mit Passwort anmelden",
    "login.openid.only": "Die Adresse oder das Passwort ist falsch, oder dieses Konto meldet sich nur mit "
    "{name} an.",
    "set_up.openid": "Konten dieser Pillarbox melden sich mit {name} an. Melden Sie sich dort mit der "
    "Adresse an, für die dieser Link erstellt wurde. Ein Betreiber kann einem Konto ein Passwort erlauben: "
    "pillarbox people password-login ADDRESS.",
    "join.title": "Ist das Ihr Konto?",
    "join.text": "Zu Ihrer Adresse gibt es schon ein Konto. Geben Sie einmal dessen Passwort ein: Danach "
    "meldet {name} Sie damit an.",
    "join.submit": "Verbinden und anmelden",
    "confirm.openid": "Mit {name} bestätigen",
    "openid.off": "Bei dieser Pillarbox meldet man sich nur mit Passwort oder Passkey an.",
    "openid.refused.title": "{name} hat Sie nicht angemeldet",
    "openid.refused.link": "Zurück zur Anmeldung",
    "openid.refused.state": "Die Anmeldung dauerte länger als zehn Minuten, wurde schon benutzt oder "
    "begann in einem anderen Browser oder unter einer anderen Adresse dieser Website. Bitte beginnen Sie "
    "noch einmal.",
    "openid.refused.denied": "{name} hat Sie nicht zugelassen, oder Sie haben abgebrochen. Versuchen Sie "
    "es noch einmal, oder wenden Sie sich an den Betreiber von {name}.",
    "openid.refused.unreachable": "{name} antwortet gerade nicht. Warten Sie eine Minute, und versuchen "
    "Sie es noch einmal. Dauert es an, sagen Sie es dem Betreiber dieser Pillarbox.",
    "openid.refused.answer": "{name} hat auf eine Weise geantwortet, die diese Pillarbox nicht versteht. "
    "Versuchen Sie es noch einmal. Geschieht es wieder, sagen Sie es dem Betreiber dieser Pillarbox: Der "
    "Grund steht bei den Aktivitäten.",
    "openid.refused.token": "Was {name} über Sie sagt, ließ sich nicht nachweisen. Versuchen Sie es noch "
    "einmal. Geschieht es wieder, sagen Sie es dem Betreiber dieser Pillarbox: Der Grund steht bei den "
    "Aktivitäten.",
    "openid.refused.unverified": "{name} sagt nicht, dass Ihre E-Mail-Adresse verifiziert ist. "
    "Verifizieren Sie sie dort, und melden Sie sich dann wieder an.",
    "openid.refused.not_invited": "Mit Ihrer Adresse bei {name} kommen Sie hier durch eine Einladung herein. "
    "Wenn Sie eine haben, öffnen Sie deren Link, und melden Sie sich von dort an. Bitten Sie sonst den "
    "Inhaber eines Teams um eine Einladung an diese Adresse.",
    "openid.refused.no_team": "Es gibt kein Team, dem Sie beitreten können. Der Betreiber dieser Pillarbox "
    "muss es mit --oidc-team nennen, mit der ID, die pillarbox teams list zeigt.",
    "openid.refused.disabled": "Ihr Konto ist deaktiviert. Wenden Sie sich an den Betreiber dieser "
    "Pillarbox.",
    "openid.refused.other_subject": "Das Konto mit Ihrer Adresse gehört bei {name} jemand anderem, oder "
    "Sie haben hier ein anderes Konto. Der Betreiber dieser Pillarbox kann die Verbindung trennen: "
    "pillarbox people unlink ADDRESS.",
    "openid.refused.other_way": "Zu Ihrer Adresse gibt es ein Konto, das sich auf andere Weise anmeldet. "
    "Melden Sie sich an wie bisher, und verbinden Sie es dann auf der Seite „Ihr Konto“ mit {name}.",
    "openid.refused.other_person": "Bei {name} sind Sie jemand anderes als hier. Melden Sie sich dort mit "
    "der Adresse Ihres Kontos an, und versuchen Sie es dann noch einmal.",
    "openid.refused.old_proof": "{name} hat nicht gefragt, wer Sie sind. Melden Sie sich dort ab, und "
    "versuchen Sie es dann noch einmal.",
    "openid.refused.undated_proof": "{name} sagt nicht, wann Sie zuletzt gefragt wurden, wer Sie sind. "
    "Bestätigen Sie es mit Ihrem Passwort oder einem Passkey.",
    "openid.foreign": "Eine andere Website hat diese Anmeldung angefordert. Beginnen Sie sie hier.",
    "login.insecure": "Die Anmeldung braucht HTTPS oder einen Browser auf demselben Rechner unter dem "
    "Namen localhost: Über bloßes HTTP speichert der Browser das Cookie der Sitzung nicht. Öffnen Sie diese "
    "Seite mit https://.",
}
