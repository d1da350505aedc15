"""Updates of jobs by slurmrestd: what its schema can say, who asks it, and the hand that uses it."""
