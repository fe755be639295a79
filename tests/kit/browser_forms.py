"""Forms of pages in a browser, filled in as their reader would."""

from __future__ import annotations

from kit.browser import Tab
from kit.people import Person
from kit.world import World


async def fills(tab: Tab, **fields: str) -> None:
    """Write these values into the fields with these ids."""
    for name, value in fields.items():
        await tab.run(f"document.getElementById({name!r}).value = {value!r}")


async def logs_in(tab: Tab, here: World, person: Person, to: str) -> None:
    """Log in, and go on to this path."""
    await tab.open(f"{here.url}/login?to={to}")
    await fills(tab, email=person.email, password=person.password)
    await tab.presses("Log in")
