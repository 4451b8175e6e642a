"""The examples, with small settings: they need torch, the program, and MNIST in ../shared/data
beside the repository (or in the folder that MNIST names)."""

import os
import re
import subprocess
import sys
import unittest

try:
    import torch  # noqa: F401
except ImportError as absent:
    raise unittest.SkipTest(f"torch is not here: {absent}")

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
MNIST = os.environ.get("MNIST", os.path.join(PACKAGE, "..", "..", "..", "shared", "data", "mnist"))


def start(example, *arguments):
    environment = {**os.environ, "PYTHONPATH": PACKAGE, "OMP_NUM_THREADS": "1"}
    script = example if example == "-c" else os.path.join(PACKAGE, "examples", example)
    return subprocess.Popen([sys.executable, script, *arguments], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@unittest.skipUnless(os.environ.get("GOSSIPNODE"), "the variable GOSSIPNODE names no program")
class Examples(unittest.TestCase):
    def ended(self, process):
        self.addCleanup(process.kill)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        return out

    def number(self, words, text):
        return float(re.search(words + r" (\d+\.\d+)", text).group(1))

    @unittest.skipUnless(os.path.isdir(MNIST), "MNIST is not here")
    def test_mnist(self):
        first = start("mnist.py", "--data", MNIST, "--part", "0/2", "--steps", "1500", "--listen", "127.0.0.1:0", "--min-peers", "2")
        self.addCleanup(first.kill)
        address = first.stdout.readline().split()[-1]
        second = start("mnist.py", "--data", MNIST, "--part", "1/2", "--steps", "1500", "--listen", "127.0.0.1:0", "--peers", address)
        said = [self.ended(second), self.ended(first)]
        for text in said:
            self.assertGreater(self.number("accuracy", text), 0.93)
        self.assertIn("of 2 members", "".join(said))  # the other of them has left first

    def test_the_page(self):
        """What README.md shows runs: the first waits for the second, and tells what that joins."""
        with open(os.path.join(PACKAGE, "README.md")) as page:
            code = page.read().split("```python")[1].split("```")[0].replace("100_000", "40")
        first = start("-c", code)
        self.addCleanup(first.kill)
        waits = next(line for line in first.stderr if "others join" in line)
        self.assertIn("1 of 2 members are here", waits)
        for said in (self.ended(start("-c", code, waits.split()[-1])), self.ended(first)):
            self.assertRegex(said, "over=True.*joined=True")

    def test_text(self):
        said = self.ended(start("text.py", os.path.join(PACKAGE, "README.md"), "--steps", "30"))
        self.assertLess(self.number("loss", said), 4.7)  # 5.5 to begin with

    @unittest.skipUnless(os.path.isdir(MNIST), "MNIST is not here")
    def test_lora(self):
        said = self.ended(start("lora.py", "--data", MNIST, "--steps", "200", "--listen", "127.0.0.1:0"))
        self.assertGreater(self.number("accuracy", said), self.number("upside down,", said) + 0.1)

    @unittest.skipUnless(os.path.isdir(MNIST), "MNIST is not here")
    def test_mixed(self):
        said = self.ended(start("mixed.py", "--data", MNIST, "--steps", "3000"))
        accuracies = [float(a) for a in re.findall(r"accuracy (\d+\.\d+)", said)]
        self.assertEqual(len(accuracies), 4, said)
        self.assertGreater(min(accuracies), 0.93)
        self.assertLess(max(accuracies) - min(accuracies), 0.002)


if __name__ == "__main__":
    unittest.main()
