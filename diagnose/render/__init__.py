"""Diagnosis -> str: one pure function per format; nothing here computes."""
