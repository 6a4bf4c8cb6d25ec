"""Translates leaves to knobs by their framework's table, with defaults, unknown keys, invalid values and conflicts."""
