"""Pages about a team: members, invitations, keys, its log."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.inbox_rows import an_inbox
from kit.people import PASSWORD, SESSION, Person, Visit, a_grant, a_person, heading, logged_in, text_of, visit
from kit.people_mail import mail_to_people
from kit.world import Team, World, world
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page
from pillarbox.people.audit import queries as audit_queries
from pillarbox.people.membership import member_queries
from pillarbox.people.membership.member_queries import Member
from pillarbox.people.roles import TeamRole

Place = tuple[str, Path]

TOKEN = re.compile(r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}")
LINK = re.compile(r"http://[^\s]+(/invitation/[\w-]+)")


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database and a folder for tests that each have people of their own."""
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("teams")
    databases.drop(url)


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[World]:
    async with world(*place, started=False) as here:
        yield here


class Cast:
    """A team with somebody of each role."""

    def __init__(self, team: Team, people: dict[TeamRole, Person]) -> None:
        self.team = team
        self.people = people

    async def browser(self, role: TeamRole) -> Visit:
        return await logged_in(self.team.world, self.people[role])

    async def members(self) -> dict[str, Member]:
        found = await member_queries.members(self.team.db)
        return {member.email: member for member in found if member.person_id is not None}

    async def member_id(self, role: TeamRole) -> UUID:
        return (await self.members())[self.people[role].email].id

    async def acts(self) -> list[tuple[str, str | None, str | None]]:
        """What was done, to what, by whom; the oldest first."""
        found = await audit_queries.page(TeamDb(self.team.world.pool, self.team.id), Page(100))
        return [(entry.what, entry.target, entry.actor) for entry in found[::-1]]


async def cast(here: World, tag: str) -> Cast:
    team = await here.team(f"Harbor {tag}")
    people = {role: await a_person(team, f"{role.value}.{tag}@quay.example", role) for role in TeamRole}
    return Cast(team, people)


async def open_invitation(here: World, browser: Visit, email: str, role: str = "member") -> str:
    """Invite somebody; returns the path of the link in the mail."""
    answer = await browser.send("/team/members", "/team/invitations", email=email, role=role)
    assert answer.headers.get("location") == "/team/members?done=invited", answer.text
    text = [mail.text for mail in await mail_to_people(here) if mail.to == email.lower()][-1]
    found = LINK.search(text)
    assert found, text
    return found[1]


# Members --------------------------------------------------------------------------------------------


async def test_an_owner_changes_a_role_and_takes_somebody_out(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "a")
        owner, viewer = await us.browser(TeamRole.OWNER), await us.browser(TeamRole.VIEWER)
        assert us.people[TeamRole.VIEWER].email in text_of(await owner.get("/team/members"))
        path = f"/team/members/{await us.member_id(TeamRole.VIEWER)}"
        answer = await owner.post(f"{path}/role", role="admin")
        assert text_of(await owner.follow(answer)).count("The role is changed.") == 1
        assert (await viewer.get("/team/audit")).status_code == 200
        await owner.get(f"{path}/remove")
        answer = await owner.post(f"{path}/remove")
        assert answer.headers["location"] == "/team/members?done=removed"
        assert us.people[TeamRole.VIEWER].email not in await us.members()
        assert (await viewer.get("/team/members")).headers["location"] == "/login?to=/team/members"
        target, actor = us.people[TeamRole.VIEWER].email, us.people[TeamRole.OWNER].email
        assert await us.acts() == [
            ("member.role_changed", target, actor),
            ("member.removed", target, actor),
        ]


async def test_a_removed_person_loses_its_grants_and_its_keys_stay_unless_told(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "b")
        for role in (TeamRole.MEMBER, TeamRole.ADMIN):
            browser = await us.browser(role)
            await browser.send(
                "/team/keys", "/team/keys", name=f"of {role.value}", permission="full_access", domain=""
            )
        people = us.people[TeamRole.MEMBER], us.people[TeamRole.ADMIN]
        ours, others = [await a_grant(us.team, person) for person in people]
        owner = await us.browser(TeamRole.OWNER)
        member = f"/team/members/{await us.member_id(TeamRole.MEMBER)}/remove"
        assert "of member" in text_of(await owner.get(member))
        await owner.post(member)
        assert "of member" in text_of(await owner.get("/team/keys"))
        revoked = "SELECT revoked_reason FROM oauth_grants WHERE id = $1"
        assert await here.pool.fetchval(revoked, ours) == "user_removed"
        assert await here.pool.fetchval(revoked, others) is None
        admin = f"/team/members/{await us.member_id(TeamRole.ADMIN)}/remove"
        await owner.send(admin, keys="delete")
        shown = text_of(await owner.get("/team/keys"))
        assert "of admin" not in shown
        assert "of member" in shown


