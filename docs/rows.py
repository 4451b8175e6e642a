"""What gossipnode has printed, kept in a file: a table that takes hours goes on where it was cut off."""
import gzip
import json
import os
import resource
import shutil
import statistics
import struct
import subprocess
import sys


def ladder(rung):
    """A learning rate on the ladder 0.02 x 1.5^k."""
    return f"{0.02 * 1.5 ** rung:.3g}"


class Rows:
    """Results by the arguments of their commands."""

    def __init__(self, node, path):
        self.node, self.path, self.rows = node, path, {}
        if os.path.exists(path):
            with open(path) as f:
                for line in f:
                    row = json.loads(line)
                    self.rows[row["arguments"]] = row

    def run(self, *arguments):
        """What "gossipnode ARGUMENT… --json" prints: with the processor seconds it took, and run only if it has not been."""
        key = " ".join(map(str, arguments))
        if key not in self.rows:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([self.node, *map(str, arguments), "--json"], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"gossipnode {key}\n{done.stderr}")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            row = {"arguments": key, "processor": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2), **json.loads(done.stdout.splitlines()[-1])}
            with open(self.path, "a") as f:
                f.write(json.dumps(row) + "\n")
            self.rows[key] = row
            print(f"  gossipnode {key}", flush=True)
        return self.rows[key]

    def race(self, *arguments):
        """The result of the one strategy that compare is told of."""
        return self.run("compare", *arguments)["races"][0]["results"][0]

    def race_to(self, target, *arguments):
        """The same, which ends at an accuracy; target_seconds is infinite if it never comes."""
        arguments = [*arguments, "--schedule", "constant", "--target", target]
        result = self.race(*arguments, "--until", f"accuracy={target}")
        if result["target_seconds"] is None and result["stopped_by"] == "accuracy":  # the members judge by other moments than the curve
            result = self.race(*arguments)
        return {**result, "target_seconds": result["target_seconds"] or float("inf")}


def best_rung(begin, worth, lowest):
    """The rung with the least worth(rung), both neighbours of which are worse; None if none down to lowest is finite."""
    tried, rung = {}, begin
    while True:
        for r in (rung - 1, rung, rung + 1):
            if r not in tried:
                tried[r] = worth(r)
        best = min(tried, key=tried.get)
        if tried[best] == float("inf"):  # too large for all: look lower
            best = min(tried) - 1
            if best < lowest:
                return None
        elif best - 1 in tried and best + 1 in tried:
            return best
        rung = best


def spread(values, form="{:.2f}"):
    """The median of some runs, and the least and the greatest."""
    values = sorted(values)
    told = ["never" if v == float("inf") else form.format(v) for v in (statistics.median(values), values[0], values[-1])]
    return told[0] if len(set(told)) == 1 and told[0] == "never" else "{} ({} to {})".format(*told)


def first_pictures(source, target, n):
    """A folder with the first n pictures of Fashion-MNIST, and its test pictures."""
    os.makedirs(target, exist_ok=True)
    for name in os.listdir(source):
        if not name.startswith("train"):
            shutil.copy(os.path.join(source, name), target)
            continue
        with gzip.open(os.path.join(source, name)) as f:
            data = f.read()
        head = 4 + 4 * data[3]
        size = (len(data) - head) // struct.unpack(">I", data[4:8])[0]
        with gzip.open(os.path.join(target, name), "wb", 1) as f:
            f.write(data[:4] + struct.pack(">I", n) + data[8:head] + data[head : head + n * size])
    return target
