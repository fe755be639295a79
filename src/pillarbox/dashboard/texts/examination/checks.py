"""Findings of `pillarbox doctor`: they are recognised by these texts, and said in the language of the page.

A key begins with the name of the check up to its first dot. The sentences of a check are sought among its own
texts and those of `any`. A word in braces that begins with `number` is a number, one with `day` or `time` a
date. One that begins with `why` is a text of `part`, or what another program said. Tests compare
these texts with the sources of the checks.
"""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    # Texts of several checks
    "finding.any.none": "none",
    "finding.any.nothing": "nothing",
    "finding.any.route_unknown": "no server runs, and `doctor` was not told its route",
    "finding.any.no_name": "DNS says that there is no name {host} (NXDOMAIN)",
    "finding.any.no_answer": "DNS does not say what {host} is: {why}",
    "finding.any.no_address": "{host} has no address in DNS",
    "finding.any.later": "Try again later.",
    # Parts of sentences
    "finding.part.no_answer": "no answer",
    "finding.part.refused": "nothing listens there",
    "finding.part.timeout": "it does not answer",
    "finding.part.no_route": "there is no way to it",
    "finding.part.forbidden": "a firewall forbids it",
    "finding.part.open": "it is open",
    "finding.part.silent": "it says nothing",
    "finding.part.ended": "it ends the connection",
    # Can mail leave?
    "finding.outgoing.title": "Mail servers can be reached",
    "finding.outgoing.smarthost.title": "The smarthost takes our mail",
    "finding.outgoing.start.step": "Start the server, or set PILLARBOX_ROUTE to its route for this command.",
    "finding.outgoing.capture": "the route is `capture`: mail is kept here and nothing leaves the machine",
    "finding.outgoing.capture.step": "To deliver, start the server with `--route`.",
    "finding.outgoing.elsewhere": "another machine delivers, by the route `{route}`",
    "finding.outgoing.elsewhere.step": "Run `pillarbox doctor` on the machine that delivers.",
    "finding.outgoing.says": "{host} says {line}",
    "finding.outgoing.some": "{host} says {line}; not reached: {domains}",
    "finding.outgoing.greeting": "220{line}",
    "finding.outgoing.ok": "ok",
    "finding.outgoing.no_dns": "DNS does not answer, so no mail server can be found",
    "finding.outgoing.no_dns.step": "Check the DNS servers of this machine (/etc/resolv.conf), or name "
    "others with `--dns`.",
    "finding.outgoing.no_names": "DNS says that the domains of well-known mail servers do not exist, or have "
    "none: {domain}",
    "finding.outgoing.no_names.step": "The DNS servers of this machine do not know the internet: check "
    "/etc/resolv.conf, or name others with `--dns`.",
    "finding.outgoing.no_route": "this machine has no route to the internet",
    "finding.outgoing.no_route.step": "Check its network and default route.",
    "finding.outgoing.filtered": "no connection gets out at all: packets are dropped silently",
    "finding.outgoing.filtered.step": "Check the firewall of this machine and of its network.",
    "finding.outgoing.blocked": "other ports get out, port {port} does not: packets to it are dropped "
    "silently, as hosting providers and access networks do",
    "finding.outgoing.blocked.step": "Ask the provider of this machine to open outgoing port 25; use a "
    "smarthost meanwhile: `--route relay:smtp://user:password@host:587`.",
    "finding.outgoing.refused": "other ports get out, port {port} is refused at once: a firewall on the way "
    "forbids it",
    "finding.outgoing.refused.step": "Allow outgoing port 25 in the firewall of this machine and of its "
    "network; use a smarthost meanwhile: `--route relay:smtp://user:password@host:587`.",
    "finding.outgoing.rejected": "mail servers answer and send this machine away: {line}",
    "finding.outgoing.rejected.step": "The address of this machine has a bad name, or none: check its PTR "
    "record and the block lists; use a smarthost meanwhile: `--route relay:smtp://user:password@host:587`.",
    "finding.outgoing.silent": "connections to port {port} open, but no mail server speaks: something on the "
    "way answers for them",
    "finding.outgoing.silent.step": "Ask the provider of this machine whether outgoing port 25 is "
    "intercepted; use a smarthost meanwhile: `--route relay:smtp://user:password@host:587`.",
    "finding.outgoing.host.step": "Check the host name in `--route`.",
    "finding.outgoing.relay_banner": "{host} sends this machine away: {line}",
    "finding.outgoing.relay_banner.step": "Ask who runs it to let this machine in.",
    "finding.outgoing.relay_silent": "{host} port {port} is open, but {why}",
    "finding.outgoing.relay_silent.step": "Check the port in `--route`; with implicit TLS (port 465) it is "
    "`relay:smtps://…`.",
    "finding.outgoing.relay_refused": "{host} refuses port {port}",
    "finding.outgoing.relay_refused.step": "Check host and port in `--route`.",
    "finding.outgoing.relay_timeout": "{host} port {port} does not answer",
    "finding.outgoing.relay_timeout.step": "Check host and port in `--route`, and the firewalls on the way.",
    "finding.outgoing.relay_no_route": "there is no route to {host}",
    "finding.outgoing.relay_no_route.step": "Check the network of this machine.",
    "finding.outgoing.relay_forbidden": "a firewall on the way forbids {host} port {port}",
    "finding.outgoing.relay_forbidden.step": "Allow it in the firewall of this machine and of its network.",
    "finding.outgoing.no_session": "no session could be opened: {reply}",
    "finding.outgoing.no_session.step": "Try again later; if it stays so, ask who runs the smarthost.",
    "finding.outgoing.relay_name": "The smarthost {host} has no address in DNS ({reply})",
    "finding.outgoing.relay_tls": "The smarthost {host} gives no TLS that can be trusted, and without it "
    "gets no password ({reply})",
    "finding.outgoing.relay_tls.step": "Check host, port and scheme in `--route`, and the certificate of the "
    "smarthost.",
    "finding.outgoing.relay_away": "The smarthost {host} sends this machine away ({reply})",
    "finding.outgoing.relay_away.step": "Ask who runs it to let it in.",
    "finding.outgoing.relay_no_login": "The smarthost {host} offers no way to log in ({reply})",
    "finding.outgoing.relay_no_login.step": "Check host and port in `--route`: logging in needs TLS, and "
    "AUTH PLAIN or LOGIN.",
    "finding.outgoing.relay_login": "The smarthost {host} refuses our user name or password ({reply})",
    "finding.outgoing.relay_login.step": "Check user and password in `--route`, and restart the server when "
    "you have changed them.",
    "finding.outgoing.relay_login_needed": "The smarthost {host} takes mail only after a login or under TLS "
    "({reply})",
    "finding.outgoing.relay_login_needed.step": "Give user and password in `--route "
    "relay:smtp://user:password@host:587`, or use `smtps://`.",
    # The name of this machine
    "finding.helo.title": "The host name is one of the internet",
    "finding.helo.no_domain": "the host name is {host}",
    "finding.helo.no_domain.step": "Give this machine a name in a domain of yours, and say so with "
    "`--hostname`.",
    "finding.helo.unknown": "DNS does not say what the address of {host} is: {why}",
    "finding.helo.publish.step": "Publish it: {host} A <public address of this machine>.",
    "finding.helo.found": "{host} is {addresses}",
    "finding.helo.foreign": "{host} is {addresses}, which no network card of this machine has",
    "finding.helo.foreign.step": "Right where addresses are translated on the way (NAT); otherwise correct "
    "the record.",
    "finding.ptr.title": "The address points back to the name",
    "finding.ptr.unknown": "DNS does not say what the name of {address} is: {why}",
    "finding.ptr.found": "{address} is {host}",
    "finding.ptr.ask.step": "Ask the provider of this machine to set the PTR record of {address} to {host}.",
    "finding.ptr.absent": "{address} has no name",
    "finding.ptr.other": "{address} is {names}: that agrees both ways, but it is not the name we greet with",
    "finding.ptr.unconfirmed": "{address} is {names}, which does not have that address",
    # Can mail and requests come in?
    "finding.listener.title": "The {name} port is open",
    "finding.listener.all.title": "The server's ports are open",
    "finding.listener.stopped": "no server runs on this data folder",
    "finding.listener.stopped.step": "Start it: `pillarbox serve`.",
    "finding.listener.contact": "{place}: {why}",
    "finding.listener.log.step": "Look into the log of the server.",
    "finding.return_path.title": "Bounces and mail find their way to this machine",
    "finding.return_path.capture": "the route is `capture`: nothing comes back",
    "finding.return_path.publish.step": "Publish an A record of {host}, or give the server its name in DNS "
    "with `--hostname`.",
    "finding.return_path.greeting": "220{line}",
    "finding.return_path.contact": "{host} port {port}: {why}",
    "finding.return_path.closed.step": "Open the SMTP port: `--smtp 0.0.0.0:25`.",
    "finding.return_path.local.step": "The SMTP port {place} is for this machine alone: use `--smtp "
    "0.0.0.0:25`.",
    "finding.return_path.other_port.step": "Other servers come to port 25: use `--smtp {better}`, or forward "
    "25 to {port}.",
    "finding.return_path.firewall.step": "Let port 25 in through the firewall of this machine and of its "
    "network.",
    # The certificate of the listeners
    "finding.certificate.title": "The certificate of the listeners is valid",
    "finding.certificate.absent": "there is none: HTTP is in the clear, and SMTP shows a self-made one",
    "finding.certificate.not_told": "no server runs, and `doctor` was not told of one",
    "finding.certificate.files.step": "Correct the files; a server that runs goes on with the last good "
    "ones.",
    "finding.certificate.expired": "it expired on {day}",
    "finding.certificate.renew.step": "Renew it: the server reads the files again by itself.",
    "finding.certificate.early": "it is not valid before {day}",
    "finding.certificate.early.step": "Set the clock, or wait.",
    "finding.certificate.expires": "it expires on {day}",
    "finding.certificate.name": "it is valid until {day}, but not for {host}",
    "finding.certificate.name.step": "Get one for the name of `--hostname` too: mail servers and clients "
    "compare it.",
    "finding.certificate.valid": "it is valid until {day}",
    "finding.certificate.unread": "--tls-cert or --tls-key cannot be read: {reason}",
    "finding.certificate.other_key": "The key in {key} (--tls-key) is not that of the certificate in {chain} "
    "(--tls-cert)",
    "finding.certificate.order": "The server's own certificate must be the first in {chain} (--tls-cert); it "
    "is number {number}",
    "finding.certificate.unusable": "The certificate of --tls-cert cannot be used with its key: {reason}",
    "finding.certificate.no_chain": "{chain} (--tls-cert) holds no certificate in PEM form",
    "finding.certificate.no_chain_but_key": "{chain} (--tls-cert) holds no certificate in PEM form but a "
    "private key: --tls-cert and --tls-key may be swapped",
    "finding.certificate.encrypted": "The private key in {key} (--tls-key) is encrypted; store it without a "
    "password",
    "finding.certificate.no_key": "{key} (--tls-key) holds no private key in PEM form",
    "finding.certificate.no_key_but_chain": "{key} (--tls-key) holds no private key in PEM form but a "
    "certificate: --tls-cert and --tls-key may be swapped",
    # The OpenID Connect provider
    "finding.login_provider.title": "The provider lets people log in",
    "finding.login_provider.keys": "keys: {number}",
    "finding.login_provider.no_keys": "it has no key that can be used",
    "finding.login_provider.no_keys.step": "Ask whoever runs the provider for a key of RSA or EC.",
    "finding.login_provider.unreachable.step": "Check `--oidc-issuer`, the provider, and the way there; "
    "endpoints on other private hosts need `--allow-private`.",
    "finding.login_provider.answer.step": "Write `--oidc-issuer` exactly as `issuer` in its discovery "
    "document.",
    "finding.login_provider.status": "{document}: status {status}",
    "finding.login_provider.issuer": "discovery: the issuer calls itself {issuer}",
    "finding.login_provider.algorithm": "discovery: no algorithm of ID tokens can be used",
    "finding.login_provider.secret": "discovery: the client cannot prove itself by a secret",
    "finding.login_provider.no_url": "discovery: an endpoint is no URL",
    "finding.login_provider.no_https": "discovery: an endpoint is not HTTPS",
    "finding.login_provider.team.title": "People of --oidc-domains have a team",
    "finding.login_provider.several": "several teams, or none",
    "finding.login_provider.no_team": "no active team {team}",
    "finding.login_provider.team.step": "Give `--oidc-team` the id of the team, which `pillarbox teams list` "
    "shows.",
    # Webhooks
    "finding.webhooks.title": "Webhooks reach their endpoints",
    "finding.webhooks.absent": "there is none",
    "finding.webhooks.fine": "none of {number} fails",
    "finding.webhooks.disabled": "{endpoint} of {team} was disabled: it failed since {day}, {why}",
    "finding.webhooks.failing": "{endpoint} of {team} fails for {number} h, {why}",
    "finding.webhooks.step": "Tell the team, or mend the endpoint: `GET /webhooks/{id}/deliveries` shows its "
    "answers, and what failed can be replayed.",
    "finding.part.without_answer": "without an answer",
    "finding.part.last_status": "last with {status}",
    # Bounces and complaints
    "finding.standing.title": "Few mails bounce, and few recipients complain",
    "finding.standing.fine": "{number} domains with {number_sent} mails or more in {number_days} days, none "
    "over a limit",
    "finding.standing.bounced": "{domain}: {number} of {number_sent} bounced in {number_days} days",
    "finding.standing.complained": "{domain}: {number} of {number_sent} complained in {number_days} days",
    "finding.standing.bounced.step": "Send only to addresses that were confirmed, and see where the bad came "
    "from.",
    "finding.standing.complained.step": "Send only what was asked for, with an unsubscribe link in it.",
    # The clock
    "finding.clock.title": "The clock agrees with the database's",
    "finding.clock.apart": "{number} s apart",
    "finding.clock.apart.step": "Let NTP set the clocks of both machines.",
    "finding.clock.jumps.title": "Nobody sets the clock while we run",
    "finding.clock.no_jumps": "none seen in {number_days} days",
    "finding.clock.jumps": "{number} in {number_days} days, the last to {time} UTC by {number_seconds} s",
    "finding.clock.jumps.step": "Let NTP set the clocks, by slewing, and find out who sets them otherwise. "
    "What it did to the queue: docs/guide/queue-and-retention.md.",
    "finding.clock.future.title": "No email is dated in the future",
    "finding.clock.future": "the newest of {number} teams is dated {time} UTC",
    "finding.clock.future.step": "Compare the clock with another. If it is right now, it was wrong then.",
    # Backups
    "finding.backup.title": "Backups are made",
    "finding.backup.absent": "none was made by this program",
    "finding.backup.absent.step": "`pillarbox backup TARGET` makes one (docs/guide/backup.md).",
    "finding.backup.last": "the last is of {time} UTC",
    "finding.backup.ahead.step": "Look at the clocks: a backup is of the future, so nobody can tell how old "
    "the last one is.",
    "finding.backup.late.step": "Look at what your timer said, and run `pillarbox backup TARGET`.",
    "finding.restored.title": "Nothing waits that a restore has put aside",
    "finding.restored.open": "work of the backup {backup}",
    "finding.restored.open.step": "`pillarbox restored` shows it; `restored release` or `drop` decides.",
    # What all machines share
    "finding.key_ring.title": "The key ring is the one of this database",
    "finding.key_ring.missing": "a key is missing",
    "finding.key_ring.opened": "{number} of {number_all} secrets decrypted",
    "finding.key_ring.secret.title": "A secret can be decrypted",
    "finding.key_ring.secret": "it cannot be",
    "finding.key_ring.no_file.step": "The secrets in this database need a key ring with {why}, and {path} "
    "does not exist: put the {file} of a machine that works on this database, or of its backup, there or "
    "give its text with --secret-key (docs/guide/backup.md says what to do where it is lost).",
    "finding.key_ring.other.step": "The key ring in {path} is not the one of this database: it has {why}, "
    "and the secrets in the database need {why_needs}; put the {file} of a machine that works on this "
    "database, or of its backup, there or give its text with --secret-key (docs/guide/backup.md says what "
    "to do where it is lost).",
    "finding.key_ring.other_given.step": "The key ring of --secret-key is not the one of this database: it "
    "has {why}, and the secrets in the database need {why_needs}; put the {file} of a machine that works on "
    "this database, or of its backup, there or give its text with --secret-key (docs/guide/backup.md says "
    "what to do where it is lost).",
    "finding.key_ring.damaged.step": "{why} is damaged; {why_cure}",
    "finding.key_ring.lacks.step": "{why} needs the key {key}, which the key ring does not have; {why_cure}",
    "finding.part.key": "the key {key}",
    "finding.part.another_key": "another key {key}",
    "finding.part.key_also": "the key {key} and {why}",
    "finding.part.another_key_also": "another key {key} and {why}",
    "finding.part.keys": "the keys {key} and {why}",
    "finding.part.oauth_keys": "The private key {owner} of access tokens",
    "finding.part.oauth_keys.cure": "no new tokens are signed with it: `pillarbox oauth rotate-keys` makes "
    "another key.",
    "finding.part.sealed_mails": "The text of the mail {id} to a person",
    "finding.part.sealed_mails.cure": "it waits in the queue until the key is there: whoever it is for can "
    "ask for another one.",
    "finding.part.link_keys": "The key {owner} of links in sent mail",
    "finding.part.link_keys.cure": "links that were made with it answer that they are unknown, and new mail "
    "gets links of another key.",
    "finding.part.dkim_keys": "The DKIM key of the domain {owner}",
    "finding.part.dkim_keys.cure": "`pillarbox domains rotate-dkim` gives the domain a new one.",
    "finding.part.captured": "The captured mail {id}",
    "finding.part.captured.cure": "it cannot be read any more: whoever it is for can ask for another one.",
    "finding.part.webhooks": "A signing secret of the webhook {id} ({owner})",
    "finding.part.webhooks.cure": "`POST /webhooks/{id}/signing-secret/rotate` makes a new one.",
    "finding.part.people": "The second factor of the person {owner}",
    "finding.part.people.cure": "`pillarbox people reset --factors` removes it, and the person sets up a new "
    "one.",
    "finding.blob_store.title": "The blob store is the one of this database",
    "finding.blob_store.unreachable": "it cannot be reached: {why}",
    "finding.blob_store.unreachable.step": "Check the URL of `--blob-url`, that the bucket exists, and "
    "AWS_ENDPOINT_URL, AWS_ALLOW_HTTP=true (for an http endpoint), AWS_REGION, AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, in the environment of the server and of this command (docs/guide/production.md).",
    "finding.blob_store.unused": "no server has begun with one yet",
    "finding.blob_store.no_id": "it has no id",
    "finding.blob_store.id": "it has the id {id}",
    "finding.blob_store.folder.step": "The blob store in {folder} is not the one of this database: it {why}, "
    "and the database's is {id}; give every machine the same --blob-url, a bucket or a folder that they "
    "share (where it has the blobs of this database all the same, `pillarbox verify --adopt-blob-store` "
    "gives it the id).",
    "finding.blob_store.bucket.step": "The blob store of --blob-url is not the one of this database: it "
    "{why}, and the database's is {id}; give every machine the same --blob-url, a bucket or a folder that "
    "they share (where it has the blobs of this database all the same, `pillarbox verify --adopt-blob-store` "
    "gives it the id).",
    "finding.part.no_id": "has no id",
    "finding.part.id": "has the id {id}",
    "finding.part.late": "no answer in time",
    "finding.part.not_durable": "an earlier write could not be made durable",
    "finding.part.disk": "disk error",
    "finding.part.no_https": "the endpoint is not https, and AWS_ALLOW_HTTP is not true",
    "finding.part.no_connection": "no connection",
    "finding.part.no_credentials": "no credentials",
    "finding.part.no_store_id": "{key} does not hold an id; where the blobs are those of this database, "
    "`pillarbox verify --adopt-blob-store` writes it anew",
    # This machine and the database
    "finding.python.title": "The program's Python is new enough",
    "finding.python.found": "{version}, {path}",
    "finding.disk.title": "There is room on the disk",
    "finding.disk.free": "{number} MiB free for {folder}",
    "finding.disk.step": "Make room, or shorten what is kept: `--email-retention-days`.",
    "finding.database.kept.title": "The database keeps what it commits",
    "finding.database.kept": "{number} settings are as they should be",
    "finding.database.title": "The database has {setting} {value}",
    "finding.database.fsync": "{value}: a crash of the machine can destroy the whole database",
    "finding.database.fsync.step": "Set `fsync = on` in postgresql.conf and restart PostgreSQL.",
    "finding.database.synchronous_commit": "{value}: mail that was accepted is lost in a crash",
    "finding.database.synchronous_commit.step": "Set `synchronous_commit = on`.",
    "finding.database.full_page_writes": "{value}: a crash of the machine can leave torn pages",
    "finding.database.full_page_writes.step": "Set `full_page_writes = on`.",
    "finding.database.zero_damaged_pages": "{value}: damage on the disk is hidden by throwing data away",
    "finding.database.zero_damaged_pages.step": "Set `zero_damaged_pages = off`.",
    "finding.database.server_encoding": "{value}: most text cannot be stored",
    "finding.database.server_encoding.step": "Make the database anew with `ENCODING 'UTF8'`.",
    "finding.database.read_only": "{value}: nothing can be stored",
    "finding.database.read_only.step": "Connect to the primary server, not to a replica.",
    "finding.database.connections.title": "The database takes enough connections",
    "finding.database.connections": "{number} connections",
    "finding.database.connections.step": "Raise `max_connections`, or run fewer processes with "
    "`--processes`.",
    # A run that has no result
    "finding.run.stopped": "the server stopped",
    "finding.run.too_long": "it took too long",
}
"""The texts, with words in braces where sentences have values."""
