"""A PyTorch CNN on two machines, each behind an uplink of 2 Mbit/s: both train at full speed, and average their models in the
background, in a sixth of the bytes. Each hardly ever sees half of the classes.

    pip install torch dist/gossipnode-*.whl && python examples/gallery/cnn/cnn.py [PICTURE.svg]

plays both on this machine. On two, `cnn.py --machine 0` prints an address, and `cnn.py --machine 1 --peers ADDRESS` joins."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import gossipnode


def pictures(n, seed, weights):
    """Stand for your data: stripes of ten directions with noise; weights say how often each comes."""
    random = torch.Generator().manual_seed(seed)
    y = torch.multinomial(torch.tensor(weights), n, replacement=True, generator=random)
    angle, place = (y * torch.pi / 10)[:, None, None], torch.arange(28.0)
    across = place[:, None] * torch.sin(angle) + place * torch.cos(angle)
    waves = torch.sin(across * 0.9 + 6.3 * torch.rand(n, 1, 1, generator=random))
    return (waves + torch.randn(n, 28, 28, generator=random))[:, None], y


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def train(machine, peers, steps, history):
    torch.manual_seed(1)  # both begin with the same values
    model = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(4), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(800, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    often, seldom = [1.0] * 5, [0.05] * 5
    x, y = pictures(2000, machine, often + seldom if machine == 0 else seldom + often)
    test = pictures(1000, 9, often * 2)
    with gossipnode.join(model, run="stripes", peers=peers, steps=steps, codec="lattice6+4", uplink="2") as flock, open(history, "a") as lines:
        print("others join", flock.address, flush=True)
        flock.wait(2)
        began, step = time.time(), 0
        while not flock.state.over:
            batch = torch.randint(len(x), (32,))
            loss = cross_entropy(model(x[batch]), y[batch])
            optimizer.param_groups[0]["lr"] = 0.01 * (1 - flock.state.progress)  # else the last steps are towards one's own classes
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            flock.step(samples=32, loss=loss)
            if (step := step + 1) % 25 == 1:
                lines.write(json.dumps({"peer": f"machine {machine + 1}", "seconds": time.time() - began, "step": step, "loss": loss.item(), "accuracy": accuracy(model, *test)}) + "\n")
    print(f"machine {machine + 1}: accuracy {accuracy(model, *test):.3f} after {step} steps, {step / (time.time() - began):.0f} a second")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", default="cnn.svg")
    parser.add_argument("--machine", type=int)
    parser.add_argument("--peers", nargs="*", default=[])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--history", default="cnn.jsonl")
    options = parser.parse_args()
    if options.machine is not None:
        return train(options.machine, options.peers, options.steps, options.history)
    with tempfile.TemporaryDirectory() as folder:
        def start(machine, *more):  # with one thread each: more are in each other's way, and a step takes ten times as long
            return subprocess.Popen([sys.executable, __file__, "--machine", str(machine), "--steps", str(options.steps), "--history", folder + "/stripes.jsonl", *more], stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        first = start(0)
        second = start(1, "--peers", first.stdout.readline().split()[-1])
        print(second.communicate()[0].splitlines()[-1], first.communicate()[0], sep="\n", end="")
        subprocess.run([gossipnode.sidecar.find(), "plot", folder + "/stripes.jsonl", "--out", options.picture], check=True)


if __name__ == "__main__":
    main()
