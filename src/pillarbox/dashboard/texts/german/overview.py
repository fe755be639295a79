"""Texts of the overview, and the names of metrics, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "overview.title": "Übersicht",
    "overview.words": "Start, Startseite, Zahlen",
    "steps.title": "Erste Schritte",
    "steps.count": "{done} von {all}",
    "steps.done": "erledigt",
    "steps.hide": "Ausblenden",
    "steps.mail": "Erste E-Mail senden",
    "steps.mail.text": "Von einem Terminal oder Programm aus oder mit dem Formular hinter diesem Link.",
    "steps.key": "Schlüssel dafür erstellen",
    "steps.key_name": "Erste E-Mail",
    "steps.key_made": "Der Code enthält einen neuen Schlüssel, der nur E-Mails sendet. Er wird nur jetzt "
    "angezeigt.",
    "steps.domain": "Ihre Domain hinzufügen",
    "steps.domain.text": "E-Mails kommen von einer Adresse einer Domain, die Ihnen gehört.",
    "steps.verify": "Domain verifizieren",
    "steps.verify.text": "Veröffentlichen Sie ihre Einträge im DNS; die Seite der Domain sagt, was davon "
    "gefunden wurde.",
    "steps.webhook": "Webhook hinzufügen",
    "steps.webhook.text": "Ihr Programm erfährt, was aus jeder E-Mail wurde.",
    "steps.invite": "Jemanden einladen",
    "steps.invite.text": "Andere sehen und tun, was ihre Rolle erlaubt.",
    "steps.factor": "Ihr Konto schützen",
    "steps.factor.text": "Mit einem zweiten Faktor oder einem Passkey nützt ein Passwort allein niemandem "
    "etwas.",
    "done.first_steps_hidden": "Die ersten Schritte sind ausgeblendet.",
    "overview.span.24h": "24 Std.",
    "overview.span.7d": "7 Tage",
    "overview.span.30d": "30 Tage",
    "overview.span.90d": "90 Tage",
    "overview.chart": "E-Mails im Zeitverlauf",
    "overview.period": "Zeitraum",
    "overview.latest": "Neueste E-Mails",
    "overview.attention": "Braucht Aufmerksamkeit",
    "overview.all_well": "Alle Domains sind verifiziert, keine Rate liegt über ihrer Grenze, und kein "
    "Webhook ist in 24 Stunden fehlgeschlagen.",
    "overview.more": "{percent} % mehr als davor",
    "overview.less": "{percent} % weniger als davor",
    "overview.as_before": "wie davor",
    "overview.none_before": "davor keine",
    "overview.complaint_rate": "Beschwerdequote",
    "overview.hard_bounce_rate": "Hard-Bounce-Quote",
    "overview.limit": "Grenze der Anbieter: {limit}",
    "overview.above_limit": "über der Grenze der Anbieter: {limit}",
    "metric.received": "Angenommen",
    "metric.sent": "Gesendet",
    "metric.delivered": "Zugestellt",
    "metric.bounced": "Bounces",
    "metric.complained": "Beschwerden",
    "metric.opened": "Öffnungen",
    "metric.clicked": "Klicks",
    "metric.unique_opened": "Geöffnet",
    "metric.unique_clicked": "Angeklickt",
}
