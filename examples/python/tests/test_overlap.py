"""Torch models that train on while their steps are handed over."""

import signal
import unittest
import warnings
from unittest import mock

import gossipnode

from .test_torch import FAKE, OPTIMIZERS, REAL, Case, nn, perceptron, torch, train


class Overlap:
    def test_alone_is_plain_torch(self):
        """Bit for bit: what one alone has handed over comes back as it was."""
        for name, make in OPTIMIZERS.items():
            with self.subTest(name):
                plain = train(perceptron(), make, 60).state_dict()
                model = perceptron()
                with self.join(model, every=2, overlap=True) as flock:
                    self.assertFalse(any(p.data_ptr() == r.view.data_ptr() for p, r in zip(model.parameters(), flock._ranges)))
                    train(model, make, 60, flock)
                    self.assertEqual(flock.commit().steps, 60)
                for key, value in model.state_dict().items():
                    self.assertTrue(torch.equal(value, plain[key]), key)

    def test_small_steps_of_bfloat16(self):
        model = nn.Linear(4, 1, bias=False).bfloat16()
        nn.init.ones_(model.weight)
        with self.join(model, every=3, overlap=True) as flock:
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
            flock.attach(optimizer)
            for _ in range(100):
                model(torch.ones(1, 4, dtype=torch.bfloat16)).sum().backward()
                optimizer.step()
        self.assertTrue(torch.equal(model.weight, torch.full_like(model.weight, 0.99)), model.weight)

    def test_a_refusal_comes_later_and_loses_nothing(self):
        model = nn.Linear(2, 1, bias=False)
        nn.init.ones_(model.weight)
        with self.join(model, every=2, overlap=True) as flock:
            flock.step(samples=1)
            model.weight.data[0, 0] = float("nan")
            flock.step(samples=1)  # which begins the commit
            with self.assertRaises(gossipnode.Refused) as refused:
                flock.commit()
            self.assertEqual(refused.exception.code, "notfinite")
            model.weight.data[0, 0] = 3
            self.assertEqual(flock.commit().steps, 2)
            self.assertEqual(flock.stats()["steps"], 2)


class WithTheFakeBridge(Overlap, Case):
    binary = FAKE

    def count(self, model, **options):
        """Forty steps of 1, committed by threes, in a flock that adds 0.5 at each commit."""
        with self.join(model, every=3, overlap=True, drift=0.5, **options) as flock:
            for _ in range(40):
                with torch.no_grad():
                    for p in model.parameters():
                        p += 1
                flock.step()
        return flock

    def test_what_the_flock_changes_is_added(self):
        for dtype in (torch.float32, torch.bfloat16):
            model = nn.Linear(3, 2).to(dtype)
            for p in model.parameters():
                nn.init.zeros_(p)
            self.assertEqual(self.count(model).state.steps, 40)
            for p in model.parameters():  # 14 commits, the last of which is close's
                self.assertTrue(torch.equal(p, torch.full_like(p, 40 + 14 * 0.5)), p)

    def test_a_death_in_between(self):
        """The steps under way are in the values with which the next life begins."""
        model = nn.Linear(3, 2)
        for p in model.parameters():
            nn.init.zeros_(p)
        with mock.patch.dict("os.environ"), self.assertWarnsRegex(UserWarning, "another sidecar"):
            flock = self.count(model, **{"dies-at": 5})
        self.assertFalse(flock._posted)
        self.assertGreaterEqual(model.bias[0].item(), 40)  # each life of the fake dies at its fifth commit
        self.assertEqual(model.bias[0].item() % 0.5, 0)

    def test_a_signal_in_between(self):
        """It cuts the sending or the answer short: nothing is counted twice, and nothing is lost."""
        for method in ("post", "_read"):
            model = nn.Linear(1, 1, bias=False)
            nn.init.zeros_(model.weight)
            with self.join(model, every=1, overlap=True) as flock, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                flock._history.due = lambda: False  # a question for the history may be what is cut short, before the commit begins
                for step in range(6):
                    with torch.no_grad():
                        model.weight += 1
                    cut = mock.patch.object(type(flock._sidecar.connection), method, side_effect=KeyboardInterrupt)
                    if step == 3:
                        with cut, self.assertRaises(KeyboardInterrupt):
                            flock.step()
                    else:
                        flock.step()
                self.assertEqual(flock.commit().steps, {"post": 4, "_read": 6}[method])  # of another life two steps are in its first values alone
            self.assertEqual(model.weight.item(), 6)

    def test_a_death_before_the_last_commit(self):
        """What close says was lost: the steps under way, and those since."""
        flock = self.join(nn.Linear(1, 1), every=2, overlap=True)
        flock.step()
        flock._sidecar.process.send_signal(signal.SIGSTOP)
        flock.step()
        flock.step()
        flock._sidecar.process.kill()
        with self.assertWarnsRegex(UserWarning, "without the last 3 steps"):
            flock.close()

    def test_cuda_memory_is_pinned(self):
        """There is no GPU here: what CUDA would be told."""
        told = []
        class Cuda:
            def cudaHostRegister(self, address, size, flags):
                told.append((address, size))
                return 0

            def cudaHostUnregister(self, address):
                told.append(address)
        from gossipnode import layout, sidecar
        memory = sidecar.Memory(10)
        with mock.patch.object(torch.cuda, "cudart", Cuda):
            layout._pin(torch, memory, 4096)
        self.assertEqual(told, [(4096, 40)])
        del memory
        self.assertEqual(told[1:], [4096])

    def test_arrays_do_not_overlap(self):
        with self.assertRaisesRegex(ValueError, "overlap=True"):
            self.join({"w": memoryview(bytearray(8)).cast("f")}, overlap=True)


@unittest.skipUnless(REAL, "the variable GOSSIPNODE names no program")
class WithTheRealBridge(Overlap, Case):
    binary = REAL

    def test_two_have_one_sum(self):
        """Of two models that take steps of known size nothing is lost, and all of it is shared."""
        models = [nn.Linear(4, 3) for _ in range(2)]
        for m, start in zip(models, (0.0, 8.0)):
            nn.init.constant_(m.weight, start)
            nn.init.constant_(m.bias, start)
        first = self.join(models[0], run="sum", every=1, overlap=True)
        second = self.join(models[1], run="sum", every=1, overlap=True, peers=first.address)
        first.wait(2)
        second.wait(2)
        steps = 0
        while steps < 2000 and abs(models[0].weight[0, 0].item() - models[1].weight[0, 0].item()) > 0.5:
            for m, flock in zip(models, (first, second)):
                with torch.no_grad():
                    for p in m.parameters():
                        p += 2 ** -10
                flock.step()
            steps += 1
        self.assertLess(steps, 2000)
        for flock in (first, second):
            flock.commit()
        total = sum(m.weight[0, 0].item() for m in models)
        self.assertAlmostEqual(total, 8 + 2 * steps / 1024, delta=0.6)
        for flock in (second, first):
            flock.close()


if __name__ == "__main__":
    unittest.main()
