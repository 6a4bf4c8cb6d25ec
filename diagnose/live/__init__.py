"""Explain out-of-memory exceptions inside the job's own process.

Nothing here imports torch or a trainer: only modules that the job has imported are queried, and a query that fails is ignored.
"""
