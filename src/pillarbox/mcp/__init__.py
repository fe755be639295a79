"""The server of the Model Context Protocol (MCP): tools by which a model's program uses the API.

`POST /mcp` speaks Streamable HTTP without sessions, in the versions of 2026-07-28 and of the handshake
up to 2025-11-25. Begin with `server` (what a request goes through), then `catalogue` (the table of
tools). A call of a tool is a request of the API that is made in the process and goes through the whole
pipeline (`calls`), so no rule exists a second time. The package `mcp_types` is imported at the first
request; a process that is never asked does not hold it (docs/decisions/0197).
"""
