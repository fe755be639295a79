"""Programs that may ask people: registered ones, and those that a document of their site describes; how they
authenticate, and where they are answered (oauth.md 3 and 4).

Begin with `clients.py`.
"""
