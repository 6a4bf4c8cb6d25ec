"""Excerpts to events and facts; a module per grammar."""
