#!/usr/bin/env python3
"""The figures of the five papers that this began with, here: runs, tables and pictures.

    go build -o gossipnode ./examples/gossipnode
    python3 docs/seeds.py --node ./gossipnode --data ../shared/data --rows seeds.jsonl --out docs/img

Needs matplotlib. All of it takes about an hour on two cores; --figures takes some of it.
"""
import argparse
import math
import os
import statistics
import tempfile

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402: after the choice of the backend

from rows import Rows, best_rung, first_pictures, ladder, spread  # noqa: E402

MLP = "--model mlp --hidden 64 --batch 32"
# The best rates on MNIST of docs/worlds.py, in the homogeneous world.
RATES = {"adpsgd": 0.0675, "adpsgd:lattice6+4": 0.0675, "allreduce": 0.152}
SEEDS = (1, 2, 3)


class Page:
    def __init__(self, options):
        self.o, self.rows = options, Rows(options.node, options.rows)

    def data(self, name):
        return os.path.join(self.o.data, name)

    def race(self, strategy, flags, dataset="mnist", target=None, **more):
        """One strategy's result in compare; more are flags of the strategy."""
        entry = " ".join([strategy, *(f"{k}={v}" for k, v in more.items())])
        arguments = ["--dataset", dataset, "--data", self.data(dataset), *flags.split(), "--strategies", entry]
        return self.rows.race_to(target, *arguments) if target else self.rows.race(*arguments)

    def save(self, name, figure):
        for axis in figure.axes:
            axis.spines[["top", "right"]].set_visible(False)
        path = os.path.join(self.o.out, f"seeds-{name}.svg")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
        print("wrote", path)


def axes(count=1, **more):
    return plt.subplots(1, count, figsize=(4.6 * count, 3.1), layout="constrained", **more)


def curve(axis, result, label, x="seconds", y="test_accuracy"):
    points = result["curve"]
    axis.plot([p[x] for p in points], [100 * p[y]["mean"] for p in points], label=label, linewidth=1.2)


# 000, figure 3: accuracy where none to all of what is sent is coded, and where the share grows over the run.
def proportion(page):
    figure, (left, right) = axes(2)
    for axis, dataset, flags in ((left, "cifar10", "--peers 8 --model resnet-small --batch 16 --lr 0.05 --epochs 1"), (right, "fashion-mnist", "--peers 8 --model mlp --batch 32 --epochs 2")):
        for share in ("0", "50", "100", "0@0;100@0.3"):
            r = page.race("adpsgd:lattice6+4", flags + " --link 100,20 --points 12 --evaluate 1", dataset, quantized=share)
            curve(axis, r, {"0": "none coded", "100": "all", "50": "half"}.get(share, "more and more"))
            print(f"| {dataset}, {share} % | {100 * r['test_accuracy']['mean']:.2f} % | {r['bytes_sent'] / r['peers'] / 1e6:.1f} MB a peer |")
        axis.set(title=f"{dataset}, {flags.split()[3]}", xlabel="virtual seconds", ylabel="accuracy, %")
    left.legend(frameon=False)
    page.save("proportion", figure)


# 000, figure 4: what an iteration is made of.
def iteration(page):
    codecs = ("raw", "fp16", "lattice6+4")
    figure, both = axes(2)
    for axis, model in zip(both, ("resnet-small", "mlp")):
        step = page.rows.run("bench", "step", "--model", model)
        bottom = []
        for k, codec in enumerate(codecs):
            e = page.rows.run("bench", "exchange", "--codec", codec, "--rounds", 7)
            share = step["parameters"] / e["parameters"]
            code = max(0, e["cpu_seconds"] - e["raw_libp2p_cpu_seconds"]) * share
            transfer = e["bytes"] * share * 8 / 100e6
            parts = (1e3 * step["step_seconds"], 1e3 * code, 1e3 * transfer)
            bottom.append(parts)
            print(f"| {model}, {codec} | step {parts[0]:.2f} ms | coding {parts[1]:.3f} ms | 100 Mbit/s {parts[2]:.2f} ms |")
        under = [0, 0, 0]
        for label, values in zip(("computing, batch of 64", "coding, both ends", "transfer at 100 Mbit/s"), zip(*bottom)):
            axis.bar(codecs, values, bottom=under, label=label)
            under = [u + v for u, v in zip(under, values)]
        axis.set(title=f"{model}, {step['parameters']:,} parameters", ylabel="ms of an iteration")
    both[1].legend(frameon=False)
    page.save("iteration", figure)


