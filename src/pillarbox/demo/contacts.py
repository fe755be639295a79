"""The contacts of the demo's shop, by the lists that they are on."""

from __future__ import annotations

from typing import Final

from pillarbox.demo.schedule import SeededRandom
from pillarbox.demo.shop import customer, customers

READERS: Final = 0.55
IMPORTED: Final = 0.24
BAD_OF_IMPORT: Final = 0.14
COMPLAINTS_OF_IMPORT: Final = 0.025
"""Parts of the contacts, and of those who were imported."""

LOST_READERS: Final = 2
ANGRY_READERS: Final = 1
WRONG_ADDRESSES: Final = 11
"""Orders of people who mistyped their address."""

NEWSLETTER: Final = "Newsletter"
BUYERS: Final = "Buyers"
RESELLERS: Final = "Wholesale"
OLD_LIST: Final = "Market visitors (old list)"
SEGMENTS: Final = (NEWSLETTER, BUYERS, RESELLERS, OLD_LIST)


class ShopAudience:
    """The contacts of the shop by the lists that they are on."""

    def __init__(self, chance: SeededRandom, contacts: int, simulator: str) -> None:
        everybody = customers(chance, contacts, simulator)
        names = customers(SeededRandom(chance.random()), 90, simulator)
        lost = [customer(c.first, c.last, "bounced", simulator, chance) for c in names[:60]]
        angry = [customer(c.first, c.last, "complained", simulator, chance) for c in names[60:]]
        readers, imported = round(contacts * READERS), round(contacts * IMPORTED)
        self.buyers = everybody
        self.wholesale = everybody[-max(1, contacts // 20) :]
        self.readers = everybody[:readers] + lost[:LOST_READERS] + angry[:ANGRY_READERS]
        self.wrong = lost[LOST_READERS:][:WRONG_ADDRESSES]
        bad = lost[LOST_READERS + WRONG_ADDRESSES :][: round(imported * BAD_OF_IMPORT)]
        bad += angry[ANGRY_READERS:][: round(imported * COMPLAINTS_OF_IMPORT)]
        self.imported = everybody[readers : readers + imported] + bad
        self.everybody = list(dict.fromkeys([*everybody, *self.readers, *self.imported]))
        self.segments: dict[str, str] = {}
        self.topics: dict[str, str] = {}
        self.by_address = {c.address: c for c in self.everybody}
