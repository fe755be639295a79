"""What happens at the same time to one template (templates.md 9), and rows that must not be (`verify`)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from kit.world import Team, World
from pillarbox.templates.invariants import INVARIANTS

NEW = {"name": "T", "from": "t@harbor.example", "subject": "0", "html": "0"}
ROUNDS = 8


async def made(team: Team, **fields: Any) -> str:
    answer = await team.post("/templates", NEW | fields)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def shown(team: Team, name: str) -> dict[str, Any]:
    return dict((await team.get(f"/templates/{name}")).json())


async def versions(team: Team) -> int:
    return int(await team.db.value("SELECT count(*) FROM template_versions WHERE team_id = $1"))


async def test_two_changes_make_one_draft(pillarbox: World) -> None:
    """The last writer wins, field by field."""
    team = await pillarbox.team()
    for _ in range(ROUNDS):
        name = await made(team)
        await team.post(f"/templates/{name}/publish")
        before = await versions(team)
        changes = [{"subject": "a"}, {"html": "b"}, {"text": "c"}, {"reply_to": "d@q.example"}]
        answers = await asyncio.gather(
            *(team.call("PATCH", f"/templates/{name}", change) for change in changes)
        )
        assert [answer.status_code for answer in answers] == [200] * 4
        template = await shown(team, name)
        assert (template["subject"], template["html"], template["text"]) == ("a", "b", "c")
        assert template["reply_to"] == ["d@q.example"]
        assert await versions(team) == before + 1


async def test_a_publication_takes_a_change_wholly_or_not_at_all(pillarbox: World) -> None:
    team = await pillarbox.team()
    await team.domain()
    for number in range(ROUNDS):
        name = await made(team)
        await team.post(f"/templates/{name}/publish")
        await team.call("PATCH", f"/templates/{name}", {"subject": "1", "html": "1"})
        use = {"to": "ada@quay.example", "template": {"id": name}}
        sends = [team.post("/emails", use) for _ in range(3)]
        change = team.call("PATCH", f"/templates/{name}", {"subject": "2", "html": "2"})
        publish = team.post(f"/templates/{name}/publish")
        calls = [sends[0], change, sends[1], publish, sends[2]]
        answers = await asyncio.gather(*(calls if number % 2 else reversed(calls)))
        assert [answer.status_code for answer in answers] == [200] * 5
        ids = [answer.json()["id"] for answer in answers if "object" not in answer.json()]
        for email in [await team.email(one) for one in ids]:
            assert email["subject"] == email["html"]
        template = await shown(team, name)
        assert template["subject"] == template["html"] == "2"
        published = (await team.post("/emails", use)).json()["id"]
        email = await team.email(published)
        assert email["subject"] == email["html"] in ("1", "2")
        assert template["has_unpublished_versions"] == (email["html"] == "1")


async def test_an_alias_goes_to_one_of_two(pillarbox: World) -> None:
    team = await pillarbox.team()
    for number in range(ROUNDS):
        answers = await asyncio.gather(
            *(team.post("/templates", NEW | {"alias": f"a{number}"}) for _ in range(3))
        )
        assert Counter(answer.status_code for answer in answers) == {201: 1, 422: 2}


async def test_who_sends_while_a_template_is_deleted_gets_mail_or_404(pillarbox: World) -> None:
    team = await pillarbox.team()
    await team.domain()
    for _ in range(ROUNDS):
        name = await made(team)
        await team.post(f"/templates/{name}/publish")
        use = {"to": "ada@quay.example", "template": {"id": name}}
        change = team.call("PATCH", f"/templates/{name}", {"html": "1"})
        deletion = team.call("DELETE", f"/templates/{name}")
        sent, changed, deleted = await asyncio.gather(team.post("/emails", use), change, deletion)
        assert deleted.status_code == 200
        assert changed.status_code in (200, 404)
        if sent.status_code == 200:
            assert (await team.email(sent.json()["id"]))["html"] == "0"
        else:
            assert sent.status_code == 404
        assert await versions(team) == 0


async def test_rows_that_must_not_be_are_named(pillarbox: World) -> None:
    team = await pillarbox.team()
    await team.post(f"/templates/{await made(team)}/publish")
    await team.call("PATCH", f"/templates/{await made(team, alias='b')}", {"html": "1"})
    without, orphan = INVARIANTS

    async def broken(damage: str) -> list[str]:
        async with pillarbox.pool.acquire() as conn, conn.transaction() as _:
            await conn.execute(damage)
            found = [one.name for one in INVARIANTS if await conn.fetch(one.sql, 10)]
            await conn.execute("ROLLBACK; BEGIN")
            return found

    assert await broken("SELECT") == []
    assert await broken("DELETE FROM template_versions") == [without.name]
    assert await broken("DELETE FROM templates") == [orphan.name]
    extra = """
            INSERT INTO template_versions
            SELECT team_id, gen_random_uuid(), template_id, sender, subject, reply_to_list, html, text,
                   variables, created_at
              FROM template_versions
        """
    assert await broken(extra) == [orphan.name]
