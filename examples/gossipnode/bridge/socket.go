package bridge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/bridge"
)

const (
	// firstTimeout bounds the wait for the first bytes of a connected trainer, and maxSilent the number of
	// connections that have sent none yet.
	firstTimeout = 10 * time.Second
	maxSilent    = 8
	// firstWait and longestWait bound the time until a connection is accepted again after an error that passes; it doubles.
	firstWait   = 5 * time.Millisecond
	longestWait = time.Second
)

// listen serves one trainer after another at a Unix socket, until ctx ends.
func listen(ctx context.Context, path string, s service) (err error) {
	listener, err := open(path)
	if err != nil {
		return cli.Config(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() }) // also removes the socket
	defer stop()
	var (
		serving sync.WaitGroup
		silent  = make(chan struct{}, maxSilent)
		slot    = make(chan struct{}, 1) // held while a trainer is served
	)
	defer serving.Wait()
	for {
		conn, err := accepted(ctx, listener.AcceptUnix)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return errors.Join(fmt.Errorf("waiting for a trainer at %s: %w", path, err), listener.Close())
		}
		select {
		case silent <- struct{}{}:
			serving.Go(func() {
				first, memory, err := greet(ctx, conn)
				<-silent
				if err == nil {
					err = s.attached(ctx, slot, &begun{conn, first}, memory)
				}
				if err != nil {
					fmt.Fprintf(s.std.Err, "gossipnode: a trainer: %v\n", err)
				}
			})
		default:
			turnAway(conn)
		}
	}
}

// accepted is the next connection. Errors that pass, such as too many open files, are waited out.
func accepted[Conn any](ctx context.Context, accept func() (Conn, error)) (conn Conn, err error) {
	passes := func(other syscall.Errno) bool { return errors.Is(err, other) }
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		conn, err = accept()
		if !slices.ContainsFunc([]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.ECONNABORTED, syscall.EINTR}, passes) {
			return conn, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return conn, err
		}
	}
}

// turnAway tells a trainer that the bridge serves another one.
func turnAway(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(firstTimeout))
	_ = bridge.Busy(conn) // the trainer may have ended
	_ = conn.Close()
}

// open listens at path, and replaces a socket at which nobody listens any more.
func open(path string) (*net.UnixListener, error) {
	address := &net.UnixAddr{Name: path, Net: "unix"}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, cli.Faultf(socketFlag, "%s is there and no socket: give another path", path)
	default:
		if conn, err := net.DialUnix("unix", nil, address); err == nil {
			return nil, errors.Join(cli.Faultf(socketFlag, "another process listens at %s: end it, or give another path", path), conn.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return listenAlone(address)
}

// greet waits for the first bytes of a connected trainer, and for the descriptor of its memory, which comes with
// them.
func greet(ctx context.Context, conn *net.UnixConn) (first []byte, memory *os.File, err error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetReadDeadline(time.Now().Add(firstTimeout))
	first, memory, err = receive(conn)
	_ = conn.SetReadDeadline(time.Time{})
	if err != nil {
		_ = conn.Close()
		if memory != nil {
			_ = memory.Close()
		}
		return nil, nil, err
	}
	return first, memory, nil
}

// attached serves a connected trainer if the slot is free.
func (s service) attached(ctx context.Context, slot chan struct{}, conn *begun, memory *os.File) error {
	if memory != nil {
		defer memory.Close()
	}
	select {
	case slot <- struct{}{}:
		defer func() { <-slot }()
		return s.serve(ctx, conn, memory)
	default:
		turnAway(conn)
		return nil
	}
}

// begun is a connection some bytes of which have been read.
type begun struct {
	*net.UnixConn
	first []byte
}

// Read returns these bytes first.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) == 0 {
		return b.UnixConn.Read(p)
	}
	n := copy(p, b.first)
	b.first = b.first[n:]
	return n, nil
}
