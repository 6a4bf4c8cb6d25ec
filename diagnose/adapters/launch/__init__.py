"""A command line to what it launches: launcher, program, flags, forwarded variables."""
