package wire

import (
	"errors"
	"fmt"
	"io"
)

// What is wrong with a frame or a message, to be tested with errors.Is. A stream
// that gave one of these cannot be read further.
var (
	// ErrMagic: the bytes are no frame; the other end speaks something else.
	ErrMagic = errors.New("not a murmuration frame")
	// ErrVersion: the frame is of another wire version. The error is a
	// *VersionError, which carries the version seen.
	ErrVersion = errors.New("another wire version")
	// ErrFlags: the frame needs a feature that this version does not know.
	ErrFlags = errors.New("unknown feature that must be understood")
	// ErrType: the frame's type is unknown.
	ErrType = errors.New("unknown frame type")
	// ErrTooLong: the payload exceeds the limit of its type or of its reader.
	ErrTooLong = errors.New("payload too long")
	// ErrChecksum: header or payload were altered on their way.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrTruncated: the stream ended within a frame.
	ErrTruncated = fmt.Errorf("frame cut short: %w", io.ErrUnexpectedEOF)
	// ErrMessage: an intact frame carries a payload that its type does not allow.
	ErrMessage = errors.New("malformed message")
)

// VersionError reports a frame of a wire version that this package cannot read.
// It satisfies errors.Is(err, ErrVersion).
type VersionError struct {
	// Seen is the version that the frame claims.
	Seen uint8
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%v: the other peer speaks version %d, this one version %d", ErrVersion, e.Seen, Version)
}

// Is makes a VersionError match ErrVersion.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }

// ReasonFor gives the reason with which to refuse the sender of what failed to
// read or to decode with err. It reports false if nothing was received that could
// be refused: the stream ended, broke or timed out.
func ReasonFor(err error) (Reason, bool) {
	switch {
	case errors.Is(err, ErrVersion), errors.Is(err, ErrFlags):
		return ReasonVersion, true
	case errors.Is(err, ErrMagic), errors.Is(err, ErrType), errors.Is(err, ErrTooLong),
		errors.Is(err, ErrChecksum), errors.Is(err, ErrMessage):
		return ReasonProtocol, true
	}
	return 0, false
}
