"""POST /emails/batch (emails.md section 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kit.client import error
from kit.dumps import counts
from kit.manual_world import manual_world
from kit.world import Team, World, mail

VALIDATION = (422, "validation_error")
BAD_TO = mail(to="not-an-address")


async def batch(team: Team, items: Any, mode: str | None = None, **headers: str) -> Any:
    if mode is not None:
        headers["x_batch_validation"] = mode
    return await team.post("/emails/batch", items, **headers)


async def emails(team: Team) -> int:
    found: int = await team.db.value("SELECT count(*) FROM emails WHERE team_id = $1")
    return found


async def test_ids_come_in_the_order_of_the_items(pillarbox: World) -> None:
    """No `object`; strict is the default and carries no `errors`."""
    team = await pillarbox.team()
    for mode in (None, "strict", "permissive"):
        items = [mail(subject=f"Number {n}") for n in range(3)]
        answer = await batch(team, items, mode)
        body = answer.json()
        assert answer.status_code == 200
        assert list(body) == (["data", "errors"] if mode == "permissive" else ["data"])
        assert body.get("errors", []) == []
        assert [list(item) for item in body["data"]] == [["id"]] * 3
        subjects = [(await team.email(item["id"]))["subject"] for item in body["data"]]
        assert subjects == ["Number 0", "Number 1", "Number 2"]
        listed = (await team.get("/emails?limit=3")).json()["data"]
        assert [item["id"] for item in listed] == [item["id"] for item in reversed(body["data"])]
        assert {item["last_event"] for item in listed} == {"queued"}


async def test_the_size_of_a_batch(pillarbox: World) -> None:
    team = await pillarbox.team()
    before = await counts(pillarbox.pool)
    for items in ([], [mail()] * 101, {}, mail(), "text", None, 7):
        for mode in ("strict", "permissive"):
            answer = await team.http.post("/emails/batch", json=items, headers={"x-batch-validation": mode})
            assert error(answer)[:2] == VALIDATION
    empty = await team.http.post("/emails/batch", content=b"")
    assert error(empty)[:2] == VALIDATION
    assert await counts(pillarbox.pool) == before
    answer = await batch(team, [mail()] * 100)
    assert len({item["id"] for item in answer.json()["data"]}) == 100
    assert await emails(team) == 100


async def test_an_unknown_mode_is_refused(pillarbox: World) -> None:
    team = await pillarbox.team()
    for mode in ("lenient", "STRICT", "strict, permissive"):
        assert error(await batch(team, [mail()], mode))[:2] == VALIDATION
    assert await emails(team) == 0


STRICT: list[tuple[Any, tuple[int, str], str]] = [
    (BAD_TO, VALIDATION, "[2] Invalid `to` field. "),
    (mail(subject=None), (422, "missing_required_field"), "[2] Missing `subject` field."),
    ("text", VALIDATION, "[2] "),
    (None, VALIDATION, "[2] "),
    ([], VALIDATION, "[2] "),
    ({}, (422, "missing_required_field"), "[2] Missing `from` field."),
    (mail(attachments=[{"content": "aGk="}]), VALIDATION, "[2] Invalid `attachments` field. "),
    (mail(scheduled_at="in 31 days"), VALIDATION, "[2] Invalid `scheduled_at` field. "),
    (mail(topic_id="x"), (422, "invalid_parameter"), "[2] The `topic_id` must be a valid UUID."),
    (mail(html=None, template={"id": "x"}), (404, "not_found"), "[2] Template not found"),
    (mail(from_="a@resend.dev"), (403, "validation_error"), "[2] Emails from resend.dev are for testing"),
]


async def test_strict_creates_nothing_and_names_the_first_invalid_item(pillarbox: World) -> None:
    team = await pillarbox.team()
    before = await counts(pillarbox.pool)
    for wrong, expected, message in STRICT:
        status, name, said = error(await batch(team, [mail(), mail(), wrong, BAD_TO], "strict"))
        assert (status, name) == expected, wrong
        assert said.startswith(message), said
    assert await counts(pillarbox.pool) == before


async def test_permissive_sends_the_valid_and_explains_the_others(pillarbox: World) -> None:
    team = await pillarbox.team()
    wrong = [item for item, _, _ in STRICT]
    answer = await batch(team, [mail(subject="first"), *wrong, mail(subject="last")], "permissive")
    body = answer.json()
    assert answer.status_code == 200
    assert list(body) == ["data", "errors"]
    assert [(await team.email(item["id"]))["subject"] for item in body["data"]] == ["first", "last"]
    assert [list(entry) for entry in body["errors"]] == [["index", "message"]] * len(wrong)
    assert [entry["index"] for entry in body["errors"]] == list(range(1, len(wrong) + 1))
    for entry, (_, _, message) in zip(body["errors"], STRICT, strict=True):
        assert entry["message"].startswith(message.removeprefix("[2] "))


async def test_permissive_with_nothing_valid(pillarbox: World) -> None:
    team = await pillarbox.team()
    before = await counts(pillarbox.pool)
    answer = await batch(team, [BAD_TO, {}], "permissive")
    assert answer.status_code == 200
    assert answer.json()["data"] == []
    assert [entry["index"] for entry in answer.json()["errors"]] == [0, 1]
    assert await counts(pillarbox.pool) == before


async def test_items_may_be_scheduled_tagged_and_have_headers(pillarbox: World) -> None:
    team = await pillarbox.team()
    item = mail(
        scheduled_at="in 1 hour",
        tags=[{"name": "kind", "value": "berth"}],
        headers={"X-Entity-Ref-ID": "7"},
        attachments=[],
    )
    answer = await batch(team, [mail(attachments=None), item])
    later = await team.email(answer.json()["data"][1]["id"])
    assert (later["last_event"], later["tags"]) == ("scheduled", [{"name": "kind", "value": "berth"}])


async def test_rights_of_the_key_count_for_each_item(database_url: str, tmp_path: Path) -> None:
    """Rows 1 to 4 of section 1.8 per item."""
    async with manual_world(database_url, tmp_path, require_verified_domain="always") as pillarbox:
        team = await pillarbox.team()
        harbor = await team.domain()
        bound = team.using(await team.key(permission="sending_access", domain_id=harbor))
        items = [mail(), mail(from_="a@quay.example"), mail()]
        assert error(await batch(bound, items))[:2] == (403, "validation_error")
        body = (await batch(bound, items, "permissive")).json()
        assert (len(body["data"]), body["errors"][0]["index"]) == (2, 1)
        assert "quay.example" in body["errors"][0]["message"]
