"""The frame of all screens: their table, their layout, and how they call the API.

A screen is a function `(visit) -> Reply[Html]` marked with `@screen`, a form's target one marked with `@act`
(`screens.py`). Both read and change data by calling routes of the API through their `Visit` (`visit.py`), so
no rule stands twice. Navigation, search and the permission tests are made from the table of screens.

Begin with `screens.py`; `/design` shows every part of the layout.
"""