# 001: what standardizing saves a network on a table, each at the best of its rates.
def preprocess(page):
    stages = {"standardized": "- kind: dropmany\n- kind: impute\n- kind: standardize\n- kind: onehot\n", "as it is": "- kind: dropmany\n- kind: impute\n- kind: onehot\n"}
    for name, text in stages.items():
        path = os.path.join(tempfile.gettempdir(), f"murmuration-{name.replace(' ', '-')}.yaml")
        with open(path, "w") as f:
            f.write(text)

        def steps(rung, seed=1, path=path):
            r = page.rows.run("run", "--strategy", "alone", "--dataset", "csv", "--data", flights(page), "--target", "arr_delay>15", "--drop", "dep_delay", "--split", "row:7/10",
                              "--stages", path, *MLP.split(), "--schedule", "constant", "--epochs", 2, "--until", "loss=0.485", "--seed", seed, "--lr", ladder(rung))
            return r["steps"] if r["stopped_by"] == "loss" else math.inf

        rung = best_rung(0, steps, -16)
        print(f"| {name} | " + ("never in two passes" if rung is None else spread([steps(rung, s) for s in SEEDS], "{:,.0f}") + f" steps, rate {ladder(rung)}") + " |")


def flights(page):
    return os.path.join(page.data("flights"), "flights.csv.gz")


# 002, figure 4: time and accuracy by the number of pictures.
def paramhub(page):
    sizes, figure, (left, right) = range(10000, 60001, 10000), *axes(2)
    for strategy in ("allreduce", "dpsgd", "ps-bsp", "adpsgd"):
        results = []
        for n in sizes:
            folder = first_pictures(page.data("fashion-mnist"), os.path.join(tempfile.gettempdir(), f"murmuration-first-{n}"), n)
            results.append(page.rows.run("simulate", "--peers", 4, "--points", 0, "--evaluate", 1, "--dataset", "fashion-mnist", "--data", folder, "--model", "cnn",
                                         "--optimizer", "adamw", "--lr", 0.003, "--epochs", page.o.epochs, "--strategy", strategy))
        left.plot([n / 1000 for n in sizes], [r["seconds"] for r in results], marker="o", label=strategy)
        right.plot([n / 1000 for n in sizes], [100 * r["test_accuracy"]["mean"] for r in results], marker="o", label=strategy)
        print(f"| `{strategy}` | " + " | ".join(f"{r['seconds']:.2f} s, {100 * r['test_accuracy']['mean']:.2f} %" for r in results) + " |")
    left.set(xlabel="thousand pictures", ylabel="virtual seconds", ylim=0)
    right.set(xlabel="thousand pictures", ylabel="accuracy, %")
    left.legend(frameon=False)
    page.save("paramhub", figure)


# 003, figure 7: accuracy against epochs and time, on one machine, with the data and with the model divided.
def stages(page):
    world = f"--peers 4 --batch 64 --link 1000,0.2 --step-time 690ms --paging 166,100 --optimizer adamw --lr 0.001 --schedule step --model mobilenet-small --epochs {page.o.epochs} --points 15 --evaluate 4"
    figure, (left, right) = axes(2)
    for name, strategy, more in (("one machine", "alone", {"peers": 1}), ("data parallel", "allreduce", {}), ("four stages", "adpsgd", {"stages": 4}), ("two stages of two", "adpsgd", {"stages": 2})):
        r = page.race(strategy, world, "cifar10", **more)
        curve(left, r, name, "progress")
        curve(right, r, name)
        print(f"| {name} | {100 * r['test_accuracy']['mean']:.1f} % | {r['seconds']:,.0f} s |")
    left.set(xlabel="share of the run", ylabel="accuracy, %")
    right.set(xlabel="virtual seconds", ylabel="accuracy, %")
    right.legend(frameon=False)
    page.save("stages", figure)


