"""What an OpenID Connect provider, or somebody between it and Pillarbox, may not achieve."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jws import JWSRegistry

from kit.openid_provider import (
    CALLBACK,
    NAME,
    SECRET,
    Claims,
    OpenIdProvider,
    goes_through,
    new_key,
    openid_world,
    sent_to_provider,
    user,
)
from kit.people import HASHED, SESSION, WAITS, Visit, a_person, heading, logged_in, text_of, visit
from kit.world import Team, World
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.people import accounts
from pillarbox.people.openid import login_state, openid_logins
from pillarbox.people.openid import provider as provider_module

IDS = Ids(SystemClock())
REFUSED = f"{NAME} did not log you in"

Place = tuple[str, Path]


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database and a folder for tests that each have people of their own."""
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("attacks")
    databases.drop(url)


@pytest.fixture(autouse=True)
def many_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openid_logins, "PER_NETWORK", 1000)


@asynccontextmanager
async def opened(place: Place, **settings: str) -> AsyncIterator[tuple[World, OpenIdProvider]]:
    async with openid_world(*place, **settings) as found:
        yield found


async def joined(team: Team, provider: OpenIdProvider, name: str) -> Claims:
    """Somebody who has come in by the provider before."""
    await a_person(team, f"{name}@quay.example", password=False)
    somebody = user(name)
    answer = await goes_through(visit(team.world), provider, somebody)
    assert answer.status_code == 303, answer.text
    return somebody


def assert_refused(browser: Visit, answer: httpx.Response, status: int, words: str) -> None:
    """Nobody is logged in, and the page says what to do."""
    assert (answer.status_code, heading(answer)) == (status, REFUSED), answer.text
    assert words in text_of(answer)
    assert "Back to the login" in text_of(answer)
    assert SESSION not in browser.cookies


async def reasons(pillarbox: World) -> list[str]:
    rows = await pillarbox.pool.fetch(
        "SELECT details->>'detail' FROM audit_entries WHERE what = 'login.failed' ORDER BY id"
    )
    return [row[0] for row in rows]


# Tokens ---------------------------------------------------------------------------------------------


def without_signature(provider: OpenIdProvider) -> Callable[[Claims, Claims], str]:
    registry = JWSRegistry(algorithms=["none"], strict_check_header=False)
    return lambda header, claims: jwt.encode({**header, "alg": "none"}, claims, None, registry=registry)


