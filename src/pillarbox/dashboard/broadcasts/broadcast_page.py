"""One broadcast: a draft as steps, any other as a report; and what is done with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pillarbox.dashboard.broadcasts.broadcast_list import HERE, ONE, name_of
from pillarbox.dashboard.broadcasts.content_form import CONTENT_BYTES, content_of, revision_of
from pillarbox.dashboard.broadcasts.draft_steps import draft_page
from pillarbox.dashboard.broadcasts.plan_form import content_of_variant, pace_of, test_of, without_ids
from pillarbox.dashboard.broadcasts.report import report_page
from pillarbox.dashboard.editor.link_report import begin, parts_of_broadcast
from pillarbox.dashboard.emails.mail_frame import mail_frame
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Conflict, NotFound, Problem
from pillarbox.people.audit import Act

DRAFTS: Final = ("draft", "scheduled")


@screen(
    ONE,
    title="broadcast.title",
    query={
        **dict.fromkeys(("step", "view", "type", "email", "count", "after", "before", "done"), str),
    },
)
async def show(visit: Visit) -> Reply[Html]:
    return await broadcast_page(visit)


async def broadcast_page(
    visit: Visit, *, status: int = 200, problem: str | None = None, step: str | None = None, typed: Any = None
) -> Reply[Html]:
    """Show the screen of a broadcast. `typed` is what a refused form of a step had."""
    broadcast = await visit.get(api(visit))
    if broadcast["status"] in DRAFTS:
        return await draft_page(visit, broadcast, status=status, problem=problem, step=step, typed=typed)
    return await report_page(visit, broadcast, status=status, problem=problem)


@screen(f"{ONE}/html", title="broadcast.title")
async def frame(visit: Visit) -> Reply[Html]:
    """Show the HTML for a sandboxed frame, cleaned."""
    broadcast = await visit.get(api(visit), shown=False)
    return await mail_frame(visit, broadcast["html"] or "")


# Steps of a draft ---------------------------------------------------------------------------------


@act(
    f"{ONE}/content", title="broadcast.content", back=HERE, records=Act.BROADCAST_CHANGED, limit=CONTENT_BYTES
)
async def save_content(visit: Visit, form: Form) -> Reply[Html]:
    given = content_of(form)

    async def change() -> None:
        seen = form.get("revision")
        if seen and seen != revision_of(await visit.get(api(visit), shown=False)):
            raise Conflict(t("broadcast.changed_meanwhile"))
        # Fields that the form does not have stay: another tab may be writing the mail.
        changes = {name: value for name, value in given.changes().items() if form.every(name)}
        await visit.patch(api(visit), changes)

    return await _step(visit, form, "content", "audience", change, given)


@act(f"{ONE}/audience", title="broadcast.audience", back=HERE, records=Act.BROADCAST_CHANGED)
async def save_audience(visit: Visit, form: Form) -> Reply[Html]:
    wanted = {"segment_id": form.get("segment_id"), "topic_id": form.get("topic_id") or None}

    async def change() -> None:
        await visit.patch(api(visit), {name: value for name, value in wanted.items() if value != ""})

    return await _step(visit, form, "audience", "pace", change)


@act(f"{ONE}/pace", title="broadcast.pace", back=HERE, records=Act.BROADCAST_CHANGED)
async def save_pace(visit: Visit, form: Form) -> Reply[Html]:
    async def change() -> None:
        await _save_plan(visit, form, pace_of(form))

    return await _step(visit, form, "pace", "test", change, form)


@act(f"{ONE}/test", title="broadcast.test", back=HERE, records=Act.BROADCAST_CHANGED, limit=4 * CONTENT_BYTES)
async def save_test(visit: Visit, form: Form) -> Reply[Html]:
    async def change() -> None:
        await _save_plan(visit, form, {"ab_test": test_of(form)})

    return await _step(visit, form, "test", "review", change, form)


async def _save_plan(visit: Visit, form: Form, fields: Mapping[str, Any]) -> None:
    """Store these fields of the plan. What somebody else has stored since the form was drawn, or stores at
    this moment, is not written over."""
    plan = await visit.get(f"{api(visit)}/plan", shown=False)
    revision = form.get("revision") or plan["revision"]
    await visit.put(f"{api(visit)}/plan", {**without_ids(plan), **fields, "revision": revision})


async def _step(
    visit: Visit,
    form: Form,
    step: str,
    following: str,
    change: Callable[[], Awaitable[None]],
    typed: Any = None,
) -> Reply[Html]:
    """Save a step, and go on with the next one or stay."""
    try:
        await change()
    except NotFound:
        raise
    except Problem as problem:
        return await broadcast_page(
            visit, status=problem.status, problem=problem.message, step=step, typed=typed
        )
    shown = step if form.get("stay") else following
    return visit.to(with_query(here(visit), step=shown, done="broadcast_saved"))


@act(f"{ONE}/copy", title="broadcast.test_copy", back=HERE, records=Act.EMAILS_SENT)
async def send_copy(visit: Visit, form: Form) -> Reply[Html]:
    """Send a test copy as one contact would get it."""
    wanted = {"contact": form.get("contact").strip(), "send_to": form.get("send_to").strip()}
    try:
        await visit.post(f"{api(visit)}/preview", wanted)
    except NotFound as missing:
        return await broadcast_page(visit, status=404, problem=missing.message, step="content")
    except Problem as problem:
        return await broadcast_page(visit, status=problem.status, problem=problem.message, step="content")
    return visit.to(with_query(here(visit), step="content", done="broadcast_copy_sent"))


@act(f"{ONE}/links", title="links.check", back=HERE)
async def check_links(visit: Visit, _: Form) -> Reply[Html]:
    """Let a job check the links, of all variants. It changes nothing of the draft."""
    broadcast = await visit.get(api(visit), shown=False)
    plan = await visit.get(f"{api(visit)}/plan", shown=False)
    try:
        await begin(visit, parts_of_broadcast(broadcast, plan))
    except Problem as problem:
        return await broadcast_page(visit, status=problem.status, problem=problem.message, step="review")
    return visit.to(f"{with_query(here(visit), step='review', done='links_asked')}#links")


# What is done with it -----------------------------------------------------------------------------


@act(f"{ONE}/send", title="broadcast.send", back=HERE, records=Act.BROADCAST_SENT)
async def send(visit: Visit, form: Form) -> Reply[Html]:
    when = form.get("scheduled_at").strip()
    if form.get("when") == "later" and not when:
        return await broadcast_page(visit, status=422, problem=t("broadcast.no_time"), step="review")
    body = {"scheduled_at": when} if form.get("when") == "later" else {}
    done = "broadcast_scheduled" if body else "broadcast_sent"
    return await _done(visit, "/send", body, done, step="review")


@act(f"{ONE}/cancel", title="broadcast.cancel", back=HERE, records=Act.BROADCAST_CANCELED)
async def cancel(visit: Visit, _: Form) -> Reply[Html]:
    return await _done(visit, "/cancel", None, "broadcast_canceled", step="review")


@act(f"{ONE}/pause", title="broadcast.pause", back=HERE, records=Act.BROADCAST_PAUSED)
async def pause(visit: Visit, form: Form) -> Reply[Html]:
    reason = form.get("reason").strip() or t("broadcast.paused_by", who=visit.visitor.email)
    return await _done(visit, "/pause", {"reason": reason[:200]}, "broadcast_paused")


@act(f"{ONE}/resume", title="broadcast.resume", back=HERE, records=Act.BROADCAST_RESUMED)
async def resume(visit: Visit, _: Form) -> Reply[Html]:
    return await _done(visit, "/resume", None, "broadcast_resumed")


@act(f"{ONE}/winner", title="broadcast.choose_winner", back=HERE, records=Act.BROADCAST_WINNER_CHOSEN)
async def choose_winner(visit: Visit, form: Form) -> Reply[Html]:
    text = form.get("variant")
    variant = int(text) if text.isascii() and text.isdigit() and len(text) == 1 else 0
    return await _done(visit, "/winner", {"variant": variant}, "broadcast_winner")


@act(f"{ONE}/duplicate", title="broadcast.duplicate", back=HERE, records=Act.BROADCAST_CREATED)
async def duplicate(visit: Visit, _: Form) -> Reply[Html]:
    visit.acts_on(None)
    answer = await visit.post(f"{api(visit)}/duplicate")
    return visit.to(f"{HERE}/{answer['id']}", done="broadcast_duplicated")


@act(f"{ONE}/resend", title="broadcast.resend", back=HERE, records=Act.BROADCAST_CREATED)
async def resend(visit: Visit, _: Form) -> Reply[Html]:
    """Make a draft with the same content, that of the winner after an A/B test, for those who were sent it
    and did not open it."""
    broadcast_id = visit.request.uuid("broadcast_id")
    broadcast = await visit.get(api(visit), shown=False)
    name = t("broadcast.resend.segment", name=name_of(broadcast["name"], broadcast["subject"]))[:255]
    rule = {"type": "rule", "field": f"broadcasts.{broadcast_id}", "operator": "eq", "value": "not_opened"}
    try:
        plan = await visit.get(f"{api(visit)}/plan", shown=False)
        progress = await visit.get(f"{api(visit)}/progress", shown=False)
        segment = await visit.post("/segments", {"name": name, "conditions": rule}, recorded=False)
        visit.acts_on(None)
        answer = await visit.post(f"{api(visit)}/duplicate")
        change = {"segment_id": segment["id"], **content_of_variant(plan, progress["winner"])}
        await visit.patch(f"/broadcasts/{answer['id']}", change)
        await visit.put(f"/broadcasts/{answer['id']}/plan", {})
    except Problem as problem:
        return await broadcast_page(visit, status=problem.status, problem=problem.message)
    return visit.to(with_query(f"{HERE}/{answer['id']}", done="broadcast_resend"))


@act(f"{ONE}/delete", title="broadcast.delete", back=HERE, records=Act.BROADCAST_DELETED)
async def remove(visit: Visit, _: Form) -> Reply[Html]:
    try:
        await visit.delete(api(visit))
    except NotFound:
        raise
    except Problem as problem:
        return await broadcast_page(visit, status=problem.status, problem=problem.message)
    return visit.to(HERE, done="broadcast_deleted")


async def _done(
    visit: Visit, path: str, body: dict[str, Any] | None, done: str, *, step: str | None = None
) -> Reply[Html]:
    """Call a route of the broadcast, and show it with what was done or refused."""
    try:
        await visit.post(f"{api(visit)}{path}", body)
    except NotFound:
        raise
    except Problem as problem:
        return await broadcast_page(visit, status=problem.status, problem=problem.message, step=step)
    return visit.to(here(visit), done=done)


def api(visit: Visit) -> str:
    return f"/broadcasts/{visit.request.uuid('broadcast_id')}"


def here(visit: Visit) -> str:
    return f"{HERE}/{visit.request.uuid('broadcast_id')}"
