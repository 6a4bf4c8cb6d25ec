"""Before a run: how the job sits on its card, and how far batch and length can grow."""
