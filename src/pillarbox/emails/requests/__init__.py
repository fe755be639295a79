"""From what a request says to an `Outgoing`.

Begin with `parse.py`; mail of a template is made in `templating.py`.
"""
