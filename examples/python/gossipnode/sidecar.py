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
from typing import IO, Any, Callable, Optional, Union

from .protocol import Connection, Lost

Log = Union[None, str, "os.PathLike[str]", IO, int]

logger = logging.getLogger("gossipnode")

# A sidecar whose trainer has gone leaves its flock in good order; one that takes longer is ended.
PATIENCE = 60.0


def find(binary: "Optional[Union[str, os.PathLike[str]]]" = None) -> str:
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


class Map(mmap.mmap):
    """A mapping that something may have to be done before the end of."""

    before_unmapped: Optional[Callable[[], Any]] = None

    def __del__(self) -> None:
        if self.before_unmapped:
            self.before_unmapped()


class Memory:
    """float32 values that the trainer shares with its sidecar. It is unmapped when the last view of
    it has gone, and never before: a model goes on working on it when the flock is closed."""

    def __init__(self, values: int):
        size, sealed = 4 * max(values, 1), hasattr(os, "memfd_create")
        if sealed:
            self.fd = os.memfd_create("gossipnode", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        else:
            with tempfile.TemporaryFile() as file:  # has no name any more
                self.fd = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.fd)
        os.ftruncate(self.fd, size)
        if sealed:  # F_ADD_SEALS: SEAL, SHRINK, GROW. Neither side can take the pages from the other
            fcntl.fcntl(self.fd, 1033, 1 | 2 | 4)
        self.map = Map(self.fd, size)


class Relay(threading.Thread):
    """Hands what a sidecar writes on standard error to the logger, until it has ended."""

    def __init__(self) -> None:
        super().__init__(name="gossipnode's log", daemon=True)
        self._sock, self.theirs = socket.socketpair()
        Connection._open.add(self._sock)

    def run(self) -> None:
        rest = b""
        with self._sock:
            while piece := self._sock.recv(1 << 16):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    self._say(line)
        if rest:
            self._say(rest)

    def _say(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        if said := re.fullmatch(r"[\d:]+ +(debug|info|warn|error) +(.*)", text):
            logger.log(getattr(logging, said[1].upper()), "%s", said[2])
        else:
            logger.warning("%s", text)


class Sidecar:
    """A running `gossipnode bridge` and the connection to it. It ends when the connection does,
    and so when this process dies, however that happens."""

    process: "Optional[subprocess.Popen[bytes]]" = None

    def __init__(self, binary: "Optional[Union[str, os.PathLike[str]]]", memory: Memory, log: Log):
        self.program = find(binary)
        ours, theirs = socket.socketpair()
        self.connection, self.owner = Connection(ours), os.getpid()
        self._relay = Relay() if log is None else None
        opened: Any = open(log, "ab") if isinstance(log, (str, os.PathLike)) else contextlib.nullcontext(log)
        with theirs, self._relay.theirs if self._relay else opened as errors:
            self.process = subprocess.Popen(
                [self.program, "bridge", "--control-fd", str(theirs.fileno()), "--memory-fd", str(memory.fd)],
                start_new_session=True,  # Ctrl-C is for the trainer, whose end lets the peer leave in order
                pass_fds=(theirs.fileno(), memory.fd),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        if self._relay:
            self._relay.start()

    def end(self, patience: float = PATIENCE) -> Optional[int]:
        """Ends the conversation and waits until the process has gone; its exit code. A forked child has no part in it."""
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

    def hear(self, op: str, act: Callable[[Connection], Any]) -> Any:
        """What the process says by the connection; Lost tells what became of it if that has ended."""
        try:
            return act(self.connection)
        except OSError as err:
            code = self.end(patience=5)
            how = "had to be ended" if code is None else f"ended with {'signal' if code < 0 else 'exit code'} {abs(code)}"
            raise Lost(f"{op}: {err}; the sidecar {self.program} {how} (what it has logged tells more); "
                       "the model is intact: join again to go on") from err

    heard = hear  # the same in all processes of the peer, which here is this one
