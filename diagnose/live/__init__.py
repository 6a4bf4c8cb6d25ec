"""Inside the job's own process: an out-of-memory exception is explained as it passes, and passes on.

Nothing here imports torch or a trainer: what is already imported is asked, each question for itself, and no answer is no harm.
"""
