"""The programs that bench.py measures, each in a process of its own."""

#: Finds and reads every job as triage does, on its pool; every diagnosis is said to be there already, so that none is made.
READ = """
import sys
from diagnose.cluster.find.job_finder import find
from diagnose.cluster.run.local_engine import run_local
from diagnose.cluster.run.task import JobOptions, Task
from diagnose.cluster.store.result import DiagnosisSummary
from diagnose.phrases import Text

if __name__ == "__main__":
    summary = DiagnosisSummary(Text("", ""), "1:0")
    tasks = (Task(job) for job in find([sys.argv[1]]))
    print(sum(1 for _ in run_local(tasks, JobOptions(), int(sys.argv[2]), lookup=lambda key: summary)))
"""

#: Processor time of one job after another in one process: reading, and the diagnosis, by what the jobs hold.
COST = """
import json, sys, time
from statistics import mean
from diagnose.cluster.find.job_finder import find
from diagnose.cluster.run.task import JobOptions, Task
from diagnose.cluster.run.job_work import work

options, failed = JobOptions(), {True: [], False: []}
jobs = list(find([sys.argv[1]]))[: int(sys.argv[2])]
for number, job in enumerate(jobs):
    start = time.process_time()
    read = work(Task(job), options, lambda key: False)
    between = time.process_time()
    whole = work(Task(job), options)
    end = time.process_time()
    if number >= len(jobs) // 4:  # a worker process is warm for most of its life
        failed[bool(whole.digest)].append((between - start, (end - between) - (between - start)))
print(json.dumps({name: {"jobs": len(rows), "read": mean(row[0] for row in rows), "diagnosis": mean(row[1] for row in rows)}
                  for name, rows in (("failed", failed[True]), ("healthy", failed[False])) if rows}))
"""

#: Processor time of one long log that was read once before.
LONG_COST = """
import sys, time
from diagnose.cluster.find.job_finder import find
from diagnose.cluster.run.task import JobOptions, Task
from diagnose.cluster.run.job_work import work

(job,) = find([sys.argv[1]])
work(Task(job), JobOptions())
start = time.process_time()
work(Task(job), JobOptions())
print(time.process_time() - start)
"""
