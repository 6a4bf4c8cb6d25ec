"""Facts that follow from ledger, message and attribution: shortage, implied lengths, settings that did not hold."""
