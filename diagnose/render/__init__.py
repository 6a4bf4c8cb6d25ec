"""Formats a diagnosis: a pure function per format, which computes nothing new."""
