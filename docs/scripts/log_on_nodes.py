"""A log on nodes: the auction beside EASY, in waits and in how far apart a job's nodes are."""

from dataclasses import replace

import aucsched

log = aucsched.load_swf("examples/days.swf")
workload = aucsched.workload_from_swf(log, nodes=16, cores=8, leaf_nodes=4)
workload = replace(workload, jobs=workload.jobs[:100])
auction = {"objective": "priority_cores"}
for policy, options in (("easy", {}), ("aucsched3", auction)):
    run = aucsched.simulate(workload, policy, **options)
    figures = run.metrics
    print(f"{policy:<10} mean wait {figures['wait_mean_s'] / 60:.0f} min,", end=" ")
    print(f"longest {figures['wait_max_s'] / 3600:.1f} h, mean switch level {figures['level_mean']:.2f}")
