"""Domains as far as sending needs them (domains.md sections 1 to 4.3 and 7)."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from dataclasses import replace
from itertools import product
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from kit.client import HERE, HttpServer, error, http_server
from pillarbox.domains import names
from pillarbox.domains.context import DomainContext
from pillarbox.domains.installation import OwnershipProof
from pillarbox.domains.senders import Senders
from pillarbox.domains.status import DomainState, domain_state
from pillarbox.domains.trust import trust
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.wire.problems import Problem
from pillarbox.mail.authentication.dkim import load_key

CREATED = [
    "id", "name", "created_at", "status", "capabilities", "records", "region", "open_tracking",
    "click_tracking", "tracking_subdomain",
]  # fmt: skip
ITEM = [
    "id", "name", "status", "created_at", "region", "open_tracking", "click_tracking",
    "tracking_subdomain", "capabilities",
]  # fmt: skip
FULL = ["object", *ITEM, "records"]


def domain_context(api: HttpServer) -> DomainContext:
    """What the command line hands to `trust`."""
    return api.services.use(DomainContext)


async def test_the_three_shapes(database_url: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            body = {
                "name": "harbor.example",
                "region": "eu-west-1",
                "capabilities": {"receiving": "enabled"},
                "tracking_subdomain": "Links",
                "click_tracking": True,
            }
            answer = await client.post("/domains", json=body)
            made = answer.json()
            assert answer.status_code == 201
            assert list(made) == CREATED
            assert made["status"] == "not_started"
            assert made["capabilities"] == {"sending": "enabled", "receiving": "enabled"}
            assert (made["region"], made["tracking_subdomain"]) == ("eu-west-1", "links")
            key = made["records"][2]["value"]
            public = load_der_public_key(b64decode(key.removeprefix("p=")))
            assert isinstance(public, RSAPublicKey)
            assert public.key_size == 2048
            rest = {"ttl": "Auto", "status": "not_started"}
            mx = {"type": "MX", **rest, "value": "mx.pillar.example", "priority": 10}
            spf = {"type": "TXT", **rest, "value": '"v=spf1 a:mx.pillar.example ~all"'}
            assert made["records"] == [
                {"record": "SPF", "name": "send", **mx},
                {"record": "SPF", "name": "send", **spf},
                {"record": "DKIM", "name": "pillarbox._domainkey", "type": "TXT", **rest, "value": key},
                {"record": "Receiving", "name": "harbor.example", **mx},
                {
                    "record": "Tracking", "name": "links", "type": "CNAME", **rest,
                    "value": "track.pillar.example",
                },
            ]  # fmt: skip
            order = ["record", "name", "type", "ttl", "status", "value"]
            assert [list(record) for record in made["records"]] == [
                [*order, "priority"], order, order, [*order, "priority"], order,
            ]  # fmt: skip
            listed = (await client.get("/domains")).json()
            assert list(listed["data"][0]) == ITEM
            full = (await client.get(f"/domains/{made['id'].upper()}")).json()
            assert list(full) == FULL
            assert full == {"object": "domain", **made}
            assert listed["data"][0] == {name: made[name] for name in ITEM}


async def test_defaults_and_the_omitted_tracking_subdomain(database_url: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            body = {"name": "quay.example", "capabilities": None, "tracking_subdomain": None, "region": None}
            made = (await client.post("/domains", json=body)).json()
            assert list(made) == CREATED[:-1]
            assert made["capabilities"] == {"sending": "enabled", "receiving": "disabled"}
            assert made["region"] == "us-east-1"
            assert (made["open_tracking"], made["click_tracking"]) == (False, False)
            assert [record["record"] for record in made["records"]] == ["SPF", "SPF", "DKIM"]
            assert list((await client.get("/domains")).json()["data"][0]) == [
                name for name in ITEM if name != "tracking_subdomain"
            ]
            assert "tracking_subdomain" not in (await client.get(f"/domains/{made['id']}")).json()
            rows = await api.pool.fetch("SELECT return_path, tls FROM domains")
            assert [tuple(row) for row in rows] == [("send", "opportunistic")]


@pytest.mark.parametrize(
    ("name", "expected", "registrable"),
    [
        ("mail.harbor.example", ["send.mail", "pillarbox._domainkey.mail", "links.mail"], "harbor.example"),
        ("a.b.harbor.co.uk", ["send.a.b", "pillarbox._domainkey.a.b", "links.a.b"], "harbor.co.uk"),
        ("harbor.co.uk", ["send", "pillarbox._domainkey", "links"], "harbor.co.uk"),
        ("münchen.example", ["send", "pillarbox._domainkey", "links"], "xn--mnchen-3ya.example"),
    ],
)
async def test_record_names_are_relative(
    database_url: str, name: str, expected: list[str], registrable: str
) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            body = {"name": name, "tracking_subdomain": "links"}
            records = (await client.post("/domains", json=body)).json()["records"]
            assert [record["name"] for record in records] == [expected[0], *expected]
            assert names.registrable(names.normalised(name)) == registrable


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("  Harbor.EXAMPLE.  ", "harbor.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("Bücher。Example。", "xn--bcher-kva.example"),
        ("harbor.example。", "harbor.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("日本語.example", "xn--wgv71a119e.example"),
        ("a.b", "a.b"),
        ("1.example", "1.example"),
        ("r3---sn.example", "r3---sn.example"),
        (("a" * 63 + ".") * 3 + "b" * 61, ("a" * 63 + ".") * 3 + "b" * 61),
        ("github.io", "github.io"),
    ],
)
def test_names_are_put_in_normal_form(given: str, stored: str) -> None:
    """Section 1.1; a private suffix such as github.io is no public suffix of the ICANN section."""
    assert names.normalised(given) == stored
    assert not names.is_public_suffix(stored)


BAD_NAMES = [
    "localhost", "example..com", ".example.com", "example.com..", "-a.example", "a-.example",
    "a_b.example", "a b.example", "https://harbor.example", "harbor.example/x", "harbor.example:25",
    "ada@harbor.example", "192.0.2.1", "[192.0.2.1]", "::1", "a.1", "xn--zzzzzz.example", "xn--.example",
    "a" * 64 + ".example", "a." * 127 + "example", ("a" * 63 + ".") * 4, "x" * 5000, "é" * 900 + ".example",
    "co.uk", "com", "xn--p1ai", "\u202eharbor.example", "har\nbor.example",
    "pillarbox.test", "resend.dev", "mx.pillar.example", "track.pillar.example", "App.Pillar.Example",
    "in.pillar.example",
]  # fmt: skip


async def test_names_that_are_refused(database_url: str) -> None:
    here = replace(HERE, inbound_domain="in.pillar.example")
    async with http_server(database_url, here=here) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            for name in BAD_NAMES:
                status, wire_name, message = error(await client.post("/domains", json={"name": name}))
                assert (status, wire_name) == (422, "validation_error"), name
                assert message.startswith("Invalid `name` field. "), name
                assert len(message) < 200
            assert (await client.get("/domains")).json()["data"] == []
        assert await api.pool.fetchval("SELECT count(*) FROM dkim_keys") == 0


@pytest.mark.parametrize(
    ("fields", "name", "message"),
    [
        ({"name": None}, "missing_required_field", "Missing `name` field."),
        ({"name": ""}, "missing_required_field", "Missing `name` field."),
        ({"name": 5}, "validation_error", "Invalid `name` field. It must be a string."),
        ({"region": "mars"}, "invalid_region", "Invalid `region` field. Use "),
        ({"region": 5}, "invalid_region", "Invalid `region` field. Use "),
        (
            {"custom_return_path": "1a"},
            "validation_error",
            "Invalid `custom_return_path` field. Use one label",
        ),
        ({"custom_return_path": "a.b"}, "validation_error", "Invalid `custom_return_path` field. "),
        ({"custom_return_path": "a\n"}, "validation_error", "Invalid `custom_return_path` field. "),
        ({"custom_return_path": "a-"}, "validation_error", "Invalid `custom_return_path` field. "),
        ({"custom_return_path": "a" * 64}, "validation_error", "Invalid `custom_return_path` field. "),
        ({"custom_return_path": ""}, "validation_error", "Invalid `custom_return_path` field. "),
        ({"tracking_subdomain": "_dmarc"}, "validation_error", "Invalid `tracking_subdomain` field. "),
        ({"tracking_subdomain": "Send"}, "validation_error", "Invalid `tracking_subdomain` field. "),
        ({"capabilities": "all"}, "validation_error", "Invalid `capabilities` field. It must be an object."),
        (
            {"capabilities": {"sending": "on"}},
            "validation_error",
            "Invalid `capabilities.sending` field. Use `disabled` or `enabled`.",
        ),
        ({"capabilities": {"sending": "disabled"}}, "validation_error", "Invalid `capabilities` field. "),
        (
            {"open_tracking": "true"},
            "validation_error",
            "Invalid `open_tracking` field. It must be `true` or `false`.",
        ),
        ({"click_tracking": 1}, "validation_error", "Invalid `click_tracking` field. "),
        ({"tls": "none"}, "validation_error", "Invalid `tls` field. Use `enforced` or `opportunistic`."),
    ],
)
async def test_bad_fields(database_url: str, fields: dict[str, object], name: str, message: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            found = error(await client.post("/domains", json={"name": "harbor.example", **fields}))
            assert found[:2] == (422, name)
            assert found[2].startswith(message)


async def test_concurrent_creates_of_one_name_make_one_domain(database_url: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            answers = await asyncio.gather(
                *(client.post("/domains", json={"name": "harbor.example"}) for _ in range(6))
            )
            assert sorted(answer.status_code for answer in answers) == [201] + [403] * 5
            for answer in answers:
                if answer.status_code == 403:
                    assert error(answer)[1] == "validation_error"
                    assert "registered already" in error(answer)[2]
        for table in ("domains", "dkim_keys", "directory_domains"):
            assert await api.pool.fetchval(f"SELECT count(*) FROM {table}") == 1


async def test_a_name_of_several_teams(database_url: str) -> None:
    async with http_server(database_url) as api:
        one, two, three = [await api.team(name) for name in ("One", "Two", "Three")]
        async with api.client(one.token) as a, api.client(two.token) as b, api.client(three.token) as c:
            for client in (a, b):
                assert (await client.post("/domains", json={"name": "harbor.example"})).status_code == 201
            await trust(api.pool, "harbor.example", one.id, domain_context(api))
            refused = error(await c.post("/domains", json={"name": "Harbor.example"}))
            assert refused[:2] == (403, "validation_error")
            assert "claim" in refused[2]
            for path in ("sub.harbor.example", "harbor2.example"):
                assert (await c.post("/domains", json={"name": path})).status_code == 201
            with pytest.raises(Problem, match="another team"):
                await trust(api.pool, "harbor.example", two.id, domain_context(api))
            states = (await b.get("/domains")).json()["data"][0]["status"]
            assert states == "not_started"
            own = (await a.get("/domains")).json()["data"][0]["id"]
            foreign, unknown = await b.get(f"/domains/{own}"), await b.get(f"/domains/{uuid4()}")
            assert error(foreign) == error(unknown) == (404, "not_found", "Domain not found")
            assert error(await a.get("/domains/x"))[1] == "invalid_parameter"
            assert error(await a.get("/domains/claim"))[:2] == (405, "method_not_allowed")


async def test_an_operators_limit(database_url: str) -> None:
    async with http_server(database_url, here=replace(HERE, most_domains=1)) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            assert (await client.post("/domains", json={"name": "a.example"})).status_code == 201
            assert error(await client.post("/domains", json={"name": "b.example"}))[:2] == (
                403,
                "validation_error",
            )


@pytest.mark.parametrize(
    ("proof", "teams", "shown"),
    [
        (OwnershipProof.AUTO, 1, ["Receiving"]),
        (OwnershipProof.AUTO, 2, ["DKIM", "Receiving"]),
        (OwnershipProof.ALWAYS, 1, ["DKIM", "Receiving"]),
        (OwnershipProof.NEVER, 2, ["Receiving"]),
    ],
)
async def test_a_receiving_only_domain_shows_who_owns_it(
    database_url: str, proof: OwnershipProof, teams: int, shown: list[str]
) -> None:
    async with http_server(database_url, here=replace(HERE, receiving_ownership_proof=proof)) as api:
        made = [await api.team(str(number)) for number in range(teams)]
        async with api.client(made[0].token) as client:
            body = {
                "name": "harbor.example",
                "capabilities": {"sending": "disabled", "receiving": "enabled"},
            }
            records = (await client.post("/domains", json=body)).json()["records"]
            assert [record["record"] for record in records] == shown


async def test_trust_lets_a_team_send_without_dns(database_url: str) -> None:
    """Contract decision 21 and docs/decisions/0015."""
    async with http_server(database_url) as api:
        team = await api.team()
        context = domain_context(api)
        senders = api.services.use(Senders)
        async with api.client(team.token) as client:
            made = (await client.post("/domains", json={"name": "harbor.example"})).json()
            before = await senders.find(team.id, "harbor.example")
            assert before is not None
            assert not before.may_send
            await trust(api.pool, " Harbor.example. ", team.id, context)
            senders.forget(team.id)
            after = await senders.find(team.id, "harbor.example")
            assert after is not None
            assert after.may_send
            assert (after.id, after.trusted, after.tls) == (before.id, True, "opportunistic")
            shown = (await client.get(f"/domains/{made['id']}")).json()
            assert shown["status"] == "verified"
            assert {record["status"] for record in shown["records"]} == {"verified"}
            added = await trust(api.pool, "new.example", team.id, context)
            assert (await client.get(f"/domains/{added.id}")).json()["status"] == "verified"
            with pytest.raises(Problem, match="public suffix"):
                await trust(api.pool, "co.uk", team.id, context)


async def test_the_private_key_is_sealed_for_its_row(database_url: str) -> None:
    """SEC-04: it opens only with the ring and the row's own context."""
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            made = (await client.post("/domains", json={"name": "harbor.example"})).json()
        domain = await api.services.use(Senders).find(team.id, "harbor.example")
        assert domain is not None
        ring = api.services.use(KeyRing)
        key = load_key(ring.open(domain.signing.sealed, domain.signing.context))
        public = load_der_public_key(b64decode(made["records"][2]["value"].removeprefix("p=")))
        assert key.public_key() == public
        assert (domain.signing.domain, domain.signing.selector) == ("harbor.example", "pillarbox")
        assert await api.services.use(Senders).find(team.id, "sub.harbor.example") is None
        assert await api.services.use(Senders).find(uuid4(), "harbor.example") is None


