"""The wheel: what is in it, that pip can install it, and that it is the same each time."""

import base64
import hashlib
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.dirname(__file__)))
import wheel  # noqa: E402

FAKE = os.path.join(os.path.dirname(__file__), "fake_bridge.py")


class Wheel(unittest.TestCase):
    def test_versions(self):
        for described, version in {
            "v1.2.0": "1.2.0", "v1.2.0-3-gabc123": "1.2.0.post3+gabc123", "v1.2.0-dirty": "1.2.0+dirty", "v1.2.0-dev-gabc123-dirty": "1.2.0.dev0+gabc123.dirty",
            "abc1234": "0+gabc1234", "4564797": "0+g4564797", "abc1234-dirty": "0+gabc1234.dirty", "v0.3-1-gabc-dirty": "0.3.post1+gabc.dirty",
        }.items():
            self.assertEqual(wheel.version_of(described), version)

    def test_is_complete_and_reproducible(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [wheel.write(FAKE, "linux/amd64", "v1.2.0", os.path.join(folder, n)) for n in "ab"]
            self.assertRegex(paths[0], r"gossipnode-1\.2\.0-py3-none-manylinux_2_17_x86_64\.manylinux2014_x86_64\.musllinux_1_1_x86_64\.whl$")
            with open(paths[0], "rb") as a, open(paths[1], "rb") as b:
                self.assertEqual(a.read(), b.read())
            with zipfile.ZipFile(paths[0]) as made:
                names = made.namelist()
                record = made.read("gossipnode-1.2.0.dist-info/RECORD").decode().splitlines()
                self.assertEqual([line.split(",")[0] for line in record], names)
                for name, hashed, size in (line.split(",") for line in record[:-1]):
                    content = made.read(name)
                    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                    self.assertEqual((hashed, size), (f"sha256={digest}", str(len(content))))
                self.assertIn("gossipnode/py.typed", names)
                metadata = made.read("gossipnode-1.2.0.dist-info/METADATA").decode()
                self.assertRegex(metadata, r"(?m)^Author: The Murmuration maintainers$")
                self.assertRegex(metadata, r"(?m)^Home-page: https://\S+/murmuration$")
                self.assertEqual(made.getinfo("gossipnode-1.2.0.data/scripts/gossipnode").external_attr >> 16, 0o100755)

    def test_installs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = wheel.write(FAKE, "linux/amd64", "v1.2.0", folder)
            pip = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--no-compile", "--prefix", folder, path],
                                 capture_output=True, text=True)
            if "No module named pip" in pip.stderr or "not a supported wheel" in pip.stderr or "externally-managed" in pip.stderr:
                self.skipTest(pip.stderr.strip())
            self.assertEqual(pip.returncode, 0, pip.stderr)
            installed = os.path.join(folder, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
            flock = subprocess.run([sys.executable, "-c", "import gossipnode; from array import array; from importlib.metadata import version; print(version('gossipnode'), "
                                    "gossipnode.join({'a': array('f', [1])}).close().members)"], cwd=folder, capture_output=True, text=True,
                                   env={"PATH": os.pathsep.join([os.path.join(folder, "bin"), os.environ["PATH"]]), "PYTHONPATH": installed})
            self.assertEqual(flock.stdout.strip(), "1.2.0 1", flock.stderr)


if __name__ == "__main__":
    unittest.main()
