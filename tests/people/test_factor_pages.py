"""Logging in by a second factor and by a passkey, as a browser does it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.clock import ManualClock
from kit.passkey_device import PasskeyDevice
from kit.people import SESSION, Person, Visit, a_person, heading, recovery_codes, text_of, visit
from kit.world import World, world
from pillarbox.people.factors.factor_logins import MOST_CHALLENGES, MOST_TRIES, PENDING_FOR
from pillarbox.people.factors.factor_queries import SEEDS
from pillarbox.people.factors.second_factor import SecondFactor
from pillarbox.people.factors.totp import STEP_SECONDS, code_of, step_at

Place = tuple[str, Path]

SCRIPTS = re.compile(r'<script src="([^"]+)"')
OPTIONS = re.compile(r'data-options="([^"]+)"')
ASKED = re.compile(r'name="asked" value="([^"]+)"')


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("factors")
    databases.drop(url)


@dataclass(slots=True)
class Somebody:
    """A person with a browser."""

    world: World
    clock: ManualClock
    person: Person
    browser: Visit

    async def code(self) -> str:
        """What the phone shows now."""
        sealed = await self.world.pool.fetchval("SELECT totp FROM people WHERE id = $1", self.person.id)
        seed = self.world.app.need(SecondFactor).ring.open(sealed, SEEDS.context(self.person.id))
        return code_of(seed, step_at(self.clock.now()))

    async def next_code(self) -> str:
        self.clock.advance(STEP_SECONDS)
        return await self.code()

    async def turns_on(self) -> list[str]:
        """Set up the second factor; the recovery codes."""
        await self.browser.get("/account")
        begun = await self.browser.post("/account/factor/begin")
        shown = await self.browser.follow(begun)
        assert heading(shown) == "Set up a second factor"
        done = await self.browser.post("/account/factor", code=await self.code())
        assert heading(done) == "Your recovery codes", text_of(done)
        return recovery_codes(done)

    async def adds(self, device: PasskeyDevice, name: str = "Phone") -> httpx.Response:
        await self.browser.get("/account")
        page = await self.browser.post("/account/passkeys/begin")
        return await self.browser.post(
            "/account/passkeys", asked=asked(page), answer=device.makes(options(page)), name=name
        )

    async def acts(self) -> list[str]:
        rows = await self.world.pool.fetch(
            "SELECT what FROM audit_entries WHERE person_id = $1 ORDER BY id", self.person.id
        )
        return [row["what"] for row in rows]

    def elsewhere(self) -> Somebody:
        """The same person in another browser."""
        return Somebody(self.world, self.clock, self.person, visit(self.world))


def options(page: httpx.Response) -> str:
    found = OPTIONS.search(page.text)
    assert found, text_of(page)
    return unescape(found[1])


def asked(page: httpx.Response) -> str:
    found = ASKED.search(page.text)
    assert found, text_of(page)
    return found[1]


@asynccontextmanager
async def somebody(place: Place, name: str, **settings: Any) -> AsyncIterator[Somebody]:
    """Who has just logged in by password."""
    clock = ManualClock()
    settings = {"public_url": "https://mail.harbor.example", **settings}
    async with world(*place, started=False, clock=clock, **settings) as box:
        person = await a_person(await box.team(), f"{name}@quay.example")
        browser = visit(box)
        answer = await browser.log_in(person)
        assert answer.status_code == 303, answer.text
        yield Somebody(box, clock, person, browser)


def a_device(name: str = "phone", **changed: Any) -> PasskeyDevice:
    return PasskeyDevice("https://mail.harbor.example", name.encode() + bytes(16), **changed)


async def test_a_login_asks_for_the_code_of_the_phone(place: Place) -> None:
    """SEC-02."""
    async with somebody(place, "ada") as ada:
        assert len(await ada.turns_on()) == 10
        other = ada.elsewhere()
        answer = await other.browser.log_in(ada.person, to="/account?done=name")
        assert answer.headers["location"] == "/login/factor?to=/account%3Fdone%3Dname"
        pending = other.browser.cookies[SESSION]
        assert (await other.browser.get("/account")).headers["location"] == "/login?to=/account"
        page = await other.browser.get(answer.headers["location"])
        assert heading(page) == "Second factor"
        wrong = await other.browser.post("/login/factor", code="000000", to="/account?done=name")
        assert wrong.status_code == 403
        assert "The code is wrong" in text_of(wrong)
        right = await other.browser.post(
            "/login/factor", code=await other.next_code(), to="/account?done=name"
        )
        assert (right.status_code, right.headers["location"]) == (303, "/account?done=name")
        assert other.browser.cookies[SESSION] != pending, "a session with more power has a new token"
        assert heading(await other.browser.get("/account")) == "Your account"
        stale = visit(ada.world)
        stale.cookies[SESSION] = pending
        assert (await stale.get("/account")).status_code == 303
        assert (await stale.get("/login/factor")).headers["location"] == "/login"
        assert (await ada.acts())[-2:] == ["login.failed", "login.succeeded"]


async def test_a_code_that_two_browsers_send_at_once_lets_one_in(place: Place) -> None:
    async with somebody(place, "bea") as bea:
        await bea.turns_on()
        browsers = [visit(bea.world) for _ in range(5)]
        for browser in browsers:
            await browser.log_in(bea.person)
            await browser.get("/login/factor")
        code = await bea.next_code()
        answers = await asyncio.gather(*[one.post("/login/factor", code=code) for one in browsers])
        assert sorted(answer.status_code for answer in answers) == [303, 403, 403, 403, 403]


async def test_a_recovery_code_lets_in_once_and_says_so(place: Place) -> None:
    async with somebody(place, "cleo") as cleo:
        codes = await cleo.turns_on()
        for status in (303, 403):
            other = cleo.elsewhere()
            await other.browser.log_in(cleo.person)
            await other.browser.get("/login/factor")
            answer = await other.browser.post("/login/factor", code=codes[0].upper())
            assert answer.status_code == status
            if status == 303:
                shown = await other.browser.follow(answer)
                assert "You have used a recovery code" in text_of(shown)
                assert "Recovery codes left: 9" in text_of(shown)
        assert "recovery_codes.used" in await cleo.acts()


async def test_codes_cannot_be_guessed_and_the_owner_is_not_kept_out(place: Place) -> None:
    """SEC-03."""
    async with somebody(place, "dora") as dora:
        codes = await dora.turns_on()
        other = dora.elsewhere()
        await other.browser.log_in(dora.person)
        await other.browser.get("/login/factor")
        for _ in range(MOST_TRIES):
            assert (await other.browser.post("/login/factor", code="000000")).status_code == 403
        right = await other.next_code()
        refused = await other.browser.post("/login/factor", code=right)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        again = dora.elsewhere()
        await again.browser.log_in(dora.person)
        await again.browser.get("/login/factor")
        assert (await again.browser.post("/login/factor", code=right)).status_code == 429
        assert (await again.browser.post("/login/factor", code=codes[3])).status_code == 303


async def test_who_floods_recovery_codes_keeps_the_owner_out_of_nothing(place: Place) -> None:
    """SEC-03: somebody elsewhere who knows the password spends its own tries."""
    async with somebody(place, "dina", trusted_proxy="127.0.0.0/8") as dina:
        codes = await dina.turns_on()
        other = dina.elsewhere()
        await other.browser.log_in(dina.person)
        await other.browser.get("/login/factor")
        there = {"sec-fetch-site": "same-origin", "x-forwarded-for": "203.0.113.9"}
        for _ in range(MOST_TRIES):
            wrong = await other.browser.post("/login/factor", there, code="aaaa-bbbb-cccc-dddd")
            assert wrong.status_code == 403
        assert (await other.browser.post("/login/factor", there, code=codes[0])).status_code == 429
        home = {**there, "x-forwarded-for": "198.51.100.7"}
        again = dina.elsewhere()
        await again.browser.log_in(dina.person)
        await again.browser.get("/login/factor")
        assert (await again.browser.post("/login/factor", home, code=codes[0])).status_code == 303


async def test_what_waits_for_a_code_waits_ten_minutes(place: Place) -> None:
    async with somebody(place, "elsa") as elsa:
        await elsa.turns_on()
        other = elsa.elsewhere()
        await other.browser.log_in(elsa.person)
        await other.browser.get("/login/factor?to=/account")
        elsa.clock.advance(PENDING_FOR.total_seconds() + 1)
        late = await other.browser.post("/login/factor", code=await other.code(), to="/account")
        assert (late.status_code, late.headers["location"]) == (303, "/login?to=/account")
        assert (await other.browser.get("/account")).headers["location"] == "/login?to=/account"


async def test_turning_it_on_ends_other_sessions_and_gives_this_one_a_new_token(place: Place) -> None:
    """UI-05."""
    async with somebody(place, "fay") as fay:
        other = fay.elsewhere()
        await other.browser.log_in(fay.person)
        before = fay.browser.cookies[SESSION]
        await fay.turns_on()
        assert fay.browser.cookies[SESSION] != before
        assert heading(await fay.browser.get("/account")) == "Your account"
        assert (await other.browser.get("/account")).status_code == 303
        assert (await fay.acts())[-1] == "factor.added"


async def test_a_wrong_first_code_turns_nothing_on(place: Place) -> None:
    async with somebody(place, "gwen") as gwen:
        await gwen.browser.get("/account")
        await gwen.browser.follow(await gwen.browser.post("/account/factor/begin"))
        wrong = await gwen.browser.post("/account/factor", code="000000")
        assert wrong.status_code == 422
        assert "data:image/svg+xml" in wrong.text
        assert (await gwen.elsewhere().browser.log_in(gwen.person)).headers["location"] == "/dashboard"


async def test_new_recovery_codes_and_none_at_all(place: Place) -> None:
    async with somebody(place, "hope") as hope:
        old = await hope.turns_on()
        await hope.browser.get("/account")
        new = recovery_codes(await hope.browser.post("/account/factor/codes"))
        assert len(new) == 10
        assert not set(new) & set(old)
        await hope.browser.get("/account")
        done = await hope.browser.follow(await hope.browser.post("/account/factor/remove"))
        assert "the password is enough" in text_of(done)
        for path in ("/account/factor/codes", "/account/factor/remove", "/account/factor"):
            again = await hope.browser.post(path, code="123456")
            assert again.headers["location"] == "/account"
        assert (await hope.elsewhere().browser.log_in(hope.person)).headers["location"] == "/dashboard"
        acts = [act for act in await hope.acts() if not act.startswith("login.")]
        assert acts == ["factor.added", "recovery_codes.made", "factor.removed"]


async def test_a_passkey_logs_in_without_a_password(place: Place) -> None:
    """SEC-02."""
    async with somebody(place, "iris") as iris:
        await iris.turns_on()
        phone = a_device("iris")
        done = await iris.adds(phone)
        assert "The passkey is added." in text_of(await iris.browser.follow(done))
        other = iris.elsewhere()
        await other.browser.get("/login?to=/account")
        page = await other.browser.post("/login/passkey", to="/account?done=name")
        answer = await other.browser.post(
            "/login/passkey/answer",
            asked=asked(page),
            answer=phone.signs(options(page)),
            to="/account?done=name",
        )
        assert (answer.status_code, answer.headers["location"]) == (303, "/account?done=name")
        assert heading(await other.browser.get("/account")) == "Your account"
        assert (await iris.acts())[-2:] == ["passkey.added", "login.succeeded"]
        replayed = visit(iris.world)
        await replayed.get("/login")
        again = await replayed.post(
            "/login/passkey/answer", asked=asked(page), answer=phone.signs(options(page))
        )
        assert again.status_code == 403
        assert SESSION not in replayed.cookies


async def test_a_passkey_confirms_before_an_act_of_power(place: Place) -> None:
    async with somebody(place, "jane") as jane:
        phone = a_device("jane")
        await jane.adds(phone)
        jane.clock.advance(601)
        asks = await jane.browser.get("/account/password")
        assert asks.headers["location"] == "/confirm?to=/account/password"
        await jane.browser.follow(asks)
        before = jane.browser.cookies[SESSION]
        page = await jane.browser.post("/confirm/passkey", to="/account/password")
        wrong = await jane.browser.post(
            "/confirm/passkey/answer", asked=asked(page), answer="{}", to="/account/password"
        )
        assert wrong.status_code == 403
        await jane.browser.get("/confirm?to=/account/password")
        page = await jane.browser.post("/confirm/passkey", to="/account/password")
        done = await jane.browser.post(
            "/confirm/passkey/answer",
            asked=asked(page),
            answer=phone.signs(options(page)),
            to="/account/password",
        )
        assert done.headers["location"] == "/account/password"
        assert jane.browser.cookies[SESSION] != before
        assert heading(await jane.browser.follow(done)) == "Change your password"


async def test_passkeys_are_listed_and_removed(place: Place) -> None:
    async with somebody(place, "kate") as kate:
        await kate.adds(a_device("kate1"), name="<b>Phone</b>")
        await kate.adds(a_device("kate2"), name="  ")
        shown = await kate.browser.get("/account")
        assert "&lt;b&gt;Phone&lt;/b&gt;" in shown.text
        assert "<b>Phone" not in shown.text
        twice = await kate.adds(a_device("kate2"))
        assert twice.status_code == 422
        for wrong in ("", "zz", "00", a_device("kate").id.hex()):
            await kate.browser.get("/account")
            assert (await kate.browser.post("/account/passkeys/remove", id=wrong)).status_code == 303
        await kate.browser.get("/account")
        done = await kate.browser.post("/account/passkeys/remove", id=a_device("kate1").id.hex())
        left = await kate.browser.follow(done)
        assert "Phone" not in text_of(left)
        assert (await kate.acts())[-1] == "passkey.removed"


async def test_nobody_is_asked_for_passkeys_without_end(place: Place) -> None:
    async with somebody(place, "nina") as nina:
        guest = visit(nina.world)
        for browser, page, path in (
            (guest, "/login", "/login/passkey"),
            (nina.browser, "/account", "/confirm/passkey"),
        ):
            await browser.get(page)
            statuses = [(await browser.post(path)).status_code for _ in range(MOST_CHALLENGES + 1)]
            assert statuses == [*[200] * MOST_CHALLENGES, 429]
        assert (await nina.browser.post("/account/passkeys/begin")).status_code == 429
        asked_for = await nina.world.pool.fetchval("SELECT count(*) FROM person_challenges")
        assert asked_for <= 2 * MOST_CHALLENGES + 20


async def test_where_passkeys_are_not_possible_nothing_offers_them(place: Place) -> None:
    async with world(*place, started=False, public_url="http://mail.harbor.example") as box:
        person = await a_person(await box.team(), "lena@quay.example")
        browser = visit(box)
        assert "passkey" not in text_of(await browser.get("/login")).lower()
        assert (await browser.post("/login/passkey")).status_code == 409
        await browser.log_in(person)
        assert "Browsers allow passkeys" in text_of(await browser.get("/account"))
        assert (await browser.post("/account/passkeys/begin")).status_code == 409
        assert (await browser.post("/confirm/passkey")).status_code == 409
        answer = await browser.post("/login/passkey/answer", asked="x", answer="{}")
        assert answer.status_code == 403


async def test_scripts_are_ours_and_that_of_passkeys_is_where_one_is_asked_for(place: Place) -> None:
    """UI-04."""
    async with somebody(place, "mona") as mona:
        page = await mona.browser.get("/account")
        asks = await mona.browser.post("/account/passkeys/begin")
        frame = SCRIPTS.findall(page.text)
        assert [address.partition(".")[0] for address in frame] == ["/assets/dashboard"]
        assert SCRIPTS.findall(asks.text) == [*frame, "/scripts/passkeys.js"]
        assert "script-src 'self'" in asks.headers["content-security-policy"]
        assert "unsafe" not in asks.headers["content-security-policy"]
        script = await mona.browser.get("/scripts/passkeys.js")
        assert script.headers["content-type"].startswith("text/javascript")
        assert script.headers["x-content-type-options"] == "nosniff"
