"""Before a run: how the job fits its card, and how far batch and length can grow."""
