"""Processes: the supervisor, the fork server, the workers, and what they share.

Begin with `supervisor.py`.
"""
