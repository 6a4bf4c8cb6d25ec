"""Which remedies are offered, rejected and combined into a plan."""
