"""The mail client: inboxes, threads, conversations and drafts, as people use them without a script."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import pytest

from kit.inbox_mail import InboxMail, inbox_mail
from kit.people import WAITS, Visit, a_person, logged_in, text_of
from kit.world import Team
from pillarbox.dashboard.inboxes.conversation import has_remote_pictures
from pillarbox.dashboard.inboxes.search_operators import search_parameters
from pillarbox.dashboard.mail_html import cleaned, no_pictures, with_pictures
from pillarbox.dashboard.mail_quotes import with_folded_quotes
from pillarbox.dashboard.texts import TEXTS
from pillarbox.inboxes.trust.reasons import SENTENCES
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people.roles import TeamRole

LIST = "/dashboard/inboxes"
HELP = "help@harbor.example"


@pytest.fixture
@asynccontextmanager
async def mail(database_url: str, tmp_path: Path) -> AsyncIterator[InboxMail]:
    async with inbox_mail(database_url, tmp_path) as found:
        yield found


async def browser(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    return await logged_in(
        team.world, await a_person(team, f"{role.value}-{uuid4().hex[:6]}@quay.example", role)
    )


async def sent(ada: Visit, page: str, action: str, **fields: object) -> httpx.Response:
    """Return what is shown after a form of this page was sent."""
    return await ada.follow(await ada.send(page, action, **fields))


def threads_in(answer: httpx.Response) -> list[str]:
    return re.findall(r'class="row" href="[^"]*/threads/([0-9a-f-]{36})"', answer.text)


def texts_in(answer: httpx.Response, name: str) -> str:
    """Return what a text field of the page holds."""
    found = re.search(rf'<textarea id="{name}"[^>]*>\n?(.*?)</textarea>', answer.text, re.DOTALL)
    assert found is not None
    return unescape(found[1])


async def folder_of(mail: InboxMail, inbox: str, thread: str) -> str:
    return str((await mail.team.get(f"/inboxes/{inbox}/threads/{thread}")).json()["folder"])


async def test_an_inbox_is_made_named_labelled_and_deleted(mail: InboxMail) -> None:
    ada = await browser(mail.team)
    assert "No inbox yet" in (await ada.get(LIST)).text
    made = await sent(ada, f"{LIST}/new", f"{LIST}/new", local="Help", domain="harbor.example")
    assert "The inbox is created." in made.text
    (inbox,) = (await mail.team.get("/inboxes")).json()["data"]
    settings = f"{LIST}/{inbox['id']}/settings"
    assert inbox["email_address"] == HELP
    saved = await sent(ada, settings, settings, name="Help desk", from_name="Mina")
    assert "The inbox is saved." in saved.text
    refused = await ada.send(settings, settings, name="", from_name="Mina")
    assert refused.status_code == 422
    labels = f"{LIST}/{inbox['id']}/labels"
    assert "Refunds" in (await sent(ada, settings, labels, label="Refunds", color="#112233")).text
    assert (await ada.send(settings, labels, label="Refunds")).status_code == 422
    (label,) = (await mail.team.get(f"/inboxes/{inbox['id']}/labels")).json()["data"]
    await sent(ada, settings, f"{labels}/{label['id']}", name="Returns", color="#445566")
    assert "Returns" in (await ada.get(settings)).text
    await sent(ada, settings, f"{labels}/{label['id']}/delete")
    assert (await mail.team.get(f"/inboxes/{inbox['id']}/labels")).json()["data"] == []
    delete = f"{LIST}/{inbox['id']}/delete"
    assert (await ada.send(settings, delete, typed_name="help")).status_code == 422
    assert "The inbox is deleted." in (await sent(ada, settings, delete, typed_name=HELP)).text
    assert (await ada.get(settings)).status_code == 404


async def test_a_refused_inbox_keeps_what_was_typed(mail: InboxMail) -> None:
    ada = await browser(mail.team)
    answer = await ada.send(f"{LIST}/new", f"{LIST}/new", local="a b", domain="harbor.example", name="Desk")
    assert answer.status_code == 422
    assert 'value="a b"' in answer.text
    assert 'value="Desk"' in answer.text


async def test_threads_are_listed_by_folder_label_and_words(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    here = f"{LIST}/{inbox}"
    ada = await browser(mail.team)
    assert "No mail here" in (await ada.get(here)).text
    await mail.brings(HELP, subject="Twelve lanterns", message_id="<a@x>", text="They shine.")
    await mail.brings(HELP, subject="A refund", message_id="<b@x>", text="Where is it?")
    refund, lanterns = threads_in(await ada.get(here))
    assert threads_in(await ada.get(f"{here}?q=lanterns")) == [lanterns]
    assert threads_in(await ada.get(f"{here}?q=from:iris+-lanterns")) == [refund]
    assert "No conversation fits" in (await ada.get(f"{here}?q=from:nobody")).text
    assert (await ada.get(f"{here}?q=subject:x")).status_code == 422
    assert (await ada.get(f"{here}?folder=nowhere")).status_code == 422
    label = (await mail.team.post(f"/inboxes/{inbox}/labels", {"name": "Money"})).json()["id"]
    act = f"{here}/threads"
    done = await sent(ada, here, act, id=refund, do="label", label_id=label)
    assert "The label is added." in done.text
    assert threads_in(await ada.get(f"{here}?label={label}")) == [refund]
    await sent(ada, here, act, id=lanterns, do="read")
    assert threads_in(await ada.get(f"{here}?unread=1")) == [refund]
    moved = await sent(ada, here, act, id=[refund, lanterns], do="archive")
    assert "Archived." in moved.text
    assert threads_in(moved) == []
    assert set(threads_in(await ada.get(f"{here}?folder=archive"))) == {refund, lanterns}
    await sent(ada, here, act, id=refund, do="spam", folder="archive")
    await sent(ada, here, act, id=lanterns, do="trash", folder="archive")
    assert (await folder_of(mail, inbox, refund), await folder_of(mail, inbox, lanterns)) == ("spam", "trash")
    assert (await ada.send(here, act, do="archive")).status_code == 422
    assert (await ada.send(here, act, id=refund, do="explode")).status_code == 422


async def test_a_list_of_many_threads_has_pages(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    for number in range(42):
        await mail.brings(HELP, subject=f"Order {number}", message_id=f"<{number}@x>")
    ada = await browser(mail.team)
    first = await ada.get(f"{LIST}/{inbox}")
    older = re.search(r'rel="next" href="([^"]+)"', first.text)
    assert older is not None
    second = await ada.get(unescape(older[1]))
    assert (len(threads_in(first)), len(threads_in(second))) == (40, 2)
    newer = re.search(r'rel="prev" href="([^"]+)"', second.text)
    assert newer is not None
    assert threads_in(await ada.get(unescape(newer[1]))) == threads_in(first)
    cursor = threads_in(second)[0]
    await mail.team.call("DELETE", f"/inboxes/{inbox}/threads/{cursor}")
    assert (await ada.get(f"{LIST}/{inbox}?after={cursor}")).status_code == 303


async def test_a_conversation_is_read_answered_and_archived(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP, from_name="Mina")
    await mail.brings(HELP, subject="Refund", message_id="<a@x>", text="Where is it?")
    ada = await browser(mail.team)
    (thread,) = threads_in(await ada.get(f"{LIST}/{inbox}"))
    here = f"{LIST}/{inbox}/threads/{thread}"
    page = await ada.get(here)
    assert "Where is it?" in page.text
    assert "Checks of the sender" in page.text
    assert "It is the first message from this address to this inbox." in page.text
    await ada.post(f"{here}/seen")
    assert (await mail.team.get(f"/inboxes/{inbox}/threads/{thread}")).json()["read"] is True
    message = (await mail.emails(inbox, {"id": thread}))[0]["id"]
    draft = await sent(ada, here, f"{here}/emails/{message}/answer", to="sender")
    assert texts_in(draft, "to") == "iris@customer.example"
    assert "> Where is it?" in texts_in(draft, "text")
    [listed] = (await mail.team.get(f"/inboxes/{inbox}/drafts")).json()["data"]
    path = f"{LIST}/{inbox}/drafts/{listed['id']}"
    fields = {"to": "iris@customer.example", "subject": "", "text": "On its way."}
    assert "The draft is saved." in (await sent(ada, path, path, **fields)).text
    assert "On its way." in (await ada.get(f"{LIST}/{inbox}/drafts")).text
    done = await sent(ada, path, f"{path}/send", **fields)
    assert "The message is sent." in done.text
    assert "On its way." in done.text
    again = await ada.post(f"{path}/send", **fields)
    assert (again.status_code, again.headers["location"]) == (303, here)
    assert len(await mail.emails(inbox, {"id": thread})) == 2
    await sent(ada, here, f"{LIST}/{inbox}/threads", id=thread, thread=thread, do="archive")
    assert await folder_of(mail, inbox, thread) == "archive"


async def test_an_answer_to_all_names_everybody_once_and_not_the_inbox(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    headers = ["Cc: nell@quay.example, Help <help@harbor.example>"]
    shown_to = f"{HELP}, ben@quay.example"
    await mail.brings(HELP, message_id="<a@x>", shown_to=shown_to, headers=headers)
    ada = await browser(mail.team)
    (thread,) = threads_in(await ada.get(f"{LIST}/{inbox}"))
    here = f"{LIST}/{inbox}/threads/{thread}"
    message = (await mail.emails(inbox, {"id": thread}))[0]["id"]
    draft = await sent(ada, here, f"{here}/emails/{message}/answer", to="all")
    assert texts_in(draft, "to") == "iris@customer.example"
    assert texts_in(draft, "cc").split() == ["ben@quay.example", "nell@quay.example"]
    assert (await ada.post(f"{here}/emails/{message}/answer")).headers["location"] in str(draft.url)


async def test_a_new_message_is_sent_once_however_often_its_form_comes(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    ada = await browser(mail.team)
    new = f"{LIST}/{inbox}/new-message"
    fields = {
        "to": "iris@customer.example",
        "subject": "Lanterns",
        "text": "They shine.",
        "key": str(uuid4()),
    }
    first = await ada.send(new, f"{new}/send", **fields)
    again = await ada.send(new, f"{new}/send", **fields)
    assert first.status_code == again.status_code == 303
    threads = await mail.threads(inbox, "?folder=sent")
    assert [thread["subject"] for thread in threads] == ["Lanterns"]
    assert (await mail.team.get(f"/inboxes/{inbox}/drafts")).json()["data"] == []


async def test_a_form_that_comes_again_while_it_is_at_work_keeps_its_key(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    ada = await browser(mail.team)
    new, key = f"{LIST}/{inbox}/new-message", str(uuid4())
    fields = {"to": "iris@customer.example", "subject": "Lanterns", "text": "They shine.", "key": key}
    await ada.get(new)
    pool = mail.team.world.pool
    async with transaction(pool) as conn:
        await conn.execute("SELECT FROM inboxes WHERE id = $1 FOR UPDATE", UUID(inbox))
        first = asyncio.create_task(ada.post(f"{new}/send", **fields))
        while not await pool.fetchval(WAITS):
            await asyncio.sleep(0.01)
        second = await ada.post(f"{new}/send", **fields)
    assert (second.status_code, f'name="key" value="{key}"' in second.text) == (409, True)
    assert (await first).status_code == 303
    assert (await ada.post(f"{new}/send", **fields)).status_code == 303
    assert len(await mail.threads(inbox, "?folder=sent")) == 1
    other = await ada.post(f"{new}/send", **{**fields, "text": "They glow."})
    assert (other.status_code, key in other.text) == (409, False)


async def test_what_cannot_be_sent_stays_a_draft(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    ada = await browser(mail.team)
    new = f"{LIST}/{inbox}/new-message"
    answer = await ada.send(new, f"{new}/send", to="", subject="Lanterns", text="They shine.")
    assert answer.status_code == 422
    assert "They shine." in texts_in(answer, "text")
    [draft] = (await mail.team.get(f"/inboxes/{inbox}/drafts")).json()["data"]
    path = f"{LIST}/{inbox}/drafts/{draft['id']}"
    assert f'action="{path}"' in answer.text
    wrong = await ada.send(path, path, to="nobody", subject="Lanterns", text="They shine brightly.")
    assert wrong.status_code == 422
    assert "They shine brightly." in texts_in(wrong, "text")
    assert (await ada.send(new, new)).status_code == 422
    assert "The draft is discarded." in (await sent(ada, path, f"{path}/discard")).text
    assert (await ada.get(path)).status_code == 404


async def a_draft(mail: InboxMail, inbox: str, text: str = "One.") -> tuple[str, str]:
    """Return the path of a new draft in the API, and of its page."""
    content = {"to": "iris@customer.example", "subject": "Tides", "text": text}
    made = await mail.team.post(f"/inboxes/{inbox}/drafts", content)
    return f"/inboxes/{inbox}/drafts/{made.json()['id']}", f"{LIST}/{inbox}/drafts/{made.json()['id']}"


def revision_in(page: httpx.Response) -> str:
    found = re.search(r'name="revision" value="([0-9a-f]+)"', page.text)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("action", ["", "/send"])
async def test_a_second_tab_does_not_write_over_what_was_saved_meanwhile(
    mail: InboxMail, action: str
) -> None:
    inbox = await mail.inbox(HELP)
    api, path = await a_draft(mail, inbox)
    ada = await browser(mail.team)
    fields = {"to": "iris@customer.example", "subject": "Tides", "revision": revision_in(await ada.get(path))}
    assert (await ada.post(path, **fields, text="Two,\r\nof the first tab.")).status_code == 303
    stale = await ada.post(f"{path}{action}", **fields, text="Three, of the second.")
    assert (stale.status_code, "Somebody else" in stale.text) == (409, True)
    assert texts_in(stale, "text") == "Three, of the second."
    assert (await mail.team.get(api)).json()["text"] == "Two,\nof the first tab."
    assert (await ada.post(path, **fields, text="Two,\r\nof the first tab.")).status_code == 303
    over = await ada.post(path, **{**fields, "revision": revision_in(stale)}, text="Three, of the second.")
    assert over.status_code == 303
    assert (await mail.team.get(api)).json()["text"] == "Three, of the second."


async def test_words_for_a_draft_that_is_sent_or_gone_meanwhile_are_kept(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    ada = await browser(mail.team)
    for end in ("/send", ""):
        api, path = await a_draft(mail, inbox)
        fields = {"to": "iris@customer.example", "revision": revision_in(await ada.get(path))}
        ended = await mail.team.call("POST" if end else "DELETE", f"{api}{end}")
        assert ended.status_code == 200
        for action in ("", "/send"):
            late = await ada.post(f"{path}{action}", **fields, text="Written meanwhile.")
            assert late.status_code == (409 if end else 404)
            assert texts_in(late, "text") == "Written meanwhile."
            assert f'action="{LIST}/{inbox}/new-message"' in late.text
    assert len(await mail.threads(inbox, "?folder=sent")) == 1


async def test_a_message_is_forwarded_with_what_it_carries(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    await mail.brings(HELP, message_id="<a@x>", text="Where is it?")
    ada = await browser(mail.team)
    (thread,) = threads_in(await ada.get(f"{LIST}/{inbox}"))
    here = f"{LIST}/{inbox}/threads/{thread}"
    message = (await mail.emails(inbox, {"id": thread}))[0]["id"]
    path = f"{here}/emails/{message}/forward"
    assert (await ada.send(path, path, to="")).status_code == 422
    fields = {"to": "ben@quay.example", "text": "Please look.", "key": str(uuid4())}
    assert "The message is sent." in (await sent(ada, path, path, **fields)).text
    await ada.send(path, path, **fields)
    emails = await mail.emails(inbox, {"id": thread})
    assert len(emails) == 2
    assert "Please look." in emails[-1]["text"]


async def test_a_thread_is_labelled_and_assigned(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    await mail.brings(HELP, message_id="<a@x>")
    ada = await browser(mail.team)
    (thread,) = threads_in(await ada.get(f"{LIST}/{inbox}"))
    here = f"{LIST}/{inbox}/threads/{thread}"
    labels = [
        (await mail.team.post(f"/inboxes/{inbox}/labels", {"name": name})).json()["id"] for name in ("A", "B")
    ]
    await sent(ada, here, f"{here}/labels", label=labels)
    shown = (await mail.team.get(f"/inboxes/{inbox}/threads/{thread}")).json()["labels"]
    assert [label["name"] for label in shown] == ["A", "B"]
    page = (await ada.get(here)).text
    assert all(f'name="had" value="{label}"' in page for label in labels)
    meanwhile = (await mail.team.post(f"/inboxes/{inbox}/labels", {"name": "C"})).json()["id"]
    thread_labels = f"/inboxes/{inbox}/threads/{thread}/labels"
    await mail.team.post(thread_labels, {"labels": [meanwhile]})
    await sent(ada, here, f"{here}/labels", had=labels, label=labels[1])
    kept = (await mail.team.get(f"/inboxes/{inbox}/threads/{thread}")).json()["labels"]
    assert [label["name"] for label in kept] == ["B", "C"]
    await sent(ada, here, f"{here}/labels", had=[labels[1], meanwhile])
    assert (await mail.team.get(f"/inboxes/{inbox}/threads/{thread}")).json()["labels"] == []
    member = (await a_person(mail.team, "ben@quay.example", TeamRole.MEMBER)).email
    assert member in text_of(await sent(ada, here, f"{here}/assignee", email=member))
    assert (await ada.send(here, f"{here}/assignee", email="x@nowhere.example")).status_code == 422
    assert "assigned to nobody" in (await sent(ada, here, f"{here}/assignee", email="")).text


async def test_html_is_cleaned_and_pictures_from_elsewhere_wait_for_the_reader(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    html = (
        '<p>Hello</p><img src="https://elsewhere.example/pixel.png"><script>alert(1)</script>'
        "<blockquote>Before</blockquote>"
    )
    await mail.brings(HELP, message_id="<a@x>", headers=["Content-Type: text/html"], text=html)
    ada = await browser(mail.team)
    (thread,) = threads_in(await ada.get(f"{LIST}/{inbox}"))
    here = f"{LIST}/{inbox}/threads/{thread}"
    message = (await mail.emails(inbox, {"id": thread}))[0]["id"]
    page = await ada.get(here)
    assert "Pictures of other servers are blocked" in page.text
    assert "elsewhere.example" not in page.text
    frame = await ada.get(f"{here}/emails/{message}/html")
    assert "elsewhere.example" not in frame.text
    assert "<script" not in frame.text
    assert '<details class="quote">' in frame.text
    assert "img-src data:;" in frame.headers["content-security-policy"]
    assert "blocked" not in (await ada.get(f"{here}?images={message}")).text
    asked = await ada.get(f"{here}/emails/{message}/html?images=all")
    assert 'src="https://elsewhere.example/pixel.png"' in asked.text
    assert "img-src data: https: http:;" in asked.headers["content-security-policy"]
    assert "script-src" not in asked.headers["content-security-policy"]
    assert "default-src 'none'" in asked.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("html", "has"),
    [
        ('<img alt="a" src="https://elsewhere.example/a.png">', True),
        ("<p>a<IMG SRC = '//elsewhere.example/a.png'", True),
        ("<img src= http://elsewhere.example/a.png>", True),
        ('<img src="cid:a"><a href="https://elsewhere.example/">', False),
        ('<img data="a"> src="https://elsewhere.example/"', False),
        ("<img " * 40_000, False),
        ("<img src=" + " " * 190_000, False),
        ("<img " + "src " * 49_000, False),
    ],
    ids=lambda value: str(value)[:40],
)
def test_remote_pictures_are_found_in_linear_time(html: str, has: bool) -> None:
    began = time.process_time()
    assert has_remote_pictures(html) is has
    assert time.process_time() - began < 0.2


def test_each_reason_of_trust_has_a_text() -> None:
    assert {code: sentence for code, sentence in SENTENCES.items() if f"trust.{code}" not in TEXTS} == {}


async def test_viewers_read_and_change_nothing(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    await mail.brings(HELP, message_id="<a@x>")
    ben = await browser(mail.team, TeamRole.VIEWER)
    here = f"{LIST}/{inbox}"
    (thread,) = threads_in(await ben.get(here))
    page = await ben.get(f"{here}/threads/{thread}")
    assert page.status_code == 200
    assert "<textarea" not in page.text
    assert "/answer" not in page.text
    answer = await ben.post(f"{here}/threads", id=thread, do="archive")
    assert answer.status_code == 403
    assert (await ben.get(f"{here}/new-message")).status_code == 403
    assert await folder_of(mail, inbox, thread) == "inbox"


async def test_the_threads_of_another_team_are_neither_shown_nor_changed(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    await mail.brings(HELP, message_id="<a@x>")
    [thread] = await mail.threads(inbox)
    quay = await mail.team.world.team("Quay")
    ben = await browser(quay)
    await ben.get("/account")
    for path in (f"{LIST}/{inbox}", f"{LIST}/{inbox}/threads/{thread['id']}", f"{LIST}/{inbox}/settings"):
        assert (await ben.get(path)).status_code == 404, path
    act = await ben.post(f"{LIST}/{inbox}/threads", id=thread["id"], do="trash")
    assert act.status_code == 404
    assert await folder_of(mail, inbox, thread["id"]) == "inbox"


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("lantern", {"query": "lantern"}),
        ("from:ada lantern", {"from": "ada", "query": "lantern"}),
        ('from:"Iris Vale" from:ben', {"from": "Iris Vale,ben"}),
        ('"from:ada" x', {"query": '"from:ada" x'}),
        ("has:attachment IS:unread -old", {"has_attachment": "true", "read": "false", "query": "-old"}),
        ("after:2026-10-01 before:2026-10-31", {"start_date": "2026-10-01", "end_date": "2026-10-31"}),
        ("has:wings from:", {"query": "has:wings from:"}),
    ],
)
def test_operators_become_parameters(text: str, parameters: dict[str, str]) -> None:
    assert search_parameters(text) == parameters


@pytest.mark.parametrize(
    ("body", "folded"),
    [
        ("<p>a</p>", "<p>a</p>"),
        ("a<blockquote>b</blockquote>c", "a[<blockquote>b</blockquote>]c"),
        (
            "<blockquote>b<blockquote>c</blockquote></blockquote>",
            "[<blockquote>b<blockquote>c</blockquote></blockquote>]",
        ),
        ('<p title="<blockquote>">a</p>', '<p title="<blockquote>">a</p>'),
    ],
)
def test_the_outermost_quotations_are_folded(body: str, folded: str) -> None:
    opening = '<details class="quote"><summary>Q</summary>'
    expected = folded.replace("[", opening).replace("]", "</details>")
    assert with_folded_quotes(body, "Q") == expected


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("https://x.example/a.png", "https://x.example/a.png"),
        ("//x.example/a.png", "https://x.example/a.png"),
        ("javascript:alert(1)", None),
        ("ftp://x.example/a.png", None),
    ],
)
def test_only_pictures_over_http_are_kept_for_who_asks(source: str, kept: str | None) -> None:
    shown = with_pictures(cleaned(f'<img src="{source}">', with_remote=True), no_pictures)
    assert (f'src="{kept}"' in shown.body) if kept else ("src" not in shown.body)
