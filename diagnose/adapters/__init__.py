"""Configs, and commands that the log echoes, to knobs with their keys, and to documents that edits can be made in."""
