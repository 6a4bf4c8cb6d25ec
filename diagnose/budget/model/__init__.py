"""What a ledger is computed from: roles, precisions, sharding, batch shape, formulas, software table, allocator."""
