"""Leaves to knobs by the table of their framework: defaults, unknown keys, invalid values, conflicts between files."""
