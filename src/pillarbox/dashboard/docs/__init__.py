"""The documentation: reference of the API, pages of the guide, search, and a form that sends a request.

Begin with `doc_pages.py`: the addresses and what is kept. The guide's Markdown and its pictures are those of
`docs/guide` and `docs/images`, by links; a wheel holds their files.
"""