async def test_the_last_owner_stays(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "c")
        owner = await us.browser(TeamRole.OWNER)
        path = f"/team/members/{await us.member_id(TeamRole.OWNER)}"
        await owner.get("/team/members")
        assert (await owner.post(f"{path}/role", role="viewer")).status_code == 409
        assert (await owner.post(f"{path}/remove")).status_code == 409
        left = await owner.post("/team/leave", typed_name="Harbor c")
        assert left.status_code == 409
        assert "a team needs an owner" in text_of(left)
        assert (await us.members())[us.people[TeamRole.OWNER].email].role == "owner"
        assert await us.acts() == []


async def test_two_owners_who_take_each_others_role_leave_one(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "d")
        other = await a_person(us.team, "other.d@quay.example")
        first, second = await us.browser(TeamRole.OWNER), await logged_in(here, other)
        ids = {email: member.id for email, member in (await us.members()).items()}
        await asyncio.gather(first.get("/team/members"), second.get("/team/members"))
        answers = await asyncio.gather(
            first.post(f"/team/members/{ids[other.email]}/role", role="viewer"),
            second.post(f"/team/members/{ids[us.people[TeamRole.OWNER].email]}/role", role="viewer"),
        )
        assert sorted(answer.status_code for answer in answers) == [303, 403]
        owners = [one.email for one in (await us.members()).values() if one.role == "owner"]
        assert len(owners) == 1


async def test_an_admin_manages_members_and_viewers_alone(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "e")
        admin = await us.browser(TeamRole.ADMIN)
        await admin.get("/team/members")
        owner, member = await us.member_id(TeamRole.OWNER), await us.member_id(TeamRole.MEMBER)
        assert (await admin.post(f"/team/members/{owner}/role", role="viewer")).status_code == 403
        assert (await admin.post(f"/team/members/{owner}/remove")).status_code == 403
        assert (await admin.post(f"/team/members/{member}/role", role="owner")).status_code == 403
        assert (
            await admin.post("/team/invitations", email="x@quay.example", role="admin")
        ).status_code == 403
        assert (await admin.post(f"/team/members/{member}/role", role="viewer")).status_code == 303
        assert [what for what, _, _ in await us.acts()] == ["member.role_changed"]


async def test_somebody_leaves_and_keeps_its_session(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "f")
        member = await us.browser(TeamRole.MEMBER)
        answer = await member.send("/team", "/team/leave", typed_name="Harbor f")
        assert "You belong to no team." in text_of(await member.follow(answer))
        assert (await member.get("/team/keys")).headers["location"] == "/account"


async def test_nobody_leaves_without_the_name_of_the_team(place: Place) -> None:
    """The page says which API keys do nothing afterwards."""
    async with opened(place) as here:
        us = await cast(here, "leave")
        member = await us.browser(TeamRole.MEMBER)
        await member.send("/team/keys", name="<b>printer</b>", permission="full_access")
        before = len(await us.members())
        for typed in ("", "another team"):
            answer = await member.send("/team", "/team/leave", typed_name=typed)
            assert answer.status_code == 422
            assert "Nothing was changed" in text_of(answer)
            assert "&lt;b&gt;printer&lt;/b&gt;" in answer.text
        assert len(await us.members()) == before


async def test_a_team_is_renamed_and_another_one_looked_at(place: Place) -> None:
    async with opened(place) as here:
        us, them = await cast(here, "g"), await cast(here, "h")
        owner = await us.browser(TeamRole.OWNER)
        answer = await owner.send("/team", "/team/name", name="Pier <b>9</b>")
        assert "Pier &lt;b&gt;9&lt;/b&gt;" in (await owner.follow(answer)).text
        for name in ("", " ", "x" * 101, "\u200b"):
            assert (await owner.post("/team/name", name=name)).status_code == 422
        assert (await owner.post("/team/switch", team=str(them.team.id))).status_code == 404
        assert (await owner.post("/team/switch", team="nonsense")).status_code == 404
        invited = await open_invitation(
            here, await them.browser(TeamRole.OWNER), us.people[TeamRole.OWNER].email
        )
        joined = await owner.send(invited)
        assert joined.headers["location"] == "/team?done=joined"
        assert "Harbor h" in text_of(await owner.follow(joined))
        assert (await owner.get("/team/audit")).status_code == 403
        back = await owner.send("/team", "/team/switch", team=str(us.team.id))
        assert "Pier <b>9</b>" in text_of(await owner.follow(back))


