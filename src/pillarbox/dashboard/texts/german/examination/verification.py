"""Gaps that `pillarbox verify` finds: they are recognised by these texts, and said in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "gap.team_without_owner": "Das Team {team_id} hat {members} Mitglieder, und darunter keinen Inhaber.",
    "gap.member_without_person": "Das Mitglied {id} des Teams {team_id} ist die Person {person_id}, die "
    "es nicht gibt.",
    "gap.credential_without_person": "Es gibt {kind} der Person {person_id}, die es nicht gibt.",
    "gap.second_factor_without_seed": "Die Person {id} hat einen zweiten Faktor bestätigt, und sein "
    "Geheimnis fehlt.",
    "gap.oauth_grant_half_revoked": "Die Freigabe {id} hat einen Grund ohne den Zeitpunkt ihres "
    "Widerrufs, oder einen Zeitpunkt ohne Grund.",
    "gap.oauth_grant_of_no_member": "Die Freigabe {id} gilt, und die Person {person_id}, die sie gab, ist "
    "nicht im Team {team_id}.",
    "gap.oauth_grant_of_disabled_client": "Die Freigabe {id} gilt, und ihr Programm {client_id} ist "
    "abgeschaltet.",
    "gap.oauth_token_without_grant": "Es gibt {kind} der Freigabe {id}, die es nicht gibt.",
    "gap.oauth_several_refresh_tokens": "Die Freigabe {id} hat {tokens} Refresh-Tokens, die benutzt "
    "werden können; jede Benutzung macht aus einem eines.",
    "gap.email_without_content": "Der Inhalt {content_id} der E-Mail fehlt.",
    "gap.email_without_recipients": "Die E-Mail hat keine Empfänger.",
    "gap.email_without_opening": "Im Verlauf der E-Mail steht nicht, dass sie angenommen wurde.",
    "gap.recipient_without_email": "Der Empfänger an Stelle {position} gehört zu einer E-Mail, die fehlt.",
    "gap.recipient_without_work": "Der Empfänger an Stelle {position} ist {state}, aber kein Auftrag "
    "enthält die Gruppe {grp}.",
    "gap.recipient_differs_from_history": "Der Empfänger an Stelle {position} ist {state}, aber sein "
    "Verlauf sagt anderes ({history}).",
    "gap.last_event_differs_from_history": "Das letzte Ereignis der E-Mail ist {last_event}, aber ihr "
    "Verlauf sagt {kind}.",
    "gap.history_without_email": "Der Eintrag {id} des Verlaufs ({kind}) gehört zu einer E-Mail, die fehlt.",
    "gap.history_without_recipient": "Der Eintrag {id} des Verlaufs ({kind}) betrifft die Stelle "
    "{position}, an der kein Empfänger ist.",
    "gap.work_without_email": "Der Auftrag der Gruppe {grp} ({destination}) gehört zu einer E-Mail, die "
    "fehlt.",
    "gap.work_without_open_recipient": "Der Auftrag der Gruppe {grp} ({destination}) hat niemanden mehr, "
    "dem zuzustellen ist.",
    "gap.work_without_fetch": "Der Auftrag der Gruppe {grp} wartet auf einen Anhang, aber nichts lädt ihn.",
    "gap.attachment_missing": "Der Inhalt {id} hat {wanted} Anhänge, von denen {stored} gespeichert sind.",
    "gap.attachment_without_content": "Der Anhang {id} gehört zum Inhalt {content_id}, der fehlt.",
    "gap.attachment_without_bytes": "Der Anhang {id} müsste {size} Bytes haben, aber sie sind nicht da.",
    "gap.answer_without_email": "Die Antwort zum Idempotenzschlüssel {key} nennt die E-Mail {email_id}, "
    "die fehlt.",
    "gap.delivery_quarantined": "Die E-Mail {email_id} (Gruppe {grp}) ist zurückgestellt, also sendet sie "
    "niemand: {reason}",
    "gap.metric_differs_from_history": "In der Viertelstunde ab {start}Z ist die Kennzahl {metric} "
    "{written}, aber der Verlauf zählt {counted}.",
    "gap.rollup_levels_differ": "Am {day} sind die Summen der Stufe {level} nicht die der Viertelstunden.",
    "gap.event_without_delivery": "Von {happened} Ereignissen {kind} um {at}Z hat der Webhook "
    "{webhook_id} {stored}.",
    "gap.body_without_delivery": "Das Ereignis {event_id} ({kind}) wurde Webhooks mitgeteilt, aber "
    "{webhook_id} hat keine Zeile davon.",
    "gap.delivery_without_body": "Dem Ereignis {event_id} ({kind}) des Webhooks {webhook_id} fehlt, "
    "woraus sein Inhalt gemacht wird.",
    "gap.delivery_open_and_ended": "Das Ereignis {event_id} ({kind}) des Webhooks {webhook_id} ist offen "
    "und zugleich als {status} beendet.",
    "gap.success_without_attempt": "Das Ereignis {event_id} ({kind}) erreichte den Webhook {webhook_id}, "
    "aber kein Versuch davon ist aufbewahrt.",
    "gap.delivery_out_of_reach": "Das Ereignis {event_id} ({kind}) ist am {due_at} fällig, also teilt es "
    "niemand dem Webhook {webhook_id} mit.",
    "gap.received_without_message": "Die empfangene E-Mail {id} hat keine Nachricht, oder ihre Nachricht "
    "hat keine E-Mail.",
    "gap.received_attachments_differ": "Die empfangene E-Mail {id} hat {wanted} Anhänge, von denen "
    "{stored} gespeichert sind.",
    "gap.suppression_not_comparable": "Die Sperre {id} hat eine Adresse in einer Form, mit der kein "
    "Empfänger verglichen wird.",
    "gap.manual_suppression_with_source": "Die Sperre {id} ist von Hand gesetzt und nennt die E-Mail "
    "{email_id} als Ursache.",
    "gap.suppression_without_cause": "Die Sperre {id} beruht auf {origin}, was ihre E-Mail {email_id} "
    "nicht zeigt.",
    "gap.member_without_contact": "Das Segment {segment_id} hat ein Mitglied {contact_id}, das kein "
    "Kontakt ist.",
    "gap.engagement_without_contact": "Aktivität ist aufbewahrt von {contact_id}, was kein Kontakt ist.",
    "gap.terms_without_contact": "Suchwörter sind aufbewahrt von {contact_id}, was kein Kontakt ist.",
    "gap.event_without_contact": "Das Ereignis {name} ist aufbewahrt von {contact_id}, was kein Kontakt ist.",
    "gap.choice_without_topic": "Der Kontakt {contact_id} wählte {topic_id}, was kein Thema ist.",
    "gap.choice_without_contact": "Eine Wahl zum Thema {topic_id} ist die von {contact_id}, was kein "
    "Kontakt ist.",
    "gap.import_without_job": "Der Import {id} ist {status}, und sein Team hat keinen Auftrag, der ihn "
    "ausführen würde.",
    "gap.import_without_file": "Der Import {id} ist {status}, und nennt keine Datei.",
    "gap.import_counts_differ": "Der Import {id} zählt {counted} Zeilen, und seine Stelle in der Datei "
    "ist hinter {read}.",
    "gap.imports_at_once": "Der Import {id} läuft neben einem älteren seines Teams.",
    "gap.import_error_without_import": "Der Zeilenfehler {id} ist einer von {import_id}, was kein Import "
    "ist.",
    "gap.value_without_property": "Der Kontakt {contact_id} hat einen Wert unter der Nummer {number}, die "
    "zu keiner Eigenschaft gehört.",
    "gap.value_of_another_type": "Der Kontakt {contact_id} hat einen Wert der Eigenschaft {key}, der "
    "nicht vom Typ {type} ist.",
    "gap.deleted_property_without_job": "Die Eigenschaft {property_id} wurde gelöscht, und nichts "
    "entfernt ihre Werte.",
    "gap.member_without_segment": "Der Kontakt {contact_id} gehört zum Segment {segment_id}, das es nicht "
    "mehr gibt, und kein Auftrag beendet das.",
    "gap.template_without_version": "Die Vorlage {template_id} nennt eine Version, die es nicht gibt.",
    "gap.version_without_template": "Die Version {version_id} ist weder der Entwurf einer Vorlage noch "
    "wurde sie je veröffentlicht.",
    "gap.broadcast_recipients_lost": "Der Broadcast {id} begann mit {recipients} Empfängern, und es gibt "
    "Zeilen von {stored}.",
    "gap.broadcast_recipients_without_start": "Der Broadcast {id} ist {status}, und hat schon vor seinem "
    "Beginn Empfänger.",
    "gap.broadcast_sent_and_waiting": "Der Broadcast {id} ist gesendet, und der Kontakt {contact_id} "
    "wartet noch darauf.",
    "gap.broadcast_without_job": "Der Broadcast {id} ist {status}, und kein Auftrag führt ihn weiter.",
    "gap.broadcast_without_content": "Der Broadcast {id} wird gesendet, und sein Inhalt {content_id} fehlt.",
    "gap.broadcast_variant_mixed": "Die Kopie {email_id} des Broadcasts {broadcast_id} ist von einer "
    "anderen Variante als {variant}.",
    "gap.broadcast_variant_missing": "Die Kopie {email_id} des Broadcasts {broadcast_id}, der einen "
    "A/B-Test hat, ist von keiner Variante.",
    "gap.broadcast_recipient_without_email": "Die Kopie {email_id} des Broadcasts {broadcast_id} fehlt, "
    "während andere davon da sind.",
    "gap.broadcast_metric_differs_from_history": "In der Viertelstunde ab {start}Z ist die Kennzahl "
    "{metric} des Broadcasts {broadcast_id} {written}, aber der Verlauf seiner Kopien zählt {counted}.",
    "gap.broadcast_moments_differ": "In der Viertelstunde ab {start}Z ergeben die Zehn-Sekunden-Summen "
    "des Broadcasts {broadcast_id} nicht die der Viertelstunde.",
    "gap.run_without_work": "Der Durchlauf {id} einer Automatisierung läuft, und für ihn ist nichts mehr "
    "zu tun.",
    "gap.work_without_run": "Der Schritt {position} des Durchlaufs {run_id} soll ausgeführt werden, und "
    "der Durchlauf ist beendet oder fehlt.",
    "gap.waiting_step_without_work": "Der Schritt {position} des Durchlaufs {run_id} wartet, und nichts "
    "wird ihn beenden.",
    "gap.ended_step_with_work": "Der Schritt {position} des Durchlaufs {run_id} ist beendet, und würde "
    "noch einmal ausgeführt.",
    "gap.step_without_run": "Der Schritt {position} gehört zum Durchlauf {run_id}, den es nicht gibt.",
    "gap.run_without_version": "Der Durchlauf {id} folgt der Version {version} seiner Automatisierung, "
    "die es nicht gibt.",
    "gap.work_out_of_reach": "Der Schritt {position} des Durchlaufs {run_id} ist am {due_at} fällig, also "
    "führt ihn nichts aus.",
    "gap.event_without_job": "Das Ereignis {id} wartet in der Partition {partition}, und kein Auftrag "
    "verteilt es.",
    "gap.event_in_two_partitions": "Ereignisse für einen Kontakt warten in den Partitionen {partition} "
    "und {other}, darunter das Ereignis {id}.",
    "gap.inbox_counts": "Das Postfach {inbox_id} zählt {unread} ungelesene Unterhaltungen und {drafts} "
    "Entwürfe, und hat {found_unread} und {found_drafts}.",
    "gap.thread_counts": "Die Unterhaltung {thread_id} zählt {messages} Nachrichten, davon {inbound} "
    "eingehend, {unread} ungelesen, und {drafts} Entwürfe, und hat {found_messages}, {found_inbound}, "
    "{found_unread} und {found_drafts}.",
    "gap.thread_newest": "Die Unterhaltung {thread_id} zeigt nicht ihre neueste Nachricht, oder nicht, ob "
    "sie Anhänge hat.",
    "gap.thread_kept_too_long": "Die Unterhaltung {thread_id} ist bis {purge_at} im Papierkorb, was mehr "
    "als 30 Tage entfernt ist.",
    "gap.message_without_thread": "Die Nachricht {message_id} des Postfachs {inbox_id} ist in der "
    "Unterhaltung {thread_id}, die das Postfach nicht hat.",
    "gap.draft_without_thread": "Der Entwurf {draft_id} antwortet in der Unterhaltung {thread_id}, die "
    "sein Postfach nicht hat.",
    "gap.attachment_without_draft": "Der Anhang {attachment_id} gehört zum Entwurf {draft_id}, den es "
    "nicht gibt.",
    "gap.inbox_without_domain": "Das Postfach {inbox_id} liegt auf der Domain {domain_id}, die es nicht "
    "gibt.",
    "gap.inbox_addresses": "Die Adressen des Postfachs {inbox_id} sind nicht die, die zu ihm führen.",
    "gap.rows_without_inbox": "Es gibt Zeilen des Postfachs {inbox_id}, das es nicht gibt, und nichts "
    "entfernt sie.",
    "gap.inbox_keys": "Der Schlüssel {key_id} ist für das Postfach {inbox_id}, das es nicht gibt, und "
    "gilt noch.",
    "gap.label_without_thread": "Das Label {label_id} ist an {thread_id}, und eines von beiden gibt es "
    "nicht.",
    "gap.label_elsewhere": "Das Label {label_id} steht nicht in den Listen, in denen seine Unterhaltung "
    "{thread_id} steht.",
    "gap.message_of_free_email": "Das Postfach {inbox_id} hat die Nachricht {id}, und ihre E-Mail nennt "
    "das Postfach nicht.",
    "gap.email_without_message": "Die E-Mail {id} wurde aus dem Postfach {inbox_id} gesendet, das keine "
    "Nachricht davon hat.",
    "gap.email_of_two_drafts": "Die E-Mail {email_id} wurde aus {drafts} Entwürfen gemacht.",
    "gap.message_not_described": "Die Nachricht {id} des Postfachs {inbox_id} ist in keinem Block, und "
    "Suchen finden sie nicht.",
    "gap.block_without_parts": "Der Block {id} des Postfachs {inbox_id} hat nicht alle Teile seiner Matrix.",
    "gap.erasure_without_job": "Die Löschung {id} ist nicht fertig, und kein Auftrag führt sie fort.",
    "gap.captured_without_bytes": "Die aufgefangene E-Mail {id} hat keine Bytes.",
    "gap.job_given_up": "Der Auftrag {id} ({kind}) hat seinen Prozess {begun}-mal nacheinander beendet: "
    "Er wird einmal am Tag versucht.",
    "gap.job_out_of_reach": "Der Auftrag {id} ({kind}) ist am {due_at} fällig, also beginnt ihn nichts.",
    "gap.recipients_differ_from_addresses.unread": "Die E-Mail hat eine Adresse, die nicht zu lesen ist.",
    "gap.recipients_differ_from_addresses.missing": "Von den {wanted} Adressen der E-Mail haben {missing} "
    "keine Empfängerzeile.",
    "gap.recipients_differ_from_addresses.extra": "Zu {extra} Empfängerzeilen hat die E-Mail keine Adresse.",
    "gap.account_unbalanced": "Beim Team {team} wurden {accepted} Empfänger angenommen, aber {known} sind "
    "zugestellt, mit Bounce, fehlgeschlagen, gesperrt, abgebrochen oder offen.",
    "gap.key_not_listed": "In der Liste der Schlüssel fehlt {key_id}, den Werte brauchen, also wird er "
    "beim Start nicht verlangt; `pillarbox keyring reseal` behebt das.",
    "gap.any.blob_missing": "Der Blob {blob} von {table} {id} ({size} Bytes) fehlt.",
    "gap.any.blob_size": "Der Blob {blob} von {table} {id} ({size} Bytes) hat eine andere Größe.",
    "gap.any.blob_name": "Der Blob {blob} von {table} {id} ({size} Bytes) ist kein Name, den ein Blob "
    "haben kann.",
}
