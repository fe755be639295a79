"""HTTP routes of the topics."""

from __future__ import annotations

from functools import partial

from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.topics import queries, wire
from pillarbox.topics.changes import TopicChanges


@route("POST", "/topics", needs=Access.FULL, status=201, body=wire.NewTopic, summary="Create a topic")
async def create(request: Request, db: TeamDb) -> Reply[wire.TopicRef]:
    wanted = parse(wire.NewTopic, request.json())
    topic_id = await request.use(TopicChanges).create(db, wanted)
    return Reply(wire.TopicRef(object="topic", id=topic_id))


@route("GET", "/topics", needs=Access.FULL, query=PAGING, summary="List topics")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.TopicsTopicItem]]:
    page = Page.read(request.query)
    return Reply(await listed(partial(queries.page, db), page, wire.item))


@route("GET", "/topics/{topic_id}", needs=Access.FULL, summary="Retrieve a topic")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullTopic]:
    topic = await queries.get(db, request.uuid("topic_id"))
    if topic is None:
        raise NotFound("Topic")
    return Reply(wire.full(topic))


@route("PATCH", "/topics/{topic_id}", needs=Access.FULL, body=wire.ChangedTopic, summary="Change a topic")
async def update(request: Request, db: TeamDb) -> Reply[wire.TopicRef]:
    wanted = parse(wire.ChangedTopic, request.json())
    topic_id = request.uuid("topic_id")
    await request.use(TopicChanges).change(db, topic_id, wanted)
    return Reply(wire.TopicRef(object="topic", id=topic_id))


@route("DELETE", "/topics/{topic_id}", needs=Access.FULL, summary="Delete a topic")
async def remove(request: Request, db: TeamDb) -> Reply[wire.TopicDeleted]:
    topic_id = request.uuid("topic_id")
    await request.use(TopicChanges).delete(db, topic_id)
    return Reply(wire.TopicDeleted(object="topic", id=topic_id, deleted=True))
