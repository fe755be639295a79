"""The official Python SDK's suppression methods, each of them, in both of its styles."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import resend
from resend import exceptions

from kit.served import Server, sdk_at, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("sdk-suppressions"), roles="api,jobs", processes="1") as running:
        yield running
        assert running.stopped() == 0


@pytest.fixture
def sdk(server: Server) -> Iterator[Server]:
    with sdk_at(server.url):
        yield server


def test_add_get_list_remove(sdk: Server) -> None:
    added = resend.Suppressions.add({"email": " Kim+News@Orchard.example"})
    assert added["object"] == "suppression"
    for name in (added["id"], "kim+news@orchard.example", "KIM+NEWS@orchard.example"):
        found = resend.Suppressions.get(name)
        assert (found["id"], found["email"]) == (added["id"], "kim+news@orchard.example")
        assert (found["origin"], found["source_id"]) == ("manual", None)
    again = resend.Suppressions.add({"email": "kim+news@orchard.example"})
    assert again["id"] == added["id"]
    second = resend.Suppressions.add({"email": "lee@quay.example"})
    page = resend.Suppressions.list({"limit": 1, "origin": "manual"})
    assert (page["object"], page["has_more"], page["data"][0]["id"]) == ("list", True, second["id"])
    rest = resend.Suppressions.list({"after": second["id"]})
    assert [item["id"] for item in rest["data"]] == [added["id"]]
    back = resend.Suppressions.list({"before": added["id"], "limit": 10})
    assert [item["id"] for item in back["data"]] == [second["id"]]
    assert resend.Suppressions.list({"origin": "bounce"})["data"] == []
    removed = resend.Suppressions.remove("lee@quay.example")
    assert (removed["object"], removed["id"], removed["deleted"]) == ("suppression", second["id"], True)
    assert resend.Suppressions.remove(added["id"])["id"] == added["id"]
    assert resend.Suppressions.list()["data"] == []
    with pytest.raises(exceptions.ResendError, match="Suppression not found"):
        resend.Suppressions.get("lee@quay.example")
    with pytest.raises(exceptions.ResendError, match="Suppression not found"):
        resend.Suppressions.remove(added["id"])


def test_batches(sdk: Server) -> None:
    addresses = ["ann@quay.example", "bob@quay.example", "ANN@quay.example"]
    added = resend.Suppressions.Batch.add({"emails": addresses})
    ids = [item["id"] for item in added["data"]]
    assert len(ids) == 2
    assert [item["object"] for item in added["data"]] == ["suppression"] * 2
    removed = resend.Suppressions.Batch.remove({"emails": ["bob@quay.example", "nobody@quay.example"]})
    assert [(item["id"], item["deleted"]) for item in removed["data"]] == [(ids[1], True)]
    removed = resend.Suppressions.Batch.remove({"ids": ids})
    assert [item["id"] for item in removed["data"]] == ids[:1]
    wrong: Any = {"emails": ["ann@quay.example"], "ids": ids}
    with pytest.raises(ValueError, match="cannot be used together"):
        resend.Suppressions.Batch.remove(wrong)
    with pytest.raises(exceptions.ValidationError, match=r"Invalid `emails\[1\]` field"):
        resend.Suppressions.Batch.add({"emails": ["ann@quay.example", "Ann <ann@quay.example>"]})


def test_the_asynchronous_client(sdk: Server) -> None:
    async def talk() -> None:
        suppressions = resend.Suppressions
        added = await suppressions.add_async({"email": "kim@orchard.example"})
        assert (await suppressions.get_async("kim@orchard.example"))["id"] == added["id"]
        assert [item["id"] for item in (await suppressions.list_async())["data"]] == [added["id"]]
        assert (await suppressions.remove_async(added["id"]))["deleted"] is True
        batch = await suppressions.Batch.add_async({"emails": ["ann@quay.example"]})
        ids = [item["id"] for item in batch["data"]]
        removed = await suppressions.Batch.remove_async({"ids": ids})
        assert [item["id"] for item in removed["data"]] == ids

    asyncio.run(talk())
