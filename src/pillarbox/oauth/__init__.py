"""OAuth: programs that act for a team because one of its people allowed it (oauth.md).

Begin with `routes.py`. Records: docs/decisions/0106 and docs/decisions/0110.
"""
