"""Faults in rule files, one small function per check."""
