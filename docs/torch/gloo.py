#!/usr/bin/env python3
"""Times averaging one vector between two processes: torch's gloo and gossipnode in turn.

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch
    go build -o /tmp/gossipnode ./examples/gossipnode
    /tmp/torch/bin/python docs/torch/gloo.py /tmp/gossipnode [--codec lattice6+4] [--rounds 9]

Nothing in the repository needs this script or torch. Gloo's way is float32 in clear text over
loopback: each process sends its vector, receives the other's, and averages the two. That of
gossipnode is an exchange over TLS with the codec (`gossipnode bench exchange`, processes of
its own). A round is some of gloo's exchanges and then one such run of seven rounds; printed
are medians, and the median of the rounds' ratios with the least and the greatest.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
except ImportError as missing:
    sys.exit(f"gloo.py needs torch: {missing}\n\n{__doc__}")

EXCHANGES = 9  # of gloo in a round, after two to warm up


def average(rank, port, values, seconds):
    """Averages the vectors of two processes by send and receive, again and again."""
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    mine, theirs = torch.full((values,), float(rank)), torch.empty(values)
    for _ in range(EXCHANGES + 2):
        dist.barrier()
        began = time.perf_counter()
        sending, receiving = dist.isend(mine, 1 - rank), dist.irecv(theirs, 1 - rank)
        sending.wait()
        receiving.wait()
        mine.add_(theirs).mul_(0.5)
        if rank == 0:
            seconds.put(time.perf_counter() - began)
    dist.destroy_process_group()


def gloo(values):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = mp.get_context("spawn")
    seconds = context.Queue()
    both = [context.Process(target=average, args=(rank, port, values, seconds)) for rank in range(2)]
    for process in both:
        process.start()
    taken = [seconds.get() for _ in range(EXCHANGES + 2)]
    for process in both:
        process.join()
    return statistics.median(taken[2:])


def gossipnode(binary, values, codec):
    run = subprocess.run([binary, "bench", "exchange", f"--parameters={values}", f"--codec={codec}", "--rounds=7", "--json"],
                         check=True, capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("gossipnode")
    arguments.add_argument("--codec", default="lattice6+4")
    arguments.add_argument("--parameters", type=int, default=25_000_000)
    arguments.add_argument("--rounds", type=int, default=9)
    a = arguments.parse_args()
    theirs, ours, ratios, rates = [], [], [], []
    for _ in range(a.rounds):
        theirs.append(gloo(a.parameters))
        run = gossipnode(a.gossipnode, a.parameters, a.codec)
        ours.append(run["seconds"])
        ratios.append(ours[-1] / theirs[-1])
        moved = 2 * 4 * a.parameters / run["raw_seconds"]  # both ways
        rates.append(run["bytes"] / run["seconds"] / moved)
        print(f"gloo {1e3 * theirs[-1]:.1f} ms, {a.codec} {1e3 * ours[-1]:.1f} ms: {ratios[-1]:.2f}; "
              f"its bytes at {rates[-1]:.2f} of the rate of raw's", flush=True)
    print(f"medians: gloo {1e3 * statistics.median(theirs):.1f} ms, {a.codec} {1e3 * statistics.median(ours):.1f} ms, "
          f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), "
          f"rate {statistics.median(rates):.2f} of raw's")


if __name__ == "__main__":
    main()
