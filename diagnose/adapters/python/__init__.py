"""Training scripts read without running them: calls, names, literals, the order of what happens."""
