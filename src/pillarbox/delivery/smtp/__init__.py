"""Delivery by SMTP: next hops, connections, MTA-STS, sites shared between processes.

Begin with `transport.py`.
"""
