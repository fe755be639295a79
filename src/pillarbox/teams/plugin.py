"""The slice of teams: how many of each thing a team may have."""

from __future__ import annotations

from pillarbox.kernel.slices import Container, Slice
from pillarbox.teams.allowances import Allowances
from pillarbox.teams.settings import MOST_API_KEYS, MOST_WEBHOOKS


def _allowances(kit: Container) -> Allowances:
    return Allowances(kit.settings[MOST_WEBHOOKS], kit.settings[MOST_API_KEYS])


SLICE = Slice(name="teams", provides={Allowances: _allowances})
