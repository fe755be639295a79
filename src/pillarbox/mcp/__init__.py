"""The server of the Model Context Protocol (MCP): tools by which a model's program uses the API.

`POST /mcp` speaks Streamable HTTP without sessions, in the versions of 2026-07-28 and of the handshake
up to 2025-11-25. Begin with `server.py` (what a request goes through), then
`tools/__init__.py` (the table of tools).

A call of a tool is a request of the API that is made in the process (`calls`). It goes through the whole
pipeline, so no rule exists a second time. The package `mcp_types` is imported at the first request
(docs/decisions/0197).
"""
