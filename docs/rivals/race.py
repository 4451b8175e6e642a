"""Races Murmuration and other systems: the same task, four members in processes of one machine, in turn.

    python docs/rivals/race.py --data ../shared/data/mnist --node ./gossipnode --venvs /work/venv-rivals --out rows.jsonl

Runs each arm (--arms, names of ARMS) once for each seed, in turn, and prints medians with the least and greatest. --rates
instead gives a ladder to try with the first seed. Each run is in network and process namespaces of its own (root is
needed): what it sends over the loopback and its processors' time are counted from the first step to the last.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import arms
import meet

HERE = os.path.dirname(os.path.abspath(__file__))
TICK = os.sysconf("SC_CLK_TCK")


def spent():
    """Bytes received on the loopback and processor seconds of all processes here, so far."""
    with open("/proc/net/dev") as file:
        moved = next(int(line.split(":")[1].split()[0]) for line in file if line.strip().startswith("lo:"))
    ticks = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:15]))  # its own, and its ended children's
        except OSError:
            pass
    return moved, ticks / TICK


def one(run):
    """One run, inside its namespaces: the processes of an arm, and what they say of themselves."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    arm = arms.ARMS[run["arm"]]
    with tempfile.TemporaryDirectory() as folder:
        run.update(folder=folder, world=4, **arm.settings)
        processes = []

        def start(script, rank):
            """A process of the arm, with the rank's settings; what it logs is shown only if the run fails."""
            log = open(f"{folder}/log.{script}.{rank}", "w")
            python = f"{run['venvs']}/{arm.venv}/bin/python" if run["venvs"] else sys.executable
            known = {"RIVALS": json.dumps({**run, "rank": rank}), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "FLWR_TELEMETRY_ENABLED": "0", "GOSSIPNODE": run["node"],
                     "HOME": folder, "PYTHONPATH": f"{HERE}:{HERE}/../../examples/python", "PATH": f"{os.path.dirname(python)}:{os.environ['PATH']}"}
            process = subprocess.Popen([python, f"{HERE}/{script}.py"], env={**os.environ, **known}, stdout=log, stderr=log)
            processes.append(process)
            return process

        members = {-1: start(arm.helper, -1)} if arm.helper else {}
        members.update({rank: start(arm.script, rank) for rank in range(run["world"])})

        def wait(name, deadline):
            """Until all that live have made the mark."""
            while living := [r for r in arm.speakers if not meet.marked(folder, f"{name}.{r}") and members[r].poll() is None]:
                dead = [r for r, m in members.items() if m.poll() is not None]
                if time.monotonic() > deadline or name == "ready" and dead:
                    raise TimeoutError(f"{living} have not said {name}, and {dead} have ended")
                time.sleep(0.02)

        moved, processor, results, failed = 0, 0, [], None
        try:
            wait("ready", time.monotonic() + 240)
            moved, processor = spent()
            meet.mark(folder, "go")
            wait("done", time.monotonic() + run["patience"])
            moved, processor = (after - before for after, before in zip(spent(), (moved, processor)))
            meet.mark(folder, "judge")
            wait("result", time.monotonic() + 120)
            results = [json.loads(meet.await_mark(folder, f"result.{r}")) for r in arm.speakers if meet.marked(folder, f"result.{r}")]
            failed = None if results else "no member came to the end"
        except TimeoutError as late:
            failed = str(late)
        if run["logs"] or failed and run["trouble"] != "kill":
            for name in sorted(os.listdir(folder)):
                if name.startswith("log."):
                    with open(f"{folder}/{name}") as file:
                        print(f"== {name}\n{file.read()[-3000:]}", file=sys.stderr)
        for process in processes:
            process.kill()
        print(json.dumps({**{k: run[k] for k in ("arm", "seed", "rate", "steps", "pace", "trouble")}, "bytes": moved, "processor": processor,
                          "load": os.getloadavg()[0], "members": results, "failed": failed}))


def summary(rows):
    """Of the runs of one arm: medians (least to greatest)."""
    def of(name, value, form):
        values = [value(row) for row in rows]
        if len(values) == 1:
            return f"{name} {form.format(values[0])}"
        return f"{name} {form.format(statistics.median(values))} ({form.format(min(values))} to {form.format(max(values))})"
    each = lambda key, fold: lambda row: fold(m[key] for m in row["members"])
    mean = lambda values: statistics.mean(list(values))
    return "; ".join([
        of("mean", lambda row: 100 * each("accuracy", mean)(row), "{:.2f}"), of("worst", lambda row: 100 * each("accuracy", min)(row), "{:.2f}"),
        of("MB", lambda row: row["bytes"] / 1e6, "{:.1f}"), of("seconds", each("seconds", max), "{:.1f}"),
        of("of the first three, for their share", lambda row: max(m["share_seconds"] for m in row["members"][:3]), "{:.1f}"),
        of("processor", lambda row: row["processor"], "{:.1f}"), of("longest stand", each("longest", max), "{:.2f}")])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of MNIST's four files")
    parser.add_argument("--node", required=True, help="the program gossipnode")
    parser.add_argument("--venvs", default="", help="folder with an environment a system (README.md); else this Python is used")
    parser.add_argument("--arms", default=",".join(arms.ARMS))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--rates", help="a ladder to try with the first seed, instead of each arm's own rate")
    parser.add_argument("--steps", type=int, default=960, help="of each member, of 64 rows")
    parser.add_argument("--pace", type=float, default=0.04, help="seconds that a step takes at least, as that of a larger model would")
    parser.add_argument("--trouble", default="", choices=["", "slow", "kill"], help="of the last member: 10 times slower, or killed midway")
    parser.add_argument("--patience", type=float, default=400, help="seconds until a run counts as hung")
    parser.add_argument("--logs", action="store_true", help="shows what processes log")
    parser.add_argument("--out", default="rivals.jsonl", help="rows are added to it")
    options = parser.parse_args()
    seeds, rows = [int(s) for s in options.seeds.split(",")], {}
    rates = [float(r) for r in options.rates.split(",")] if options.rates else [None]
    for seed in seeds[:1] if options.rates else seeds:
        for rate in rates:
            for arm in options.arms.split(","):
                run = {"arm": arm, "seed": seed, "rate": rate or arms.ARMS[arm].rate, **{k: getattr(options, k) for k in ("steps", "pace", "trouble", "patience", "logs", "venvs")},
                       "data": os.path.abspath(options.data), "node": os.path.abspath(options.node)}
                out = subprocess.run(["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, __file__, "--one", json.dumps(run)],
                                     stdout=subprocess.PIPE, text=True, check=True).stdout
                with open(options.out, "a") as file:
                    file.write(out.splitlines()[-1] + "\n")
                row = json.loads(out.splitlines()[-1])
                if row["failed"]:
                    print(f"{arm} seed {seed} rate {run['rate']}: failed, {row['failed']}", flush=True)
                    continue
                rows.setdefault((arm, run["rate"]), []).append(row)
                print(f"{arm} seed {seed} rate {run['rate']} load {row['load']:.0f}: {summary([row])}".replace("nan", "-"), flush=True)
    for (arm, rate), some in rows.items():
        print(f"{arm}, rate {rate}, {len(some)} runs: {summary(some)}")


if __name__ == "__main__":
    one(json.loads(sys.argv[2])) if sys.argv[1:2] == ["--one"] else main()
