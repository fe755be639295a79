"""Parse requests to send into `OutgoingEmail`s.

Begin with `parse.py`; mail of a template is made in `templating.py`.
"""
