"""What a trainer sees of its flock, with the standard library alone: with the fake bridge always,
and with the real one where the variable GOSSIPNODE names it."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from array import array
from unittest import mock

import gossipnode
from gossipnode import protocol, sidecar

FAKE = os.path.join(os.path.dirname(__file__), "fake_bridge.py")
REAL = os.environ.get("GOSSIPNODE")


def model():
    return {"0.weight": memoryview(array("f", range(6))).cast("B").cast("f", (2, 3)), "0.bias": array("f", [7, 8])}


def values(flock):
    return {name: memoryview(a).cast("B").cast("f").tolist() for name, a in flock.arrays.items()}


def gone(process, within=30.0):
    end = time.monotonic() + within
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    return process.poll() is not None


class Case(unittest.TestCase):
    binary = FAKE

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.log = os.path.join(self.folder.name, "log")

    def join(self, of=None, **options):
        if self.binary != FAKE:
            options.setdefault("listen", "127.0.0.1:0")
        flock = gossipnode.join(model() if of is None else of, binary=self.binary, log=self.log, **options)
        self.addCleanup(flock._end)
        return flock


class WithAnyBridge:
    """What both bridges do."""

    def test_alone(self):
        with self.join(run="digits", every=3) as flock:
            self.assertEqual((flock.start, flock.state.members, flock.state.over), ("founder", 1, False))
            self.assertTrue(flock.address in flock.addresses)
            for n in range(1, 7):
                for a in flock.arrays.values():
                    a = memoryview(a).cast("B").cast("f")
                    for i in range(len(a)):
                        a[i] += 1
                state = flock.step(samples=4, loss=0.5)
                self.assertEqual(state.steps, n // 3 * 3)
            self.assertEqual(values(flock), {"0.weight": [6, 7, 8, 9, 10, 11], "0.bias": [13, 14]})
            self.assertEqual(flock.stats()["steps"], 6)
            process = flock._sidecar.process
        self.assertEqual(process.returncode, 0)
        self.assertEqual(values(flock)["0.bias"], [13, 14])
        flock.close()
        with self.assertRaises(gossipnode.Refused) as refused:
            flock.step()
        self.assertEqual(refused.exception.code, "closed")

    def test_over_ends_the_run(self):
        with self.join(every=1, steps=3) as flock:
            for _ in range(1000):
                if flock.step().over:
                    break
            self.assertEqual((flock.state.over, flock.state.progress), (True, 1))

    def test_close_commits_what_is_left(self):
        flock = self.join(every=100)
        memoryview(flock.arrays["0.bias"]).cast("B").cast("f")[0] = 100
        flock.step()
        self.assertEqual(flock.close().steps, 1)
        self.assertEqual(values(flock)["0.bias"], [100, 8])

    def test_refusals_change_nothing(self):
        with self.join(every=1) as flock:
            bias = memoryview(flock.arrays["0.bias"]).cast("B").cast("f")
            bias[0] = float("nan")
            with self.assertRaises(gossipnode.Refused) as refused:
                flock.step(loss=float("nan"))
            self.assertEqual((refused.exception.code, refused.exception.fatal), ("notfinite", False))
            bias[0] = 9
            self.assertEqual(flock.step().steps, 2)  # the step that was refused is there

    def test_a_setting_that_is_none(self):
        with self.assertRaises(gossipnode.Refused) as refused:
            self.join(unknown="x")
        self.assertEqual(refused.exception.code, "settings")
        self.assertTrue(refused.exception.remedy)

    def test_a_dead_sidecar_is_restarted(self):
        flock = self.join(every=1)
        first = flock._sidecar.process
        memoryview(flock.arrays["0.bias"]).cast("B").cast("f")[0] = 50
        os.kill(first.pid, signal.SIGKILL)
        with self.assertWarnsRegex(UserWarning, "another sidecar is started.*signal 9"):
            flock.step()
        self.assertNotEqual(flock._sidecar.process.pid, first.pid)
        self.assertEqual(flock.step().steps, 1)
        self.assertEqual(values(flock)["0.bias"], [50, 8])
        flock.close()
        self.assertIsNotNone(first.returncode)

    def test_a_dead_sidecar_raises(self):
        flock = self.join(every=1, on_lost="raise")
        flock._sidecar.process.kill()
        with self.assertRaisesRegex(gossipnode.Lost, "signal 9.*intact"):
            flock.step()
        self.assertEqual(values(flock)["0.bias"], [7, 8])

    def test_a_dead_sidecar_leaves_alone(self):
        flock = self.join(every=1, on_lost="alone")
        flock._sidecar.process.kill()
        with self.assertWarnsRegex(UserWarning, "goes on alone"):
            flock.step()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertFalse(flock.step().over)
            self.assertEqual(flock.stats(), {})
        with self.assertRaises(gossipnode.Lost):
            flock.save(os.path.join(self.folder.name, "m"))
        flock.close()

    def test_an_exception_ends_the_sidecar_without_a_commit(self):
        with self.assertRaises(KeyboardInterrupt), self.join(every=100) as flock:
            process = flock._sidecar.process
            flock.step()
            raise KeyboardInterrupt
        self.assertEqual(process.returncode, 1)

    def test_a_forgotten_flock_ends_the_sidecar(self):
        flock = gossipnode.join(model(), binary=self.binary, log=self.log)
        process = flock._sidecar.process
        del flock
        gc.collect()
        self.assertTrue(gone(process))

    def test_a_killed_trainer_leaves_no_sidecar(self):
        with open(self.log, "ab") as log:
            trainer = subprocess.Popen([sys.executable, "-c", f"""
