"""What teams bring: how many of each thing a team may have."""

from __future__ import annotations

from pillarbox.kernel.slices import Kit, Slice
from pillarbox.teams.allowances import Allowances


def _allowances(kit: Kit) -> Allowances:
    return Allowances(kit.settings.most_webhooks, kit.settings.most_api_keys)


SLICE = Slice(name="teams", provides={Allowances: _allowances})
