"""A client of MCP servers: programs and services that bring tools of their own into a session."""
