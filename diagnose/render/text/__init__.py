"""The terminal: one screen, and everything with --verbose."""
