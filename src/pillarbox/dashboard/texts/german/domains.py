"""Texts of the screens of domains, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "domains.title": "Domains",
    "domains.words": "DNS, DKIM, SPF, DMARC, verifizieren, Reputation, Absender",
    "domains.name": "Name",
    "domains.status": "Status",
    "domains.sent": "Gesendet (30 Tage)",
    "domains.added": "Hinzugefügt",
    "domains.limits": "Quoten über 30 Tage. E-Mail-Anbieter werten mehr als 2 % Hard Bounces oder 0,3 % "
    "Beschwerden gegen eine Domain.",
    "domains.none": "Noch keine Domain",
    "domains.none.text": "Fügen Sie die Domain hinzu, die in Ihrer Absenderadresse hinter dem @ steht. "
    "Sie erhalten dann die DNS-Einträge, die belegen, dass sie Ihnen gehört.",
    "domains.none.ask": "Bitten Sie einen Admin des Teams, die Domain hinzuzufügen, von der Sie senden "
    "möchten.",
    "domains.add": "Domain hinzufügen",
    "domains.add.words": "neue Domain, Absender, verifizieren",
    "domains.add.lead": "Die nächste Seite zeigt die Einträge, die Sie im DNS veröffentlichen. Eine "
    "Subdomain wie mail.example.com trennt die Reputation Ihrer Newsletter von der Ihrer Postfächer.",
    "domains.more": "Return-Path, Tracking und TLS",
    "domains.name.hint": "Zum Beispiel mail.example.com. Der Name kann später nicht geändert werden.",
    "domains.elsewhere": "Die Domain {name} ist für ein anderes Team verifiziert. Gehört sie Ihnen, "
    "beanspruchen Sie sie: Sie belegen das mit einem Eintrag in ihrem DNS.",
    "domains.claim": "Domain beanspruchen",
    "done.domain_added": "Die Domain ist hinzugefügt. Veröffentlichen Sie ihre Einträge, und verifizieren "
    "Sie sie dann.",
    "done.domain_claimed": "Der Anspruch ist offen. Veröffentlichen Sie den Eintrag, und lassen Sie dann "
    "den Nachweis suchen.",
    "done.domain_verifying": "Die Einträge werden jetzt gesucht. Das Ergebnis erscheint hier.",
    "done.claim_verifying": "Der Nachweis wird jetzt gesucht. Das Ergebnis erscheint hier.",
    "done.domain_rotated": "Es gibt einen neuen Schlüssel. Veröffentlichen Sie seinen Eintrag neben dem "
    "bisherigen.",
    "done.domain_key_waits": "Ein neuer Schlüssel wartet schon auf seinen Eintrag.",
    "done.domain_deleted": "Die Domain ist gelöscht.",
    "done.domain_saved": "Die Einstellungen sind gespeichert.",
    "domain.title": "Domain",
    "domain.records": "DNS-Einträge",
    "domain.verify": "Verifizieren",
    "domain.works": "Funktioniert",
    "domain.works_not": "Noch nicht",
    "domain.trusted": "Vertraut",
    "domain.trusted.text": "Der Betreiber bürgt für diese Domain, was auch immer im DNS steht.",
    "domain.checked": "Letzte DNS-Prüfung",
    "domain.never_checked": "Nie",
    "domain.schedule": "Das DNS wird nach 1, 2, 5, 10, 30 und 60 Minuten erneut geprüft, dann 72 Stunden "
    "lang stündlich.",
    "domain.elsewhere": "Ein anderes Team hat diesen Namen verifiziert, deshalb ist das hier nicht "
    "möglich. Gehört er Ihnen, löschen Sie die Domain, fügen Sie sie erneut hinzu und beanspruchen Sie sie.",
    "domain.to_publish": "Zu veröffentlichende Einträge",
    "domain.to_publish.text": "Tragen Sie sie dort ein, wo das DNS der Domain verwaltet wird. Die meisten "
    "Anbieter hängen die Domain selbst an den Namen an.",
    "domain.type": "Typ",
    "domain.value": "Wert",
    "domain.value_of": "Wert von {name}",
    "domain.priority": "Priorität {number}",
    "domain.in_dns": "Im DNS",
    "domain.not_checked": "Optional",
    "domain.merged": "Dieser Name hat schon einen SPF-Eintrag und darf nur einen haben. Ändern Sie ihn auf "
    "diesen Wert, der Ihren mit `{value}` verbindet.",
    "domain.dotless": "`{host}` ist kein vollständiger Hostname: Im DNS findet ihn niemand. Der Betreiber "
    "gibt dieser Installation ihren Namen mit der Einstellung `--hostname`.",
    "domain.seen": "Gefunden:",
    "domain.seen_nothing": "Dort wurde nichts gefunden.",
    "domain.server": "Laut {server},",
    "domain.zone": "Zonendatei",
    "domain.nsupdate": "Befehle für nsupdate",
    "domain.key": "DKIM-Schlüssel",
    "domain.key.text": "E-Mails werden mit dem Schlüssel {selector} signiert. Sein privater Teil verlässt "
    "diese Pillarbox nie.",
    "domain.key.waits": "Ein neuer Schlüssel wartet: Er signiert, sobald sein Eintrag gefunden ist. "
    "Lassen Sie den bisherigen Eintrag im DNS.",
    "domain.rotate": "Neuer Schlüssel",
    "domain.rotate.title": "Neuen DKIM-Schlüssel erzeugen?",
    "domain.rotate.text": "Der bisherige Schlüssel signiert weiter, bis der Eintrag des neuen im DNS "
    "gefunden ist.",
    "domain.delete": "Löschen",
    "domain.delete.title": "{name} löschen?",
    "domain.delete.text": "Die Schlüssel der Domain werden gelöscht, wartende E-Mails scheitern, E-Mails "
    "an sie werden abgelehnt, und API-Schlüssel nur für diese Domain gelten nicht mehr. E-Mails und ihr "
    "Verlauf bleiben.",
    "domain.delete.not_so": "Die Domain wurde nicht gelöscht: Geben Sie zur Bestätigung {name} ein.",
    "domain.claim.title": "Anspruch",
    "domain.claim.text": "Ein anderes Team hat diesen Namen verifiziert. Veröffentlichen Sie den Eintrag "
    "unten, um zu belegen, dass er Ihnen gehört; die eigenen Einträge der Domain folgen, sobald der "
    "Anspruch durchgesetzt ist.",
    "domain.claim.until": "Nachweis möglich bis",
    "domain.claim.waits": "Grund der Wartezeit",
    "domain.claim.verify": "Nachweis suchen",
    "domain.claim.status.pending": "Wartet auf seinen Eintrag",
    "domain.claim.status.verified": "Eintrag gefunden",
    "domain.claim.status.blocked": "Eintrag gefunden, muss warten",
    "domain.claim.status.completed": "Durchgesetzt",
    "domain.claim.status.expired": "Abgelaufen",
    "domain.claim.status.superseded": "Ein anderes Team war schneller",
    "domain.claim.status.canceled": "Zurückgezogen",
    "domain.claim.status.failed": "Gescheitert",
    "domain.claim.block.grace_period": "Der jetzige Inhaber hat den Namen erst seit wenigen Tagen.",
    "domain.claim.block.recent_owner_activity": "Der jetzige Inhaber hat vor Kurzem von diesem Namen "
    "gesendet.",
    "domain.claim.block.pending_scheduled_emails": "Der jetzige Inhaber hat E-Mails von diesem Namen "
    "geplant.",
    "domain.capabilities": "Verwendung",
    "domain.sending": "Senden",
    "domain.sending.hint": "Braucht die Einträge für SPF und DKIM.",
    "domain.receiving": "Empfangen",
    "domain.receiving.hint": "Braucht den MX-Eintrag des Namens selbst: Alle seine E-Mails kommen dann "
    "hier an.",
    "domain.tracking": "Tracking",
    "domain.open_tracking": "Öffnungen",
    "domain.open_tracking.hint": "Fügt dem HTML ein Bild hinzu, das meldet, wenn es angezeigt wird.",
    "domain.click_tracking": "Klicks",
    "domain.click_tracking.hint": "Leitet Links über den Tracking-Host.",
    "domain.tracking_subdomain": "Tracking-Host",
    "domain.tracking_subdomain.hint": "Ein Namensteil, zum Beispiel links. Ohne ihn gibt es kein Tracking.",
    "domain.delivery": "Zustellung",
    "domain.tls.opportunistic": "TLS, wenn der Server des Empfängers es anbietet",
    "domain.tls.enforced": "Nur mit TLS; ohne scheitert die E-Mail",
    "domain.return_path": "Return-Path",
    "domain.return_path.hint": "Der Namensteil des Hosts, an den Bounces gehen. Er kann später nicht "
    "geändert werden.",
    "domain.region": "Region",
    "domain.settings": "Einstellungen",
    "domain.save": "Speichern",
    "domain.read_only": "Admins des Teams können diese Einstellungen ändern.",
    "domain.fixed": "Nicht änderbar",
    "domain.fixed.text": "Diese Werte gehören seit dem Anlegen zur Domain. Die Region hat keinen Einfluss "
    "darauf, von wo E-Mails versendet werden.",
    "domain.reputation": "Reputation",
    "domain.providers": "Nach E-Mail-Anbieter",
    "domain.providers.text": "Nach den Mailservern, denen die E-Mails angeboten wurden, je UTC-Tag, um "
    "einige Minuten verzögert. Markiert ist, was über den Grenzen liegt, die Anbieter an Absender anlegen: "
    "2 % Hard Bounces, 0,3 % Beschwerden.",
    "domain.providers.none": "Noch ist nichts gezählt. Was jetzt gesendet wird, steht in Minuten hier.",
    "domain.providers.since": "Die Zahlen je Anbieter beginnen am {day}: Frühere Mails sind nicht darin.",
    "domain.providers.others": "Andere",
    "domain.provider": "Anbieter",
    "domain.provider.deferred": "Verzögert",
    "domain.reputation.text": "Die letzten 30 Tage dieser Domain im Vergleich zu den 30 Tagen davor.",
    "domain.reputation.chart": "Zugestellt, Bounces und Beschwerden pro Tag",
    "domain.reputation.none": "In 30 Tagen wurde nichts gesendet",
    "domain.reputation.none.text": "Zahlen erscheinen mit der ersten E-Mail von {name}.",
    "domain.reputation.bounced": "E-Mails mit Bounce",
    "domain.reputation.complained": "E-Mails mit Beschwerde",
}
