"""The shop of the demo: its names, what it sells, and the customers that it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pillarbox.demo.schedule import SeededRandom

TEAM: Final = "Saltmarsh Pottery (demo)"
OWNER: Final = "Mara Lindqvist"
OWNER_LOCAL: Final = "delivered+mara"

DOMAIN: Final = "saltmarsh.example"
NEWS_DOMAIN: Final = "news.saltmarsh.example"
BROKEN_DOMAIN: Final = "pottery-shop.example"

ORDERS: Final = f"Saltmarsh Pottery <orders@{DOMAIN}>"
ACCOUNTS: Final = f"Saltmarsh Pottery <account@{DOMAIN}>"
LETTERS: Final = f"Mara at Saltmarsh <letters@{NEWS_DOMAIN}>"
HELLO: Final = f"hello@{DOMAIN}"
WHOLESALE: Final = f"wholesale@{DOMAIN}"

SHOP_HOOK: Final = "https://shop.saltmarsh.localhost/hooks/mail"
CRM_HOOK: Final = "https://crm.saltmarsh.localhost/events"
"""Names below `localhost` are this machine, so an installation refuses to call them and asks no DNS."""

FIRST: Final = [
    "Ada",
    "Agnes",
    "Aino",
    "Alba",
    "Alma",
    "Amir",
    "Anders",
    "Anouk",
    "Arlo",
    "Astrid",
    "Beatriz",
    "Benno",
    "Birgit",
    "Bruno",
    "Camille",
    "Carla",
    "Cédric",
    "Chiara",
    "Clara",
    "Dario",
    "Dina",
    "Edda",
    "Elena",
    "Elif",
    "Emil",
    "Enzo",
    "Esther",
    "Fatima",
    "Felix",
    "Finn",
    "Flora",
    "Frida",
    "Gustav",
    "Hana",
    "Hanna",
    "Hugo",
    "Ida",
    "Ilse",
    "Imke",
    "Ines",
    "Iris",
    "Ivo",
    "Jakob",
    "Jana",
    "Jasper",
    "Johan",
    "Jonas",
    "Jule",
    "Kaja",
    "Karim",
    "Kata",
    "Kirsten",
    "Lars",
    "Lena",
    "Leo",
    "Lina",
    "Linus",
    "Lotte",
    "Louis",
    "Lucia",
    "Magnus",
    "Maja",
    "Marek",
    "Marta",
    "Mateo",
    "Matilda",
    "Mikkel",
    "Mila",
    "Mina",
    "Nadia",
    "Nils",
    "Noor",
    "Nora",
    "Olga",
    "Oskar",
    "Otto",
    "Paula",
    "Pelle",
    "Petra",
    "Pia",
    "Rafael",
    "Rosa",
    "Ruben",
    "Runa",
    "Saga",
    "Samir",
    "Selma",
    "Sofie",
    "Sven",
    "Tara",
    "Tess",
    "Theo",
    "Tilda",
    "Tomas",
    "Uma",
    "Vera",
    "Vito",
    "Wanda",
    "Wim",
    "Yara",
    "Yusuf",
    "Zoe",
]
LAST: Final = [
    "Aalto",
    "Abel",
    "Adler",
    "Andersson",
    "Arnold",
    "Baker",
    "Bakker",
    "Bauer",
    "Becker",
    "Berg",
    "Bergström",
    "Blom",
    "Boer",
    "Brandt",
    "Bruun",
    "Castro",
    "Claes",
    "Conti",
    "Costa",
    "Dahl",
    "Demir",
    "Dietrich",
    "Dubois",
    "Ekman",
    "Engel",
    "Falk",
    "Ferrari",
    "Fischer",
    "Fontaine",
    "Fuchs",
    "Garcia",
    "Graf",
    "Greco",
    "Haas",
    "Hagen",
    "Hansen",
    "Hartmann",
    "Heller",
    "Holm",
    "Huber",
    "Ivanova",
    "Jansen",
    "Jensen",
    "Kaya",
    "Keller",
    "Klein",
    "Koch",
    "König",
    "Kowalski",
    "Kramer",
    "Lang",
    "Larsen",
    "Laurent",
    "Lehmann",
    "Lind",
    "Lombardi",
    "Lund",
    "Maier",
    "Marino",
    "Martens",
    "Meyer",
    "Moreau",
    "Möller",
    "Müller",
    "Nagel",
    "Nielsen",
    "Nilsson",
    "Novak",
    "Olsen",
    "Ortega",
    "Peeters",
    "Petersen",
    "Pohl",
    "Quist",
    "Rask",
    "Richter",
    "Rossi",
    "Roth",
    "Roux",
    "Ruiz",
    "Santos",
    "Sauer",
    "Schmidt",
    "Schulz",
    "Silva",
    "Simon",
    "Sommer",
    "Stein",
    "Strand",
    "Sturm",
    "Svensson",
    "Thomsen",
    "Tran",
    "Unger",
    "Vega",
    "Vogel",
    "Vos",
    "Wagner",
    "Weber",
    "Winter",
    "Wolf",
    "Ziegler",
    "Zimmer",
]
CITIES: Final = (
    *("Lübeck", "Malmö", "Utrecht", "Gent", "Aarhus", "Bremen", "Lyon", "Graz"),
    *("Porto", "Turin", "Leipzig", "Basel"),
)


@dataclass(frozen=True, slots=True)
class Product:
    """Something that the shop sells; `price` is in cents."""

    name: str
    price: int


PRODUCTS: Final = (
    Product("Tidal mug, speckled", 2800),
    Product("Tidal mug, indigo", 2800),
    Product("Dune plate, 22 cm", 3400),
    Product("Dune plate, 27 cm", 4200),
    Product("Reed vase, tall", 8900),
    Product("Reed vase, small", 4900),
    Product("Harvest bowl", 5600),
    Product("Ramen bowl, ash glaze", 4600),
    Product("Espresso cups, set of four", 6400),
    Product("Butter dish with lid", 5200),
    Product("Tea pot, 0.9 l", 11800),
    Product("Berry colander", 4400),
    Product("Salt cellar", 2400),
    Product("Serving platter, oval", 9600),
)

WORKSHOPS: Final = ("Throwing for beginners", "Glazing evening", "Hand-building for families")


@dataclass(frozen=True, slots=True)
class Customer:
    """Somebody to whom the shop writes. `address` is of the simulator, and its first word is what happens."""

    first: str
    last: str
    address: str
    city: str
    orders: int

    @property
    def full_name(self) -> str:
        """First and last name."""
        return f"{self.first} {self.last}"

    @property
    def mailbox(self) -> str:
        """The address with the name before it."""
        return f"{self.full_name} <{self.address}>"


ASCII: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "é": "e", "å": "a", "ø": "o"})


def customers(chance: SeededRandom, count: int, simulator: str) -> list[Customer]:
    """Return so many different customers whose mail is delivered."""
    names = [(first, last) for first in FIRST for last in LAST]
    return [
        customer(first, last, "delivered", simulator, chance)
        for first, last in chance.sample(names, min(count, len(names)))
    ]


def customer(first: str, last: str, fate: str, simulator: str, chance: SeededRandom) -> Customer:
    """Return a customer to whose mail this happens at the simulator: `delivered`, `bounced`, `complained`."""
    label = f"{first}.{last}".lower().translate(ASCII)
    return Customer(
        first=first,
        last=last,
        address=f"{fate}+{label}@{simulator}",
        city=chance.choice(CITIES),
        orders=chance.choices((0, 1, 2, 3, 5, 8), (20, 38, 20, 12, 7, 3))[0],
    )


def euros(cents: int) -> str:
    """Return an amount as the shop writes it."""
    return f"€{cents // 100}.{cents % 100:02d}"
