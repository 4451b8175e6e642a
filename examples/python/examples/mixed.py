"""One flock of two torch trainers (mnist.py) and two peers in Go (gossipnode run), all on this machine:
`python mixed.py --data FOLDER`. They train the same layers: the weights of nn.Sequential and those of
Go's mlp have the same names, shapes and kinds."""

import argparse
import json
import os
import socket
import subprocess
import sys

from gossipnode import sidecar


def torch_peer(options, part, *more):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mnist.py")
    return subprocess.Popen([sys.executable, script, "--data", options.data, "--part", f"{part}/4", "--steps", str(options.steps),
                             *more], stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def go_peer(options, part, address):
    return subprocess.Popen([sidecar.find(), "run", "--run", "digits", "--dataset", "mnist", "--model", "mlp", "--data", options.data,
                             "--part", f"{part}/4", "--steps", str(options.steps), "--join", address, "--listen", "127.0.0.1:0", "--final", "merge", "--json"],
                            stdout=subprocess.PIPE, text=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder of the four files of MNIST")
    parser.add_argument("--steps", type=int, default=4000, help="of each peer")
    options = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    started = [torch_peer(options, 0, "--listen", address, "--min-peers", "2"), torch_peer(options, 1, "--listen", "127.0.0.1:0", "--peers", address)]
    try:
        address = started[0].stdout.readline().split()[-1]  # "others join ADDRESS": the two train, and others copy their model
        started += [go_peer(options, 2, address), go_peer(options, 3, address)]
        said = [peer.communicate()[0] for peer in started]
    finally:
        for peer in started:  # those that have ended take no harm
            peer.kill()
    for text in said[:2]:
        print("torch:", text.splitlines()[-1])
    for text in said[2:]:
        result = json.loads(text)
        print(f"go:    accuracy {result['test_accuracy']['mean']:.4f} after {result['steps']} steps")


if __name__ == "__main__":
    main()
