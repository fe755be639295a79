"""Texts of one's own account, the second factor and passkeys, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "account.who": "Ihre Angaben",
    "account.back": "Zurück zum Konto",
    "account.made": "Erstellt",
    "account.used": "Zuletzt benutzt",
    "account.begun": "Angemeldet",
    "account.address.change": "Adresse ändern",
    "account.done.address": "Ab jetzt melden Sie sich mit der neuen Adresse an. Überall sonst sind Sie "
    "abgemeldet.",
    "account.name.submit": "Namen speichern",
    "account.password.since": "Geändert",
    "account.password.change": "Passwort ändern",
    "account.factor": "Zweiter Faktor",
    "account.factor.on": "Jede Anmeldung mit Passwort verlangt einen Code von Ihrem Telefon, seit",
    "account.factor.off": "Eine App auf Ihrem Telefon zeigt einen Code, den jede Anmeldung mit Passwort "
    "verlangt. Wer nur Ihr Passwort kennt, kann sich dann nicht anmelden.",
    "account.factor.codes": "Verbleibende Wiederherstellungscodes: {count}",
    "account.factor.begin": "Zweiten Faktor einrichten",
    "account.factor.new_codes": "Neue Wiederherstellungscodes erzeugen",
    "account.factor.remove": "Zweiten Faktor entfernen",
    "account.password.none": "Sie haben kein Passwort.",
    "account.openid": "Anmeldung mit {name}",
    "account.openid.joined": "{name} meldet Sie an, als",
    "account.openid.none": "{name} kann Sie anmelden, sobald es die Adresse dieses Kontos verifiziert hat.",
    "account.openid.join": "Mit {name} verbinden",
    "account.openid.remove": "Trennen",
    "account.openid.stays": "Die Verbindung kann nicht getrennt werden, solange Sie sich nur mit {name} "
    "anmelden können.",
    "account.done.openid": "Die Konten sind verbunden. Ab jetzt können Sie sich auch so anmelden.",
    "account.done.openid_removed": "Die Verbindung ist getrennt. Ab jetzt melden Sie sich mit Ihrem "
    "Passwort an.",
    "account.passkeys": "Passkeys",
    "account.passkeys.none": "Mit einem Passkey melden Sie sich über die Sperre Ihres Telefons oder "
    "Computers an, ohne Passwort.",
    "account.passkeys.add": "Passkey hinzufügen",
    "account.passkeys.remove": "Entfernen",
    "account.passkeys.remove.of": "Passkey {name} entfernen",
    "account.passkeys.impossible": "Browser erlauben Passkeys nur, wenn Pillarbox über HTTPS und einen "
    "Hostnamen erreichbar ist.",
    "account.sessions": "Ihre Anmeldungen",
    "account.sessions.this": "dieser Browser",
    "account.sessions.unknown": "Unbekannter Browser",
    "account.sessions.end": "Dort abmelden",
    "account.sessions.end_all": "Überall abmelden",
    "account.done.name": "Ihr Name ist gespeichert.",
    "account.done.password": "Ihr Passwort ist geändert. Überall sonst sind Sie abgemeldet.",
    "account.done.factor_removed": "Der zweite Faktor ist entfernt: Zur Anmeldung genügt das Passwort.",
    "account.done.passkey": "Der Passkey ist hinzugefügt.",
    "account.done.passkey_removed": "Der Passkey ist entfernt.",
    "account.done.session": "Sie sind dort abgemeldet.",
    "account.done.recovery": "Sie haben einen Wiederherstellungscode benutzt; er gilt nicht noch einmal. "
    "Erzeugen Sie neue, bevor der letzte verbraucht ist.",
    "account.wrong.passkey": "Der Passkey wurde nicht hinzugefügt: Die Antwort des Browsers ist ungültig, "
    "oder der Passkey ist schon bekannt. Bitte versuchen Sie es noch einmal.",
    "codes.title": "Ihre Wiederherstellungscodes",
    "codes.text": "Mit jedem dieser Codes können Sie sich einmal ohne Ihr Telefon anmelden. Bewahren Sie "
    "sie dort auf, wo Sie sie auch ohne Telefon finden: Sie werden nur jetzt angezeigt. Frühere Codes "
    "gelten nicht mehr.",
    "codes.done": "Ich habe sie gesichert",
    "enrolment.title": "Zweiten Faktor einrichten",
    "enrolment.scan": "Scannen Sie dieses Bild mit einer App für Einmalcodes auf Ihrem Telefon.",
    "enrolment.picture": "QR-Code mit dem Schlüssel, der darunter steht",
    "enrolment.type": "Oder geben Sie diesen Schlüssel in die App ein:",
    "enrolment.code": "Code",
    "enrolment.code.hint": "Die sechs Ziffern, die die App gerade zeigt. Überall sonst werden Sie dann "
    "abgemeldet.",
    "enrolment.submit": "Einschalten",
    "enrolment.wrong": "Diesen Code zeigt die App nicht. Geht die Uhr des Telefons richtig?",
    "factor.title": "Zweiter Faktor",
    "factor.code": "Code",
    "factor.code.hint": "Die sechs Ziffern aus Ihrer App oder einer Ihrer Wiederherstellungscodes.",
    "factor.submit": "Anmelden",
    "factor.back": "Mit einem anderen Konto anmelden",
    "factor.wrong": "Der Code ist falsch oder wurde schon benutzt. Die App zeigt alle 30 Sekunden einen "
    "neuen.",
    "login.passkey": "Mit Passkey anmelden",
    "confirm.passkey": "Mit Passkey bestätigen",
    "passkey.login.title": "Mit Passkey anmelden",
    "passkey.confirm.title": "Mit Passkey bestätigen",
    "passkey.make.title": "Passkey hinzufügen",
    "passkey.submit": "Passkey verwenden",
    "passkey.make.submit": "Passkey erstellen",
    "passkey.name": "Name",
    "passkey.name.hint": "Daran erkennen Sie ihn in der Liste, zum Beispiel der Name des Geräts, auf dem "
    "er liegt.",
    "passkey.name.default": "Passkey",
    "passkey.waiting": "Der Browser fragt nach Ihrem Passkey …",
    "passkey.refused": "Das hat nicht geklappt: Der Browser hat keinen Passkey erhalten.",
    "passkey.known": "Dieses Gerät hat schon einen Passkey für Ihr Konto.",
    "passkey.elsewhere": "Passkeys dieser Website gelten nur unter {url}.",
    "passkey.unable": "Dieser Browser unterstützt keine Passkeys.",
    "passkey.script": "Passkeys brauchen JavaScript. Alles andere funktioniert ohne.",
    "passkey.back": "Zurück",
    "passkey.wrong": "Der Passkey ist hier nicht bekannt, oder es hat zu lange gedauert. Bitte versuchen "
    "Sie es noch einmal.",
    "passkey.impossible": "Passkeys sind hier nicht möglich: Sie brauchen HTTPS und einen Hostnamen.",
    "address.title": "E-Mail-Adresse ändern",
    "address.now": "Sie melden sich an mit",
    "address.new": "Neue E-Mail-Adresse",
    "address.text": "Wir senden einen Link an die neue Adresse. Sie gilt für die Anmeldung, sobald Sie "
    "den Link in diesem Browser öffnen, in dem Sie angemeldet sind.",
    "address.submit": "Link senden",
    "address.own": "Mit dieser Adresse melden Sie sich schon an.",
    "address.wanted": "Beantragt ist",
    "address.waits": "Sehen Sie im Posteingang der neuen Adresse nach. Der Antrag gilt bis",
    "address.withdraw": "Bisherige Adresse behalten",
    "address.done.asked": "Eine E-Mail an die neue Adresse ist unterwegs. Noch ist nichts geändert.",
    "address.done.withdrawn": "Ihre Adresse bleibt, wie sie ist.",
    "address.link.title": "Mit der neuen Adresse anmelden",
    "address.link.text": "E-Mails zu Ihrem Konto gehen dann an die neue Adresse. Hier bleiben Sie "
    "angemeldet, überall sonst werden Sie abgemeldet.",
    "address.link.submit": "Adresse ändern",
    "address.gone.title": "Dieser Link gilt nicht",
    "address.gone.text": "Er gilt einmal, eine Stunde lang, und nur für das Konto, das ihn angefordert "
    "hat. Melden Sie sich mit diesem Konto an, oder fordern Sie dort einen neuen Link an.",
    "address.taken.title": "Diese Adresse hat schon ein Konto",
    "address.taken.text": "Es wurde nichts geändert. Nehmen Sie eine andere Adresse, oder melden Sie sich "
    "mit jenem Konto an.",
    "change.title": "Passwort ändern",
    "change.new": "Neues Passwort",
    "change.others": "Hier bleiben Sie angemeldet, überall sonst werden Sie abgemeldet.",
    "change.submit": "Passwort ändern",
}
