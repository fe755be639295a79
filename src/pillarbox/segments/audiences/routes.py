"""HTTP routes of the audiences, which older clients call."""

from __future__ import annotations

from functools import partial

from pillarbox.contacts import wire as contacts_wire
from pillarbox.contacts.reading import contact_list, shown
from pillarbox.contacts.store import Contacts
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed
from pillarbox.segments import changes, queries
from pillarbox.segments.audiences import members, wire
from pillarbox.segments.audiences.members import AUDIENCE
from pillarbox.segments.changes import SegmentChange
from pillarbox.segments.wire import NamedSegment, SegmentsSegmentItem, item


@route("POST", "/audiences", needs=Access.FULL, status=201, body=NamedSegment, summary="Create an audience")
async def create(request: Request, db: TeamDb) -> Reply[wire.AudienceCreated]:
    wanted = parse(NamedSegment, request.json())
    segment = await changes.create(db, request.use(Ids), wanted.name, None)
    return Reply(wire.AudienceCreated(object="audience", id=segment.id, name=segment.name))


@route("GET", "/audiences", needs=Access.FULL, query=PAGING, summary="List audiences")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[SegmentsSegmentItem]]:
    page = Page.read(request.query, default=None)
    return Reply(await listed(partial(queries.page, db), page, item))


@route("GET", "/audiences/{audience_id}", needs=Access.FULL, summary="Retrieve an audience")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullAudience]:
    return Reply(wire.full(await changes.found(db, request.uuid("audience_id"), AUDIENCE)))


@route(
    "PATCH", "/audiences/{audience_id}", needs=Access.FULL, body=NamedSegment, summary="Rename an audience"
)
async def update(request: Request, db: TeamDb) -> Reply[wire.AudienceRef]:
    wanted = parse(NamedSegment, request.json())
    audience_id = request.uuid("audience_id")
    await changes.change(db, audience_id, SegmentChange(name=wanted.name), AUDIENCE)
    return Reply(wire.AudienceRef(object="audience", id=audience_id))


@route("DELETE", "/audiences/{audience_id}", needs=Access.FULL, summary="Delete an audience")
async def remove(request: Request, db: TeamDb) -> Reply[wire.AudienceDeleted]:
    audience_id = request.uuid("audience_id")
    await changes.delete(db, request.use(Ids), audience_id)
    return Reply(wire.AudienceDeleted(object="audience", id=audience_id, deleted=True))


@route(
    "POST",
    "/audiences/{audience_id}/contacts",
    needs=Access.FULL,
    status=201,
    body=contacts_wire.MembersOfContact,
    summary="Create a contact in an audience",
)
async def create_contact(request: Request, db: TeamDb) -> Reply[contacts_wire.ContactRef]:
    new = parse(contacts_wire.MembersOfContact, request.json())
    address, wanted = contacts_wire.address_of(new.email), contacts_wire.members_of(new)
    audience_id = request.uuid("audience_id")
    contact_id = await members.add(db, request.use(Contacts), audience_id, address, wanted)
    return Reply(contacts_wire.ContactRef(object="contact", id=contact_id))


@route(
    "GET",
    "/audiences/{audience_id}/contacts",
    needs=Access.FULL,
    query=PAGING,
    summary="List the contacts of an audience",
)
async def contacts(request: Request, db: TeamDb) -> Reply[ListOf[contacts_wire.ContactItem]]:
    page = Page.read(request.query, default=None)
    audience = await changes.found(db, request.uuid("audience_id"), AUDIENCE)
    return Reply(await contact_list(db, page, request.at, audience.id))


@route(
    "GET",
    "/audiences/{audience_id}/contacts/{contact}",
    needs=Access.FULL,
    summary="Retrieve a contact of an audience",
)
async def show_contact(request: Request, db: TeamDb) -> Reply[contacts_wire.FullContact]:
    contact_id = await members.member(db, request.uuid("audience_id"), request.param("contact"), request.at)
    return Reply(await shown(db, contact_id))


@route(
    "PATCH",
    "/audiences/{audience_id}/contacts/{contact}",
    needs=Access.FULL,
    body=contacts_wire.ChangedContact,
    summary="Update a contact of an audience",
)
async def update_contact(request: Request, db: TeamDb) -> Reply[contacts_wire.ContactRef]:
    """Change the contact itself, in all of its segments."""
    changed = parse(contacts_wire.ChangedContact, request.json())
    change = contacts_wire.change_of(changed)
    contact_id = await members.member(db, request.uuid("audience_id"), request.param("contact"), request.at)
    address = email_address((await shown(db, contact_id)).email).address
    contacts_wire.refuse_new_address(changed, address)
    await request.use(Contacts).change(db, contact_id, change)
    return Reply(contacts_wire.ContactRef(object="contact", id=contact_id))


@route(
    "DELETE",
    "/audiences/{audience_id}/contacts/{contact}",
    needs=Access.FULL,
    summary="Remove a contact from an audience",
)
async def remove_contact(request: Request, db: TeamDb) -> Reply[wire.ContactLeft]:
    """Remove the contact from the segment; the contact itself stays."""
    named = request.param("contact")
    await members.remove(db, request.use(Contacts), request.uuid("audience_id"), named)
    return Reply(wire.ContactLeft(object="contact", contact=named, deleted=True))
