"""Many jobs at once: found, diagnosed on all cores or on a Ray cluster, stored, grouped, reported."""

#: What every worker process needs: loaded once where they are forked from a process that has it.
PRELOADED = ("diagnose.cluster.run.warmup",)
