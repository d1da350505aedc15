"""A sweep as a DataFrame and a plot: the effect of the order of the queue under two policies."""

import matplotlib as mpl
import pandas as pd

import aucsched

mpl.use("agg")
log = aucsched.load_swf("examples/days.swf")
found = aucsched.sweep(log, policy=["easy", "conservative"], order=["fcfs", "sjf", "smith"])
frame = pd.DataFrame(found.columns)
table = frame.pivot_table(index="order", columns="policy", values="bounded_slowdown_mean")
print(table.round(1))
axes = table.plot.bar(rot=0, ylabel="mean bounded slowdown")
axes.figure.savefig("orders.png", dpi=120)