# 003, figures 3 to 6: pictures by class, and how bright their channels are.
def pictures(page):
    r = page.rows.run("describe", "--dataset", "cifar10", "--data", page.data("cifar10"))
    figure, (left, right) = axes(2)
    left.bar([c["value"] for c in r["classes"]], [c["rows"] for c in r["classes"]])
    left.set(xlabel="class", ylabel="pictures")
    for column in r["columns"]:
        edges, rows = column["histogram"]["edges"], column["histogram"]["rows"]
        total = sum(rows)
        right.stairs([n / total / (b - a) for n, a, b in zip(rows, edges, edges[1:])], edges, label=column["name"], color=column["name"])
        print(f"| {column['name']} | mean {column['mean']:.1f} | deviation {column['std']:.1f} |")
    right.set(xlabel="brightness", ylabel="density")
    right.legend(frameon=False)
    page.save("pictures", figure)


# 004: the time to an accuracy with 1 to 64 workers, each strategy at the best of its rates.
def scaling(page):
    workers, figure, (left, right) = (1, 2, 4, 8, 16, 32, 64), *axes(2)
    for strategy, begin in (("adpsgd:lattice6+4", 3), ("allreduce", 4)):
        medians, epochs = [], []
        for n in workers:
            def run(rung, seed=1, n=n):
                flags = f"--peers {n} {MLP} --epochs 4 --evaluate 1 --points 160 --seed {seed}"
                return page.race(strategy if n > 1 else "alone", flags, target=0.93, lr=ladder(rung))

            rung = best_rung(begin, lambda r: run(r)["target_seconds"], -6)
            if rung is None:
                medians.append(math.nan)
                epochs.append(math.nan)
                continue
            begin, results = rung, [run(rung, s) for s in SEEDS]
            seconds = [r["target_seconds"] for r in results]
            medians.append(statistics.median(seconds))
            epochs.append(statistics.median(r["seconds_per_epoch"] for r in results))
            print(f"| `{strategy}`, {n} | {spread(seconds)} s, {ladder(rung)} | an epoch {epochs[-1]:.2f} s |")
        left.plot(workers, [medians[0] / m for m in medians], marker="o", label=strategy)
        right.plot(workers, [epochs[0] / e for e in epochs], marker="o", label=strategy)
    for axis, what in ((left, "to 93 %"), (right, "an epoch")):
        axis.plot(workers, workers, color="0.8", linestyle="--", label="linear")
        axis.set(xscale="log", yscale="log", xlabel="workers", ylabel=f"times faster {what}")
        axis.set_xticks(workers, workers)
        axis.set_yticks(workers, workers)
        axis.minorticks_off()
    left.legend(frameon=False)
    page.save("scaling", figure)


# 004: updates that are late. An exchange takes so many steps as its link lets it; the bound of the theory is the fourth root
# of the number of updates.
def staleness(page):
    stale, figure, axis = (1, 2, 4, 8, 16, 32, 64), *axes()
    model, epochs = 784 * 64 + 64 + 64 * 10 + 10, 2
    updates = 60000 * epochs / 32
    for name, every in (("an exchange a step", "1"), ("as the link takes", "auto")):
        medians = []
        for steps in stale:
            flags = f"--peers 16 {MLP} --epochs {epochs} --points 0 --evaluate 1 --every {every} --lr {RATES['adpsgd']} --link {round(model * 32 / 1e6 / (0.01 * steps), 3)},0"
            results = [100 * page.race("adpsgd", f"{flags} --seed {s}")["test_accuracy"]["mean"] for s in SEEDS]
            medians.append(statistics.median(results))
            print(f"| {name}, {steps} steps late | {spread(results)} % |")
        axis.plot(stale, medians, marker="o", label=name)
    axis.axvline(updates ** 0.25, color="0.7", linestyle="--", label="fourth root of updates")
    axis.set(xscale="log", xlabel="steps that moving the model takes", ylabel="accuracy, %")
    axis.set_xticks(stale, stale)
    axis.legend(frameon=False)
    page.save("staleness", figure)


