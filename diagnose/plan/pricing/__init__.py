"""What a change saves and whether the job then fits: ledgers drawn again on changed facts."""
