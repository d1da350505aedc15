"""Many runs over one input: a grid of options, parallel, resumable; results as table and plot."""