def by_secret(header: Claims, claims: Claims, secret: bytes) -> str:
    """A token of HS256; the library makes none with such a secret."""
    parts = [json.dumps(part).encode() for part in ({**header, "alg": "HS256"}, claims)]
    signed = b".".join(urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = hmac.digest(secret, signed, "sha256")
    return b".".join([signed, urlsafe_b64encode(signature).rstrip(b"=")]).decode()


def by_public_key(provider: OpenIdProvider) -> Callable[[Claims, Claims], str]:
    """HS256, with what everybody knows of the provider as the secret."""
    secret = provider.keys[0].as_pem(private=False)
    return lambda header, claims: by_secret(header, claims, secret)


def by_client_secret(provider: OpenIdProvider) -> Callable[[Claims, Claims], str]:
    return lambda header, claims: by_secret(header, claims, SECRET.encode())


def by_unknown_key(provider: OpenIdProvider) -> Callable[[Claims, Claims], str]:
    other = new_key("other")
    return lambda header, claims: jwt.encode({**header, "kid": "other"}, claims, other, ["RS256"])


def by_key_of_the_same_id(provider: OpenIdProvider) -> Callable[[Claims, Claims], str]:
    other = new_key(str(provider.keys[0].kid))
    return lambda header, claims: jwt.encode(header, claims, other, ["RS256"])


def by_key_in_the_header(provider: OpenIdProvider) -> Callable[[Claims, Claims], str]:
    other = new_key("mine")
    public = other.as_dict(private=False)
    return lambda header, claims: jwt.encode({**header, "jwk": public}, claims, other, ["RS256"])


def by_unnamed_algorithm(provider: OpenIdProvider) -> Callable[[Claims, Claims], str]:
    return lambda header, claims: jwt.encode({**header, "alg": "PS512"}, claims, provider.keys[0], ["PS512"])


FORGERIES = (
    without_signature,
    by_public_key,
    by_client_secret,
    by_unknown_key,
    by_key_of_the_same_id,
    by_key_in_the_header,
    by_unnamed_algorithm,
)


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
async def test_only_signatures_of_the_provider_count(place: Place) -> None:
    """OA-13: `none`, HS256 with a public key, other keys, and algorithms that discovery does not name."""
    async with opened(place) as (pillarbox, provider):
        somebody = await joined(await pillarbox.team(), provider, "ada")
        for forged in FORGERIES:
            provider.sign = forged(provider)
            browser = visit(pillarbox)
            answer = await goes_through(browser, provider, somebody)
            assert_refused(browser, answer, 403, "could not be proved")


CHANGES: dict[str, tuple[Claims, str]] = {
    "nonce": ({"nonce": "another"}, "nonce"),
    "no nonce": ({"nonce": None}, "nonce"),
    "issuer": ({"iss": "https://id.evil.example"}, "iss"),
    "issuer with a slash": ({"iss": "{issuer}/"}, "iss"),
    "audience": ({"aud": "another-client"}, "aud"),
    "audiences": ({"aud": ["another-client", "third"]}, "aud"),
    "audiences without azp": ({"aud": ["pillarbox-harbor", "another-client"]}, "azp"),
    "azp": ({"azp": "another-client"}, "azp"),
    "expired": ({"exp": 1_700_000_000}, "exp"),
    "no exp": ({"exp": None}, "exp"),
    "exp as text": ({"exp": "9999999999"}, "exp"),
    "exp true": ({"exp": True}, "exp"),
    "issued tomorrow": ({"iat": 9_999_999_999}, "iat"),
    "no iat": ({"iat": None}, "iat"),
    "begins tomorrow": ({"nbf": 9_999_999_999}, "nbf"),
    "at_hash": ({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, "at_hash"),
    "no sub": ({"sub": None}, "sub"),
    "long sub": ({"sub": "s" * 256}, "sub"),
    "sub as number": ({"sub": 7}, "sub"),
}


async def test_a_token_must_be_for_this_login(place: Place) -> None:
    """OA-13."""
    async with opened(place) as (pillarbox, provider):
        somebody = await joined(await pillarbox.team(), provider, "bea")
        for name, (change, detail) in CHANGES.items():
            altered = {key: _filled(value, provider.issuer) for key, value in change.items()}
            provider.alter = _altering(altered)
            browser = visit(pillarbox)
            answer = await goes_through(browser, provider, somebody)
            assert_refused(browser, answer, 403, "could not be proved")
            assert (await reasons(pillarbox))[-1] == detail, name


def _altering(altered: Claims) -> Callable[[Claims], Claims]:
    """Put these claims in place of the right ones; None leaves one out."""
    return lambda claims: {key: value for key, value in (claims | altered).items() if value is not None}


def _filled(value: Any, issuer: str) -> Any:
    return value.format(issuer=issuer) if isinstance(value, str) else value


async def test_several_audiences_and_a_skewed_clock_are_right(place: Place) -> None:
    """OA-13."""
    async with opened(place) as (pillarbox, provider):
        somebody = await joined(await pillarbox.team(), provider, "cal")
        provider.alter = lambda claims: {
            **claims,
            "aud": ["pillarbox-harbor", "api"],
            "azp": "pillarbox-harbor",
            "iat": claims["iat"] + 30,
            "nbf": claims["iat"] + 30,
        }
        assert (await goes_through(visit(pillarbox), provider, somebody)).status_code == 303


async def test_a_new_key_of_the_provider_is_fetched(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_module, "PAUSE", provider_module.PAUSE * 0)
    async with opened(place) as (pillarbox, provider):
        somebody = await joined(await pillarbox.team(), provider, "dan")
        provider.keys = [new_key("second")]
        assert (await goes_through(visit(pillarbox), provider, somebody)).status_code == 303
        assert provider.requests.count("/keys") == 2
        assert (await goes_through(visit(pillarbox), provider, somebody)).status_code == 303
        assert provider.requests.count("/keys") == 2


# The way back -----------------------------------------------------------------------------------------


async def test_an_answer_counts_once_and_in_its_own_browser(place: Place) -> None:
    """UI-06, OA-14: state that is replayed, of another browser, and made up."""
    async with opened(place) as (pillarbox, provider):
        provider.user = await joined(await pillarbox.team(), provider, "eva")
        browser, other = visit(pillarbox), visit(pillarbox)
        back = provider.sends_back(await sent_to_provider(browser))
        await sent_to_provider(other)
        assert_refused(other, await other.get(back), 400, "began in another browser")
        stranger = visit(pillarbox)
        assert_refused(stranger, await stranger.get(back), 400, "began in another browser")
        assert (await browser.get(back)).status_code == 303
        browser.cookies.pop(SESSION)
        assert_refused(browser, await browser.get(back), 400, "was used already")
        assert_refused(browser, await browser.get(f"{CALLBACK}?state=x&code=y"), 400, "began in another")
        assert_refused(browser, await browser.get(CALLBACK), 400, "began in another")
        assert provider.issued == 2


async def test_of_answers_that_come_at_once_one_counts_and_two_tabs_do_not_disturb_each_other(
    place: Place,
) -> None:
    """OA-14."""
    async with opened(place) as (pillarbox, provider):
        provider.user = await joined(await pillarbox.team(), provider, "zoe")
        first, browser = visit(pillarbox), visit(pillarbox)
        tabs = [provider.sends_back(await sent_to_provider(browser)) for _ in range(2)]
        for back in tabs:
            browser.cookies.pop(SESSION, None)
            assert (await browser.get(back)).status_code == 303
        back = provider.sends_back(await sent_to_provider(first))
        copies = [Visit(first.http, dict(first.cookies)) for _ in range(5)]
        answers = await asyncio.gather(*(copy.get(back) for copy in copies))
        assert sorted(answer.status_code for answer in answers) == [303, 400, 400, 400, 400]


async def test_a_code_counts_once(place: Place) -> None:
    async with opened(place) as (pillarbox, provider):
        provider.user = await joined(await pillarbox.team(), provider, "fay")
        thief = visit(pillarbox)
        mine = provider.sends_back(await sent_to_provider(visit(pillarbox)))
        stolen = parse_qs(urlsplit(mine).query)["code"][0]
        own = dict(parse_qsl(urlsplit(provider.sends_back(await sent_to_provider(thief))).query))
        # The code of another login: its verifier and nonce are of that browser.
        answer = await thief.get(f"{CALLBACK}?{urlencode({**own, 'code': stolen})}")
        assert_refused(thief, answer, 503, "does not understand")


async def test_a_login_waits_for_ten_minutes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """OA-14."""
    async with opened(place) as (pillarbox, provider):
        provider.user = await joined(await pillarbox.team(), provider, "gia")
        browser = visit(pillarbox)
        back = provider.sends_back(await sent_to_provider(browser))
        monkeypatch.setattr(login_state, "LASTS", login_state.LASTS * 0)
        assert_refused(browser, await browser.get(back), 400, "took longer than ten minutes")


async def test_the_answer_of_another_provider_is_not_taken_to_this_one(place: Place) -> None:
    """OA-14: RFC 9207 against mixing up providers."""
    async with opened(place) as (pillarbox, provider):
        provider.user = await joined(await pillarbox.team(), provider, "hedy")
        provider.discovery = {"authorization_response_iss_parameter_supported": True}
        browser = visit(pillarbox)
        back = provider.sends_back(await sent_to_provider(browser))
        answer = await browser.get(f"{back}&{urlencode({'iss': 'https://id.evil.example'})}")
        assert_refused(browser, answer, 503, "does not understand")
        back = provider.sends_back(await sent_to_provider(browser))
        right = await browser.get(f"{back}&{urlencode({'iss': provider.issuer})}")
        assert right.status_code == 303


async def test_a_promised_issuer_must_be_there(place: Place) -> None:
    """OA-14."""
    async with openid_world(*place) as (pillarbox, provider):
        provider.discovery = {"authorization_response_iss_parameter_supported": True}
        browser = visit(pillarbox)
        provider.user = user("ivy")
        back = provider.sends_back(await sent_to_provider(browser))
        assert_refused(browser, await browser.get(back), 503, "does not understand")


async def test_nobody_is_sent_to_another_site(place: Place) -> None:
    """UI-07."""
    async with opened(place) as (pillarbox, provider):
        somebody = await joined(await pillarbox.team(), provider, "jo")
        for to in ("https://evil.example/", "//evil.example", "/\\evil.example", "/%2f/evil", "javascript:1"):
            path = f"/login/openid?{urlencode({'to': to})}"
            answer = await goes_through(visit(pillarbox), provider, somebody, path)
            assert answer.headers["location"] == "/dashboard"


async def test_what_the_browser_is_sent_with_tells_nothing_of_the_login(place: Place) -> None:
    """OA-03, OA-14: PKCE with S256, a nonce, the redirect URI under the public URL."""
    async with opened(place, public_url="https://mail.harbor.example") as (pillarbox, _):
        asked = dict(parse_qsl(urlsplit(await sent_to_provider(visit(pillarbox))).query))
        assert asked["redirect_uri"] == f"https://mail.harbor.example{CALLBACK}"
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        assert asked["scope"] == "openid email profile"
        assert re.fullmatch(r"[A-Za-z0-9_-]{43}", asked["code_challenge"])
        assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3


async def test_a_refusal_of_the_provider_is_a_page(place: Place) -> None:
    async with opened(place) as (pillarbox, provider):
        provider.user = None
        browser = visit(pillarbox)
        answer = await browser.get(provider.sends_back(await sent_to_provider(browser)))
        assert_refused(browser, answer, 403, "has not let you in")
        back = provider.sends_back(await sent_to_provider(browser))
        hostile = await browser.get(f"{back}&error_description=%3Cscript%3Ealert(1)%3C/script%3E")
        assert "<script" not in hostile.text


async def test_tries_from_one_address_are_bounded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-03."""
    monkeypatch.setattr(openid_logins, "PER_NETWORK", 3)
    async with opened(place) as (pillarbox, provider):
        browser = visit(pillarbox)
        provider.user = None
        for _ in range(3):
            back = provider.sends_back(await sent_to_provider(browser))
            assert (await browser.get(back)).status_code == 403
        answer = await browser.get(provider.sends_back(await sent_to_provider(browser)))
        assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (429, True)


async def test_a_page_of_another_site_shuts_no_network_out(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-03: images of `/login/openid` and of the way back are neither counted nor recorded."""
    monkeypatch.setattr(openid_logins, "PER_NETWORK", 3)
    async with opened(place) as (pillarbox, provider):
        somebody = await joined(await pillarbox.team(), provider, "kay")
        before = len(await reasons(pillarbox))
        browser, image = visit(pillarbox), {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
        await sent_to_provider(browser)
        for _ in range(5):
            begun = await browser.get("/login/openid", **image)
            assert (begun.status_code, "location" in begun.headers) == (403, False)
            for guest in (visit(pillarbox), browser):
                answer = await guest.get(f"{CALLBACK}?state=x&code=y", **image)
                assert answer.status_code == 400
        assert len(await reasons(pillarbox)) == before
        for site, mode in (("cross-site", "navigate"), ("none", "navigate"), ("same-origin", "cors")):
            opened_by = {"sec-fetch-site": site, "sec-fetch-mode": mode}
            assert (await browser.get("/login/openid", **opened_by)).status_code == 303
        assert (await goes_through(browser, provider, somebody)).status_code == 303


# People -----------------------------------------------------------------------------------------------


async def test_only_a_verified_address_joins(place: Place) -> None:
    """OA-15."""
    async with opened(place) as (pillarbox, provider):
        await a_person(await pillarbox.team(), "lou@quay.example", password=False)
        for said in (False, None, "true", 1):
            browser = visit(pillarbox)
            answer = await goes_through(browser, provider, user("lou", email_verified=said))
            assert_refused(browser, answer, 403, "does not say that your email address is verified")
        for address in (
            None,
            "",
            "no address",
            ["lou@quay.example"],
            "lou@quay.example, eve@evil.example",
        ):
            browser = visit(pillarbox)
            answer = await goes_through(browser, provider, user("lou", email=address))
            assert_refused(browser, answer, 403, "does not say that your email address is verified")


async def test_an_account_with_another_way_in_is_joined_to_nobody_by_its_address(place: Place) -> None:
    """OA-15: without a password, but with a passkey or a login of before."""
    async with opened(place) as (pillarbox, provider):
        team = await pillarbox.team()
        mae, ned = [await a_person(team, f"{name}@quay.example", password=False) for name in ("mae", "ned")]
        await pillarbox.pool.execute("UPDATE people SET last_login_at = now() WHERE id = $1", mae.id)
        await pillarbox.pool.execute(
            """
            INSERT INTO person_passkeys (id, person_id, public_key, sign_count, transports, name, created_at)
            VALUES ('ned', $1, '', 0, '{}', 'key', now())
            """,
            ned.id,
        )
        for name in ("mae", "ned"):
            browser = visit(pillarbox)
            answer = await goes_through(browser, provider, user(name))
            assert_refused(browser, answer, 403, "logs in another way")


async def test_an_account_that_is_set_up_at_the_same_moment_is_not_joined(place: Place) -> None:
    """OA-15: its password counts, although it was not there when the provider's answer came."""
    async with opened(place) as (pillarbox, provider):
        xia = await a_person(await pillarbox.team(), "xia@quay.example", password=False)
        browser = visit(pillarbox)
        provider.user = user("xia")
        back = provider.sends_back(await sent_to_provider(browser))
        async with transaction(pillarbox.pool) as conn:
            await accounts.set_password(conn, IDS.now(), xia.id, HASHED)
            login = asyncio.create_task(browser.get(back))
            while not login.done() and not await pillarbox.pool.fetchval(WAITS):
                pass
        assert_refused(browser, await login, 400, "Please begin again")
        asked = await goes_through(browser, provider)
        assert asked.headers["location"] == "/login/openid/join"


async def test_an_address_that_was_given_to_somebody_else_opens_no_account(place: Place) -> None:
    """OA-15."""
    async with opened(place) as (pillarbox, provider):
        somebody = await joined(await pillarbox.team(), provider, "oda")
        browser = visit(pillarbox)
        answer = await goes_through(browser, provider, {**somebody, "sub": "the-next-oda"})
        assert_refused(browser, answer, 403, "belongs to somebody else")


async def test_the_password_is_of_the_account_and_its_tries_are_bounded(place: Place) -> None:
    async with opened(place) as (pillarbox, provider):
        team = await pillarbox.team()
        pam, quin = await a_person(team, "pam@quay.example"), await a_person(team, "quin@quay.example")
        browser, other = visit(pillarbox), visit(pillarbox)
        await goes_through(browser, provider, user("pam"))
        await sent_to_provider(other)
        other.cookies["__Host-pillarbox-join"] = browser.cookies["__Host-pillarbox-join"]
        stolen = await other.send("/login", "/login/openid/join", password=pam.password)
        assert_refused(other, stolen, 400, "began in another browser")
        for _ in range(5):
            assert (await browser.send("/login/openid/join", password="not this one")).status_code == 403
        assert (await browser.send("/login/openid/join", password=pam.password)).status_code == 429
        # What is under way ends with the account's address.
        third = visit(pillarbox)
        await goes_through(third, provider, user("quin"))
        async with transaction(pillarbox.pool) as conn:
            await accounts.set_address(conn, quin.id, email_address("q@quay.example"))
        moved = await third.send("/login/openid/join", password=quin.password)
        assert_refused(third, moved, 400, "Please begin again")


async def test_whoever_is_shut_out_stays_out(place: Place) -> None:
    """Before a login, and later: its session ends."""
    async with opened(place) as (pillarbox, provider):
        somebody = await joined(await pillarbox.team(), provider, "rex")
        browser = visit(pillarbox)
        await goes_through(browser, provider, somebody)
        rex = await pillarbox.pool.fetchval("SELECT id FROM people WHERE email = 'rex@quay.example'")
        async with transaction(pillarbox.pool) as conn:
            await accounts.disable(conn, IDS.now(), rex)
        assert (await browser.get("/account")).headers["location"] == "/login?to=/account"
        again = visit(pillarbox)
        assert_refused(again, await goes_through(again, provider, somebody), 403, "is disabled")
        other = visit(pillarbox)
        answer = await goes_through(other, provider, {**somebody, "sub": "another"})
        assert_refused(other, answer, 403, "is disabled")


async def test_a_login_that_was_begun_by_another_person_confirms_nobody(place: Place) -> None:
    async with opened(place) as (pillarbox, provider):
        team = await pillarbox.team()
        sam, tia = await joined(team, provider, "sam"), await joined(team, provider, "tia")
        browser = visit(pillarbox)
        await goes_through(browser, provider, sam)
        back = provider.sends_back(await sent_to_provider(browser, "/confirm/openid"))
        browser.cookies.pop(SESSION)
        await goes_through(browser, provider, tia)
        answer = await browser.get(back)
        assert (answer.status_code, "began in another browser" in text_of(answer)) == (400, True)


async def test_nobody_joins_the_name_of_somebody_else_to_an_account(place: Place) -> None:
    """OA-15: a browser that somebody else has logged in at the provider."""
    async with opened(place) as (pillarbox, provider):
        yan = await a_person(await pillarbox.team(), "yan@quay.example")
        browser = await logged_in(pillarbox, yan)
        answer = await goes_through(browser, provider, user("mallory"), "/account/openid")
        assert (answer.status_code, "you are somebody else than here" in text_of(answer)) == (403, True)
        answer = await goes_through(browser, provider, user("yan", verified=False), "/account/openid")
        assert (answer.status_code, "is verified" in text_of(answer)) == (403, True)
        assert "can log you in, once it has verified" in text_of(await browser.get("/account"))


# A provider that fails ----------------------------------------------------------------------------------


async def test_a_provider_that_hangs_is_given_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_module, "SECONDS", 0.2)
    async with opened(place) as (pillarbox, provider):
        provider.answers["/.well-known/openid-configuration"] = None
        browser = visit(pillarbox)
        for _ in range(3):
            answer = await browser.get("/login/openid")
            assert_refused(browser, answer, 503, "does not answer at the moment")
        # After a failure it is not asked again for a moment.
        assert provider.requests == ["/.well-known/openid-configuration"]


ANSWERS = (
    None,
    b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 302 No\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[[[[[[[[[",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n",
    b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"keys": 17}',
    b"",
)


async def test_whatever_the_provider_answers_is_a_page(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_module, "SECONDS", 0.2)
    monkeypatch.setattr(provider_module, "PAUSE", provider_module.PAUSE * 0)
    async with opened(place) as (pillarbox, provider):
        for path in ("/token", "/keys"):
            for answer in ANSWERS:
                provider.answers = {path: answer}
                browser = visit(pillarbox)
                found = await goes_through(browser, provider, user("una"))
                assert (found.status_code, heading(found)) == (503, REFUSED)


WRONG_DOCUMENTS: tuple[Claims, ...] = (
    {"issuer": "https://id.evil.example"},
    {"authorization_endpoint": "http://id.quay.example/authorize"},
    {"token_endpoint": "file:///etc/passwd"},
    {"jwks_uri": None},
    {"id_token_signing_alg_values_supported": ["none", "HS256"]},
    {"token_endpoint_auth_methods_supported": ["private_key_jwt"]},
)


async def test_a_discovery_document_that_is_wrong_leads_nowhere(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_module, "PAUSE", provider_module.PAUSE * 0)
    async with opened(place) as (pillarbox, provider):
        for wrong in WRONG_DOCUMENTS:
            provider.discovery = wrong
            browser = visit(pillarbox)
            assert_refused(browser, await browser.get("/login/openid"), 503, "does not understand")


async def test_endpoints_on_other_hosts_are_not_on_the_private_network(place: Place) -> None:
    """WH-06: the operator has named the issuer; a document names the rest."""
    async with opened(place) as (pillarbox, provider):
        pillarbox.zone.add("keys.quay.example", "A", "127.0.0.1")
        provider.discovery = {"jwks_uri": f"https://keys.quay.example:{provider.port}/keys"}
        browser = visit(pillarbox)
        answer = await goes_through(browser, provider, user("vic"))
        assert_refused(browser, answer, 503, "does not answer at the moment")
        assert (await reasons(pillarbox))[-1] == "keys: The URL leads to an address that must not be reached."


async def test_the_secret_goes_into_the_form_where_discovery_says_only_that(place: Place) -> None:
    async with opened(place) as (pillarbox, provider):
        provider.discovery = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
        provider.client.methods = ("client_secret_post",)
        assert await joined(await pillarbox.team(), provider, "wim")
