"""The name under which a team receives at the installation's own domain: two words and its number.

`amber-cove-007@in.harbor.example` needs no domain of the team. A slug is made from the team's number alone
and never changes, so it is stored nowhere and means one team without a look-up by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Source
from pillarbox.teams import queries

FIRST: Final = """
    amber azure blue brisk calm clear coral crisp deep early fair fresh gentle golden green grey
    high kind light lively lucky mild misty noble open plain quick quiet ready silver swift warm
""".split()  # noqa: SIM905 - read as one

SECOND: Final = """
    anchor basin bay beacon breeze bridge buoy cape channel cliff coast cove current delta dock drift
    ferry fjord haven island keel lagoon lantern mast oar pier quay reef river sail shore tide
""".split()  # noqa: SIM905 - read as one

_SLUG = re.compile(r"[a-z]+-[a-z]+-(\d{3,10})", re.ASCII)


def slug(number: int) -> str:
    """Return the slug of the team with this number."""
    first = FIRST[number * 7 % len(FIRST)]
    second = SECOND[(number * 5 + number // len(FIRST)) % len(SECOND)]
    return f"{first}-{second}-{number:03}"


def number_of(label: str) -> int | None:
    """Return the number of the team whose slug this lower-case label would be; None for any other text."""
    found = _SLUG.fullmatch(label)
    if found is None:
        return None
    number = int(found[1])
    return number if slug(number) == label else None


async def teams_of(source: Source, labels: Iterable[str]) -> dict[str, UUID]:
    """Return the teams of those of these labels that are slugs."""
    numbers = {number: label for label in labels if (number := number_of(label)) is not None}
    return {numbers[number]: team for number, team in await queries.numbered(source, list(numbers))}
