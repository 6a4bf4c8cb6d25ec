"""Memory snapshots of `torch.cuda.memory._dump_snapshot`, read without executing them and in bounded memory."""
