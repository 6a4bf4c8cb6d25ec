"""Triage of many jobs: find them, diagnose them on all cores or on a Ray cluster, store, group and report the results."""

#: Modules that the process from which workers are forked imports once for all of them.
PRELOADED = ("diagnose.cluster.run.warmup",)
