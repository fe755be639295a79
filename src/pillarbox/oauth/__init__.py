"""OAuth: programs that act for a team because one of its people allowed it (oauth.md).

Records: docs/decisions/0106.
"""
