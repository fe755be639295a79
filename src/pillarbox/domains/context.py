"""What changing a domain needs besides the database."""

from __future__ import annotations

from dataclasses import dataclass

from pillarbox.domains.installation import Installation
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.webhooks.publish import Publisher


@dataclass(frozen=True, slots=True)
class DomainContext:
    here: Installation
    ring: KeyRing
    ids: Ids
    publisher: Publisher
