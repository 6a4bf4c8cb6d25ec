"""`serve` and `mcp`: strangers' questions in worker processes, within limits."""
