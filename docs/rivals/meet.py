"""How the processes of a run meet: by files in one folder, and settings in the variable RIVALS."""

import json
import os
import signal
import time


def settings():
    return json.loads(os.environ["RIVALS"])


def marked(folder, *names):
    return all(os.path.exists(os.path.join(folder, name)) for name in names)


def mark(folder, name, text=""):
    with open(os.path.join(folder, name + ".part"), "w") as file:
        file.write(text)
    os.rename(os.path.join(folder, name + ".part"), os.path.join(folder, name))


def await_mark(folder, name):
    while not marked(folder, name):
        time.sleep(0.01)
    with open(os.path.join(folder, name)) as file:
        return file.read()


def tree(pid):
    """The ids of a process and all that it has started."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [pid] + [below for child in file.read().split() for below in tree(int(child))]


def kill_tree(root):
    """Kills a process and all that it has started without warning, this one last."""
    for pid in sorted(tree(root), key=lambda pid: pid == os.getpid()):
        os.kill(pid, signal.SIGKILL)
