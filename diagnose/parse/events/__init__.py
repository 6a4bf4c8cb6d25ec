"""Messages in their place: processes, attempts, duplicates, consequences, order, survival."""
