"""A server with what clients of other houses look for: domains, a received mail, a claimable name, a grant.

with client_server(url, folder) as place:      # the URL of a migrated database, and an empty folder
    place.variables(home)                      # what a program of Node is started with
"""

from __future__ import annotations

import asyncio
import smtplib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import resend
from typer.testing import CliRunner

from kit.node_packages import environment
from kit.programs import CLIENT_ID
from kit.served import KEY, Server, sdk_at, serving
from pillarbox.cli import program
from pillarbox.oauth import grants

FROM = "Harbor <notes@harbor.example>"
DESK = "desk@harbor.example"
CLAIMED = "wharf.example"
SETTINGS = {
    "smtp": "127.0.0.1:0",
    "hostname": "mx.pillar.example",
    "inbound_require_dns": "false",
    "claim_grace": "off",
    "claim_quiet": "off",
    "roles": "api,delivery,jobs,smtp",
    "processes": "1",
}
"""Without a dispatcher of webhooks, so that their events stay owed."""


@dataclass(frozen=True, slots=True)
class Place:
    """A running server and the ids of what it has."""

    server: Server
    email_id: str
    grant_id: UUID

    def variables(self, home: Path) -> dict[str, str]:
        """Return the environment of a client: where the server is, the key, and what there is to ask for."""
        return environment(
            home,
            RESEND_API_KEY=KEY,
            RESEND_BASE_URL=self.server.url,
            RESEND_DASHBOARD_URL=self.server.url,
            FROM=FROM,
            EMAIL_ID=self.email_id,
            THREAD_ADDRESS=DESK,
            CLAIMED=CLAIMED,
            GRANT_ID=str(self.grant_id),
        )


@contextmanager
def client_server(url: str, folder: Path) -> Iterator[Place]:
    """Yield a server on this database, ended with the block; it must end well."""
    with serving(folder, database_url=url, **SETTINGS) as server:
        for arguments in (
            ("teams", "create", "Owner", "--email", "ola@wharf.example"),
            ("domains", "trust", CLAIMED, "--create", "--team", "Owner"),
        ):
            done = CliRunner().invoke(program(), [*arguments, "--data", str(folder), "--database-url", url])
            assert done.exit_code == 0, done.output
        with sdk_at(server.url):
            wanted: Any = {"name": "harbor.example", "capabilities": {"receiving": "enabled"}}
            resend.Domains.create(wanted)
            resend.Inboxes.create({"email_address": DESK})
            bring_mail(server)
            email_id = str(resend.Emails.Receiving.list({"limit": 1})["data"][0]["id"])
        yield Place(server, email_id, asyncio.run(a_grant(url)))
        assert server.stopped() == 0


def bring_mail(server: Server, subject: str = "Which berth?") -> None:
    """Deliver a customer's mail with an attachment to the inbox, as their mail server does."""
    made = EmailMessage(policy=default)
    made["From"] = "Iris Vale <iris@customer.example>"
    made["To"] = DESK
    made["Subject"] = subject
    made["Message-ID"] = f"<{uuid4()}@customer.example>"
    made.set_content("Which berth is mine?")
    made.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="plan.pdf")
    ready = next(line for line in server.out.all if line.startswith("ready"))
    port = int(dict(part.split("=") for part in ready.split()[1:])["smtp"].rpartition(":")[2])
    with smtplib.SMTP("127.0.0.1", port, "[127.0.0.1]", timeout=30) as client:
        client.send_message(made, "iris@customer.example", [DESK])


async def a_grant(url: str) -> UUID:
    """Return the id of a grant of the first team, as an approval leaves it."""
    conn = await asyncpg.connect(url)
    now, person_id, grant_id = datetime.now(UTC), uuid4(), uuid4()
    try:
        team_id = await conn.fetchval("SELECT team_id FROM api_keys ORDER BY id LIMIT 1")
        await conn.execute(
            "INSERT INTO people (id, email, email_key, name, created_at) VALUES ($1, $2, $2, 'Mina', $3)",
            person_id,
            "mina@harbor.example",
            now,
        )
        await conn.execute(
            "INSERT INTO team_members (team_id, id, email, created_at, person_id, role)"
            " VALUES ($1, $2, $3, $4, $5, 'member')",
            team_id,
            uuid4(),
            "mina@harbor.example",
            now,
            person_id,
        )
        await grants.add(
            conn,
            now,
            grants.GrantRef(team_id, grant_id),
            client_id=CLIENT_ID,
            client={"name": "Quill", "logo_uri": None},
            person_id=person_id,
            scopes=["full_access"],
        )
    finally:
        await conn.close()
    return grant_id
