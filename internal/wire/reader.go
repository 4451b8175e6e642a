package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Reader reads frames from a stream. It is for one goroutine.
//
// It reads not a byte beyond the frame it returns, so a stream may pass from one
// Reader to another: from one with MaxHandshake to one with MaxPayload, once the
// other peer has been accepted.
type Reader struct {
	// Sealed: frames of slices may come without a checksum. Reset keeps it.
	Sealed bool

	source io.Reader
	limit  int
	header [HeaderSize]byte
	// buf holds a payload; it grows to the largest one seen, at most to limit.
	buf []byte
	// got counts the bytes of the current frame, header included, that have been
	// read: a call that a deadline interrupted is taken up where it stopped.
	got int
	// err is what made the stream unreadable.
	err error
}

// NewReader returns a Reader of the frames that source gives, with payloads of at
// most maxPayload bytes. A maxPayload that is not within 1 and MaxPayload means
// MaxPayload.
func NewReader(source io.Reader, maxPayload int) *Reader {
	if maxPayload <= 0 || maxPayload > MaxPayload {
		maxPayload = MaxPayload
	}
	return &Reader{source: source, limit: maxPayload}
}

// Reset makes the Reader read from the beginning of another source, with the same
// limit. It keeps its buffer, so a payload it returned before is no longer valid,
// and forgets what went wrong with the source before.
func (r *Reader) Reset(source io.Reader) {
	r.source, r.got, r.err = source, 0, nil
}

// Next returns the next frame. The payload is valid until the next call, and the
// caller may overwrite it. Memory is taken only if a payload is larger than all
// before it, and only after its header has been found within the limits.
//
// A stream that ends between two frames gives io.EOF itself. One that ends within
// a frame, or that carries anything but frames, gives an error that wraps one of
// this package's; it is final, and returned again by every later call. Any other
// error is the source's, wrapped: if the source can be read again, as after a
// deadline, so can the Reader.
func (r *Reader) Next() (Header, []byte, error) {
	if r.err != nil {
		return Header{}, nil, r.err
	}
	h, payload, err := r.next()
	if err != nil {
		return Header{}, nil, err
	}
	r.got = 0
	return h, payload, nil
}

// Unread has Next return the last frame once more, for who reads on where another has begun.
// Its payload must not have been overwritten.
func (r *Reader) Unread() { r.got = FrameSize(r.header[:]) }

func (r *Reader) next() (Header, []byte, error) {
	if err := r.fill(r.header[:], 0); err != nil {
		return Header{}, nil, err
	}
	h, length, err := parse(r.header[:], r.limit, r.Sealed)
	if err != nil {
		return Header{}, nil, r.fail(err)
	}
	payload := r.room(length)
	if err := r.fill(payload, HeaderSize); err != nil {
		return Header{}, nil, err
	}
	if h.Flags&FlagUnsummed == 0 && checksum(r.header[:], payload) != binary.LittleEndian.Uint32(r.header[atChecksum:]) {
		return Header{}, nil, r.fail(fmt.Errorf("%v of %d bytes: %w", h.Type, length, ErrChecksum))
	}
	return h, payload, nil
}

// fill reads the part of the current frame that begins at byte start of it, less
// what is there already. Only io.EOF itself is an end: a reset whose error happens
// to wrap it is a failure of the source.
func (r *Reader) fill(part []byte, start int) error {
	have := r.got - start
	if have >= len(part) {
		return nil
	}
	n, err := io.ReadFull(r.source, part[have:])
	r.got += n
	switch {
	case err == nil:
		return nil
	case err == io.EOF && r.got == 0:
		r.err = io.EOF
		return io.EOF
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return r.fail(fmt.Errorf("after %d bytes: %w", r.got, ErrTruncated))
	}
	return fmt.Errorf("wire: read frame: %w", err)
}

// room returns the buffer's first length bytes. Growth at least doubles it, so
// that slowly growing frames do not allocate each time; what a resumed call has
// read already is safe, since its length is the same and nothing grows.
func (r *Reader) room(length int) []byte {
	if length > cap(r.buf) {
		r.buf = make([]byte, min(max(length, 2*cap(r.buf)), r.limit))
	}
	return r.buf[:length]
}

// fail makes err the Reader's last word: once a frame is bad, nobody knows where
// the next one begins.
func (r *Reader) fail(err error) error {
	r.err = fmt.Errorf("wire: read frame: %w", err)
	return r.err
}