import gossipnode, os, sys
from array import array
flock = gossipnode.join({{"a": array("f", [1])}}, binary={self.binary!r})
if os.fork() == 0:
    import time; time.sleep(60)  # a worker, which lives on
print(flock._sidecar.process.pid, flush=True)
sys.stdin.read()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True, env={**os.environ, "TMPDIR": self.folder.name})
        pid = int(trainer.stdout.readline())
        trainer.kill()
        try:
            end = time.monotonic() + 30
            while running(pid) and time.monotonic() < end:
                time.sleep(0.01)
            self.assertFalse(running(pid))
        finally:
            os.killpg(trainer.pid, signal.SIGKILL)  # the worker
            trainer.communicate()

    def test_a_forked_child_has_no_part_in_it(self):
        with self.join(every=1) as flock:
            if (child := os.fork()) == 0:
                code = 1
                try:
                    flock.step()
                except RuntimeError as err:
                    code = 0 if "process" in str(err) else 2
                finally:
                    flock._sidecar.end()  # which is not its own
                    os._exit(code)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(flock.step().steps, 1)

    def test_a_forked_child_keeps_no_socket_open(self):
        """Neither the conversation's nor the log's, which a thread of the parent reads: else a worker keeps the sidecar alive."""
        flock = gossipnode.join(model(), binary=self.binary, **({} if self.binary == FAKE else {"listen": "127.0.0.1:0"}))
        descriptors = [sock.fileno() for sock in protocol.Connection._open if sock.fileno() >= 0]
        self.assertGreaterEqual(len(descriptors), 2)
        if (child := os.fork()) == 0:
            os._exit(sum(os.path.exists(f"/dev/fd/{n}") for n in descriptors))
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        flock.close()

    def test_a_file_where_there_is_no_memfd(self):
        with mock.patch.object(os, "memfd_create", None, create=True), mock.patch.object(sidecar, "hasattr", lambda *_: False, create=True):
            flock = self.join(every=1)
        memoryview(flock.arrays["0.bias"]).cast("B").cast("f")[0] = 3
        self.assertEqual(flock.step().steps, 1)
        flock.close()
        self.assertEqual(values(flock)["0.bias"], [3, 8])


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class WithTheFakeBridge(WithAnyBridge, Case):
    def test_what_others_do_arrives(self):
        with self.join(drift=0.5, quantum=2, peers="192.0.2.9:4001") as flock:
            self.assertEqual((flock.start, flock.address), ("joined", "/ip4/192.0.2.7/tcp/1/p2p/fake"))
            before = values(flock)["0.bias"]
            flock.step()
            self.assertEqual(values(flock)["0.bias"], before)
            flock.step()
            self.assertEqual(values(flock)["0.bias"], [7.5, 8.5])

    def test_a_sidecar_that_dies_in_a_commit(self):
        flock = self.join(every=1, **{"dies-at": 2})
        memoryview(flock.arrays["0.bias"]).cast("B").cast("f")[0] = 50
        flock.step()
        with mock.patch.dict(os.environ, resumed="1"), self.assertWarns(UserWarning):
            flock.step()
        self.assertEqual(values(flock)["0.bias"], [50, 8])
        flock.close()

    def test_sidecars_that_always_die(self):
        flock = self.join(every=1, **{"dies-at": 1})
        with warnings.catch_warnings(record=True) as told, self.assertRaises(gossipnode.Lost):
            warnings.simplefilter("always")
            flock.step()
        self.assertEqual(len(told), 3)

    def test_a_signal_in_a_commit(self):
        flock = self.join(every=1, drift=1)
        read = flock._sidecar.connection._read
        with mock.patch.object(flock._sidecar.connection, "_read", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                flock.step()
        self.assertEqual(flock._sidecar.connection._owed, 1)
        self.assertEqual(flock.step().steps, 2)
        self.assertEqual(values(flock)["0.bias"], [9, 10])
        flock.close()

    def test_a_signal_while_a_commit_is_sent(self):
        flock = self.join(every=1)
        connection = flock._sidecar.connection
        cut = mock.Mock(wraps=connection._sock, **{"sendall.side_effect": KeyboardInterrupt})
        with mock.patch.object(connection, "_sock", cut), self.assertRaises(KeyboardInterrupt):
            flock.step()
        with self.assertWarnsRegex(UserWarning, "another sidecar"):
            flock.step()
        self.assertEqual(flock.step().steps, 1)
        flock.close()

    def test_a_sidecar_that_dies_before_the_last_commit(self):
        flock = self.join(every=100)
        flock.step()
        flock.step()
        flock._sidecar.process.kill()
        with self.assertWarnsRegex(UserWarning, "without the last 2 steps: .*commit"):
            flock.close()

    def test_refused_by_the_flock(self):
        with self.assertRaises(gossipnode.Refused) as refused:
            self.join(run="another")
        self.assertEqual((refused.exception.code, refused.exception.remedy, refused.exception.fatal), ("run", "take its layout", True))

    def test_others_are_waited_for(self):
        with self.assertLogs("gossipnode", "WARNING") as told:
            flock = self.join(members=2, timeout=60, **{"met-at": 3})
        self.assertEqual((flock.state.members, flock.state.joined, flock.state.steps), (2, True, 0))
        self.assertRegex(told.output[0], "1 of 2 members are here; others join /ip4/192.0.2.7")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            flock.close()

    def test_others_who_do_not_come(self):
        with self.assertLogs("gossipnode"), self.assertRaisesRegex(TimeoutError, "1 of 2 members are here after 0.2 seconds: start the others"):
            self.join(members=2, timeout=0.2)
        self.assertFalse([flock for flock in gossipnode.Flock._all if not flock._closed])

    def test_who_was_met_stays_so(self):
        flock = self.join(every=1, **{"met-at": 1, "dies-at": 2})
        self.assertTrue(flock.step().joined)
        with mock.patch.dict(os.environ, resumed="1"), self.assertWarns(UserWarning):
            self.assertTrue(flock.step().joined)  # another life, which has met nobody yet
        flock.close()

    def test_nobody_was_met(self):
        flock = self.join(peers="127.0.0.1:1")
        self.assertFalse(flock.step().joined)
        with self.assertWarnsRegex(UserWarning, "nobody else was ever met"):
            flock.close()

    def test_a_flock_in_words(self):
        flock = self.join(run="digits", every=1, steps=4, **{"met-at": 1})
        flock.step()
        self.assertEqual(repr(flock), "<gossipnode.Flock 'digits': 2 members, 1 steps, 25% of the run>")
        flock.close()
        self.assertIn("closed", repr(flock))

    def test_what_the_sidecar_says_is_logged(self):
        with self.assertLogs("gossipnode", "INFO") as told:
            flock = gossipnode.join(model(), binary=FAKE, **{"says": "12:00:00  info  a trainer has come\n12:00:01  error  all is lost  {}\nTraceback"})
            flock.close()
        self.assertEqual(told.output, ["INFO:gossipnode:a trainer has come", "ERROR:gossipnode:all is lost  {}", "WARNING:gossipnode:Traceback"])

    def test_merge(self):
        self.assertTrue(self.join(final="merge").close(merge=True).merged)
        flock = self.join()
        with self.assertWarnsRegex(UserWarning, 'final="merge"'):
            self.assertFalse(flock.close(merge=True).merged)

    def test_save(self):
        with self.join(every=100) as flock:
            flock.step()
            path = os.path.join(self.folder.name, "model")
            flock.save(path)
            self.assertTrue(os.path.exists(path))
            self.assertEqual(flock.state.steps, 1)
            with self.assertRaisesRegex(ValueError, "with a torch module only"):
                flock.save(path, optimizer=object())
        with self.assertRaisesRegex(ValueError, "keep flock.standing beside arrays"):
            self.join(resume=path)


class Models(Case):
    def refused(self, of, words):
        with self.assertRaisesRegex(gossipnode.Refused, words) as refused:
            self.join(of)
        self.assertEqual(refused.exception.code, "layout")
        self.assertTrue(refused.exception.remedy)

    def test_what_is_no_model(self):
        self.refused({"a": array("d", [1])}, "convert it to float32")
        self.refused({"a": [1.0]}, "a is a list")
        self.refused([1.0], "type list")
        self.refused({}, "no parameter")

    def test_arguments(self):
        for bad in ({"every": 0}, {"every": 70000}, {"on_lost": "cry"}, {"buffers": "x"}):
            with self.assertRaises(ValueError):
                self.join(**bad)
        for name, bad in {"run": 5, "peers": 5, "listen": [4001], "members": "2", "timeout": "long", "codec": 8, "every": 1.5, "binary": 1, "steps": object()}.items():
            with self.assertRaisesRegex(TypeError, f"^{name}="):
                gossipnode.join(model(), **{"binary": FAKE, name: bad})
        flock = self.join(every=100)
        for name, bad in {"samples": "32", "loss": array("f", [1, 2])}.items():
            with self.assertRaisesRegex(TypeError, f"^{name} "):
                flock.step(**{name: bad})
        flock.step(samples=1, loss=0.5)
        self.assertEqual(flock.close().steps, 1)  # those that were refused do not count


class Programs(Case):
    def test_where_it_is_looked_for(self):
        with mock.patch.dict(os.environ, GOSSIPNODE=FAKE):
            self.assertEqual(sidecar.find(), FAKE)
            self.assertEqual(sidecar.find(sys.executable), sys.executable)
        with mock.patch.dict(os.environ, GOSSIPNODE="/nowhere/gossipnode"):
            with self.assertRaisesRegex(FileNotFoundError, "binary= or GOSSIPNODE"):
                sidecar.find()
        environment = {k: v for k, v in os.environ.items() if k != "GOSSIPNODE"}
        with mock.patch.dict(os.environ, {**environment, "PATH": self.folder.name}, clear=True):
            with mock.patch.object(sys, "executable", os.path.join(self.folder.name, "bin", "python3")), \
                    mock.patch.object(sidecar.sysconfig, "get_path", lambda *_: None):
                with self.assertRaisesRegex(FileNotFoundError, "install the wheel"):
                    sidecar.find()
                for folder in (self.folder.name, os.path.join(self.folder.name, "bin")):  # the latter comes first
                    os.makedirs(folder, exist_ok=True)
                    os.symlink(FAKE, os.path.join(folder, "gossipnode"))
                    self.assertEqual(sidecar.find(), os.path.join(folder, "gossipnode"))

    def test_one_that_is_no_bridge(self):
        for program in ("true", "false"):
            with self.assertRaisesRegex(gossipnode.Lost, "exit code"):
                gossipnode.join(model(), binary=program, log=self.log)
        with open(os.path.join(self.folder.name, "talker"), "w") as file:
            file.write('#!/bin/sh\necho what >&"$3"\nread gone <&"$3"\n')
        os.chmod(file.name, 0o755)
        with self.assertRaisesRegex(gossipnode.Lost, "no bridge.*what"):
            gossipnode.join(model(), binary=file.name, log=self.log)


@unittest.skipUnless(REAL, "the variable GOSSIPNODE names no program")
class WithTheRealBridge(WithAnyBridge, Case):
    binary = REAL

    def until(self, what, *flocks):
        end = time.monotonic() + 60
        while not what():
            self.assertLess(time.monotonic(), end)
            for flock in flocks:
                flock.step()
            time.sleep(0.005)

    def test_a_trainer_that_reads_no_log(self):
        """What the sidecar says to nobody does not end it."""
        read, write = os.pipe()
        os.close(read)
        flock = gossipnode.join(model(), binary=REAL, log=write, listen="127.0.0.1:0", log_level="debug")
        os.close(write)
        process = flock._sidecar.process
        flock.close()
        self.assertEqual(process.returncode, 0)

    def test_another_model(self):
        first = self.join(run="digits")
        with self.assertRaisesRegex(gossipnode.Refused, "first range that differs is \"0.bias\" .*number 2 of 2"):
            self.join({"0.weight": model()["0.weight"], "0.bias": array("f", [1, 2, 3])}, run="digits", peers=first.address)
        first.close()

    def test_two_meet_and_meet_again(self):
        """The first, whom the other has joined, dies: it is there again as the same peer, and finds its partner."""
        first = self.join(run="digits", every=1)
        second = self.join({"0.weight": memoryview(array("f", [10] * 6)).cast("B").cast("f", (2, 3)), "0.bias": array("f", [1, 2])},
                           run="digits", every=1, peers=first.address)
        self.until(lambda: first.state.members == second.state.members == 2, first, second)
        self.until(lambda: all(abs(a - b) < 1e-3 for a, b in zip(values(first)["0.weight"], values(second)["0.weight"])), first, second)
        where, name = first.address, first.addresses[0].rpartition("/")[2]
        first._sidecar.process.kill()
        with self.assertWarnsRegex(UserWarning, "another sidecar"):
            first.step()
        self.assertEqual((first.addresses[0].rpartition("/")[2], first.address), (name, where))
        self.until(lambda: first.state.members == 2 and first.stats()["exchanges"] > 0, first, second)
        for flock in (second, first):
            flock.close()


if __name__ == "__main__":
    unittest.main()
