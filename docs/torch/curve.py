#!/usr/bin/env python3
"""Trains the zoo's gpt on Go's sources with torch, and prints its loss curve.

    python docs/torch/curve.py [--steps 1500]
    go test ./examples/zoo/nets -run TestGPTCurve -figures -v -timeout 1h     # the same here

Files are all .go below the Go tree's src without testdata, sorted by path; every
twentieth from the first is held out. AdamW 1e-3, betas 0.9 and 0.95, weight decay 0.1,
clip 1, warm-up 100 steps, cosine to a tenth; 16 windows of 128 bytes a step, drawn at
random. The test is 640 windows spread evenly over what is held out.
"""

import argparse
import math
import pathlib
import subprocess

import torch
from torch import nn

import twins

CONTEXT, WINDOWS, WARMUP, TESTED = 128, 16, 100, 640


def sources():
    root = pathlib.Path(subprocess.check_output(["go", "env", "GOROOT"], text=True).strip()) / "src"
    files = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.go") if "testdata" not in p.relative_to(root).parts)
    held = [(root / f).read_bytes() for f in files[::20]]
    train = [(root / f).read_bytes() for i, f in enumerate(files) if i % 20]
    return [torch.frombuffer(bytearray(b"".join(part)), dtype=torch.uint8) for part in (train, held)]


def windows(text, starts):
    rows = torch.stack([text[s:s + CONTEXT + 1] for s in starts]).long()
    return rows[:, :-1], rows[:, 1:]


def bits(net, held):
    count = (len(held) - 1) // CONTEXT
    total = 0.0
    with torch.no_grad():
        for first in range(0, TESTED, 64):
            x, y = windows(held, [i * count // TESTED * CONTEXT for i in range(first, first + 64)])
            total += nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten(), reduction="sum").item()
    return total / (TESTED * CONTEXT) / math.log(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(options.seed)
    train, held = sources()
    print(f"{len(train):,} bytes to train on, {len(held):,} held out", flush=True)
    net = twins.gpt()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    for step in range(options.steps):
        if step % 250 == 0:
            print(f"{step} steps: {bits(net, held):.3f} bits per byte", flush=True)
        rate = (step + 1) / WARMUP if step < WARMUP else \
            0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (options.steps - WARMUP)))
        optimizer.param_groups[0]["lr"] = 1e-3 * rate
        x, y = windows(train, torch.randint(len(train) - CONTEXT, (WINDOWS,)).tolist())
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten()).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    print(f"{options.steps} steps: {bits(net, held):.3f} bits per byte")


if __name__ == "__main__":
    main()
