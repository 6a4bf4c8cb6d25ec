"""Many jobs at once: found, diagnosed on all cores or on a Ray cluster, stored, grouped, reported."""
