"""OAuth: programs that act for a team because one of its people allowed it (oauth.md).

Begin with `routes.py` (authorize, token). The page that asks the person is `dashboard/consent/pages.py`, what
it decides `consent.py`; a request with a token comes to `bearer/tokens.py`. Records: docs/decisions/0106 and
docs/decisions/0110.
"""
