"""Findings of `pillarbox doctor`: they are recognised by these texts, and said in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    # Texts of several checks
    "finding.any.none": "keine",
    "finding.any.nothing": "nichts",
    "finding.any.route_unknown": "kein Server läuft, und `doctor` kennt seine Route nicht",
    "finding.any.no_name": "laut DNS gibt es den Namen {host} nicht (NXDOMAIN)",
    "finding.any.no_answer": "das DNS gibt keine Auskunft zu {host}: {why}",
    "finding.any.no_address": "{host} hat keine Adresse im DNS",
    "finding.any.later": "Versuchen Sie es später noch einmal.",
    # Parts of sentences
    "finding.part.no_answer": "keine Antwort",
    "finding.part.refused": "dort lauscht kein Programm",
    "finding.part.timeout": "es kommt keine Antwort",
    "finding.part.no_route": "kein Weg führt dorthin",
    "finding.part.forbidden": "eine Firewall verbietet es",
    "finding.part.open": "er ist offen",
    "finding.part.silent": "die Gegenseite sagt nichts",
    "finding.part.ended": "die Gegenseite beendet die Verbindung",
    # Can mail leave?
    "finding.outgoing.title": "Mailserver sind erreichbar",
    "finding.outgoing.smarthost.title": "Der Smarthost nimmt unsere E-Mails an",
    "finding.outgoing.start.step": "Starten Sie den Server, oder setzen Sie PILLARBOX_ROUTE für diesen "
    "Befehl auf seine Route.",
    "finding.outgoing.capture": "die Route ist `capture`: E-Mails bleiben hier, und nichts verlässt den "
    "Rechner",
    "finding.outgoing.capture.step": "Zum Zustellen starten Sie den Server mit `--route`.",
    "finding.outgoing.elsewhere": "ein anderer Rechner stellt zu, über die Route `{route}`",
    "finding.outgoing.elsewhere.step": "Starten Sie `pillarbox doctor` auf dem Rechner, der zustellt.",
    "finding.outgoing.says": "{host} antwortet {line}",
    "finding.outgoing.some": "{host} antwortet {line}; nicht erreicht: {domains}",
    "finding.outgoing.greeting": "220{line}",
    "finding.outgoing.ok": "ok",
    "finding.outgoing.no_dns": "das DNS antwortet nicht, deshalb ist kein Mailserver zu finden",
    "finding.outgoing.no_dns.step": "Prüfen Sie die DNS-Server dieses Rechners (/etc/resolv.conf), oder "
    "nennen Sie andere mit `--dns`.",
    "finding.outgoing.no_names": "laut DNS gibt es die Domains bekannter Mailserver nicht, oder sie haben "
    "keinen: {domain}",
    "finding.outgoing.no_names.step": "Die DNS-Server dieses Rechners kennen das Internet nicht: Prüfen Sie "
    "/etc/resolv.conf, oder nennen Sie andere mit `--dns`.",
    "finding.outgoing.no_route": "dieser Rechner hat keine Route ins Internet",
    "finding.outgoing.no_route.step": "Prüfen Sie sein Netz und seine Standardroute.",
    "finding.outgoing.filtered": "keine Verbindung kommt hinaus: Pakete werden ohne Antwort verworfen",
    "finding.outgoing.filtered.step": "Prüfen Sie die Firewall dieses Rechners und seines Netzes.",
    "finding.outgoing.blocked": "andere Ports kommen hinaus, Port {port} nicht: Pakete dorthin werden ohne "
    "Antwort verworfen, wie es Hoster und Zugangsnetze tun",
    "finding.outgoing.blocked.step": "Bitten Sie den Anbieter dieses Rechners, den ausgehenden Port 25 zu "
    "öffnen; bis dahin nehmen Sie einen Smarthost: `--route relay:smtp://user:password@host:587`.",
    "finding.outgoing.refused": "andere Ports kommen hinaus, Port {port} wird sofort abgelehnt: Eine "
    "Firewall auf dem Weg verbietet ihn",
    "finding.outgoing.refused.step": "Erlauben Sie den ausgehenden Port 25 in der Firewall dieses Rechners "
    "und seines Netzes; bis dahin nehmen Sie einen Smarthost: "
    "`--route relay:smtp://user:password@host:587`.",
    "finding.outgoing.rejected": "Mailserver antworten und weisen diesen Rechner ab: {line}",
    "finding.outgoing.rejected.step": "Die Adresse dieses Rechners hat einen schlechten Ruf oder keinen: "
    "Prüfen Sie ihren PTR-Eintrag und die Sperrlisten des Internets; bis dahin nehmen Sie einen Smarthost: "
    "`--route relay:smtp://user:password@host:587`.",
    "finding.outgoing.silent": "Verbindungen zu Port {port} öffnen sich, aber kein Mailserver meldet sich: "
    "Etwas auf dem Weg antwortet an seiner Stelle",
    "finding.outgoing.silent.step": "Fragen Sie den Anbieter dieses Rechners, ob der ausgehende Port 25 "
    "abgefangen wird; bis dahin nehmen Sie einen Smarthost: `--route relay:smtp://user:password@host:587`.",
    "finding.outgoing.host.step": "Prüfen Sie den Hostnamen in `--route`.",
    "finding.outgoing.relay_banner": "{host} weist diesen Rechner ab: {line}",
    "finding.outgoing.relay_banner.step": "Bitten Sie den Betreiber des Smarthosts, diesen Rechner "
    "zuzulassen.",
    "finding.outgoing.relay_silent": "Port {port} von {host} ist offen, aber {why}",
    "finding.outgoing.relay_silent.step": "Prüfen Sie den Port in `--route`; mit TLS von Anfang an (Port "
    "465) heißt es `relay:smtps://…`.",
    "finding.outgoing.relay_refused": "{host} lehnt Port {port} ab",
    "finding.outgoing.relay_refused.step": "Prüfen Sie Host und Port in `--route`.",
    "finding.outgoing.relay_timeout": "Port {port} von {host} antwortet nicht",
    "finding.outgoing.relay_timeout.step": "Prüfen Sie Host und Port in `--route` und die Firewalls auf dem "
    "Weg.",
    "finding.outgoing.relay_no_route": "zu {host} gibt es keine Route",
    "finding.outgoing.relay_no_route.step": "Prüfen Sie das Netz dieses Rechners.",
    "finding.outgoing.relay_forbidden": "eine Firewall auf dem Weg verbietet Port {port} von {host}",
    "finding.outgoing.relay_forbidden.step": "Erlauben Sie ihn in der Firewall dieses Rechners und seines "
    "Netzes.",
    "finding.outgoing.no_session": "es kam keine Sitzung zustande: {reply}",
    "finding.outgoing.no_session.step": "Versuchen Sie es später noch einmal; bleibt es so, fragen Sie den "
    "Betreiber des Smarthosts.",
    "finding.outgoing.relay_name": "Der Smarthost {host} hat keine Adresse im DNS ({reply})",
    "finding.outgoing.relay_tls": "Der Smarthost {host} bietet kein TLS, dem zu trauen ist, und bekommt "
    "ohne es kein Passwort ({reply})",
    "finding.outgoing.relay_tls.step": "Prüfen Sie Host, Port und Schema in `--route` und das Zertifikat des "
    "Smarthosts.",
    "finding.outgoing.relay_away": "Der Smarthost {host} weist diesen Rechner ab ({reply})",
    "finding.outgoing.relay_away.step": "Bitten Sie seinen Betreiber, diesen Rechner zuzulassen.",
    "finding.outgoing.relay_no_login": "Der Smarthost {host} bietet keine Anmeldung an ({reply})",
    "finding.outgoing.relay_no_login.step": "Prüfen Sie Host und Port in `--route`: Die Anmeldung braucht "
    "TLS und AUTH PLAIN oder LOGIN.",
    "finding.outgoing.relay_login": "Der Smarthost {host} lehnt unseren Benutzernamen oder unser Passwort ab "
    "({reply})",
    "finding.outgoing.relay_login.step": "Prüfen Sie Benutzer und Passwort in `--route`, und starten Sie den "
    "Server neu, wenn Sie sie geändert haben.",
    "finding.outgoing.relay_login_needed": "Der Smarthost {host} nimmt E-Mails nur nach einer Anmeldung oder "
    "mit TLS an ({reply})",
    "finding.outgoing.relay_login_needed.step": "Geben Sie Benutzer und Passwort in `--route "
    "relay:smtp://user:password@host:587` an, oder nehmen Sie `smtps://`.",
    # The name of this machine
    "finding.helo.title": "Der Hostname ist einer des Internets",
    "finding.helo.no_domain": "der Hostname ist {host}",
    "finding.helo.no_domain.step": "Geben Sie diesem Rechner einen Namen in einer Ihrer Domains, und nennen "
    "Sie ihn mit `--hostname`.",
    "finding.helo.unknown": "das DNS gibt die Adresse von {host} nicht an: {why}",
    "finding.helo.publish.step": "Veröffentlichen Sie: {host} A (öffentliche Adresse dieses Rechners).",
    "finding.helo.found": "{host} ist {addresses}",
    "finding.helo.foreign": "{host} ist {addresses}, was keine Netzwerkkarte dieses Rechners hat",
    "finding.helo.foreign.step": "Richtig, wo Adressen auf dem Weg übersetzt werden (NAT); sonst berichtigen "
    "Sie den Eintrag.",
    "finding.ptr.title": "Die Adresse verweist zurück auf den Namen",
    "finding.ptr.unknown": "das DNS gibt den Namen von {address} nicht an: {why}",
    "finding.ptr.found": "{address} ist {host}",
    "finding.ptr.ask.step": "Bitten Sie den Anbieter dieses Rechners, den PTR-Eintrag von {address} auf "
    "{host} zu setzen.",
    "finding.ptr.absent": "{address} hat keinen Namen",
    "finding.ptr.other": "{address} ist {names}: Das stimmt in beide Richtungen, aber es ist nicht der Name, "
    "mit dem wir grüßen",
    "finding.ptr.unconfirmed": "{address} ist {names}, und dieser Name hat nicht diese Adresse",
    # Can mail and requests come in?
    "finding.listener.title": "Der Port für {name} ist offen",
    "finding.listener.all.title": "Die Ports des Servers sind offen",
    "finding.listener.stopped": "auf diesem Datenordner läuft kein Server",
    "finding.listener.stopped.step": "Starten Sie ihn: `pillarbox serve`.",
    "finding.listener.contact": "{place}: {why}",
    "finding.listener.log.step": "Sehen Sie in das Log des Servers.",
    "finding.return_path.title": "Bounces und E-Mails finden ihren Weg zu diesem Rechner",
    "finding.return_path.capture": "die Route ist `capture`: Es kommt nichts zurück",
    "finding.return_path.publish.step": "Veröffentlichen Sie einen A-Eintrag von {host}, oder nennen Sie dem "
    "Server mit `--hostname` seinen Namen im DNS.",
    "finding.return_path.greeting": "220{line}",
    "finding.return_path.contact": "{host} Port {port}: {why}",
    "finding.return_path.closed.step": "Öffnen Sie den SMTP-Port: `--smtp 0.0.0.0:25`.",
    "finding.return_path.local.step": "Der SMTP-Port {place} ist nur für diesen Rechner: Nehmen Sie `--smtp "
    "0.0.0.0:25`.",
    "finding.return_path.other_port.step": "Andere Server kommen zu Port 25: Nehmen Sie `--smtp {better}`, "
    "oder leiten Sie 25 an {port} weiter.",
    "finding.return_path.firewall.step": "Lassen Sie Port 25 durch die Firewall dieses Rechners und seines "
    "Netzes herein.",
    # The certificate of the listeners
    "finding.certificate.title": "Das Zertifikat der Ports ist gültig",
    "finding.certificate.absent": "es gibt keines: HTTP ist unverschlüsselt, und SMTP zeigt ein selbst "
    "gemachtes",
    "finding.certificate.not_told": "kein Server läuft, und `doctor` kennt keines",
    "finding.certificate.files.step": "Berichtigen Sie die Dateien; ein laufender Server nimmt die letzten "
    "guten weiter.",
    "finding.certificate.expired": "es ist am {day} abgelaufen",
    "finding.certificate.renew.step": "Erneuern Sie es: Der Server liest die Dateien von selbst neu.",
    "finding.certificate.early": "es gilt nicht vor dem {day}",
    "finding.certificate.early.step": "Stellen Sie die Uhr, oder warten Sie.",
    "finding.certificate.expires": "es läuft am {day} ab",
    "finding.certificate.name": "es gilt bis {day}, aber nicht für {host}",
    "finding.certificate.name.step": "Beschaffen Sie eines, das auch für den Namen von `--hostname` gilt: "
    "Mailserver und Clients vergleichen ihn.",
    "finding.certificate.valid": "es gilt bis {day}",
    "finding.certificate.unread": "--tls-cert oder --tls-key ist nicht zu lesen: {reason}",
    "finding.certificate.other_key": "Der Schlüssel in {key} (--tls-key) gehört nicht zum Zertifikat in "
    "{chain} (--tls-cert)",
    "finding.certificate.order": "Das eigene Zertifikat des Servers muss das erste in {chain} (--tls-cert) "
    "sein; es hat die Nummer {number}",
    "finding.certificate.unusable": "Das Zertifikat von --tls-cert ist mit seinem Schlüssel nicht zu "
    "gebrauchen: {reason}",
    "finding.certificate.no_chain": "{chain} (--tls-cert) enthält kein Zertifikat im PEM-Format",
    "finding.certificate.no_chain_but_key": "{chain} (--tls-cert) enthält kein Zertifikat im PEM-Format, "
    "sondern einen privaten Schlüssel: --tls-cert und --tls-key sind vielleicht vertauscht",
    "finding.certificate.encrypted": "Der private Schlüssel in {key} (--tls-key) ist verschlüsselt; "
    "speichern Sie ihn ohne Passwort",
    "finding.certificate.no_key": "{key} (--tls-key) enthält keinen privaten Schlüssel im PEM-Format",
    "finding.certificate.no_key_but_chain": "{key} (--tls-key) enthält keinen privaten Schlüssel im "
    "PEM-Format, sondern ein Zertifikat: --tls-cert und --tls-key sind vielleicht vertauscht",
    # The OpenID Connect provider
    "finding.login_provider.title": "Die Anmeldung beim Anbieter funktioniert",
    "finding.login_provider.keys": "Schlüssel: {number}",
    "finding.login_provider.no_keys": "er hat keinen brauchbaren Schlüssel",
    "finding.login_provider.no_keys.step": "Bitten Sie den Betreiber des Anbieters um einen Schlüssel für "
    "RSA oder EC.",
    "finding.login_provider.unreachable.step": "Prüfen Sie `--oidc-issuer`, den Anbieter und den Weg "
    "dorthin; Endpunkte auf anderen privaten Hosts brauchen `--allow-private`.",
    "finding.login_provider.answer.step": "Schreiben Sie `--oidc-issuer` genau wie `issuer` in seinem "
    "Discovery-Dokument.",
    "finding.login_provider.status": "{document}: Status {status}",
    "finding.login_provider.issuer": "discovery: Der Anbieter nennt sich selbst {issuer}",
    "finding.login_provider.algorithm": "discovery: Kein Verfahren seiner ID-Tokens ist zu gebrauchen",
    "finding.login_provider.secret": "discovery: Der Client kann sich nicht durch ein Geheimnis ausweisen",
    "finding.login_provider.no_url": "discovery: Ein Endpunkt ist keine URL",
    "finding.login_provider.no_https": "discovery: Ein Endpunkt ist nicht HTTPS",
    "finding.login_provider.team.title": "Personen aus --oidc-domains haben ein Team",
    "finding.login_provider.several": "mehrere Teams oder keines",
    "finding.login_provider.no_team": "kein aktives Team {team}",
    "finding.login_provider.team.step": "Geben Sie `--oidc-team` die ID des Teams, die `pillarbox teams "
    "list` zeigt.",
    # Webhooks
    "finding.webhooks.title": "Webhooks erreichen ihre Endpunkte",
    "finding.webhooks.absent": "es gibt keinen",
    "finding.webhooks.fine": "keiner von {number} schlägt fehl",
    "finding.webhooks.disabled": "{endpoint} von {team} wurde abgeschaltet: Er schlug seit {day} fehl, {why}",
    "finding.webhooks.failing": "{endpoint} von {team} schlägt seit {number} h fehl, {why}",
    "finding.webhooks.step": "Sagen Sie es dem Team, oder reparieren Sie den Endpunkt: `GET "
    "/webhooks/{id}/deliveries` zeigt seine Antworten, und was fehlschlug, kann wiederholt werden.",
    "finding.part.without_answer": "ohne Antwort",
    "finding.part.last_status": "zuletzt mit {status}",
    # Bounces and complaints
    "finding.standing.title": "Wenige E-Mails werden zu Bounces, und wenige Empfänger beschweren sich",
    "finding.standing.fine": "{number} Domains mit mindestens {number_sent} E-Mails in {number_days} Tagen, "
    "keine über einer Grenze",
    "finding.standing.bounced": "{domain}: {number} Bounces von {number_sent} E-Mails in {number_days} Tagen",
    "finding.standing.complained": "{domain}: {number} Beschwerden zu {number_sent} E-Mails in {number_days} "
    "Tagen",
    "finding.standing.bounced.step": "Senden Sie nur an bestätigte Adressen, und sehen Sie nach, woher die "
    "schlechten kamen.",
    "finding.standing.complained.step": "Senden Sie nur, worum gebeten wurde, und mit einem Link zum "
    "Abbestellen.",
    # The clock
    "finding.clock.title": "Die Uhr stimmt mit der der Datenbank überein",
    "finding.clock.apart": "{number} s Unterschied",
    "finding.clock.apart.step": "Lassen Sie die Uhren beider Rechner durch NTP stellen.",
    "finding.clock.jumps.title": "Niemand stellt die Uhr, während wir laufen",
    "finding.clock.no_jumps": "in {number_days} Tagen kam es nicht vor",
    "finding.clock.jumps": "{number} in {number_days} Tagen, zuletzt um {number_seconds} s auf {time} UTC",
    "finding.clock.jumps.step": "Lassen Sie die Uhren durch NTP in kleinen Schritten stellen, und finden Sie "
    "heraus, wer sie sonst stellt. Was es mit der Warteschlange tat: docs/guide/queue-and-retention.md.",
    "finding.clock.future.title": "Keine E-Mail ist in die Zukunft datiert",
    "finding.clock.future": "die neueste von {number} Teams ist vom {time} UTC",
    "finding.clock.future.step": "Vergleichen Sie die Uhr mit einer anderen. Geht sie jetzt richtig, ging "
    "sie damals falsch.",
    # Backups
    "finding.backup.title": "Backups werden gemacht",
    "finding.backup.absent": "dieses Programm hat noch keines gemacht",
    "finding.backup.absent.step": "`pillarbox backup TARGET` macht eines (docs/guide/backup.md).",
    "finding.backup.last": "das letzte ist vom {time} UTC",
    "finding.backup.ahead.step": "Sehen Sie nach den Uhren: Ein Backup ist aus der Zukunft, deshalb weiß "
    "niemand, wie alt das letzte ist.",
    "finding.backup.late.step": "Sehen Sie nach, was Ihr Timer gemeldet hat, und starten Sie `pillarbox "
    "backup TARGET`.",
    "finding.restored.title": "Nichts wartet, was eine Wiederherstellung zurückgestellt hat",
    "finding.restored.open": "Arbeit des Backups {backup}",
    "finding.restored.open.step": "`pillarbox restored` zeigt sie; `restored release` oder `drop` "
    "entscheidet.",
    # What all machines share
    "finding.key_ring.title": "Der Schlüsselbund ist der dieser Datenbank",
    "finding.key_ring.missing": "ein Schlüssel fehlt",
    "finding.key_ring.opened": "{number} von {number_all} Geheimnissen entschlüsselt",
    "finding.key_ring.secret.title": "Ein Geheimnis lässt sich entschlüsseln",
    "finding.key_ring.secret": "das geht nicht",
    "finding.key_ring.no_file.step": "Die Geheimnisse in dieser Datenbank brauchen aus dem Schlüsselbund "
    "{why}, und {path} gibt es nicht: Legen Sie {file} eines Rechners, der mit dieser Datenbank arbeitet, "
    "oder aus ihrem Backup dorthin, oder geben Sie den Text mit --secret-key an (docs/guide/backup.md sagt, "
    "was zu tun ist, wenn er verloren ist).",
    "finding.key_ring.other.step": "Der Schlüsselbund in {path} ist nicht der dieser Datenbank: Er hat "
    "{why}, und die Geheimnisse in der Datenbank brauchen {why_needs}; legen Sie {file} eines Rechners, der "
    "mit dieser Datenbank arbeitet, oder aus ihrem Backup dorthin, oder geben Sie den Text mit --secret-key "
    "an (docs/guide/backup.md sagt, was zu tun ist, wenn er verloren ist).",
    "finding.key_ring.other_given.step": "Der Schlüsselbund von --secret-key ist nicht der dieser Datenbank: "
    "Er hat {why}, und die Geheimnisse in der Datenbank brauchen {why_needs}; legen Sie {file} eines "
    "Rechners, der mit dieser Datenbank arbeitet, oder aus ihrem Backup dorthin, oder geben Sie den Text mit "
    "--secret-key an (docs/guide/backup.md sagt, was zu tun ist, wenn er verloren ist).",
    "finding.key_ring.damaged.step": "{why} ist beschädigt; {why_cure}",
    "finding.key_ring.lacks.step": "{why} braucht den Schlüssel {key}, der im Schlüsselbund fehlt; "
    "{why_cure}",
    "finding.part.key": "den Schlüssel {key}",
    "finding.part.another_key": "einen anderen Schlüssel {key}",
    "finding.part.key_also": "den Schlüssel {key} und {why}",
    "finding.part.another_key_also": "einen anderen Schlüssel {key} und {why}",
    "finding.part.keys": "die Schlüssel {key} und {why}",
    "finding.part.oauth_keys": "Der private Schlüssel {owner} der Zugriffstokens",
    "finding.part.oauth_keys.cure": "mit ihm werden keine neuen Tokens signiert: `pillarbox oauth "
    "rotate-keys` macht einen anderen Schlüssel.",
    "finding.part.sealed_mails": "Der Text der E-Mail {id} an eine Person",
    "finding.part.sealed_mails.cure": "sie wartet in der Warteschlange, bis der Schlüssel da ist: Der "
    "Empfänger kann eine neue anfordern.",
    "finding.part.link_keys": "Der Schlüssel {owner} der Links in gesendeten E-Mails",
    "finding.part.link_keys.cure": "Links, die mit ihm gemacht wurden, gelten als unbekannt, und neue "
    "E-Mails bekommen Links eines anderen Schlüssels.",
    "finding.part.dkim_keys": "Der DKIM-Schlüssel der Domain {owner}",
    "finding.part.dkim_keys.cure": "`pillarbox domains rotate-dkim` gibt der Domain einen neuen.",
    "finding.part.captured": "Die aufgefangene E-Mail {id}",
    "finding.part.captured.cure": "sie ist nicht mehr zu lesen: Der Empfänger kann eine neue anfordern.",
    "finding.part.webhooks": "Ein Signaturgeheimnis des Webhooks {id} ({owner})",
    "finding.part.webhooks.cure": "`POST /webhooks/{id}/signing-secret/rotate` macht ein neues.",
    "finding.part.people": "Der zweite Faktor der Person {owner}",
    "finding.part.people.cure": "`pillarbox people reset --factors` entfernt ihn, und die Person richtet "
    "einen neuen ein.",
    "finding.blob_store.title": "Der Blob-Speicher ist der dieser Datenbank",
    "finding.blob_store.unreachable": "er ist nicht zu erreichen: {why}",
    "finding.blob_store.unreachable.step": "Prüfen Sie die URL von `--blob-url`, ob es den Bucket gibt, und "
    "AWS_ENDPOINT_URL, AWS_ALLOW_HTTP=true (bei einem Endpunkt mit http), AWS_REGION, AWS_ACCESS_KEY_ID und "
    "AWS_SECRET_ACCESS_KEY, in der Umgebung des Servers und dieses Befehls (docs/guide/production.md).",
    "finding.blob_store.unused": "noch kein Server hat mit einem begonnen",
    "finding.blob_store.no_id": "er hat keine ID",
    "finding.blob_store.id": "er hat die ID {id}",
    "finding.blob_store.folder.step": "Der Blob-Speicher in {folder} ist nicht der dieser Datenbank: Er "
    "{why}, und die der Datenbank ist {id}; geben Sie jedem Rechner dieselbe --blob-url, einen Bucket oder "
    "einen Ordner, den alle teilen (hat er trotzdem die Blobs dieser Datenbank, gibt ihm `pillarbox verify "
    "--adopt-blob-store` die ID).",
    "finding.blob_store.bucket.step": "Der Blob-Speicher von --blob-url ist nicht der dieser Datenbank: Er "
    "{why}, und die der Datenbank ist {id}; geben Sie jedem Rechner dieselbe --blob-url, einen Bucket oder "
    "einen Ordner, den alle teilen (hat er trotzdem die Blobs dieser Datenbank, gibt ihm `pillarbox verify "
    "--adopt-blob-store` die ID).",
    "finding.part.no_id": "hat keine ID",
    "finding.part.id": "hat die ID {id}",
    "finding.part.late": "keine Antwort in der erlaubten Zeit",
    "finding.part.not_durable": "ein früheres Schreiben wurde nicht dauerhaft",
    "finding.part.disk": "Fehler des Datenträgers",
    "finding.part.no_https": "der Endpunkt ist nicht https, und AWS_ALLOW_HTTP ist nicht true",
    "finding.part.no_connection": "keine Verbindung",
    "finding.part.no_credentials": "keine Zugangsdaten",
    "finding.part.no_store_id": "{key} enthält keine ID; sind die Blobs die dieser Datenbank, schreibt "
    "`pillarbox verify --adopt-blob-store` sie neu",
    # This machine and the database
    "finding.python.title": "Das Python des Programms ist neu genug",
    "finding.python.found": "{version}, {path}",
    "finding.disk.title": "Auf dem Datenträger ist Platz",
    "finding.disk.free": "{number} MiB frei für {folder}",
    "finding.disk.step": "Schaffen Sie Platz, oder bewahren Sie kürzer auf: `--email-retention-days`.",
    "finding.database.kept.title": "Die Datenbank behält, was sie bestätigt",
    "finding.database.kept": "{number} Einstellungen sind, wie sie sein sollen",
    "finding.database.title": "Die Datenbank hat {setting} {value}",
    "finding.database.fsync": "{value}: Ein Absturz des Rechners kann die ganze Datenbank zerstören",
    "finding.database.fsync.step": "Setzen Sie `fsync = on` in postgresql.conf, und starten Sie PostgreSQL "
    "neu.",
    "finding.database.synchronous_commit": "{value}: Angenommene E-Mails gehen bei einem Absturz verloren",
    "finding.database.synchronous_commit.step": "Setzen Sie `synchronous_commit = on`.",
    "finding.database.full_page_writes": "{value}: Ein Absturz des Rechners kann halb geschriebene Seiten "
    "hinterlassen",
    "finding.database.full_page_writes.step": "Setzen Sie `full_page_writes = on`.",
    "finding.database.zero_damaged_pages": "{value}: Schäden des Datenträgers werden verdeckt, indem Daten "
    "verworfen werden",
    "finding.database.zero_damaged_pages.step": "Setzen Sie `zero_damaged_pages = off`.",
    "finding.database.server_encoding": "{value}: Die meisten Texte lassen sich nicht speichern",
    "finding.database.server_encoding.step": "Legen Sie die Datenbank mit `ENCODING UTF8` neu an.",
    "finding.database.read_only": "{value}: Nichts lässt sich speichern",
    "finding.database.read_only.step": "Verbinden Sie sich mit dem Primärserver, nicht mit einer Replik.",
    "finding.database.connections.title": "Die Datenbank nimmt genug Verbindungen an",
    "finding.database.connections": "{number} Verbindungen",
    "finding.database.connections.step": "Erhöhen Sie `max_connections`, oder betreiben Sie mit "
    "`--processes` weniger Prozesse.",
    # A run that has no result
    "finding.run.stopped": "der Server hielt an",
    "finding.run.too_long": "es dauerte zu lange",
}
