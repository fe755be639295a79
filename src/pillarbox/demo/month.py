"""The month of the demo's team, as it goes on: its application, its clock, and what everybody does in "
"it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from pillarbox.api_keys.credentials import LastUsed
from pillarbox.application import App
from pillarbox.delivery.engine import Engine
from pillarbox.demo import work_queries
from pillarbox.demo.mail_texts import Order
from pillarbox.demo.process_requests import ProcessClient, request
from pillarbox.demo.schedule import DAYS, Agenda, MonthSize, SeededRandom, reading_delay
from pillarbox.demo.shop import Customer
from pillarbox.demo.simulation_clock import ScriptedClock
from pillarbox.kernel.security import link_tokens
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.link_tokens import LinkToken
from pillarbox.kernel.security.tracking_tokens import TrackedRecipient, link_token, open_token
from pillarbox.kernel.work.jobs import Jobs
from pillarbox.mail.smtp.intake import ReceivedText
from pillarbox.receiving.arrival import AcceptedRecipient, Arrival, ArrivalFate
from pillarbox.receiving.receive import MessageReceiver
from pillarbox.timeline import rollups
from pillarbox.webhooks.dispatch.engine import WebhookDispatcher

SENDING_CLIENT: Final = "198.51.100.25"
"""From where mail of customers comes; SPF of the simulator's domain names it."""

READERS: Final = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Mobile/15E148",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.4 Safari/605.1.15",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 "
    "Safari/537.36",
    "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 "
    "Mobile Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:139.0) Gecko/20100101 Thunderbird/139.0",
)
PROXIES: Final = (
    "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
    "Mozilla/5.0",
)
"""Programs of mailbox providers that fetch pictures before, or instead of, a reader."""

PROXY_PART: Final = 0.22
MOST_ROUNDS: Final = 400


class MonthStuckError(RuntimeError):
    """Work of the demo does not come to an end; this is a defect."""


