#!/usr/bin/env python3
"""`gossipnode bridge` as far as docs/BRIDGE.md needs it, for tests where no Go program is: one
peer, whose flock is the setting drift, added to every value between two commits."""

import argparse
import base64
import json
import math
import mmap
import os
import signal
import socket
import struct
import sys


def refusal(code, detail, remedy="", fatal=False):
    return {"ok": False, "error": {"code": code, "detail": detail, "remedy": remedy, **({"fatal": True} if fatal else {})}}


def rounded(x, dtype):
    if dtype == "fp16":
        return struct.unpack("<e", struct.pack("<e", x))[0]
    if dtype == "bf16":
        bits = struct.unpack("<I", struct.pack("<f", x))[0]
        bits += 0x7FFF + (bits >> 16 & 1)
        return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]
    return x


class Bridge:
    def __init__(self, memory):
        self.memory, self.replica, self.steps, self.commits = memory, None, 0, 0

    def values(self):
        return self.map.cast("f")[: len(self.types)]

    def hello(self, ask):
        if ask["v"] != 1:
            return refusal("version", f"protocol version {ask['v']}")
        self.settings = ask.get("settings", {})
        print(self.settings.get("says", ""), end="", file=sys.stderr, flush=True)
        if "unknown" in self.settings:
            return refusal("settings", "no flag --unknown", "see gossipnode bridge --help")
        if ask.get("run") == "another":
            return refusal("run", "the flock trains another model", "take its layout", fatal=True)
        self.layout = ask["layout"]
        self.types = [r.get("dtype", "f32") for r in ask["layout"] for _ in range(math.prod(r["shape"]))]
        if os.fstat(self.memory).st_size < 4 * len(self.types):
            return refusal("memory", "too small")
        self.map = memoryview(mmap.mmap(self.memory, 4 * len(self.types)))
        self.replica = list(self.values())
        self.base = list(self.replica)
        self.steps = ask.get("resume", {}).get("own", 0)
        self.hand_over()
        return {"ok": True, "v": 1, "peer": "fake", "addresses": ["/ip4/127.0.0.1/tcp/1/p2p/fake", "/ip4/192.0.2.7/tcp/1/p2p/fake"],
                "values": len(self.types), "start": "joined" if ask.get("join") else "founder", **self.standing(), "news": [1]}

    def standing(self):
        target = self.settings.get("steps", 0)
        return {"quantum": int(self.settings.get("quantum", 1)), "progress": min(1, self.steps / target) if target else 0, "members": 2 if self.met() else 1, "joined": self.met(),
                "steps": self.steps, "flock_steps": self.steps, "over": 0 < target <= self.steps,
                "resume": {"seed": base64.b64encode(bytes(range(7, 39))).decode(), "peer": "fake", "incarnation": 1, "age": self.steps, "flock_steps": self.steps, "own": self.steps, "partners": [{"ID": "q"}]}}

    def met(self):
        return 0 < self.settings.get("met-at", 0) <= self.commits

    def hand_over(self):
        p = self.values()
        for i, (x, dtype) in enumerate(zip(self.replica, self.types)):
            self.base[i] = p[i] = rounded(x, dtype)

    def commit(self, ask):
        if not 0 <= ask["steps"] <= 65536:
            return refusal("steps", f"{ask['steps']} steps")
        p = self.values()
        if not all(map(math.isfinite, p)):
            return refusal("notfinite", "a value is not finite")
        self.commits += 1
        if self.settings.get("dies-at") == self.commits and "resumed" not in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)
        for i, base in enumerate(self.base):
            if self.replica[i] == base:
                self.replica[i] = p[i]
            else:
                self.replica[i] += p[i] - base
            self.replica[i] += self.settings.get("drift", 0)
        self.steps += ask["steps"]
        self.hand_over()
        return {"ok": True, "added": True, "waited_us": 7, **self.standing()}

    def answer(self, ask):
        op = ask["op"]
        if (op == "hello") == (self.replica is not None) and op != "leave":
            return refusal("order", op)
        if op == "hello":
            return self.hello(ask)
        if op == "commit":
            return self.commit(ask)
        if op == "save":
            entries, at = {}, 0
            for r in self.layout:
                size = 4 * math.prod(r["shape"])
                entries[r["name"]], at = {"dtype": "F32", "shape": r["shape"], "data_offsets": [at, at + size]}, at + size
            head = json.dumps(entries).encode()
            with open(ask["path"], "wb") as file:
                file.write(struct.pack("<Q", len(head)) + head + struct.pack(f"<{len(self.replica)}f", *self.replica))
            return {"ok": True, "values": len(self.types)}
        if op == "stats":
            return {"ok": True, "stats": {"steps": self.steps, "asked": ask}}
        if op == "leave":
            self.hand_over()
            return {"ok": True, "merged": self.settings.get("final") == "merge", **self.standing()}
        return refusal("syntax", f"no such op: {op}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["bridge"])
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--memory-fd", type=int, required=True)
    options = parser.parse_args()
    control = socket.socket(fileno=options.control_fd)
    bridge = Bridge(options.memory_fd)
    for line in control.makefile("rb"):
        ask = json.loads(line)
        answer = bridge.answer(ask)
        try:
            control.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:
            break
        if answer.get("error", {}).get("fatal"):
            sys.exit(1)
        if ask["op"] == "leave":
            sys.exit(0)
    print("the trainer has gone without a word", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