SHOWN = {
    ("verified", "pending"): "partially_verified",
    ("verified", "not_started"): "partially_verified",
    ("verified", "failed"): "partially_failed",
    ("pending", "failed"): "pending",
    ("pending", "not_started"): "pending",
    ("failed", "not_started"): "failed",
}


def test_the_status_table() -> None:
    """Section 3: every pair of capability states, in both roles."""
    states = ("pending", "failed", "not_started", "verified")
    for sending, receiving in product(states, states):
        records = {
            "spf_mx": {"status": "verified"},
            "spf_txt": {"status": "temporary_failure"},
            "dkim": {"status": sending},
            "receiving": {"status": receiving},
        }
        both = domain_state(sending=True, receiving=True, proof=False, states=records)
        wanted = (
            sending if sending == receiving else SHOWN.get((sending, receiving)) or SHOWN[receiving, sending]
        )
        assert both is DomainState(wanted), (sending, receiving)
        assert domain_state(sending=True, receiving=False, proof=True, states=records) is DomainState(sending)
        assert domain_state(sending=False, receiving=True, proof=False, states=records) is DomainState(
            receiving
        )
    mixed = {"spf_mx": {"status": "failed"}, "spf_txt": {"status": "pending"}}
    assert domain_state(sending=True, receiving=False, proof=False, states=mixed) is DomainState.PENDING
    unproven = {"receiving": {"status": "verified"}}
    assert domain_state(sending=False, receiving=True, proof=True, states=unproven) is DomainState.NOT_STARTED
