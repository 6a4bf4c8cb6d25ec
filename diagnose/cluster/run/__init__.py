"""Runs jobs on worker processes: supervision, deduplication, Ray, repeated runs over a growing folder."""
