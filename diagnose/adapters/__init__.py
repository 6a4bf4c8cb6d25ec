"""Configs and commands as users write them, turned into knobs with their keys and into documents that edits can be made in."""
