"""`pillarbox domains rotate-dkim`: a new signing key, published before it is used."""

from __future__ import annotations

from pillarbox.domains import keys
from pillarbox.domains.commands.records import domain_context, team_domain
from pillarbox.domains.names import relative
from pillarbox.kernel.terminal.answers import say
from pillarbox.kernel.terminal.connect import Connected


async def rotate_dkim(connected: Connected, name: str, team: str | None) -> int:
    found = await team_domain(connected, name, team)
    rotation = await keys.rotate(found.db, found.domain.id, domain_context(connected))
    key = rotation.key
    owner = relative(f"{key.selector}._domainkey", found.domain.name)
    if not rotation.new:
        say(f"A key of {found.domain.name} waits for its record already; it stays as it is.")
    say("Publish this record, and leave the present one where it is:")
    say()
    say(f"  {owner}  TXT  p={key.public_key}")
    say()
    say("The new key signs as soon as a check has seen the record. Until then the old one does.")
    say(f"`pillarbox domains dns {found.domain.name}` shows how long the old record is needed after that.")
    return 0
