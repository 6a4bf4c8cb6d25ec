"""Excerpts of logs to events and facts."""
