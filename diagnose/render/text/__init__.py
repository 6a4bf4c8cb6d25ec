"""Text for terminals: the answer on one screen, or in full with --verbose."""
