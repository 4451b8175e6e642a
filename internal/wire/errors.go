package wire

import (
	"errors"
	"fmt"
	"io"
)

// Faults of a frame or a message, to be tested with errors.Is. After one of them, the stream cannot be read further.
var (
	// ErrMagic: the bytes are no frame; the other side uses another protocol.
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
	// ErrChecksum: header or payload were altered in transit.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrTruncated: the stream ended within a frame.
	ErrTruncated = fmt.Errorf("frame cut short: %w", io.ErrUnexpectedEOF)
	// ErrMessage: an intact frame carries a payload that its type does not allow.
	ErrMessage = errors.New("malformed message")
)

// VersionError reports a frame of a wire version that this package cannot read.
// It satisfies errors.Is(err, ErrVersion).
type VersionError struct {
	// Seen is the version in the frame's header.
	Seen uint8
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%v: the other peer speaks version %d, this one version %d", ErrVersion, e.Seen, Version)
}

// Is makes a VersionError match ErrVersion.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }

// ReasonFor returns the reason with which to refuse the sender of a frame that could not be read or decoded; err is
// that error. It reports false if there is nothing to refuse: the stream ended, broke or timed out.
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
