#!/usr/bin/env python3
"""Writes a wheel of the package with the program gossipnode in it, for make wheel: a zip of files
with their hashes. The same files give the same bytes."""

import argparse
import base64
import hashlib
import os
import re
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PLATFORMS = {  # the program is static: it runs with either C library
    "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin/arm64": "macosx_11_0_arm64",
    "darwin/amd64": "macosx_10_15_x86_64",
}
METADATA = """Metadata-Version: 2.1
Name: gossipnode
Version: {version}
Summary: Train a PyTorch model together with others, each on its own data, without a server
License: Apache-2.0
Author: The Murmuration maintainers
Home-page: https://github.com/seed-97356399/murmuration
Requires-Python: >=3.9
Description-Content-Type: text/markdown

"""
WHEEL = "Wheel-Version: 1.0\nGenerator: murmuration\nRoot-Is-Purelib: false\n"


def version_of(described: str) -> str:
    """git describe's words as a version of Python packages: v1.2.0-3-gabc-dirty is 1.2.0.post3+gabc.dirty. The
    Makefile's word for a clone without tags, v1.2.0-dev-gabc, is 1.2.0.dev0+gabc."""
    words, dirty, _ = described.partition("-dirty")
    parts = re.fullmatch(r"v(\d+(?:\.\d+)*)(?:-(\d+|dev)-(g[0-9a-f]+))?", words)
    release, commits, revision = parts.groups() if parts else ("0", None, "g" + words.replace("-", "."))
    local = ".".join(filter(None, [revision, dirty.lstrip("-")]))
    commits = "" if not commits else ".dev0" if commits == "dev" else f".post{commits}"
    return release + commits + (f"+{local}" if local else "")


def write(binary: str, platform: str, described: str, folder: str) -> str:
    version, tags = version_of(described), PLATFORMS[platform]
    info = f"gossipnode-{version}.dist-info"
    files = {f"gossipnode/{name}": read(HERE, "gossipnode", name)
             for name in sorted(os.listdir(os.path.join(HERE, "gossipnode"))) if name.endswith((".py", ".typed"))}
    program = f"gossipnode-{version}.data/scripts/gossipnode"
    files[program] = read(binary)
    files[f"{info}/LICENSE"] = read(HERE, "..", "..", "LICENSE")
    files[f"{info}/METADATA"] = METADATA.format(version=version).encode() + read(HERE, "README.md")
    files[f"{info}/WHEEL"] = (WHEEL + "".join(f"Tag: py3-none-{tag}\n" for tag in tags.split("."))).encode()
    record = f"{info}/RECORD"
    digests = {name: base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=") for name, content in files.items()}
    files[record] = "".join([*(f"{n},sha256={d},{len(files[n])}\n" for n, d in digests.items()), f"{record},,\n"]).encode()

    path = os.path.join(folder, f"gossipnode-{version}-py3-none-{tags}.whl")
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # modes are those of Unix
            entry.external_attr = (0o100755 if name == program else 0o100644) << 16
            wheel.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
    return path


def read(*path: str) -> bytes:
    with open(os.path.join(*path), "rb") as file:
        return file.read()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True, help="the program, built for the platform")
    parser.add_argument("--platform", required=True, choices=PLATFORMS)
    parser.add_argument("--version", required=True, help="as git describe has it")
    parser.add_argument("--folder", default="dist")
    options = parser.parse_args()
    print(write(options.binary, options.platform, options.version, options.folder))
