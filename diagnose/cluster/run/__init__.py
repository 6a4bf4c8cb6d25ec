"""Jobs on worker processes: tasks, supervision, deduplication, Ray, rounds over a growing folder."""
