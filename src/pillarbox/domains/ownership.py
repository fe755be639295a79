"""Whether receiving rests on the DKIM record too (domains.md section 2).

SPF and MX values are the same for every team; only the DKIM value is a team's own. So as soon as there is a
second team, a team must show it before it receives. Otherwise any team could take the mail of a name whose MX
points here. That holds whether or not the domain also sends.
"""

from __future__ import annotations

from pillarbox.domains import queries
from pillarbox.domains.installation import MailInstallation, OwnershipProof
from pillarbox.kernel.postgres.database import TeamDb


async def proof_needed(db: TeamDb, here: MailInstallation) -> bool:
    """Return whether a receiving domain must have its DKIM record verified."""
    asked = here.receiving_ownership_proof is OwnershipProof.AUTO
    return proof_asked(here, several_teams=asked and await queries.several_teams(db))


def proof_asked(here: MailInstallation, *, several_teams: bool) -> bool:
    """Return whether the proof is needed, where it is known already whether there is more than one team."""
    if here.receiving_ownership_proof is OwnershipProof.AUTO:
        return several_teams
    return here.receiving_ownership_proof is OwnershipProof.ALWAYS
