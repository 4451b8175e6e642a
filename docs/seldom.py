#!/usr/bin/env python3
"""What talking seldom costs: every arm at the best of its rates, in virtual time (docs/design/052).

    go build -o gossipnode ./examples/gossipnode
    python3 docs/seldom.py --node ./gossipnode --data ../shared/data

The best rate of an arm is sought with the first seed on the ladder 0.02 x 1.5^k: from where the arm begins, up and
down until both neighbours of the best are worse. The other seeds run at that rate. Each run is a line of --rows as
soon as it ends: what is there is not run again. The file that is there by default has the runs of 30 November 2026, with data in ../shared/data.
"""
import argparse
import os

from rows import Rows, ladder

PEERS = 16

# Arguments of each arm, and the rung of the ladder that it begins at. {h} are the steps between two exchanges, {q} a
# quarter of them; with {quarter} Mbit/s a port takes a quarter of the coded model in that time.
SELDOM = "--codec lattice6+4 --every {h}"
ARMS = {
    "allreduce": ("--strategy allreduce", 6),
    "allreduce int8": ("--strategy allreduce --codec int8", 6),
    # The same mean of gradients without a message, in a fifteenth of the time.
    "one peer as allreduce": ("--peers 1 --batch {all} --strategy alone", 6),
    "one peer as allreduce muon": ("--peers 1 --batch {all} --strategy alone --optimizer muon", -3),
    "diloco": ("--strategy diloco --every {h}", 0),
    "diloco int8": ("--strategy diloco --every {h} --codec int8", 0),
    "diloco muon": ("--strategy diloco --every {h} --optimizer muon", -3),
    "local-sgd": ("--strategy local-sgd --every {h}", 1),
    "auto": ("--codec lattice6+4 --every auto", 0),
    "none": (SELDOM, 0),
    "rate 2": (SELDOM + " --outer-rate 2", 0),
    "momentum 0.5": (SELDOM + " --outer-momentum 0.5", 0),
    "momentum 0.65": (SELDOM + " --outer-momentum 0.65", 0),
    "burst": (SELDOM + " --burst 4", 0),
    "burst momentum 0.8": (SELDOM + " --burst 4 --outer-momentum 0.8", 0),
    "muon": (SELDOM + " --optimizer muon", -2),
    "muon momentum 0.5": (SELDOM + " --optimizer muon --outer-momentum 0.5", -3),
    "quarter at H/4": ("--codec lattice6+4 --every partial={q} --link {quarter},0.2", 0),
}

# Arguments of each model, examples in a batch, bytes that a peer sends in an exchange with lattice6+4, and the rung that
# its arms begin at if not at their own.
MODELS = {
    "mlp": ("--dataset mnist --data {data}/mnist --model mlp", 16, 150e3, None),
    "cnn": ("--dataset cifar10 --data {data}/cifar10 --model cnn --augment flip", 16, 18.5e3, None),
    "gpt": ("--dataset gosource --model gpt --shard files --layers 2 --width 64 --context 64 --optimizer adamw --beta2 0.95 --clip 1", 4, 99.5e3, -4),
}

# A connection ten times slower than the others, and a quarter of the peers that comes and goes, at these steps.
LEAVING, AWAY = {3: 60, 6: 100, 10: 140, 13: 180}, 100


def hard(step):
    arguments = ["--slow-link", "1=10"]
    for k, (peer, at) in enumerate(LEAVING.items()):
        arguments += ["--leave" if k % 2 else "--crash", f"{peer}@{at * step:.3f}s", "--arrive", f"{peer}@{(at + AWAY) * step:.3f}s"]
    return arguments


