"""A peer of several processes, each with its part of a batch and torch's DistributedDataParallel between them."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from .test_flock import running

try:
    import torch
    import torch.distributed
except ImportError as absent:
    raise unittest.SkipTest(f"torch is not here: {absent}")
if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    raise unittest.SkipTest("torch here has no gloo")

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FAKE = os.path.join(PACKAGE, "tests", "fake_bridge.py")
REAL = os.environ.get("GOSSIPNODE")

# One process of a peer: what it does are the scenes asked for, one after the other, each in a flock of its own.
PROCESS = """
import hashlib, json, os, signal, sys, warnings
import torch, torch.distributed as dist
import gossipnode
warnings.simplefilter("ignore", UserWarning)
asked = json.loads(sys.argv[1])
rank = asked["rank"]
dist.init_process_group("gloo", init_method="file://" + asked["meet"], rank=rank, world_size=asked["world"])

def scene(join, steps=20, ddp=True, dies=None, absent=None, stumbles=None, early=None, kills=None, spoils=None, save=None, forgets=None):
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(20, 16), torch.nn.ReLU(), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2))
    whole = torch.nn.parallel.DistributedDataParallel(model) if ddp else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    values = lambda: hashlib.sha256(b"".join(v.float().numpy().tobytes() for v in model.state_dict().values())).hexdigest()
    said = {}
    if absent == rank:
        os.kill(os.getpid(), signal.SIGKILL)
    resumed = {"optimizer": optimizer} if "resume" in join and forgets != rank else {}
    with gossipnode.join(whole, timeout=300, **join, **resumed) as flock:
        print(flock._sidecar.process and flock._sidecar.process.pid, flush=True)
        for n in range(steps):
            x = torch.randn(16, 20)
            loss = torch.nn.functional.cross_entropy(whole(x), (x.sum(1) > 0).long())
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            if dies == [rank, n]:
                os.kill(os.getpid(), signal.SIGKILL)
            if stumbles == [rank, n]:
                raise ValueError("of this process alone")
            if kills == n and rank == 0:
                flock._sidecar.process.kill()
            if early == [rank, n]:
                flock.commit()
            if spoils == n:
                model[0].weight.data[0, 0] = float("nan")
            if flock.step(samples=16, loss=loss).over:
                break
        if save:
            flock.save(save, optimizer)
            said["saved"] = values()
        state = flock.close(merge=True)
    return {**said, "state": state.__dict__, "values": values(), "history": len(flock.history()), "key": "seed" in flock._resume["resume"], "momentum": [float(s["momentum_buffer"].sum()) for s in optimizer.state.values()]}

for one in asked["scenes"]:
    try:
        said = scene(**one)
    except (gossipnode.Refused, FileNotFoundError) as err:
        said = {"refused": str(err)}
    print(json.dumps(said), flush=True)
