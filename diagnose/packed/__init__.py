"""Compressed text and archives of logs, read within limits."""
