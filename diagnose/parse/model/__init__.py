"""The values that the parsers make: an event, one message, the reading of a job's logs."""
