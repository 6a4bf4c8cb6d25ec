"""Runs jobs on worker processes: supervision, deduplication, Ray, rounds over a growing folder."""
