"""Whether receiving rests on the DKIM record too (domains.md section 2).

SPF and MX values are the same for every team; only the DKIM value is a team's own. So as soon as there
is a second team, whoever wants to receive must show it, or any team could take the mail of a name whose
MX points here. That holds whether or not the domain also sends.
"""

from __future__ import annotations

from pillarbox.domains import queries
from pillarbox.domains.installation import Installation, OwnershipProof
from pillarbox.kernel.db import TeamDb


async def proof_needed(db: TeamDb, here: Installation) -> bool:
    """True when a receiving domain must have its DKIM record verified."""
    if here.receiving_ownership_proof is OwnershipProof.AUTO:
        return await queries.several_teams(db)
    return here.receiving_ownership_proof is OwnershipProof.ALWAYS
