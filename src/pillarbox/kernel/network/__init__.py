"""Sockets towards the outside: DNS, outgoing HTTP with address checks, listening sockets.

Begin with `outbound.py` and `address_policy.py`.
"""
