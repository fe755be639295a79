"""Texts of what is known about the sender of a message, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "trust.title": "Vertrauen",
    "trust.level.trusted": "Vertraut",
    "trust.level.known": "Bekannt",
    "trust.level.unknown": "Unbekannt",
    "trust.level.suspicious": "Verdächtig",
    "trust.means.trusted": "Das Team hat diesem Absender geschrieben; die Domain bestätigt die Nachricht.",
    "trust.means.known": "Der Absender ist bekannt, und die Domain bestätigt die Nachricht.",
    "trust.means.unknown": "Niemand hier kennt den Absender, oder nichts bestätigt, wer geschrieben hat.",
    "trust.means.suspicious": "Etwas an dieser Nachricht täuscht. Öffnen Sie keinen Link und keinen Anhang, "
    "und antworten Sie erst, wenn Sie auf anderem Weg nachgefragt haben.",
    "trust.authenticated": "SPF oder DKIM zeigt, dass die Nachricht von der Domain des Absenders kommt.",
    "trust.not_authenticated": "Nichts zeigt, dass die Nachricht von der Domain des Absenders kommt.",
    "trust.dmarc_failed": "Die Domain sagt, woran ihre E-Mails zu erkennen sind, und diese ist nicht so.",
    "trust.forwarded": "Die Nachricht wurde weitergeleitet und trägt ARC-Siegel, die nicht geprüft werden.",
    "trust.spam": "Die Nachricht wurde als Spam abgelegt.",
    "trust.written_to": "Ein Postfach dieses Teams hat dieser Adresse schon geschrieben.",
    "trust.contact": "Die Adresse gehört zu einem Kontakt dieses Teams.",
    "trust.answers_ours": "Die Nachricht antwortet auf eine, die dieses Postfach gesendet hat.",
    "trust.first_contact": "Es ist die erste Nachricht von dieser Adresse an dieses Postfach.",
    "trust.name_of_known": "Der Name ist wie der eines bekannten Absenders mit anderer Adresse.",
    "trust.name_of_team": "Der Name sieht aus wie der dieses Teams, die Adresse gehört ihm aber nicht.",
    "trust.address_in_name": "Als Name steht eine Adresse bei einer anderen Domain als der echten.",
    "trust.own_domain_forged": "Der Absender gibt eine Domain dieses Teams an, und nichts bestätigt es.",
    "trust.look_alike_domain": "Die Domain des Absenders sieht aus wie eine bekannte und ist eine andere.",
    "trust.known_domain_as_label": "Die Domain enthält eine bekannte und gehört jemand anderem.",
    "trust.mixed_scripts": "Die Domain des Absenders mischt Buchstaben mehrerer Alphabete.",
    "trust.reply_to_elsewhere": "Antworten gingen an eine andere Domain als die des Absenders.",
    "trust.link_disguised": "Der Text eines Links zeigt einen anderen Host, als er öffnet.",
    "trust.attachment_disguised": "Ein Anhang ist etwas anderes, als sein Name oder Typ sagt.",
    "trust.attachment_name_reversed": "Der Name eines Anhangs hat Zeichen, die seine Richtung umkehren.",
    "trust.attachment_executable": "Ein Anhang ist ein Programm.",
    "trust.attachment_active": "Ein Anhang kann Skripte oder Makros ausführen.",
    "trust.attachment_encrypted": "Ein Anhang ist verschlüsselt; über seinen Inhalt lässt sich nichts sagen.",
    "trust.list": "Die Nachricht kam über eine Mailingliste.",
    "trust.bulk": "Die Nachricht ging an viele.",
    "trust.auto_reply": "Ein Programm antwortet für den Absender.",
    "trust.delivery_report": "Die Nachricht berichtet, was aus einer anderen wurde.",
    "trust.calendar": "Die Nachricht enthält einen Termin.",
    "trust.verification_code": "Die Nachricht enthält einen Code, mit dem jemand bestätigt, wer er ist.",
}
