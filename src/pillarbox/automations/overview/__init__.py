"""Automations as people look at them: how far runs are, why they wait, versions, and events that came.

Begin with `views.py`.
"""
