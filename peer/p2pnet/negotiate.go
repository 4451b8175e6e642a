package p2pnet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// This file has the opener's side of multistream-select 1.0.0, by which libp2p
// agrees on a stream's protocol, and the preamble that names the run.
//
// libp2p has an opener's side of its own. It is not used because of what it does
// to deadlines: a read that times out before the answer has come makes every
// later read fail, and its Close waits for the answer. The one here sends
// everything in its first write, reads the answer with the first reads however
// often they time out, and needs no goroutine.

const (
	multistream = "/multistream/1.0.0"
	refusal     = "na"
	// maxProtocol bounds a protocol's name.
	maxProtocol = 128
)

// errPreamble says that the preamble's length of the run's name is above the limit.
var errPreamble = errors.New("malformed preamble")

func checkNames(protocol transport.Protocol, run string) error {
	if len(protocol) < 2 || len(protocol) > maxProtocol || protocol[0] != '/' || strings.Contains(string(protocol), "\n") {
		return fmt.Errorf("protocol %q is not of the form /name/version with at most %d bytes", protocol, maxProtocol)
	}
	if len(run) > transport.MaxRunName {
		return fmt.Errorf("%w: %q has %d", ErrRunName, run, len(run))
	}
	return nil
}

// appendOpening appends what an opener sends before any byte of the application:
// the protocol, then the length of the run's name in one byte, then the name.
func appendOpening(b []byte, protocol transport.Protocol, run string) []byte {
	b = appendToken(appendToken(b, multistream), string(protocol))
	return append(append(b, byte(len(run))), run...)
}

// appendToken appends a line of the negotiation: length, text, line feed.
func appendToken(b []byte, text string) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)+1))
	return append(append(b, text...), '\n')
}

func readPreamble(r io.Reader) (string, error) {
	var b [1 + transport.MaxRunName]byte
	if _, err := io.ReadFull(r, b[:1]); err != nil {
		return "", err
	}
	if b[0] > transport.MaxRunName {
		return "", fmt.Errorf("%w: a run's name of %d bytes", errPreamble, b[0])
	}
	name := b[1 : 1+int(b[0])]
	if _, err := io.ReadFull(r, name); err != nil {
		return "", err
	}
	return string(name), nil
}

// answer reads the acceptor's side of the negotiation.
type answer struct {
	yes, no []byte // the two possible answers
	got     []byte // what has been read of either, with room for the longer
}

func newAnswer(protocol transport.Protocol) *answer {
	a := &answer{
		yes: appendToken(appendToken(nil, multistream), string(protocol)),
		no:  appendToken(appendToken(nil, multistream), refusal),
	}
	a.got = make([]byte, 0, max(len(a.yes), len(a.no)))
	return a
}

// read reads until the acceptor has answered, and not a byte further. It returns
// nil for yes and transport.ErrUnknownProtocol for no, and may be called again after
// any error.
func (a *answer) read(r io.Reader) error {
	for !bytes.Equal(a.got, a.yes) {
		if bytes.Equal(a.got, a.no) {
			return transport.ErrUnknownProtocol
		}
		missing := cap(a.got) + 1
		for _, whole := range [...][]byte{a.yes, a.no} {
			if rest, may := bytes.CutPrefix(whole, a.got); may {
				missing = min(missing, len(rest))
			}
		}
		if missing > cap(a.got) {
			return fmt.Errorf("%w: the answer %q belongs to no negotiation", transport.ErrUnknownProtocol, a.got)
		}
		n, err := r.Read(a.got[len(a.got) : len(a.got)+missing])
		a.got = a.got[:len(a.got)+n]
		if n == 0 && err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		if n == 0 && err != nil {
			return err
		}
	}
	return nil
}
