"""Texts of the reasons why mail waits, was not sent or was not delivered, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "reason.internal_error": "Ein Fehler auf unserer Seite; das Protokoll des Servers sagt, welcher.",
    "reason.tls_required": "Die E-Mail darf nur mit der Verschlüsselung versendet werden, die ihre Domain "
    "oder der Empfänger verlangt.",
    "reason.api_key_not_active": "Der verwendete API-Schlüssel ist nicht mehr aktiv.",
    "reason.attachment_download_failed": "Ein Anhang konnte nicht geladen werden.",
    "reason.delivery_window_over": "In der ganzen Zeit der Zustellversuche wurde kein Mailserver erreicht.",
    "reason.domain_not_verified": "Die Domain des Absenders ist nicht mehr verifiziert.",
    "reason.rendering_failed": "Aus der E-Mail lässt sich keine Nachricht erzeugen.",
    "reason.previous_bounce": "An diese Adresse gab es schon einen Bounce.",
    "reason.previous_complaint": "Der Empfänger hat sich über eine frühere E-Mail beschwert.",
    "reason.dropped_by_operator": "Der Betreiber dieser Installation hat sie aus der Warteschlange "
    "verworfen.",
    "reason.manual": "Das Team hat die Adresse auf seine Sperrliste gesetzt.",
}
