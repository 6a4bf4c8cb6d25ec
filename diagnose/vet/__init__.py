"""Checks rule files for faults: one small function per check."""
