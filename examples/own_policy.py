"""A user-defined policy: the shortest jobs first, but jobs that have waited half a day before all others.

aucsched simulate examples/days.swf --policy easy,examples/own_policy.py:ShortestFirst
"""

PATIENCE_S = 12 * 3600


class ShortestFirst:
    """EASY over that queue: the first job that does not fit keeps the cores that it will need."""

    def step(self, now, machine):
        """Look at the queue and start what should start now."""
        queue = sorted(machine.waiting, key=lambda job: (now - job.submit_s < PATIENCE_S, job.estimate_s))
        ends = [(job.expected_end_s, job.cores) for job in machine.running]
        while queue and machine.start(queue[0]):
            ends.append((now + queue[0].estimate_s, queue[0].cores))
            del queue[0]
        if not queue:
            return
        head, free, shadow = queue.pop(0), machine.free_cores, now
        for end, cores in sorted(ends):
            if free >= head.cores:
                break
            free, shadow = free + cores, end
        spare = free - head.cores
        for job in queue:
            if now + job.estimate_s <= shadow:
                machine.start(job)
            elif job.cores <= spare and machine.start(job):
                spare -= job.cores
