"""The integer programs of the papers, and the one door to the solver."""
