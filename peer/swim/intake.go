package swim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// maxMessage is the largest message of a conversation: maxStates nodes of the
	// greatest size are less.
	maxMessage = 8 << 20
	// maxHeld bounds what is held of the messages of all conversations at a time.
	maxHeld = 16 << 20
	// readAtOnce is what is read at once of one.
	readAtOnce = 4 << 10
)

// intake reads the message of a conversation for memberlist, which itself would allocate
// memory for as many nodes as the message announces, and would decompress. intake holds
// only what has come, and of that only what is allowed.
type intake struct {
	from io.Reader
	gate *gate
	by   speaker
	// asked: the local peer has begun the conversation.
	asked bool
	// hold reserves so many further bytes.
	hold func(int) bool

	buffer []byte // read, and not yet taken
	own    bool   // the message is about the local peer too
}

// read returns the message in the form that memberlist may receive.
func (in *intake) read(sealed keys) ([]byte, error) {
	if len(sealed) > 0 {
		plain, err := in.open(sealed)
		if err != nil {
			return nil, err
		}
		in.from, in.buffer = bytes.NewReader(plain), nil
	}
	for len(in.buffer) == 0 {
		if err := in.more(); err != nil {
			return nil, err
		}
	}
	kind := in.buffer[0]
	in.buffer = in.buffer[1:]
	switch kind {
	case messagePushPull:
		return in.pushPull()
	case messageError:
		if !in.asked {
			break
		}
		_, raw, err := in.fields(shapes[messageError])
		return append([]byte{messageError}, raw...), err
	}
	return nil, fmt.Errorf("a message of type %d: %w", kind, errMalformed)
}

func (in *intake) pushPull() ([]byte, error) {
	header, _, err := in.fields(headerShape)
	if err != nil {
		return nil, fmt.Errorf("the header of a push and pull %w", err)
	}
	var kept []byte
	count := 0
	for range header.numbers[fieldNodes] {
		m, raw, err := in.fields(stateShape)
		if err != nil {
			return nil, fmt.Errorf("a node in a push and pull %w", err)
		}
		if self := in.gate.book.own.identity.Self(); !in.own && string(m.texts[fieldName]) == string(self) {
			in.own = true
			_ = in.gate.book.own.recall(m.texts[fieldMeta]) // what an earlier life has signed counts
		}
		why := in.charge(&m)
		if why == passed {
			why = in.gate.state(&m, raw, in.by, time.Now())
		}
		if why != passed {
			in.gate.refuse(in.by.peer, why)
			continue
		}
		if !in.hold(len(raw)) || len(kept)+len(raw) > maxMessage {
			return nil, errTooMuch
		}
		kept = append(kept, raw...)
		count++
	}
	head := appendHeader(make([]byte, 0, 64+len(kept)), count, header.numbers[fieldJoin] == 1)
	return append(head, kept...), nil
}

// charge counts a node that is new, and so costs the check of a signature, as a message of the peer
// that began the conversation. Nodes beyond the rate come with the next conversation, or by gossip.
func (in *intake) charge(m *message) cause {
	if in.asked || in.gate.book.recognizes(transport.PeerID(m.texts[fieldName]), m.texts[fieldMeta]) || in.by.rate.messages.AllowN(time.Now(), 1) {
		return passed
	}
	return tooMany
}

// fields reads one map. Its bytes are good until the next call.
func (in *intake) fields(of shape) (m message, raw []byte, err error) {
	for {
		m, rest, err := readFields(in.buffer, of)
		if err == nil {
			raw = in.buffer[:len(in.buffer)-len(rest)]
			in.buffer = rest
			return m, raw, nil
		}
		if err != errShort || len(in.buffer) > maxMap {
			return m, nil, err
		}
		if err := in.more(); err != nil {
			return m, nil, err
		}
	}
}

func (in *intake) more() error {
	have := len(in.buffer)
	if have == cap(in.buffer) { // and not each time: it may come byte by byte
		in.buffer = append(make([]byte, 0, have+readAtOnce), in.buffer...)
	}
	n, err := io.ReadAtLeast(in.from, in.buffer[have:cap(in.buffer)], 1)
	in.buffer = in.buffer[:have+n]
	return err
}

func (in *intake) open(sealed keys) ([]byte, error) {
	var header [sealHeader]byte
	if _, err := io.ReadFull(in.from, header[:]); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(header[1:]))
	switch {
	case header[0] != messageEncrypt:
		return nil, errNotSealed
	case size > maxMessage+sealOverhead:
		return nil, errTooMuch
	}
	var code bytes.Buffer
	for left := size; left > 0; {
		n := min(left, readAtOnce)
		if !in.hold(int(2 * n)) { // once as it came, and once decrypted
			return nil, errTooMuch
		}
		if _, err := io.CopyN(&code, in.from, n); err != nil {
			return nil, err
		}
		left -= n
	}
	return sealed.decrypt(code.Bytes(), header[:])
}
