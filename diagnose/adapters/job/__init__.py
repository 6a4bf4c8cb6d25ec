"""Combines the documents of a job: files that they name, precedence, interpolation, how the job was started."""
