"""Facts to bytes: ledgers of every role, the tensor behind the failed request, and the facts that follow from both."""
