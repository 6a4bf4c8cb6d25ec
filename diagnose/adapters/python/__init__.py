"""Training scripts read through their syntax tree, never run: calls, names, literals, the order of calls."""