# Invitations ----------------------------------------------------------------------------------------


async def test_somebody_new_is_invited_by_mail_and_joins(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "i")
        link = await open_invitation(here, await us.browser(TeamRole.ADMIN), "new.i@quay.example")
        newcomer = visit(here)
        page = await newcomer.get(link)
        assert heading(page) == "Join a team"
        assert "Harbor i" in text_of(page)
        weak = await newcomer.post(link, name="Nell", password="short")
        assert weak.status_code == 422
        answer = await newcomer.post(link, name="Nell", password=PASSWORD)
        assert answer.headers["location"] == "/team?done=joined"
        assert "Harbor i" in text_of(await newcomer.follow(answer))
        member = (await us.members())["new.i@quay.example"]
        assert (member.role, member.name) == ("member", "Nell")
        assert (await visit(here).get(link)).status_code == 404
        assert [what for what, _, _ in await us.acts()] == ["invitation.made", "invitation.accepted"]
        row = await here.pool.fetchrow("SELECT hash FROM person_links WHERE team_id = $1", us.team.id)
        assert link.rpartition("/")[2].encode() not in bytes(row["hash"])


async def test_only_whoever_has_the_address_joins(place: Place) -> None:
    async with opened(place) as here:
        us, them = await cast(here, "j"), await cast(here, "k")
        meant = them.people[TeamRole.MEMBER]
        link = await open_invitation(here, await us.browser(TeamRole.OWNER), meant.email)
        stranger = await them.browser(TeamRole.ADMIN)
        page = await stranger.get(link)
        assert "You are logged in as" in text_of(page)
        assert (await stranger.post(link)).status_code == 403
        guest = visit(here)
        page = await guest.get(link)
        assert f'href="/login?to={link}"' in page.text
        assert (await guest.post(link, name="x", password=PASSWORD)).status_code == 403
        assert SESSION not in guest.cookies
        logged = await guest.log_in(meant, to=link)
        assert logged.headers["location"] == link
        await guest.get(link)
        assert (await guest.post(link)).headers["location"] == "/team?done=joined"
        assert meant.email in await us.members()


async def test_of_several_who_accept_at_once_one_joins(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "l")
        link = await open_invitation(here, await us.browser(TeamRole.OWNER), "both.l@quay.example")
        browsers = [visit(here) for _ in range(3)]
        for browser in browsers:
            await browser.get(link)
        answers = await asyncio.gather(*(one.post(link, password=PASSWORD) for one in browsers))
        assert sorted(answer.status_code for answer in answers) == [303, 404, 404]
        assert len([one for one in browsers if SESSION in one.cookies]) == 1
        assert await here.pool.fetchval("SELECT count(*) FROM people WHERE email LIKE 'both.l@%'") == 1


async def test_an_invitation_ends_by_hand_by_another_one_and_with_its_maker(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "m")
        owner, admin = await us.browser(TeamRole.OWNER), await us.browser(TeamRole.ADMIN)
        first = await open_invitation(here, admin, "one.m@quay.example")
        second = await open_invitation(here, admin, "ONE.m@quay.example", "viewer")
        assert (await visit(here).get(first)).status_code == 404
        assert (await visit(here).get(second)).status_code == 200
        page = await owner.get("/team/members")
        [path] = re.findall(r'action="(/team/invitations/[^"]+/end)"', page.text)
        assert (await owner.post(path)).headers["location"] == "/team/members?done=ended"
        assert (await owner.post(path)).status_code == 404
        assert (await visit(here).get(second)).status_code == 404
        third = await open_invitation(here, admin, "three.m@quay.example")
        await owner.post(f"/team/members/{await us.member_id(TeamRole.ADMIN)}/role", role="viewer")
        assert (await visit(here).get(third)).status_code == 404


async def test_an_invitation_of_somebody_whom_the_operator_shuts_out_means_nothing(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "i2")
        browser, email = await us.browser(TeamRole.ADMIN), "side.door@quay.example"
        path = await open_invitation(here, browser, email)
        guest, inviter = visit(here), us.people[TeamRole.ADMIN].id
        await guest.get(path)
        await here.pool.execute("UPDATE people SET disabled_at = now() WHERE id = $1", inviter)
        assert (await guest.post(path, password=PASSWORD)).status_code == 404
        assert email not in await us.members()


