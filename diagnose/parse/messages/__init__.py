"""One module per grammar: messages of allocators, runtimes, kernels, schedulers, launchers and engines.

Each has `read(text)`, the Message that a text begins with or None, and `goes_on(text, line)`, whether a line continues it. Some have
`complete(message, page, index, ...)`, which adds what lines above or below say and returns the indexes of the lines used.
"""
