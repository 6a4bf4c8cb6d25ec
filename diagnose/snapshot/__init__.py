"""Memory snapshots, as `torch.cuda.memory._dump_snapshot` writes them: read without trust and in bounded memory, and what they show."""
