"""What is inside an input: compressed text, archives of logs, within limits. Its first bytes say what a thing is, never its name."""
