"""What automations do, said a second time and as plainly as possible: graphs as JSON, time in seconds.

It is written after automations.md and shares nothing with the product. All contacts, events and runs are in
memory; `happen` is told of events and of the time that passes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


class Tie(Exception):  # noqa: N818 - no error: such a case is left out
    """Two things of different steps at nearly the same time: their order is not promised."""


@dataclass
class Contact:
    email: str
    first_name: str | None = None
    unsubscribed: bool = False
    in_segment: bool = False
    is_deleted: bool = False


@dataclass
class Run:
    automation: int
    trigger: str
    event: int
    contact: Contact
    payload: Json
    status: str = "running"
    steps: dict[str, str] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    timers: dict[str, float] = field(default_factory=dict)
    received: dict[str, Json] = field(default_factory=dict)
    has_deleted: bool = False


class Reference:
    """Automations that are enabled from the beginning; `lengths` are the seconds of delays and timeouts, by
    automation and key. What lies closer together than `least` seconds is a tie. `mails` are addresses with
    subjects."""

    def __init__(
        self, graphs: list[Json], lengths: dict[tuple[int, str], float], *, least: float = 2
    ) -> None:
        self.graphs = graphs
        self.lengths = lengths
        self.least = least
        self.now = 0.0
        self.contacts: dict[str, Contact] = {}
        self.runs: list[Run] = []
        self.mails: list[tuple[str, str]] = []
        self._last: tuple[float, int, str] = (-10.0, -1, "")

    def event(self, at: float, number: int, email: str, name: str, payload: Json) -> None:
        """Time passes until then, and the event comes."""
        self.until(at)
        self._at(at, -1, str(number))
        contact = self.contacts.get(email)
        starts = [
            (index, step)
            for index, graph in enumerate(self.graphs)
            for step in graph["steps"]
            if step["type"] == "trigger" and step["config"]["event_name"] == name
        ]
        if contact is None and starts:
            contact = self.contacts[email] = Contact(email)
        if contact is None:
            return
        for run in [one for one in self.runs if one.contact is contact and one.status == "running"]:
            for key in list(run.timers):
                step = self._step(run, key)
                if step["type"] != "wait_for_event" or step["config"]["event_name"] != name:
                    continue
                rule = step["config"].get("filter_rule")
                if rule is None or _holds(rule, {"event": payload}):
                    del run.timers[key]
                    run.received[name] = payload
                    self._end(run, key, "event_received", {"outcome": "event_received"})
            self._close(run)
        for index, step in starts:
            run = Run(automation=index, trigger=step["key"], event=number, contact=contact, payload=payload)
            self.runs.append(run)
            self._end(run, step["key"], "default", None)
            self._close(run)

    def until(self, end: float) -> None:
        """Let the timers ring that ring until then."""
        while True:
            ringing = [
                (at, run.automation, key, number)
                for number, run in enumerate(self.runs)
                for key, at in run.timers.items()
                if at < end
            ]
            if not ringing:
                return
            at, automation, key, number = min(ringing)
            self._at(at, automation, key)
            run = self.runs[number]
            del run.timers[key]
            if self._step(run, key)["type"] == "delay":
                self._end(run, key, "default", None)
            else:
                self._end(run, key, "timeout", {"outcome": "timeout"})
            self._close(run)

    # Steps -----------------------------------------------------------------------------------------

    def _at(self, at: float, automation: int, key: str) -> None:
        last, other, other_key = self._last
        if at - last < self.least and (automation, key) != (other, other_key):
            raise Tie
        self.now, self._last = at, (at, automation, key)

    def _step(self, run: Run, key: str) -> Json:
        [found] = [step for step in self.graphs[run.automation]["steps"] if step["key"] == key]
        return dict(found)

    def _end(self, run: Run, key: str, outcome: str, output: Any, status: str = "completed") -> None:
        run.steps[key] = status
        run.outputs[key] = output
        run.ended[key] = self.now
        for connection in self.graphs[run.automation]["connections"]:
            if connection["from"] == key and connection.get("type", "default") == outcome:
                self._begin(run, connection["to"])

    def _begin(self, run: Run, key: str) -> None:
        if key in run.steps or run.status != "running":
            return
        step, contact = self._step(run, key), run.contact
        kind, config = step["type"], step["config"]
        if run.has_deleted and kind in ("send_email", "contact_update", "add_to_segment", "wait_for_event"):
            run.steps[key] = "skipped"
            if kind != "wait_for_event":
                self._end(run, key, "default", None, "skipped")
        elif kind in ("delay", "wait_for_event"):
            run.steps[key] = "waiting"
            run.timers[key] = self.now + self.lengths[run.automation, key]
        elif kind == "condition":
            result = _holds(config, self._fields(run))
            self._end(run, key, "condition_met" if result else "condition_not_met", {"result": result})
        elif kind == "send_email":
            self._mail(run, key, config)
        elif kind == "contact_update":
            if "first_name" in config:
                value = config["first_name"]
                if isinstance(value, dict):
                    found = run.payload.get(value["var"].removeprefix("event."))
                    value = contact.first_name if found is None else str(found)
                contact.first_name = value
            contact.unsubscribed = config.get("unsubscribed", contact.unsubscribed)
            self._end(run, key, "default", None)
        elif kind == "add_to_segment":
            contact.in_segment = True
            self._end(run, key, "default", None)
        else:
            self._delete(run)
            self._end(run, key, "default", None)

    def _mail(self, run: Run, key: str, config: Json) -> None:
        needs = "variables" in config["template"]
        if run.contact.unsubscribed:
            self._end(run, key, "default", None, "skipped")
        elif needs and run.payload.get("n") is None:
            run.steps[key], run.errors[key] = "failed", "missing_variable"
            self._stop(run, "failed")
        else:
            subject = config["subject"].replace("{{{N}}}", str(run.payload.get("n")))
            self.mails.append((run.contact.email, subject))
            self._end(run, key, "default", "mail")

    def _delete(self, run: Run) -> None:
        run.has_deleted = True
        if run.contact.is_deleted:
            return
        run.contact.is_deleted = True
        del self.contacts[run.contact.email]
        for other in self.runs:
            if other.contact is run.contact and other is not run and other.status == "running":
                self._stop(other, "cancelled")

    def _stop(self, run: Run, status: str) -> None:
        run.status = status
        run.timers.clear()
        for key, one in run.steps.items():
            if one == "waiting":
                run.steps[key] = "skipped"

    def _close(self, run: Run) -> None:
        if run.status == "running" and not run.timers:
            run.status = "completed"

    def _fields(self, run: Run) -> Json:
        contact = run.contact
        known = {} if contact.is_deleted else {"first_name": contact.first_name, "email": contact.email}
        return {"event": run.payload, "contact": known, "wait_events": run.received}

    def statuses(self, run: Run) -> dict[str, str]:
        """Of each step; one that was not reached is `pending` while a way may still lead to it."""
        ahead: set[str] = set()
        if run.status == "running":
            ahead = {key for key, status in run.steps.items() if status == "waiting"}
            for _ in self.graphs[run.automation]["steps"]:
                ahead |= {
                    one["to"]
                    for one in self.graphs[run.automation]["connections"]
                    if one["from"] in ahead
                    and (one["from"] not in run.steps or run.steps[one["from"]] == "waiting")
                }
        return {
            step["key"]: run.steps.get(step["key"], "pending" if step["key"] in ahead else "skipped")
            for step in self.graphs[run.automation]["steps"]
        }


def _holds(rule: Json, fields: Json) -> bool:
    if rule["type"] in ("and", "or"):
        found = [_holds(one, fields) for one in rule["rules"]]
        return all(found) if rule["type"] == "and" else any(found)
    value: Any = fields
    for name in rule["field"].split("."):
        value = value.get(name) if isinstance(value, dict) else None
    other = rule.get("value")
    match rule["operator"]:
        case "eq":
            return bool(value == other)
        case "neq":
            return bool(value != other)
        case "exists":
            return value is not None
        case "is_empty":
            return value in (None, "", [], {})
        case "gt":
            return isinstance(value, int) and value > other
        case "lte":
            return isinstance(value, int) and value <= other
        case _:
            return isinstance(value, str) and value.startswith(other)
