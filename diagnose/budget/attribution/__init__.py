"""Which tensor the failed request was: candidates from rules/tensors.yaml against the printed size."""
