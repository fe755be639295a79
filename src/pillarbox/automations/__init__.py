"""Automations: what happens after an event, step by step, for one contact (automations.md).

An automation is disabled or enabled; while it is enabled its graph stays as it is. A graph is a version
that never changes, and a run walks to its end on the version that it started with. Events that are accepted
while an automation is enabled start its runs, each exactly once. Stopping it or deleting it cancels those
that are still running.

Begin with `graphs` (what a graph is, without a database), then `changes.py` (what requests do).
"""
