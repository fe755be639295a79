"""What an operator sees of people who unsubscribed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cli.conftest import Installation
from kit.audience import a_topic
from kit.manual_world import manual_world
from kit.unsubscribing import recipient


async def test_rows_history_and_numbers_agree(database_url: str, tmp_path: Path) -> None:
    """DUR-14: one left a topic, one everything, one came back; mail to who left fails."""
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        topic = await a_topic(team)
        to = [f"{name}@quay.example" for name in ("ada", "bob", "eve")]
        email = await team.send(topic_id=str(topic), to=to)
        await pillarbox.turn()
        people = [
            await recipient(team, topic, address, email=email, position=place)
            for place, address in enumerate(to)
        ]
        await people[0].clicks()
        await people[1].posts(action="all")
        await people[2].takes_back(await people[2].posts(confirm=1))
        again = await team.send(topic_id=str(topic), to=to)
        await pillarbox.turn()
        assert sorted(await team.kinds(again))[:2] == ["delivered", "failed"]
        run = Installation(database_url, tmp_path).run
        verified = await asyncio.to_thread(run, "verify")
        assert verified.exit_code == 0, verified.output
        counted = await asyncio.to_thread(run, "metrics", "rebuild", "--dry-run")
        assert counted.exit_code == 0, counted.output
        shown = await asyncio.to_thread(run, "emails", "show", email)
        assert shown.stdout.count("unsubscribed") == 3
        answer = await team.get("/emails/metrics?metrics=unsubscribed")
        assert answer.status_code == 200, answer.text
        assert '"unsubscribed":3' in answer.text
