"""Every text in German: one module beside each English one, with the same keys.

Begin with `frame.py`, whose texts many screens use. Readers are addressed by "Sie", and sentences are written
anew rather than word by word.
"""

# These words have one translation everywhere:
#
# account Konto · act (of the log) Aktivität · answer Antwort · API key API-Schlüssel · attempt Versuch ·
# audience Zielgruppe · automation Automatisierung · blocked (team) blockiert · bounce Bounce ·
# broadcast Broadcast · cancel (an email) Versand abbrechen · claim Anspruch, beanspruchen · clicks Klicks
# · complaint Beschwerde · delayed verzögert · delivered zugestellt · delivery Zustellung · domain Domain
# · email E-Mail · endpoint Endpunkt · event Ereignis · failed fehlgeschlagen · header Header ·
# inbox Postfach · log in anmelden · log of requests API-Protokoll · log out abmelden ·
# mailbox provider E-Mail-Anbieter · member Mitglied · metrics Statistik, Kennzahl · opens Öffnungen ·
# operator Betreiber · owner Inhaber · passkey Passkey · program Programm · queue Warteschlange ·
# record (DNS) Eintrag · recovery code Wiederherstellungscode · recipient Empfänger · request Anfrage ·
# role Rolle · second factor zweiter Faktor · secret Geheimnis · sender Absender · shut out aussperren ·
# suppressed gesperrt · suppression list Sperrliste · template Vorlage · thread Unterhaltung · topic Thema
# · unsubscribe abbestellen · verify verifizieren (a domain), prüfen (a signature) · viewer Betrachter ·
# webhook Webhook

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pillarbox.dashboard.texts.german import (
    account,
    audience,
    automations,
    consent,
    docs,
    domains,
    editor,
    emails,
    events,
    examination,
    frame,
    inboxes,
    installation,
    logs,
    metrics,
    overview,
    people,
    reasons,
    received,
    recipients,
    sentences,
    suppressions,
    teams,
    unsubscribe_page,
    webhooks,
)

CATALOGUES: Final[tuple[Mapping[str, str], ...]] = (
    account.TEXTS,
    audience.TEXTS,
    automations.TEXTS,
    consent.TEXTS,
    docs.TEXTS,
    domains.TEXTS,
    editor.TEXTS,
    emails.TEXTS,
    events.TEXTS,
    examination.TEXTS,
    frame.TEXTS,
    inboxes.TEXTS,
    installation.TEXTS,
    logs.TEXTS,
    metrics.TEXTS,
    overview.TEXTS,
    people.TEXTS,
    reasons.TEXTS,
    received.TEXTS,
    recipients.TEXTS,
    sentences.TEXTS,
    suppressions.TEXTS,
    teams.TEXTS,
    unsubscribe_page.TEXTS,
    webhooks.TEXTS,
)
"""The texts of the modules."""
