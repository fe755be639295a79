"""Texts of pages on which people let programs act for them, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "consent.title": "Darf dieses Programm für Sie handeln?",
    "consent.unverified": "nicht geprüft",
    "consent.unverified.text": "Niemand hat geprüft, von wem dieses Programm stammt. Fahren Sie nur fort, "
    "wenn Sie es gerade selbst gestartet haben.",
    "consent.calls_itself": "Es nennt sich",
    "consent.wants": "Es möchte",
    "consent.scope.full_access": "im Team alles tun, was ein API-Schlüssel darf: E-Mails lesen und senden "
    "sowie Domains, Schlüssel, Kontakte und Einstellungen ändern",
    "consent.scope.emails_send": "E-Mails im Namen des Teams senden",
    "consent.sent_to": "Ihre Entscheidung geht an",
    "consent.local": "Der Zugang geht an ein Programm auf diesem Computer. Jedes Programm hier kann sich "
    "als dieses ausgeben.",
    "consent.team": "Team",
    "consent.inbox": "Nur in einem Postfach",
    "consent.inbox_hint": "Mit einer Adresse und einem Recht erreicht das Programm nur dieses Postfach. "
    "Ohne beides bekommt es alles, was es möchte.",
    "consent.no_inbox.title": "Das Postfach kann nicht freigegeben werden",
    "consent.no_inbox.text": "Geben Sie die Adresse eines Postfachs des Teams und mindestens ein Recht an. "
    "Es wurde nichts erlaubt: Gehen Sie zurück, und entscheiden Sie noch einmal.",
    "consent.may_not": "Mit Ihrer Rolle dürfen Sie keine Programme für ein Team zulassen. Ein Inhaber des "
    "Teams kann Ihre Rolle ändern.",
    "consent.approve": "Zulassen",
    "consent.deny": "Ablehnen",
    "consent.later": "Sie können das jederzeit zurücknehmen.",
    "consent.over.title": "Hier ist nichts zu entscheiden",
    "consent.over.text": "Über diese Anfrage wurde schon entschieden, sie ist älter als zehn Minuten, "
    "oder sie begann in einem anderen Browser. Beginnen Sie im Programm von vorn.",
    "consent.failed.title": "Das Programm kann nicht zugelassen werden",
    "consent.failed.text": "Die Angaben des Programms sind fehlerhaft: {reason}. Es wurde nichts "
    "weitergegeben.",
    "consent.wrong.text": "Das Programm, das sich {name} nennt, liegt unter {place}. Seine Angaben sind "
    "fehlerhaft: {reason}. Es wurde nichts weitergegeben.",
    "consent.wrong.link": "Zurück zu {place}",
    "consent.no_logo.title": "Kein Logo",
    "consent.no_logo.text": "Das Programm hat keines, das gezeigt werden kann.",
    "consent.busy.title": "Zu viele Versuche",
    "consent.busy.text": "Bitte warten Sie eine Minute, und beginnen Sie im Programm von vorn.",
}
