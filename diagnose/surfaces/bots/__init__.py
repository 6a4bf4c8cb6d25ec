"""Chat bots: one core, Slack and Feishu as platforms."""
