"""Shapes of agent settings on the wire (inboxes.md 3.6); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.inboxes.agents.queries import Agent
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.problems import Invalid, InvalidField

LONGEST_INSTRUCTIONS: Final = 4000

Tone = Literal["concise_professional", "concise_casual", "expanded_professional", "expanded_casual"]
Action = Literal[
    "draft_reply",
    "forward_thread",
    "add_labels",
    "assign_thread",
    "mark_as_spam",
    "archive",
    "move_to_trash",
]
ACTIONS: Final = (
    "draft_reply",
    "forward_thread",
    "add_labels",
    "assign_thread",
    "mark_as_spam",
    "archive",
    "move_to_trash",
)
"""In the order of answers."""

# Its length counts without the blanks around.
Instructions = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": LONGEST_INSTRUCTIONS})]


class AgentChange(Struct, kw_only=True):
    """At least one of them."""

    min_properties: ClassVar[int] = 1

    instructions: Instructions | UnsetType | None = UNSET
    tone: Tone | UnsetType | None = UNSET
    actions: list[Action] | UnsetType = UNSET


class AgentRef(Struct, kw_only=True):
    object: Literal["inbox_agent"]
    id: UUID


class AgentSettings(Struct, kw_only=True):
    object: Literal["inbox_agent"]
    instructions: str | None
    tone: Annotated[str, shown_as(Tone)] | None
    actions: Annotated[list[str], shown_as(list[Action])]


def settings(agent: Agent | None) -> AgentSettings:
    """Return the settings; of an inbox that never had any, empty ones."""
    if agent is None:
        return AgentSettings(object="inbox_agent", instructions=None, tone=None, actions=[])
    return AgentSettings(
        object="inbox_agent", instructions=agent.instructions, tone=agent.tone, actions=list(agent.actions)
    )


def applied(change: AgentChange, agent: Agent) -> Agent:
    """Return the settings after the change; 422 for one that names nothing that can change."""
    if change.instructions is UNSET and change.tone is UNSET and change.actions is UNSET:
        raise Invalid("Use at least one of `instructions`, `tone` and `actions`.")
    if change.instructions is not UNSET:
        agent = agent._replace(instructions=_instructions(change.instructions))
    if change.tone is not UNSET:
        agent = agent._replace(tone=change.tone)
    if change.actions is not UNSET:
        agent = agent._replace(actions=[action for action in ACTIONS if action in change.actions])
    return agent


def _instructions(text: str | None) -> str | None:
    if text is None:
        return None
    text = text.strip()
    if not 1 <= len(text) <= LONGEST_INSTRUCTIONS:
        raise InvalidField("instructions", f"Use 1 to {LONGEST_INSTRUCTIONS} characters.")
    return text