dist.destroy_process_group()
"""


class Case(unittest.TestCase):
    binary = FAKE

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def peer(self, name, *scenes, world=2):
        """The processes of one peer."""
        for scene in scenes:
            scene["join"] = {"binary": self.binary, "run": "ranks", **({} if self.binary == FAKE else {"listen": "127.0.0.1:0"}), **scene["join"]}
        environment = {**os.environ, "PYTHONPATH": PACKAGE, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        processes = []
        for rank in range(world):
            asked = {"rank": rank, "world": world, "meet": os.path.join(self.folder.name, name), "scenes": scenes}
            processes.append(subprocess.Popen([sys.executable, "-c", PROCESS, json.dumps(asked)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            self.addCleanup(processes[-1].communicate)
            self.addCleanup(processes[-1].kill)
        return processes

    def ended(self, process, code=0):
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, code, err)
        return out.splitlines(), err

    def said(self, processes):
        """What each process says of each scene."""
        return [[json.loads(line) for line in self.ended(p)[0] if line.startswith("{")] for p in processes]


class WithTheFakeBridge(Case):
    def test_all_have_what_the_first_is_told(self):
        """Values, states and refusals are those of all, though the flock changes the values and the sidecar dies."""
        path = os.path.join(self.folder.name, "training.pt")
        scenes = {
            "drifting": {"join": {"drift": 0.5, "quantum": 3, "steps": 12}},
            "without ddp": {"ddp": False, "join": {"ranks": True, "every": 1, "steps": 12}},
            "overlapping": {"join": {"overlap": True, "drift": 0.5, "every": 2, "steps": 12}},
            "killed": {"kills": 4, "join": {"every": 2}},
            "not finite": {"spoils": 4, "join": {"every": 2}},
            "unknown": {"join": {"unknown": "x"}},
            "no program": {"join": {"binary": "/nowhere/gossipnode"}},
            "saved": {"steps": 7, "save": path, "join": {"every": 3}},
            "resumed": {"steps": 0, "join": {"resume": path}},
        }
        ranks = self.said(self.peer("p", *scenes.values(), world=3))
        self.assertEqual([len(said) for said in ranks], [len(scenes)] * 3)
        of = {}
        for name, said in zip(scenes, zip(*ranks)):
            with self.subTest(name):
                of[name] = said[0]
                histories = [one.pop("history", 0) for one in said]
                self.assertIn([one.pop("key", None) for one in said], ([True, False, False], [None] * 3))
                if name == "without ddp":  # each has the gradients of its own batches: the first's values are those of all
                    self.assertNotEqual(said[0].pop("momentum"), said[1].pop("momentum"))
                    said[2].pop("momentum")
                self.assertEqual(said[0], said[1])
                self.assertEqual(said[0], said[2])
                self.assertEqual(histories[1:], [0, 0])
                self.assertEqual(histories[0] > 0, "refused" not in said[0])
        for name, steps in {"drifting": 12, "without ddp": 12, "overlapping": 14, "killed": 18, "saved": 7, "resumed": 7}.items():  # an answer that overlaps is heeded two steps later; of the killed, 2 were not handed over
            self.assertEqual(of[name]["state"]["steps"], steps, name)
        for name, words in {"not finite": "notfinite", "unknown": "no flag --unknown", "no program": "no program"}.items():
            self.assertIn(words, of[name]["refused"])
        self.assertEqual((of["saved"]["saved"], of["saved"]["momentum"]), (of["resumed"]["values"], of["resumed"]["momentum"]))

    def test_a_process_that_dies_ends_the_peer(self):
        """Whether it is the one with the sidecar or not, in a commit of every step or between two: all end, with a
        clear error, and the sidecar."""
        for every, dies in ((1, 0), (1, 1), (100, 1)):
            with self.subTest(every=every, dies=dies):
                processes = self.peer(f"p{every}{dies}", {"dies": [dies, 5], "steps": 10 ** 6, "join": {"every": every}})
                out, err = self.ended(processes[1 - dies], 1)
                self.assertRegex(err, "RankLost: another process of this peer has died.*start all its processes again")
                self.ended(processes[dies], -9)
                if dies == 1:
                    self.assertFalse(running(int(out[0])))

    def test_a_process_that_dies_before_it_joins(self):
        first, second = self.peer("p", {"absent": 1, "join": {}})
        self.assertIn("RankLost", self.ended(first, 1)[1])

    def test_one_that_fails_alone_ends_the_peer(self):
        first, second = self.peer("p", {"stumbles": [1, 5], "steps": 10 ** 6, "join": {"every": 1}})
        self.assertIn("of this process alone", self.ended(second, 1)[1])
        self.assertIn("RankLost", self.ended(first, 1)[1])

    def test_an_optimizer_that_one_forgets(self):
        """It would go on without the momentum that the others have: it is refused, and so the peer ends."""
        path = os.path.join(self.folder.name, "training.pt")
        first, second = self.peer("p", {"steps": 2, "save": path, "join": {}}, {"forgets": 1, "join": {"resume": path}})
        self.assertIn("the file has the state of an optimizer: give join the optimizer=", self.ended(second, 1)[1])
        self.assertIn("RankLost", self.ended(first, 1)[1])

    def test_steps_that_differ(self):
        for process in self.peer("p", {"early": [1, 1], "ddp": False, "steps": 10 ** 6, "join": {"ranks": True, "every": 4}}):
            self.assertRegex(self.ended(process, 1)[1], r"RankLost: the processes of this peer have made \[4, 1\] steps since the last commit: all have to call")


@unittest.skipUnless(REAL, "the variable GOSSIPNODE names no program")
class WithTheRealBridge(Case):
    binary = REAL

    def two(self, **of_second):
        """Two peers of two processes, which have met."""
        scene = {"join": {"members": 2, "steps": 400, "final": "merge"}, "steps": 10 ** 6}
        first = self.peer("first", {**scene})
        address = next(line for line in first[0].stderr if "others join" in line).split()[-1]
        return first, self.peer("second", {**scene, "join": {**scene["join"], "peers": address}, **of_second})

    def test_two_peers_of_two_processes(self):
        first, second = self.two()
        said = [scenes[0] for scenes in self.said([*second, *first])]
        self.assertEqual(said[0]["values"], said[1]["values"])
        self.assertEqual(said[2]["values"], said[3]["values"])
        for one in said:
            self.assertTrue(one["state"]["over"] and one["state"]["joined"] and one["state"]["merged"], one)

    def test_a_process_of_one_dies(self):
        """Its peer ends, and the other one trains on to its end."""
        first, second = self.two(dies=[1, 40])
        out, err = self.ended(second[0], 1)
        self.assertIn("RankLost", err)
        self.assertFalse(running(int(out[0])))
        self.ended(second[1], -9)
        for one, in self.said(first):
            self.assertTrue(one["state"]["over"] and one["state"]["joined"], one)


if __name__ == "__main__":
    unittest.main()
