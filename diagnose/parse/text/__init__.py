"""Lines of a log as the program printed them: without colours, prefixes, progress bars and wrapping, with their place."""
