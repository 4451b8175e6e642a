//go:build unix

package bridge

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// socketMode allows only processes of the same user.
const socketMode = 0o600

// listenAlone listens at a socket to which other users can never connect. No other goroutine creates files at the
// same time, since no trainer is served yet.
func listenAlone(address *net.UnixAddr) (*net.UnixListener, error) {
	before := syscall.Umask(0o777 &^ socketMode)
	defer syscall.Umask(before)
	return net.ListenUnix("unix", address)
}

// Bounds of the first message of a trainer.
const (
	firstBytes     = 64 << 10
	mostDescriptor = 8 // descriptors in it; the first one is the memory
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
			continue // some other control message
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
