"""Lines of a log as they were printed: colours, prefixes, progress bars, wrapping undone, each place kept."""
