"""HTTP routes of contacts."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from pillarbox.contacts import queries, segment_queries, topic_queries, wire
from pillarbox.contacts.conditions import membership
from pillarbox.contacts.conditions.filtering import ContactFilter
from pillarbox.contacts.conditions.filters_on_wire import condition_in_segment, words_of
from pillarbox.contacts.conditions.parsing import condition_in
from pillarbox.contacts.conditions.walking import fitting_page
from pillarbox.contacts.reading import contact_list, item, shown
from pillarbox.contacts.store import Contacts, find
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse, parse_value
from pillarbox.kernel.wire.instants import database_style
from pillarbox.kernel.wire.paging import DEFAULT, PAGING, ListOf, Page, listed
from pillarbox.kernel.wire.problems import Invalid, InvalidParameter, NotFound
from pillarbox.kernel.wire.uuids import well_formed

COUNTED: dict[str, Any] = {"segment_id": UUID, "audience_id": UUID, "conditions": str, "search": str}
FILTERS: dict[str, Any] = {**PAGING, **COUNTED}


@route(
    "POST",
    "/contacts",
    needs=Access.FULL,
    status=201,
    body=wire.NewContact,
    problems=(404,),
    summary="Create a contact",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.ContactRef]:
    new = parse(wire.NewContact, request.json())
    address, members, belonging = wire.address_of(new.email), wire.members_of(new), wire.belonging_of(new)
    stored = await request.use(Contacts).upsert(db, address, members, belonging)
    return Reply(wire.ContactRef(object="contact", id=stored.id))


@route("GET", "/contacts", needs=Access.FULL, query=FILTERS, summary="List contacts", problems=(404,))
async def index(request: Request, db: TeamDb) -> Reply[wire.ContactList]:
    page = Page.read(request.query, default=None)
    segment_id = _segment(request)
    if any(request.query.text(name) for name in ("conditions", "search")):
        return Reply(await _fitting(request, db, page, segment_id))
    if segment_id is not None and not await segment_queries.exists(db, segment_id):
        raise NotFound("Segment")
    answer = await contact_list(db, page, request.at, segment_id)
    if isinstance(answer, ListOf):
        return Reply(wire.ContactList(has_more=answer.has_more, data=answer.data))
    return Reply(answer)


@route("GET", "/contacts/count", needs=Access.FULL, query=COUNTED, summary="Count contacts", problems=(404,))
async def count(request: Request, db: TeamDb) -> Reply[wire.ContactCount]:
    counts = await membership.counts(db, await _filter(request, db, _segment(request)))
    return Reply(
        wire.ContactCount(object="contact_count", count=counts.contacts, subscribed=counts.subscribed)
    )


@route("GET", "/contacts/{contact}", needs=Access.FULL, summary="Retrieve a contact")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullContact]:
    return Reply(await shown(db, await find(db, request.param("contact"))))


@route(
    "PATCH", "/contacts/{contact}", needs=Access.FULL, body=wire.ChangedContact, summary="Update a contact"
)
async def update(request: Request, db: TeamDb) -> Reply[wire.ContactRef]:
    changed = parse(wire.ChangedContact, request.json())
    change = wire.change_of(changed)
    contact_id = await find(db, request.param("contact"))
    wire.refuse_new_address(changed, await queries.address_of(db, contact_id) or "")
    await request.use(Contacts).change(db, contact_id, change)
    return Reply(wire.ContactRef(object="contact", id=contact_id))


@route("DELETE", "/contacts/{contact}", needs=Access.FULL, summary="Delete a contact")
async def remove(request: Request, db: TeamDb) -> Reply[wire.DeletedContact]:
    contact_id = await find(db, request.param("contact"))
    await request.use(Contacts).delete(db, contact_id)
    return Reply(wire.DeletedContact(object="contact", id=contact_id, contact=contact_id, deleted=True))


@route(
    "GET",
    "/contacts/{contact}/segments",
    needs=Access.FULL,
    query=PAGING,
    summary="List the segments of a contact",
)
async def segments(request: Request, db: TeamDb) -> Reply[ListOf[wire.ContactsSegmentItem]]:
    page = Page.read(request.query, default=None)
    contact_id = await find(db, request.param("contact"))
    return Reply(
        await listed(
            partial(membership.segments_page, db, contact_id, request.at),
            page,
            lambda one: wire.ContactsSegmentItem(
                id=one.id, name=one.name, created_at=database_style(one.created_at)
            ),
        )
    )


@route(
    "POST",
    "/contacts/{contact}/segments/{segment_id}",
    needs=Access.FULL,
    summary="Add a contact to a segment",
)
async def join(request: Request, db: TeamDb) -> Reply[wire.JoinedSegment]:
    contact_id = await find(db, request.param("contact"))
    segment_id = request.uuid("segment_id")
    await request.use(Contacts).add_to_segments(db, contact_id, [segment_id])
    return Reply(wire.JoinedSegment(id=segment_id))


@route(
    "DELETE",
    "/contacts/{contact}/segments/{segment_id}",
    needs=Access.FULL,
    summary="Remove a contact from a segment",
)
async def leave(request: Request, db: TeamDb) -> Reply[wire.LeftSegment]:
    contact_id = await find(db, request.param("contact"))
    segment_id = request.uuid("segment_id")
    if not await segment_queries.exists(db, segment_id):
        raise NotFound("Segment")
    await request.use(Contacts).remove_from_segment(db, contact_id, segment_id)
    return Reply(wire.LeftSegment(id=segment_id, deleted=True))


@route(
    "GET",
    "/contacts/{contact}/topics",
    needs=Access.FULL,
    query=PAGING,
    summary="List the topics of a contact",
)
async def topics(request: Request, db: TeamDb) -> Reply[ListOf[wire.ContactsTopicItem]]:
    page = Page.read(request.query, default=None)
    contact_id = await find(db, request.param("contact"))
    return Reply(
        await listed(
            partial(topic_queries.page, db, contact_id),
            page,
            lambda one: wire.ContactsTopicItem(
                id=one.id, name=one.name, description=one.description, subscription=one.subscription
            ),
        )
    )


@route(
    "PATCH",
    "/contacts/{contact}/topics",
    needs=Access.FULL,
    body=wire.ChangedTopics,
    array=True,
    summary="Change what a contact chose of topics",
)
async def choose(request: Request, db: TeamDb) -> Reply[wire.ChosenRef]:
    choices = parse_value(wire.ChangedTopics, request.json())
    contact_id = await find(db, request.param("contact"))
    await request.use(Contacts).choose_topics(db, contact_id, choices)
    return Reply(wire.ChosenRef(id=contact_id))


async def _filter(request: Request, db: TeamDb, segment_id: UUID | None) -> ContactFilter:
    """Return the filter that a request names."""
    given = request.query.text("conditions")
    condition = None if given is None else condition_in(given, "conditions")
    by_segment = await membership.condition_by_segment(db, segment_id)
    words = words_of(request.query.text("search"), "search")
    return ContactFilter(request.at, condition_in_segment(condition, segment_id, by_segment), words)


async def _fitting(request: Request, db: TeamDb, page: Page, segment_id: UUID | None) -> wire.ContactList:
    """Return a page of the contacts that fit. It may have fewer than asked for and still have a next one."""
    if page.before is not None:
        raise Invalid("Filters cannot be used with `before`. Use `after`.")
    contact_filter = await _filter(request, db, segment_id)
    found = await fitting_page(db, contact_filter, page.limit or DEFAULT, page.after)
    answer = wire.ContactList(
        has_more=found.following is not None, data=[item(contact) for contact in found.contacts]
    )
    if found.following is not None:
        answer.next = found.following
    return answer


def _segment(request: Request) -> UUID | None:
    """Return the segment that a list is restricted to, by either of its names."""
    named = {name: request.query.text(name) for name in ("segment_id", "audience_id")}
    for name, value in named.items():
        if value is not None and not well_formed(value):
            raise InvalidParameter(name, "Use the id of a segment.")
    found = {UUID(value) for value in named.values() if value is not None}
    if len(found) > 1:
        raise Invalid("Use either `segment_id` or `audience_id`, not both.")
    return found.pop() if found else None
