"""Which tensor the failed request was: candidates from rules/tensors against the printed size."""
