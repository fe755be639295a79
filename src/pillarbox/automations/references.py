"""Checks, when an automation is enabled, that what its graph refers to exists (automations.md 3.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from pillarbox.automations.graphs.graph import (
    AddToSegment,
    Config,
    ContactUpdate,
    Graph,
    GraphStep,
    SendEmailStep,
)
from pillarbox.contact_properties.definitions import definitions
from pillarbox.contacts.store import MembersByConditions
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.segments.lookup import present, with_conditions
from pillarbox.templates.published import published
from pillarbox.topics.lookup import live

T = TypeVar("T", bound=Config)


class StepNotReady(Invalid):
    """A step that cannot work as things are; `reason` is a sentence."""

    def __init__(self, step: GraphStep, reason: str) -> None:
        super().__init__(f"The step `{step.key}` cannot be enabled. {reason}")


async def check_references(db: TeamDb, graph: Graph) -> None:
    """Refuse the first step whose template is missing or unpublished, or whose topic, segment or properties
    are missing: 422."""
    sending = list(_doing(graph, SendEmailStep))
    templates = await published(db, {one.template for _, one in sending})
    topics = await live(db, {one.topic_id for _, one in sending if one.topic_id is not None})
    adding = {one.segment_id for _, one in _doing(graph, AddToSegment)}
    segments = await present(db, adding)
    by_conditions = await with_conditions(db, adding)
    is_changing = any(one.properties for _, one in _doing(graph, ContactUpdate))
    properties = {one.key for one in await definitions(db)} if is_changing else set[str]()
    for step in graph.steps:
        match step.config:
            case SendEmailStep() as mail:
                template = templates.get(mail.template)
                if template is None:
                    raise StepNotReady(step, f"There is no template `{mail.template}`.")
                if not template.is_published:
                    raise StepNotReady(step, f"The template `{mail.template}` is not published.")
                if mail.topic_id is not None and mail.topic_id not in topics:
                    raise StepNotReady(step, f"There is no topic `{mail.topic_id}`.")
            case AddToSegment() as adding_to if adding_to.segment_id not in segments:
                raise StepNotReady(step, f"There is no segment `{adding_to.segment_id}`.")
            case AddToSegment() as adding_to if adding_to.segment_id in by_conditions:
                raise StepNotReady(step, MembersByConditions().message)
            case ContactUpdate() as change:
                for key, _ in change.properties or ():
                    if key not in properties:
                        raise StepNotReady(step, f"There is no property `{key}`.")
            case _:
                pass


def _doing(graph: Graph, kind: type[T]) -> Iterable[tuple[GraphStep, T]]:
    """Yield the steps that do one thing."""
    for step in graph.steps:
        if isinstance(step.config, kind):
            yield step, step.config
