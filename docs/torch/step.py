#!/usr/bin/env python3
"""Times training steps of torch and of gossipnode in turn, one thread each.

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch
    /tmp/torch/bin/python docs/torch/step.py [--model mlp|cnn|mobilenet-small|gpt|...] [--rounds 15] [--batch 64]

Nothing in the repository needs this script or torch. A step is the gradient of a batch
and SGD with momentum, in float32:

    mlp    784-256-10, rectifier between
    cnn    28x28: convolution 3x3 1-16, rectifier, pool 2x2, convolution 3x3 16-32,
           rectifier, pool 2x2, dense 1568-10
    mobilenet-small, gpt    as examples/zoo/nets has them; gpt with 16 windows of 128
           random bytes
    gru    16 windows of 128 random bytes
    resnet18 and others     torchvision's, as twins.py changes them for 32x32

Both sides go through sixteen batches of dense random values that lie ready in memory,
in [-1, 1): real pictures are largely empty, and what a library makes of zeros is not
the question. Both begin each sample from the same parameters again, so that neither
gets to vanishing, slow numbers. torch is given its best setting: several are tried
first, and the fastest is the one that counts.

A round is three samples of torch's step and then three of gossipnode's (`gossipnode
bench step --rounds 3`, a process of its own), 40 ms or more each. The ratio of a round
is the quotient of the two medians (of one sample each if a step takes longer than
40 ms); printed is the median of the rounds, with the least
and the greatest, by the clock and by processor time, which depends less on what else
the machine does.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# One thread; and memory that is freed stays with the process, which spares torch
# asking the system for the same pages in each step.
SETTINGS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
            "MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
if any(os.environ.get(name) != value for name, value in SETTINGS.items()):
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | SETTINGS)  # read when a process starts

try:
    import torch
    from torch import nn
    import twins
except ImportError as missing:
    sys.exit(f"step.py needs torch: {missing}\n\n{__doc__}")

BATCH, BATCHES, CLASSES = 64, 16, 10
RATE, MOMENTUM = 1e-4, 0.9  # as examples/gossipnode/bench/step/work.go has them
SAMPLES, SAMPLE_SECONDS = 3, 0.04
CONTEST_ROUNDS = 7


def mlp(_):
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(inplace=True), nn.Linear(256, CLASSES))


def cnn(pool_first):
    """Rectifier and pool may change places: the result is the same."""

    def block(channels, out):
        after = [nn.ReLU(inplace=True), nn.MaxPool2d(2)]
        return nn.Conv2d(channels, out, 3, padding=1), *(reversed(after) if pool_first else after)

    return nn.Sequential(*block(1, 16), *block(16, 32), nn.Flatten(), nn.Linear(1568, CLASSES))


def mobilenet(_):
    """The zoo's mobilenet-small."""
    layers, channels = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.GroupNorm(2, 16), nn.ReLU(inplace=True)], 16
    for out, stride in ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
        layers += [nn.Conv2d(channels, channels, 3, stride=stride, padding=1, groups=channels, bias=False),
                   nn.Conv2d(channels, out, 1, bias=False), nn.GroupNorm(out // 8, out), nn.ReLU(inplace=True)]
        channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


MODELS = {"mlp": (mlp, (784,)), "cnn": (cnn, (1, 28, 28)), "mobilenet-small": (mobilenet, (3, 32, 32)),
          "gpt": (lambda _: twins.gpt(), (128,)), "gru": (lambda _: twins.gru(), (128,))}
TEXTS = ("gpt", "gru")
if twins.models:
    MODELS |= {name: (lambda _, make=make: make(), (3, 32, 32)) for name, make in twins.DEEP.items()}


def size(model):
    """The examples of a batch."""
    return 16 if model in TEXTS else BATCH


class Trainer:
    """A model in one of torch's settings."""

    def __init__(self, model, optimizer, channels_last=False, pool_first=False, compiled=False):
        make, shape = MODELS[model]
        options = {"channels last": channels_last, "pool first": pool_first, "compiled": compiled}
        self.name = ", ".join([optimizer + " optimizer", *(name for name, on in options.items() if on)])
        torch.manual_seed(1)
        layout = {"memory_format": torch.channels_last} if channels_last else {}
        self.net = make(pool_first)
        if channels_last:
            self.net = self.net.to(**layout)
        self.start = [p.detach().clone() for p in self.net.parameters()]
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=RATE, momentum=MOMENTUM, **{optimizer: True})
        self.batches = [((2 * torch.rand(BATCH, *shape) - 1).contiguous(**layout), torch.randint(CLASSES, (BATCH,)))
                        for _ in range(BATCHES)]
        if model in TEXTS:
            draw = lambda: torch.randint(256, (size(model), *shape))
            self.batches = [(draw(), draw()) for _ in range(BATCHES)]
        self.loss = torch.compile(self.forward) if compiled else self.forward
        self.steps = 1
        while self.sample()[0] * self.steps < SAMPLE_SECONDS:
            self.steps *= 2

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.net(x).flatten(0, -2), y.flatten())

    def parameters(self):
        return sum(p.numel() for p in (*self.net.parameters(), *self.net.buffers()))

    def train(self, steps):
        for x, y in itertools.islice(itertools.cycle(self.batches), steps):
            self.optimizer.zero_grad(set_to_none=True)
            self.loss(x, y).backward()
            self.optimizer.step()

    def sample(self):
        """The seconds of a step, by the clock and of the processor."""
        with torch.no_grad():
            for p, start in zip(self.net.parameters(), self.start):
                p.copy_(start)
        self.optimizer.state.clear()
        self.train(2)  # makes the optimizer's state again
        began, cpu = time.perf_counter(), time.process_time()
        self.train(self.steps)
        return (time.perf_counter() - began) / self.steps, (time.process_time() - cpu) / self.steps


