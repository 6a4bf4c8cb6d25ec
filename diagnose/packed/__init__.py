"""What is inside an input: compressed text, archives of logs, within limits. What a thing is, its first bytes say, never its name."""