async def test_an_admin_takes_nothing_from_an_owner_by_inviting_it(place: Place) -> None:
    """Neither the place of an owner who has no account yet, nor an invitation to be one."""
    async with opened(place) as here:
        us = await cast(here, "i3")
        boss, admin = "boss.i3@quay.example", await us.browser(TeamRole.ADMIN)
        waiting = await open_invitation(here, await us.browser(TeamRole.OWNER), boss, "owner")
        [first] = [one.email for one in await member_queries.members(us.team.db) if one.person_id is None]
        for email in (boss, first.upper()):
            answer = await admin.send("/team/members", "/team/invitations", email=email, role="viewer")
            assert answer.status_code == 403
        assert (await visit(here).get(waiting)).status_code == 200


async def test_the_only_owner_stays_one_whoever_takes_its_place(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Lone", email="lone@quay.example")
        await a_person(team, "lone@quay.example", TeamRole.VIEWER)
        assert [one.role for one in await member_queries.members(team.db)] == ["owner"]


async def test_what_is_no_invitation_is_said(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "n")
        owner = await us.browser(TeamRole.OWNER)
        await owner.get("/team/members")
        for email, role, status in (
            ("nobody", "member", 422),
            ("ada@quay.example", "captain", 422),
            ("ada@quay.example", "", 422),
            (us.people[TeamRole.VIEWER].email, "admin", 409),
        ):
            answer = await owner.post("/team/invitations", email=email, role=role)
            assert answer.status_code == status, email
        assert (
            await here.pool.fetchval("SELECT count(*) FROM team_invitations WHERE team_id = $1", us.team.id)
            == 0
        )
        assert (await visit(here).get("/invitation/none")).status_code == 404
        assert (await visit(here).send("/login", "/invitation/none")).status_code == 404


async def test_a_team_sends_no_flood_of_invitations(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "o")
        owner = await us.browser(TeamRole.OWNER)
        await here.pool.execute(
            "INSERT INTO team_invitations (team_id, id, email, role, created_at, expires_at) "
            "SELECT $1, gen_random_uuid(), 'x' || n || '@quay.example', 'viewer', now(), now() "
            "FROM generate_series(1, 50) AS n",
            us.team.id,
        )
        answer = await owner.send("/team/members", "/team/invitations", email="z@quay.example", role="viewer")
        assert answer.status_code == 429


# Keys -----------------------------------------------------------------------------------------------


async def test_a_key_is_shown_once_and_says_who_made_it(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "p")
        member = await us.browser(TeamRole.MEMBER)
        answer = await member.send(
            "/team/keys", "/team/keys", name="printer", permission="full_access", domain=""
        )
        found = TOKEN.search(answer.text)
        assert found
        assert (await us.team.using(found[0]).get("/domains")).status_code == 200
        again = await member.get("/team/keys")
        assert found[0] not in again.text
        assert f"made by {us.people[TeamRole.MEMBER].email}" in text_of(again)
        key = await us.team.db.source.fetchrow("SELECT * FROM api_keys WHERE name = 'printer'")
        assert key["created_by"] == us.people[TeamRole.MEMBER].id
        assert (await member.post(f"/team/keys/{key['id']}/delete")).status_code == 303
        assert (await us.team.using(found[0]).get("/domains")).status_code == 403
        actor = us.people[TeamRole.MEMBER].email
        assert await us.acts() == [("key.created", "printer", actor), ("key.deleted", "printer", actor)]


async def test_a_key_for_one_inbox_is_made_on_the_page(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "inbox")
        inbox = await an_inbox(us.team, "desk")
        member = await us.browser(TeamRole.MEMBER)
        fields = {"name": "agent", "permission": "inbox_access", "inbox": inbox.address}
        for wrong, status in (
            ({}, 422),
            ({"right_read": "1", "inbox": ""}, 422),
            ({"right_read": "1", "inbox": "none@harbor.example"}, 404),
        ):
            assert (await member.send("/team/keys", **{**fields, **wrong})).status_code == status
        answer = await member.send("/team/keys", **fields, right_read="1", right_send="1")
        found = TOKEN.search(answer.text)
        assert found
        shown = text_of(await member.get("/team/keys"))
        assert "read, send" in shown
        assert inbox.address in shown
        agent = us.team.using(found[0])
        assert (await agent.get(inbox.url)).status_code == 200
        assert (await agent.get("/domains")).status_code == 403
        assert (await us.team.call("DELETE", inbox.url)).status_code == 200
        assert "its inbox was deleted" in text_of(await member.get("/team/keys"))


async def test_members_delete_their_own_keys_and_admins_all(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "q")
        first = await us.team.db.source.fetchval("SELECT id FROM api_keys WHERE team_id = $1", us.team.id)
        for role, status in ((TeamRole.MEMBER, 403), (TeamRole.ADMIN, 303), (TeamRole.OWNER, 404)):
            browser = await us.browser(role)
            await browser.get("/team/keys")
            assert (await browser.post(f"/team/keys/{first}/delete")).status_code == status


async def test_what_is_no_key_is_said_and_not_made(place: Place) -> None:
    async with opened(place) as here:
        us, them = await cast(here, "r"), await cast(here, "s")
        foreign = await them.team.domain("foreign-r.example")
        owner = await us.browser(TeamRole.OWNER)
        await owner.get("/team/keys")
        for fields, status in (
            ({"name": "", "permission": "full_access"}, 422),
            ({"name": "x" * 51, "permission": "full_access"}, 422),
            ({"name": "a\x1bb", "permission": "full_access"}, 422),
            ({"name": "x"}, 422),
            ({"name": "x", "permission": "all"}, 422),
            ({"name": "x", "permission": "sending_access", "domain": "nonsense"}, 422),
            ({"name": "x", "permission": "sending_access", "domain": foreign}, 404),
        ):
            answer = await owner.post("/team/keys", **fields)
            assert answer.status_code == status, fields
            assert not TOKEN.search(answer.text)
        keys = "SELECT count(*) FROM api_keys WHERE team_id = $1"
        assert await here.pool.fetchval(keys, us.team.id) == 1


# Programs -------------------------------------------------------------------------------------------


async def test_a_program_is_listed_under_the_name_that_was_asked_about(place: Place) -> None:
    """OA-10: without characters that turn the text around."""
    async with opened(place) as here:
        us = await cast(here, "turned")
        await a_grant(us.team, us.people[TeamRole.MEMBER], "\u202eQu\u200bill\u2066")
        shown = (await (await us.browser(TeamRole.MEMBER)).get("/team/programs")).text
        assert "<bdi>Quill</bdi>" in shown
        assert not set("\u202e\u200b\u2066") & set(shown)


async def test_members_shut_out_their_own_programs_and_admins_all(place: Place) -> None:
    async with opened(place) as here:
        us = await cast(here, "u")
        second = await a_person(us.team, "second.u@quay.example", TeamRole.MEMBER)
        own = await a_grant(us.team, us.people[TeamRole.MEMBER], "Quill <b>")
        foreign = await a_grant(us.team, second, "Reed")
        member, admin = await us.browser(TeamRole.MEMBER), await us.browser(TeamRole.ADMIN)
        shown = await member.get("/team/programs")
        assert "Quill &lt;b&gt;" in shown.text
        assert "Reed" not in shown.text
        assert (await member.post(f"/team/programs/{foreign}/revoke")).status_code == 403
        assert (await member.post(f"/team/programs/{own}/revoke")).status_code == 303
        assert "let in by second.u@quay.example" in text_of(await admin.get("/team/programs"))
        assert (await admin.post(f"/team/programs/{foreign}/revoke")).status_code == 303
        assert (await admin.post(f"/team/programs/{foreign}/revoke")).status_code == 404
        reasons = await here.pool.fetch(
            "SELECT revoked_reason FROM oauth_grants WHERE team_id = $1", us.team.id
        )
        assert [row["revoked_reason"] for row in reasons] == ["revoked_from_dashboard"] * 2
        assert [what for what, _, _ in await us.acts()] == ["grant.revoked"] * 2


# The log --------------------------------------------------------------------------------------------


async def test_the_log_is_shown_page_by_page_and_harmless(place: Place) -> None:
    """UI-01."""
    async with opened(place) as here:
        us = await cast(here, "t")
        await us.team.post("/api-keys", {"name": "<script>alert(1)</script>"}, user_agent="<img src=x>")
        for number in range(60):
            await us.team.post("/api-keys", {"name": f"key {number}"})
        admin = await us.browser(TeamRole.ADMIN)
        page = await admin.get("/team/audit")
        assert text_of(page).count("key.created") == 50
        older = re.search(r'href="(/team/audit\?after=[^"]+)"', page.text)
        assert older
        rest = await admin.get(older[1])
        assert text_of(rest).count("key.created") == 11
        assert "<script>" not in rest.text
        assert "<img src=x" not in rest.text
        assert (await admin.get("/team/audit?after=nonsense")).status_code == 422
