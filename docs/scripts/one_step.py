"""A cluster and jobs in Python: which jobs start where, which wait, and why."""

import aucsched as au

nodes = [au.Node(name=f"n{place:02}", cores=16, gres={"gpu": 2}) for place in range(8)]
jobs = [
    au.Job(id="wide", priority=50, request=au.Request(nodes=5, cores_per_node=16)),
    au.Job(id="gpus", priority=40, request=au.Request(nodes=4, cores=32, gres_per_node={"gpu": 2})),
    au.Job(id="any", priority=45, request=au.Request(cores=64)),
    au.Job(id="fat", priority=20, request=au.Request(nodes=2, cores_per_node=16)),
]
snapshot = au.Snapshot(nodes=nodes, jobs=jobs)
result = au.schedule(snapshot)
for award in result.started:
    print(award.job, "starts on", ", ".join(award.nodes))
for refusal in result.pending:
    print(refusal.job, "waits:", refusal.detail)
print(au.compare(snapshot).title())
