"""A text of unknown form to an opened document: its form, its kind, its leaves, what its commands start."""