class Table:
    """The runs that have been made, and how to make others."""

    def __init__(self, options):
        self.o, self.rows = options, Rows(options.node, options.rows)

    def run(self, label, arguments):
        """The result of a run, made if it is not there."""
        row = self.rows.run("simulate", *arguments)
        print(f"  {label}: {self.worth(row):.3f}  {row['bytes_sent'] / PEERS / 1e6:.2f} MB a peer  {row['processor']} s of a processor", flush=True)
        return row

    def worth(self, row):
        """What a run is judged by: seconds to the target, bits a byte of a text, or per cent."""
        if self.o.target:
            return row["target_seconds"] or float("inf")
        if "test_bits_per_byte" in row:
            return row["test_bits_per_byte"]["mean"]
        return 100 * row["test_accuracy"]["mean"]

    def arm(self, model, every, name):
        """An arm at the best of its rates."""
        o = self.o
        base, batch, exchange, begins = MODELS[model]
        text, own = ARMS[name]
        text = text.format(h=every, q=every // 4, all=batch * PEERS, quarter=round(exchange * 8 / 1e6 / (every * o.step_time), 3))
        if begins is None or "muon" in name:
            begins, base = own, base.replace("--optimizer adamw", "")
        if o.begin is not None:
            begins = o.begin
        steps = o.steps or o.updates * every

        def at(rung, seed):
            arguments = base.format(data=o.data).split() + ["--steps", str(steps), "--seed", str(seed), "--lr", ladder(rung)]
            if "--batch" not in text:
                arguments += ["--batch", str(batch)]
            arguments += ["--evaluate", str(o.evaluate), "--step-time", f"{round(o.step_time * 1000)}ms", *text.split(), *o.more.split()]
            if o.target:
                arguments += ["--schedule", "constant", "--target", str(o.target), "--until", f"accuracy={o.target}", "--points", str(o.points)]
            else:
                arguments += ["--points", "0"]
            if o.world == "hard":
                arguments += hard(o.step_time)
            return self.run(f"{model} H {every} {name}, seed {seed}, rate {ladder(rung)}", arguments)

        less = o.target or model == "gpt"  # is better
        tried = {begins: self.worth(at(begins, o.seeds[0]))}
        while True:
            best = (min if less else max)(tried, key=tried.get)
            missing = [r for r in (best + 1, best - 1) if r not in tried]
            if o.fixed or not missing:
                break
            tried[missing[0]] = self.worth(at(missing[0], o.seeds[0]))
        rows = [at(best, seed) for seed in o.seeds]
        values = [self.worth(r) for r in rows]
        others = "; ".join(f"{ladder(r)}: {v:.2f}" for r, v in sorted(tried.items()) if r != best) or "no other"
        return f"| {model}, {every}, {steps} | {name} | {ladder(best)} ({others}) | {sum(values) / len(values):.2f} ({', '.join(f'{v:.2f}' for v in values)}) | {sum(r['bytes_sent'] for r in rows) / len(rows) / PEERS / 1e6:.2f} |"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def numbers(text):
        return [int(n) for n in text.split(",")]

    p.add_argument("--node", required=True, help="the binary")
    p.add_argument("--data", required=True, help="folder of data sets")
    p.add_argument("--rows", default=os.path.join(os.path.dirname(__file__), "bench", "seldom.jsonl"), help="file of what has run (default %(default)s)")
    p.add_argument("--models", default="mlp", help="of " + ", ".join(MODELS))
    p.add_argument("--every", type=numbers, default=[16, 64, 256], help="H, several with commas")
    p.add_argument("--arms", default=",".join(ARMS), help="of " + ", ".join(ARMS))
    p.add_argument("--seeds", type=numbers, default=[1, 2, 3])
    p.add_argument("--updates", type=int, default=44, help="steps of a peer, in H")
    p.add_argument("--steps", type=int, default=0, help="steps of a peer, instead of --updates")
    p.add_argument("--world", choices=["even", "hard"], default="even")
    p.add_argument("--target", type=float, default=0, help="accuracy: judge by the time to it, at a constant rate")
    p.add_argument("--points", type=int, default=88, help="with --target, how often models are looked at")
    p.add_argument("--step-time", type=float, default=0.01, help="virtual seconds")
    p.add_argument("--evaluate", type=int, default=PEERS, help="peers whose models are evaluated")
    p.add_argument("--begin", type=int, help="rung of the ladder to begin at")
    p.add_argument("--fixed", action="store_true", help="try no other rate")
    p.add_argument("--more", default="", help="further arguments of simulate")
    o = p.parse_args()
    runs = Table(o)
    lines = [runs.arm(model, every, name.strip()) for model in o.models.split(",") for every in o.every for name in o.arms.split(",")]
    unit = f"seconds to {o.target:.0%}" if o.target else "accuracy, % (of a text bits a byte)"
    print(f"\n| model, H, steps | arm | rate (others tried) | {unit}: mean (each seed) | MB sent by a peer |\n| --- | --- | --- | --- | --- |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
