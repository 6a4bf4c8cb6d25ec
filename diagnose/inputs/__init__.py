"""What a caller hands over: logs and configs in any form, folders, pasted pages, what lies beside a log."""
