"""Facts of the run that a log carries: versions, cards, settings, progress, memory over time."""
