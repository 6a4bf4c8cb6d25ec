"""User interfaces: read input, call `explain` or `check`, print."""
