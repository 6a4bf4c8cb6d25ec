"""Rules against facts: the language of conditions, one verdict per rule, causes ranked."""
