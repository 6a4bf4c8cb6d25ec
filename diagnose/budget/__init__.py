"""Facts to bytes: ledgers of every role, the tensor behind the request, and what follows from both."""
