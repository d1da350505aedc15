"""Many runs over one input: a grid of options, in parallel, resumable; its results as a table and a plot."""
