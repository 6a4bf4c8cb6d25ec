"""Where people meet the program: read input, call `explain` or `check`, print."""
