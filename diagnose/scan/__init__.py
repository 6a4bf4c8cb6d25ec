"""Bytes of any input to excerpts worth parsing, with their place, in one pass and bounded memory."""
