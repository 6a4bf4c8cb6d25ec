#!/bin/bash
# Diagnoses a failed job when it ends: EpilogSlurmctld=/etc/slurm/oomdoctor-epilog.sh in slurm.conf.
#
# Slurm runs it once per job on the controller. It answers at once and never fails, whatever happens: what takes time goes on
# behind it, with little priority, one job after the other. It runs as SlurmUser, which must be able to read the jobs' logs.
#
# OOMDOCTOR_STORE   the database (default /var/lib/oomdoctor/triage.duckdb)
# OOMDOCTOR_NOTIFY  a webhook that is told of every new kind of failure (default: nobody is told)
# OOMDOCTOR_LOG     what was said meanwhile (default: beside the database)
set -u

store=${OOMDOCTOR_STORE:-/var/lib/oomdoctor/triage.duckdb}
log=${OOMDOCTOR_LOG:-$store.log}
job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID:-}}
job=${job:-${SLURM_JOB_ID:-}}
columns=JobID,JobIDRaw,JobName,User,Account,Cluster,State,ExitCode,Submit,Start,End,Elapsed,NNodes,AllocTRES,ReqMem,MaxRSS,StdOut,StdErr,WorkDir,NodeList

# A wait status, 0 for a job that ended well. Out of memory counts as a failure there too.
[ -n "$job" ] && [ "${SLURM_JOB_EXIT_CODE:-0}" != 0 ] || exit 0

diagnose() {
    record=$(mktemp -d) || return
    trap 'rm -rf "$record"' EXIT
    # Accounting is written a moment after the job has ended.
    for _ in 1 2 3 4 5 6; do
        sacct -P -j "$job" --format="$columns" >"$record/sacct.txt" || return
        grep -Eq '\|(RUNNING|COMPLETING|PENDING)\|' "$record/sacct.txt" || break
        sleep "${OOMDOCTOR_PAUSE:-10}"
    done
    flock -w 3600 "$store.lock" timeout 600 nice -n 19 \
        oomdoctor triage "$record/sacct.txt" --store "$store" ${OOMDOCTOR_NOTIFY:+--notify "$OOMDOCTOR_NOTIFY"} --jobs 1
}

(diagnose </dev/null >>"$log" 2>&1 &)
exit 0
