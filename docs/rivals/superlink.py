"""Flower's SuperLink, and the App handed to it once all SuperNodes may have come, as its guide to deployment does it."""

import os
import shutil
import socket
import subprocess
import time

import meet

folder = meet.settings()["folder"]
os.makedirs(f"{folder}/.flwr")
with open(f"{folder}/.flwr/config.toml", "w") as file:
    file.write('[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:8000"\ninsecure = true\n')
link = subprocess.Popen(["flower-superlink", "--insecure", "--disable-runtime-dependency-installation"])
while socket.socket().connect_ex(("127.0.0.1", 8000)):
    time.sleep(0.2)
app = shutil.copytree(os.path.dirname(os.path.abspath(__file__)) + "/flower", f"{folder}/app")
subprocess.run(["flwr", "run", app, "here"])
link.wait()
