package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Reader reads frames from a stream. It is for one goroutine.
//
// It reads no byte beyond the frame it returns. So a stream may pass from one Reader to another: from one with
// MaxHandshake to one with MaxPayload once the other peer has been accepted.
type Reader struct {
	// Sealed allows frames of slices without a checksum. Reset keeps it.
	Sealed bool

	source io.Reader
	limit  int
	header [HeaderSize]byte
	// buf holds a payload; it grows to the largest one seen, at most to limit.
	buf []byte
	// got counts the bytes of the current frame, header included, that have been read: after a deadline, the next
	// call continues there.
	got int
	// err is the error that made the stream unreadable.
	err error
}

// NewReader returns a Reader of frames from source, with payloads of at most maxPayload bytes. A maxPayload outside
// of 1 to MaxPayload means MaxPayload.
func NewReader(source io.Reader, maxPayload int) *Reader {
	if maxPayload <= 0 || maxPayload > MaxPayload {
		maxPayload = MaxPayload
	}
	return &Reader{source: source, limit: maxPayload}
}

// Reset makes the Reader read from the beginning of another source, with the same limit. It keeps the buffer, so
// earlier payloads are no longer valid, and forgets errors of the earlier source.
func (r *Reader) Reset(source io.Reader) {
	r.source, r.got, r.err = source, 0, nil
}

// Next returns the next frame. The payload is valid until the next call, and the caller may overwrite it. Next
// allocates only if a payload is larger than all before it, and only after the header has been found within the
// limits.
//
// A stream that ends between two frames gives io.EOF itself. A stream that ends within a frame, or that has anything
// but frames, gives an error that wraps one of this package's. That error is final: every later call returns it
// again. Any other error is the source's, wrapped: if the source can be read again, as after a deadline, so can the
// Reader.
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

// Unread makes Next return the last frame again, so that another part of the program can continue with it. Its
// payload must not have been overwritten.
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

// fill reads the rest of part, which begins at byte start of the current frame. Only io.EOF itself is an end: a reset
// connection, whose error may wrap io.EOF, is a failure of the source.
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

// room returns the first length bytes of the buffer. It at least doubles a buffer that is too small, so that slowly
// growing frames do not allocate each time. Bytes that an interrupted call has read are kept, since the length is the
// same then and the buffer does not grow.
func (r *Reader) room(length int) []byte {
	if length > cap(r.buf) {
		r.buf = make([]byte, min(max(length, 2*cap(r.buf)), r.limit))
	}
	return r.buf[:length]
}

// fail makes err final: after a bad frame, nobody knows where the next one begins.
func (r *Reader) fail(err error) error {
	r.err = fmt.Errorf("wire: read frame: %w", err)
	return r.err
}
