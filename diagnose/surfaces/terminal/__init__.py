"""The commands about one job at a terminal: explain, check, facts, rules, triage; output and errors."""
