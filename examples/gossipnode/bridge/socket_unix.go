//go:build unix

package bridge

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// socketMode lets in processes of the same user alone.
const socketMode = 0o600

// listenAlone listens at a socket that nobody else can connect to at any time. No other goroutine
// makes a file meanwhile: nobody is served yet.
func listenAlone(address *net.UnixAddr) (*net.UnixListener, error) {
	before := syscall.Umask(0o777 &^ socketMode)
	defer syscall.Umask(before)
	return net.ListenUnix("unix", address)
}

// Bounds of the first message of a trainer.
const (
	firstBytes     = 64 << 10
	mostDescriptor = 8 // descriptors in it, of which the first is the memory
)

// receive reads the first bytes of a trainer, and the descriptor that came with them.
func receive(conn *net.UnixConn) (first []byte, memory *os.File, err error) {
	first, rights := make([]byte, firstBytes), make([]byte, syscall.CmsgSpace(4*mostDescriptor))
	n, m, _, _, err := conn.ReadMsgUnix(first, rights)
	if err != nil {
		return nil, nil, fmt.Errorf("reading its first bytes: %w", err)
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:m])
	if err != nil {
		return nil, nil, fmt.Errorf("reading the descriptor of its memory: %w", err)
	}
	for i := range messages {
		descriptors, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			continue // something else of the socket's
		}
		for _, fd := range descriptors {
			if memory == nil {
				memory = os.NewFile(uintptr(fd), "memory")
			} else {
				_ = syscall.Close(fd)
			}
		}
	}
	return first[:n], memory, nil
}
