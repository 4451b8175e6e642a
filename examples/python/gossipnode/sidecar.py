"""The other process: where the program gossipnode is, how it is started, how it ends."""

import contextlib
import fcntl
import logging
import mmap
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import weakref
from typing import IO, Any, Callable, Optional, TypeVar, Union

from .protocol import Connection, Lost

Path = Union[str, "os.PathLike[str]"]
Log = Union[None, Path, IO[Any], int]
T = TypeVar("T")

logger = logging.getLogger("gossipnode")


def find(binary: Optional[Path] = None) -> str:
    """The path of the program gossipnode: the argument, the variable GOSSIPNODE, the scripts
    of this Python, or the PATH."""
    if named := binary or os.environ.get("GOSSIPNODE"):
        if path := shutil.which(os.path.expanduser(os.fspath(named))):
            return path
        raise FileNotFoundError(f"no program {named!r}: binary= or GOSSIPNODE has to name an executable file")
    scripts = [os.path.dirname(sys.executable), sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    if path := shutil.which("gossipnode", path=os.pathsep.join(filter(None, scripts))) or shutil.which("gossipnode"):
        return path
    raise FileNotFoundError("the program gossipnode is not here: install the wheel of this platform, "
                            "or build ./examples/gossipnode and name it by binary= or the variable GOSSIPNODE")


class Memory(mmap.mmap):
    """float32 values that the trainer shares with its sidecar. It is unmapped when the last view of
    it has gone, and never before: a model goes on working on it when the flock is closed."""

    file: IO[bytes]  # what is mapped, for the sidecars
    before_unmapped: Optional[Callable[[], Any]] = None

    def __new__(cls, values: int) -> "Memory":
        size, sealed = 4 * max(values, 1), hasattr(os, "memfd_create")
        file = open(os.memfd_create("gossipnode", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "r+b", 0) if sealed else tempfile.TemporaryFile()
        os.ftruncate(file.fileno(), size)
        if sealed:  # F_ADD_SEALS: SEAL, SHRINK, GROW. Neither side can take the pages from the other
            fcntl.fcntl(file.fileno(), 1033, 1 | 2 | 4)
        memory = super().__new__(cls, file.fileno(), size)
        memory.file = file
        return memory

    def __del__(self) -> None:
        if self.before_unmapped:
            self.before_unmapped()
        self.file.close()


def relay(sock: socket.socket) -> None:
    """Hands what a sidecar writes on standard error to the logger, until it has ended."""
    with sock, sock.makefile(encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            if said := re.fullmatch(r"[\d:]+ +(debug|info|warn|error) +(.*)\n?", line):
                logger.log(getattr(logging, said[1].upper()), "%s", said[2])
            else:
                logger.warning("%s", line.rstrip("\n"))


class Sidecar:
    """A running `gossipnode bridge` and the connection to it. It ends when the connection does,
    and so when this process dies, however that happens."""

    process: "Optional[subprocess.Popen[bytes]]" = None
    _relay: Optional[threading.Thread] = None

    def start(self, binary: Optional[Path], memory: Memory, log: Log) -> None:
        self.program = find(binary)
        ours, theirs = socket.socketpair()
        self.connection, self.owner = Connection(ours), os.getpid()
        opened: Any = open(log, "ab") if isinstance(log, (str, os.PathLike)) else contextlib.nullcontext(log)
        if log is None:
            said, opened = socket.socketpair()
            Connection._open.add(said)
            self._relay = threading.Thread(target=relay, args=(said,), name="gossipnode's log", daemon=True)
            self._relay.start()
        with theirs, opened as errors:
            self.process = subprocess.Popen(
                [self.program, "bridge", "--control-fd", str(theirs.fileno()), "--memory-fd", str(memory.file.fileno())],
                start_new_session=True,  # Ctrl-C is for the trainer, whose end lets the peer leave in order
                pass_fds=(theirs.fileno(), memory.file.fileno()),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)

    def end(self, patience: float = 60.0) -> Optional[int]:
        """Ends the conversation and waits until the process has left its flock in good order; its exit code. One that takes
        longer than so many seconds is ended. A forked child has no part in it."""
        if self.process is None or os.getpid() != self.owner:
            return None
        self.connection.close()
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            return None
        finally:  # a second Ctrl-C too
            self.process.kill()  # does nothing to one that has gone
            self.process.wait()
            if self._relay:
                self._relay.join(1)  # its last words

    def hear(self, op: str, act: Callable[[Connection], T]) -> T:
        """What the process says by the connection; Lost tells what became of it if that has ended."""
        try:
            return act(self.connection)
        except OSError as err:
            code = self.end(patience=5)
            how = "had to be ended" if code is None else f"ended with {'signal' if code < 0 else 'exit code'} {abs(code)}"
            raise Lost(f"{op}: {err}; the sidecar {self.program} {how} (what it has logged tells more); "
                       "the model is intact: join again to go on") from err
