"""The HTTP server: connection, pipeline of one request, route table, answers.

Begin with `pipeline.py` (the stages of a request) and `routing.py` (`@route`).
"""
