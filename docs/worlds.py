#!/usr/bin/env python3
"""Strategies in seven worlds, each at the best of its rates, three seeds, in virtual time.

    go build -o gossipnode ./examples/gossipnode
    python3 docs/worlds.py --node ./gossipnode --data ../shared/data --rows worlds.jsonl --plot docs/img/worlds.svg

The best rate of a strategy in a world is sought with the first seed on the ladder 0.02 x 1.5^k, up and down until both
neighbours of the best are worse; the other seeds run at that rate. --plot needs matplotlib.
"""
import argparse
import math
import statistics

from rows import Rows, best_rung, ladder, spread

# The worlds of "gossipnode compare", and the rung of the ladder that each strategy begins at (others at 3).
WORLDS = "homogeneous,slow-10,slow-100,slow-link-100,wan,churn,skewed"
ARMS = {"adpsgd": 3, "adpsgd:lattice6+4": 3, "dpsgd": 4, "allreduce": 5, "ps-bsp": 5, "ps-asp": 3, "ps-ssp": 3, "ps-dssp": 3}
LOWEST = -6


class Race:
    def __init__(self, options):
        self.o, self.rows = options, Rows(options.node, options.rows)

    def worth(self, world, arm, rung, seed):
        """What a run is judged by, less is better: seconds to the target, or accuracy below zero."""
        arguments = ["--suite", world, "--dataset", "mnist", "--data", self.o.data + "/mnist", *self.o.flags.split(), "--evaluate", "1",
                     "--points", "0" if self.o.judge == "accuracy" else "120", "--seed", seed, "--strategies", f"{arm} lr={ladder(rung)}"]
        if self.o.judge == "accuracy":
            return -100 * self.rows.race(*arguments)["test_accuracy"]["mean"]
        return self.rows.race_to(self.o.target, *arguments)["target_seconds"]

    def best(self, world, arm):
        """The best rate of an arm in a world, and what its runs are worth."""
        first, *others = self.o.seeds
        rung = best_rung(ARMS.get(arm, 3), lambda r: self.worth(world, arm, r, first), LOWEST)
        if rung is None:
            return "none", [math.inf]
        return ladder(rung), sorted(abs(self.worth(world, arm, rung, seed)) for seed in (first, *others))


def cell(rate, values):
    return spread(values) + ("" if values[0] == math.inf else f", {rate}")


def draw(path, table, unit):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"svg.hashsalt": "worlds", "font.size": 9})
    worlds = list(table)
    arms = list(table[worlds[0]])
    figure, axis = plt.subplots(figsize=(9.5, 4.2), layout="constrained")
    width = 0.8 / len(arms)
    for k, arm in enumerate(arms):
        values = [[0 if v == math.inf else v for v in table[world][arm][1]] for world in worlds]  # never: no bar
        middle = [0 if math.inf in table[world][arm][1][:2] else statistics.median(table[world][arm][1]) for world in worlds]
        errors = [[m - min(v) if m else 0 for m, v in zip(middle, values)], [max(*v, m) - m if m else 0 for m, v in zip(middle, values)]]
        axis.bar([i - 0.4 + width * (k + 0.5) for i in range(len(worlds))], middle, width, yerr=errors, label=arm, color=f"C{k}", error_kw={"elinewidth": 0.7})
    axis.set_yscale("log")
    axis.set_ylabel(unit)
    axis.set_xticks(range(len(worlds)), worlds)
    axis.set_ylim(top=axis.get_ylim()[1] * 6)
    axis.legend(ncols=4, frameon=False, loc="upper left")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--node", required=True, help="the binary")
    p.add_argument("--data", required=True, help="folder of data sets")
    p.add_argument("--rows", default="worlds.jsonl", help="file of what has run (default %(default)s)")
    p.add_argument("--worlds", default=WORLDS)
    p.add_argument("--arms", default=",".join(ARMS))
    p.add_argument("--seeds", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 3])
    p.add_argument("--judge", choices=["time", "accuracy"], default="time", help="by the time to --target at a constant rate, or by the accuracy at the end")
    p.add_argument("--target", type=float, default=0.93, help="accuracy")
    p.add_argument("--flags", default="--peers 16 --model mlp --hidden 64 --batch 32 --epochs 4", help="further arguments of compare")
    p.add_argument("--plot", help="draw here")
    o = p.parse_args()
    race = Race(o)
    table = {world: {arm: race.best(world, arm) for arm in o.arms.split(",")} for world in o.worlds.split(",")}
    unit = "accuracy, %" if o.judge == "accuracy" else f"virtual seconds to {o.target:.0%}"
    print(f"\n| {unit} | " + " | ".join(table) + " |\n| --- |" + " --- |" * len(table))
    for arm in o.arms.split(","):
        print(f"| `{arm}` | " + " | ".join(cell(*table[world][arm]) for world in table) + " |")
    if o.plot:
        draw(o.plot, table, unit)


if __name__ == "__main__":
    main()
