"""Texts of the overview, and the names of metrics, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "overview.title": "Übersicht",
    "overview.words": "Start, Startseite, Zahlen",
    "overview.span.24h": "24 Std.",
    "overview.span.7d": "7 Tage",
    "overview.span.30d": "30 Tage",
    "overview.span.90d": "90 Tage",
    "overview.chart": "E-Mails im Zeitverlauf",
    "overview.period": "Zeitraum",
    "overview.latest": "Neueste E-Mails",
    "overview.attention": "Braucht Aufmerksamkeit",
    "overview.all_well": "Alle Domains sind verifiziert.",
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