def optimizers():
    """Those that this torch has."""
    try:
        torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1, fused=True)
    except (TypeError, RuntimeError):
        return ("foreach",)
    return ("fused", "foreach")


def fastest(model, compiled):
    """The fastest of torch's settings by processor time, tried in turn."""
    either = (False, True)
    pictures = either if len(MODELS[model][1]) == 3 else (False,)
    pools = either if model == "cnn" else (False,)
    trainers = [Trainer(model, *setting) for setting in
                itertools.product(optimizers(), pictures, pools, either if compiled else (False,))]
    seconds = [[] for _ in trainers]
    for _ in range(CONTEST_ROUNDS if trainers[0].steps > 1 else 1):
        for trainer, samples in zip(trainers, seconds):
            samples.append(trainer.sample()[1])
    medians = [statistics.median(samples) for samples in seconds]
    for trainer, median in zip(trainers, medians):
        print(f"  torch, {trainer.name:44s} {1000 * median:8.3f} cpu ms")
    return trainers[medians.index(min(medians))]


def compare(model, rounds, gossipnode, compiled):
    print(f"\n{model}, batch of {size(model)}")
    trainer = fastest(model, compiled)
    theirs, ours = [], []  # of each round, by the clock and of the processor
    for _ in range(rounds):
        trainer.train(2)
        samples = [trainer.sample() for _ in range(SAMPLES if trainer.steps > 1 else 1)]
        theirs.append([statistics.median(column) for column in zip(*samples)])
        figures = bench(gossipnode, model)
        if figures["parameters"] != trainer.parameters():
            sys.exit(f"step.py: {model} has {figures['parameters']} parameters in gossipnode,"
                     f" {trainer.parameters()} in torch")
        ours.append([figures["step_seconds"], figures.get("step_cpu_seconds", math.nan)])
    print(f"\n  medians of {rounds} rounds in turn{'':23s} {'ms':>8s} {'samples/s':>10s} {'cpu ms':>8s}")
    for who, seconds in ((f"torch, {trainer.name}", theirs), (f"gossipnode, {figures['instructions']}", ours)):
        clock, cpu = (statistics.median(column) for column in zip(*seconds))
        print(f"  {who:50s} {1000 * clock:8.3f} {size(model) / clock:10,.0f} {1000 * cpu:8.3f}")
    for what, column in (("by the clock", 0), ("by processor time", 1)):
        ratios = [t[column] / o[column] for t, o in zip(theirs, ours)]
        least, middle, most = min(ratios), statistics.median(ratios), max(ratios)
        print(f"  gossipnode is {middle:.2f} times as fast {what} ({least:.2f} to {most:.2f})")


def bench(gossipnode, model):
    """The figures of gossipnode's step."""
    command = [gossipnode, "bench", "step", "--json", "--model", model, "--batch", str(size(model)), "--rounds", str(SAMPLES)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


def main():
    global BATCH
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=MODELS, help="default: all")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=BATCH, help="pictures of a step")
    parser.add_argument("--gossipnode", help="the program (default: built from this checkout)")
    parser.add_argument("--compile", action="store_true", help="try torch.compile too; needs a C++ compiler")
    options = parser.parse_args()
    BATCH = options.batch
    if options.rounds < 1:
        parser.error("--rounds: want at least 1")
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.set_flush_denormal(True)
    told = ("Math Kernel", "DNN v", "BLAS_INFO", "CPU capability")
    libraries = [line.strip("- ") for line in torch.__config__.show().splitlines() if any(word in line for word in told)]
    print(f"torch {torch.__version__}, {torch.get_num_threads()} thread; load {os.getloadavg()[0]:.2f}")
    print("\n".join("  " + line.split(", BUILD_TYPE")[0] for line in libraries))
    with tempfile.TemporaryDirectory() as work:
        gossipnode = options.gossipnode
        if not gossipnode:
            gossipnode = work + "/gossipnode"
            root = pathlib.Path(__file__).resolve().parents[2]
            subprocess.run(["go", "build", "-o", gossipnode, "./examples/gossipnode"], cwd=root, check=True)
        for model in options.model or MODELS:
            compare(model, options.rounds, gossipnode, options.compile)
    print(f"\nload at the end {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
