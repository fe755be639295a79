"""The official Python SDK's contact imports, every method."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
import resend
from resend import exceptions

from kit.served import Server, sdk_at, serving

NOBODY = "00000000-0000-7000-8000-000000000000"
FILE = b"E-mail,Name,Plan\nada@analytical.example,Ada,pro\nno address,,\n"
COLUMNS = {
    "email": "E-mail",
    "first_name": "Name",
    "properties": {"plan": {"column": "Plan", "type": "string"}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("sdk-imports"), roles="api,jobs", processes="1") as running:
        yield running
        assert running.stopped() == 0


@pytest.fixture
def sdk(server: Server) -> Iterator[Server]:
    with sdk_at(server.url):
        yield server


def ended(import_id: str) -> Any:
    while (found := resend.Contacts.Imports.get(import_id))["status"] not in ("completed", "failed"):
        time.sleep(0.05)
    return found


def test_imports(sdk: Server) -> None:
    segment = resend.Segments.create({"name": "Beta testers"})["id"]
    topic = resend.Topics.create({"name": "News", "default_subscription": "opt_in"})["id"]
    made = resend.Contacts.Imports.create(
        {
            "file": FILE,
            "column_map": COLUMNS,
            "on_conflict": "upsert",
            "segments": [{"id": segment}],
            "topics": [{"id": topic, "subscription": "opt_out"}],
        }
    )
    assert made["object"] == "contact_import"
    found = ended(made["id"])
    assert (found["object"], found["id"], found["status"]) == ("contact_import", made["id"], "completed")
    assert found["counts"] == {"total": 2, "created": 1, "updated": 0, "skipped": 0, "failed": 1}
    ada = resend.Contacts.get(email="ada@analytical.example")
    assert (ada["first_name"], ada["properties"]["plan"]["value"]) == ("Ada", "pro")
    again = resend.Contacts.Imports.create({"file": FILE, "filename": "people.csv", "column_map": COLUMNS})
    assert ended(again["id"])["counts"]["updated"] == 1
    listed = resend.Contacts.Imports.list()
    assert [one["id"] for one in listed["data"]] == [again["id"], made["id"]]
    page = resend.Contacts.Imports.list({"limit": 1, "after": again["id"], "status": "completed"})
    assert ([one["id"] for one in page["data"]], page["has_more"]) == ([made["id"]], False)
    with pytest.raises(exceptions.ResendError, match="Contact import not found"):
        resend.Contacts.Imports.get(NOBODY)
    with pytest.raises(exceptions.ResendError, match='CSV missing required "email" column'):
        resend.Contacts.Imports.create({"file": FILE})


def test_imports_asynchronously(sdk: Server) -> None:
    async def story() -> None:
        imports = resend.Contacts.Imports
        made = await imports.create_async({"file": b"email\nlin@orchard.example\n", "on_conflict": "skip"})
        while (found := await imports.get_async(made["id"]))["status"] != "completed":
            await asyncio.sleep(0.05)
        assert found["counts"]["created"] == 1
        assert (await imports.list_async({"limit": 1}))["data"][0]["id"] == made["id"]

    asyncio.run(story())