# 004: one and several slow workers and links.
def trouble(page):
    cases = {"none": "", "one slow": "--slow 1=10", "four slow": "--slow 1=10 --slow 2=10 --slow 3=10 --slow 4=10", "one slow link": "--slow-link 1=100",
             "four slow links": "--slow-link 1=100 --slow-link 2=100 --slow-link 3=100 --slow-link 4=100"}
    figure, axis = axes()
    for k, (strategy, rate) in enumerate(RATES.items()):
        medians = []
        for name, flags in cases.items():
            seconds = [page.race(strategy, f"--peers 16 {MLP} --epochs 4 --evaluate 1 --points 160 {flags} --seed {s}", target=0.93, lr=rate)["target_seconds"] for s in SEEDS]
            medians.append(statistics.median(seconds))
            print(f"| `{strategy}`, {name} | {spread(seconds)} s |")
        axis.bar([i + 0.27 * (k - 1) for i in range(len(cases))], [0 if m == math.inf else m for m in medians], 0.27, label=strategy)  # never: no bar
    axis.set(yscale="log", ylabel="virtual seconds to 93 %")
    axis.set_xticks(range(len(cases)), [c.replace(" slow", "\nslow") for c in cases])
    axis.legend(frameon=False)
    page.save("trouble", figure)


# 004: servers that wait in different ways, for a model of dense layers and one of convolutions.
def servers(page):
    figure, (left, right) = axes(2)
    for axis, dataset, flags in ((left, "mnist", "--model mlp --epochs 1"), (right, "cifar10", "--model mobilenet-small --epochs 0.5")):
        for strategy in ("ps-bsp", "ps-ssp", "ps-dssp", "ps-asp"):
            r = page.race(strategy, f"--peers 8 --batch 32 --slow 1=2 --slow 2=3 --points 12 --evaluate 1 {flags}", dataset)
            curve(axis, r, strategy)
            print(f"| {dataset}, `{strategy}` | {100 * r['test_accuracy']['mean']:.2f} % | {r['seconds']:.1f} s |")
        axis.set(title=f"{dataset}, {flags.split()[1]}", xlabel="virtual seconds", ylabel="accuracy, %")
    left.legend(frameon=False)
    page.save("servers", figure)


# 004: MLlib's experiment: learners with 1 to 5 workers, in memory and on disk.
def learners(page):
    workers, figure, both = range(1, 6), *axes(2)
    for axis, disk in zip(both, ("", "--on-disk")):
        for learner in ("tree", "logistic", "gaussian-nb"):
            rounds = [page.rows.run("fit", "--data", flights(page), "--target", "arr_delay>15", "--drop", "dep_delay", "--split", "row:7/10", "--learner", learner, "--peers", n, *disk.split()) for n in workers]
            axis.plot(workers, [r["seconds"] for r in rounds], marker="o", label=learner)
            print(f"| `{learner}` {disk} | " + " | ".join(f"{r['seconds']:.1f} s" for r in rounds) + f" | AUC {rounds[0]['auc']['mean']:.4f} |")
        axis.set(title="on disk" if disk else "in memory", xlabel="workers, on two cores", ylabel="seconds", ylim=0)
    both[0].legend(frameon=False)
    page.save("learners", figure)


FIGURES = (proportion, iteration, preprocess, paramhub, stages, pictures, scaling, staleness, trouble, servers, learners)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--node", required=True, help="the binary")
    p.add_argument("--data", required=True, help="folder of data sets")
    p.add_argument("--rows", default="seeds.jsonl", help="file of what has run (default %(default)s)")
    p.add_argument("--out", default="docs/img", help="folder of the pictures (default %(default)s)")
    p.add_argument("--epochs", type=float, default=2, help="passes of paramhub and stages")
    names = [f.__name__ for f in FIGURES]
    p.add_argument("--figures", default=",".join(names), help="of " + ", ".join(names))
    o = p.parse_args()
    plt.rcParams.update({"svg.hashsalt": "seeds", "font.size": 9})
    page, known = Page(o), dict(zip(names, FIGURES))
    for name in o.figures.split(","):
        print(f"\n{name}")
        known[name](page)


if __name__ == "__main__":
    main()
