"""Somebody who wants to log in with another address, and what is mailed about it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from kit.clock import ManualClock
from kit.manual_world import manual_world
from kit.people import Person, Visit, a_person, logged_in
from kit.people_mail import mail_to_people
from kit.world import Team

HERE = "/account/address"
LINK = re.compile(r"http[^/]*//[^/]+(/account/address/link/\S+)")

ACTS = "SELECT what, target, details::text FROM audit_entries WHERE person_id = $1 ORDER BY id"


@dataclass(frozen=True, slots=True)
class Moving:
    """Somebody who wants another address, and the browser in which it has just logged in."""

    team: Team
    person: Person
    browser: Visit

    async def asks(self, new: str) -> httpx.Response:
        await self.browser.get(HERE)
        return await self.browser.post(HERE, email=new)

    async def mails(self, to: str) -> list[tuple[str, str]]:
        """Return the subject and text of what was sent to an address."""
        mails = await mail_to_people(self.team.world)
        return [(mail.subject, mail.text) for mail in mails if mail.to == to]

    async def link(self, to: str) -> str:
        """Return the path of the last link that was mailed there."""
        return [path for _, text in await self.mails(to) for path in LINK.findall(text)][-1]

    async def uses(self, path: str) -> httpx.Response:
        await self.browser.get(path)
        return await self.browser.post(path)

    async def email(self) -> str:
        """Return what the person logs in with."""
        found: str = await self.team.world.pool.fetchval(
            "SELECT email FROM people WHERE id = $1", self.person.id
        )
        return found

    async def acts(self) -> list[str]:
        rows = await self.team.world.pool.fetch(ACTS, self.person.id)
        return [row["what"] for row in rows if row["what"].startswith("address.")]


@asynccontextmanager
async def moving(place: tuple[str, Path], name: str) -> AsyncIterator[Moving]:
    async with manual_world(*place, ManualClock()) as box:
        team = await box.team()
        person = await a_person(team, f"{name}@old.example")
        yield Moving(team, person, await logged_in(box, person))