@dataclass(slots=True)
class DemoMonth:
    """The month as it goes on. `shop` sends as the shop's program does, `office` as the people in it."""

    app: App
    clock: ScriptedClock
    chance: SeededRandom
    team_id: UUID
    shop: ProcessClient
    office: ProcessClient
    simulator: str
    start: datetime
    end: datetime
    size: MonthSize
    agenda: Agenda = field(init=False)
    parcels: dict[datetime, list[Order]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.agenda = Agenda(self.start)

    @property
    def now(self) -> datetime:
        """The instant that the month has reached."""
        return self.clock.now()

    def day(self, number: int, hour: float = 0.0) -> datetime:
        """Return an instant of the month by its day, of which the last is `DAYS`."""
        midnight = self.end.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight + timedelta(days=number - DAYS, hours=hour)

    def days(self, weekday: int) -> list[int]:
        """Return the days before today that are this day of the week, from Monday, 0, on."""
        return [number for number in range(DAYS) if self.day(number).weekday() == weekday]

    # Time -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Do all acts in their order, with the work that is due between them."""
        while (taken := self.agenda.take(self.end)) is not None:
            instant, act = taken
            await self.work_until(instant)
            self.clock.move_to(instant)
            await act()
        await self.work_until(self.end)
        self.clock.move_to(self.end)
        await self.app.need(LastUsed).flush()
        while await rollups.fold(self.app.kit.pool, self.now):
            pass

    async def work_until(self, instant: datetime) -> None:
        """Let jobs, scheduled mail and retries of webhooks run at their times."""
        for _ in range(MOST_ROUNDS):
            due = await work_queries.next_due(self.app.kit.pool)
            if due is None or due >= instant:
                return
            self.clock.move_to(due + timedelta(milliseconds=self.chance.randint(20, 700)))
            await self.work()
        raise MonthStuckError(f"work is due again and again at {self.now}")

    async def work(self) -> None:
        """Run the jobs that are due now, with all that follows from them."""
        jobs = self.app.need(Jobs)
        await jobs.look()
        await jobs.idle()
        await self.settle()

    async def settle(self) -> None:
        """Deliver the mail that is due now, and post its webhooks. What becomes due by that runs later."""
        engine = self.app.need(Engine)
        await engine.look()
        await engine.idle()
        await self.post_webhooks()

    async def post_webhooks(self) -> None:
        """Send the webhooks that are due now."""
        dispatcher = self.app.need(WebhookDispatcher)
        await dispatcher.look()
        await dispatcher.idle()

    async def send_copies(self) -> None:
        """Make and deliver all copies of broadcasts."""
        await self.work()
        engine = self.app.need(Engine)
        for _ in range(MOST_ROUNDS):
            taken = await engine.look()
            await engine.idle()
            if not taken:
                await self.post_webhooks()
                return
        raise MonthStuckError(f"copies do not end at {self.now}")

    def pass_moment(self, least: float, longest: float) -> None:
        """Let some seconds pass."""
        self.clock.move_to(self.now + timedelta(seconds=self.chance.uniform(least, longest)))

    # Mail -----------------------------------------------------------------------------------------------

    async def send(self, mail: Mapping[str, Any]) -> str:
        """Send a mail as the shop's program does; returns its id."""
        answer = await self.shop.call("POST", "/emails", mail)
        self.pass_moment(0.15, 1.6)
        await self.settle()
        return str(answer["id"])

    async def send_batch(self, mails: Sequence[Mapping[str, Any]]) -> list[str]:
        """Send mails in one request; returns their ids."""
        answer = await self.shop.call("POST", "/emails/batch", mails)
        self.pass_moment(0.3, 2.2)
        await self.settle()
        return [str(row["id"]) for row in answer["data"]]

    def is_read_later(
        self, email_id: str, customer: Customer, link: str, *, opened: float, clicked: float
    ) -> None:
        """Plan whether the customer opens the mail and follows its link, by these chances."""
        if not customer.address.startswith("delivered") or self.chance.random() >= opened:
            return
        when = self.now + reading_delay(self.chance)
        agent = self.chance.choice(READERS)
        if self.chance.random() < PROXY_PART:
            proxy = self.chance.choice(PROXIES)
            self.agenda.add(self.now + timedelta(seconds=4), lambda: self._open(email_id, proxy))
        self.agenda.add(when, lambda: self._open(email_id, agent))
        if self.chance.random() < clicked:
            later = when + timedelta(seconds=self.chance.uniform(5, 90))
            self.agenda.add(later, lambda: self._click(email_id, agent, link))

    async def _open(self, email_id: str, agent: str) -> None:
        keys = self.app.need(LinkKeys)
        token = open_token(TrackedRecipient(self.team_id, UUID(email_id), 0), await keys.maker(self.now))
        await self._visit(f"/t/o/{token}.gif", agent)

    async def _click(self, email_id: str, agent: str, link: str) -> None:
        keys = self.app.need(LinkKeys)
        who = TrackedRecipient(self.team_id, UUID(email_id), 0)
        token = link_token(who, 0, link, await keys.maker(self.now))
        await self._visit(f"/t/c/{token}", agent)
        await self.post_webhooks()

    async def leave_topic(self, email_id: str, customer: Customer, topic_id: str) -> None:
        """Let a recipient of a mail leave its topic by the one click of RFC 8058."""
        link = LinkToken(
            team_id=self.team_id,
            email_id=UUID(email_id),
            position=0,
            topic_id=UUID(topic_id),
            address=customer.address,
        )
        token = link_tokens.token(link, await self.app.need(LinkKeys).maker(self.now))
        form = {"content-type": "application/x-www-form-urlencoded"}
        await request(self.app.asgi, "POST", f"/unsubscribe/{token}", form, b"List-Unsubscribe=One-Click")

    async def _visit(self, path: str, agent: str) -> None:
        client = f"203.0.113.{self.chance.randint(2, 250)}"
        await request(self.app.asgi, "GET", path, {"user-agent": agent}, client=client)

    async def receive(self, raw: bytes, sender: str, recipient: str, client: str) -> str:
        """Let a mail come in from outside; returns its id."""
        arrival = Arrival(
            client=client,
            helo=f"mail.{sender.rpartition('@')[2]}",
            protocol="ESMTPS",
            tls=("TLSv1.3", "TLS_AES_256_GCM_SHA384"),
            mail_from=sender,
            recipients=(AcceptedRecipient(self.team_id, recipient),),
        )
        outcome = await self.app.need(MessageReceiver).take(arrival, ReceivedText(raw, None, len(raw)))
        if outcome.fate is not ArrivalFate.STORED:
            raise MonthStuckError(f"a mail of the demo was not stored: {outcome.fate.value}")
        await self.settle()
        return str(outcome.ids[0])
