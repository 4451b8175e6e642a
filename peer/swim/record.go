package swim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/hashicorp/memberlist"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// The metadata of a node is its record, signed. All numbers are little-endian:
//
//	version u8 = 2 | bits u8 (1: announced, 2: marked, 4: left, 8: holds rows,
//	16: says where it is, 32: trains a stage) | run length u8, run |
//	life u64 | ceiling u32 | incarnation u64 | sequence u64 | role u8 | flags u8 | steps u64 | head u64 |
//	addresses u8, each: length u8, text | if marked: length u8, mark | if it holds rows: rows u64, not 0 |
//	if it says where it is: site length u8, site, uplink u8, not both empty |
//	if it trains a stage: stage u8, not 0 |
//	Ed25519 signature, 64 bytes
//
// The peer's id is not in it but is what memberlist calls the node's name; the
// signature covers both, so a record is worth nothing under another name.
const (
	recordVersion  = 2
	bitAnnounced   = 1
	bitMarked      = 2
	bitLeft        = 4
	bitHolds       = 8  // releases before it refuse the records of members that hold rows
	bitPlaced      = 16 // as with bitHolds
	bitStage       = 32 // as with bitHolds
	knownBits      = bitAnnounced | bitMarked | bitLeft | bitHolds | bitPlaced | bitStage
	signatureSize  = 64
	maxPeerID      = 128
	signatureLabel = "murmuration member record 2\x00"
)

// statement is the content of the metadata.
type statement struct {
	transport.Record
	// life is drawn at random by each Membership, so that a peer recognizes what
	// an earlier life of its own has said.
	life uint64
	// ceiling is the highest incarnation of memberlist's in which others may speak of
	// the peer.
	ceiling uint32
	// announced is false of a member that looks on and has no record yet. Of its
	// record only the run and the addresses count.
	announced bool
	// left tells that the member leaves.
	left bool
	// mark is the member's mark for admission; may be empty.
	mark []byte
}

// encode returns the unsigned metadata, or an error that says what to shorten.
func (s statement) encode() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var bits byte
	if s.announced {
		bits |= bitAnnounced
	}
	if len(s.mark) > 0 {
		bits |= bitMarked
	}
	if s.left {
		bits |= bitLeft
	}
	if s.Rows > 0 {
		bits |= bitHolds
	}
	placed := s.Place != (transport.Place{})
	if placed {
		bits |= bitPlaced
	}
	if s.Stage > 0 {
		bits |= bitStage
	}
	b := append(make([]byte, 0, memberlist.MetaMaxSize), recordVersion, bits)
	b = appendText(b, s.Run)
	b = binary.LittleEndian.AppendUint64(b, s.life)
	b = binary.LittleEndian.AppendUint32(b, s.ceiling)
	b = binary.LittleEndian.AppendUint64(b, s.Incarnation)
	b = binary.LittleEndian.AppendUint64(b, s.Sequence)
	b = append(b, s.Role, s.Flags)
	b = binary.LittleEndian.AppendUint64(b, s.Steps)
	b = binary.LittleEndian.AppendUint64(b, s.Head)
	b = append(b, byte(len(s.Addresses)))
	for _, address := range s.Addresses {
		b = appendText(b, address)
	}
	if len(s.mark) > 0 {
		b = append(append(b, byte(len(s.mark))), s.mark...)
	}
	if s.Rows > 0 {
		b = binary.LittleEndian.AppendUint64(b, s.Rows)
	}
	if placed {
		b = append(appendText(b, s.Place.Site), byte(s.Place.Uplink))
	}
	if s.Stage > 0 {
		b = append(b, s.Stage)
	}
	return b, nil
}

// check returns everything that is wrong with the bounds. A statement within
// them fits memberlist.MetaMaxSize with its signature.
func (s statement) check() error {
	var faults []error
	if len(s.Run) > transport.MaxRunName {
		faults = append(faults, fmt.Errorf("the run's name has %d bytes: shorten it to %d", len(s.Run), transport.MaxRunName))
	}
	if len(s.Addresses) > transport.MaxAddresses {
		faults = append(faults, fmt.Errorf("%d addresses: keep the best %d", len(s.Addresses), transport.MaxAddresses))
	}
	if s.Incarnation > transport.MaxIncarnation {
		faults = append(faults, fmt.Errorf("incarnation %d is beyond %d, which no peer reaches", s.Incarnation, uint64(transport.MaxIncarnation)))
	}
	for _, address := range s.Addresses {
		if err := transport.CheckAddress(address); err != nil {
			faults = append(faults, err)
		}
	}
	if len(s.mark) > transport.MaxMark {
		faults = append(faults, fmt.Errorf("the mark has %d bytes: shorten it to %d", len(s.mark), transport.MaxMark))
	}
	if err := s.Place.Validate(); err != nil {
		faults = append(faults, err)
	}
	if !utf8.ValidString(s.Run) {
		faults = append(faults, fmt.Errorf("the run's name %q is not UTF-8", s.Run))
	}
	return errors.Join(faults...)
}

func appendText(b []byte, text string) []byte {
	return append(append(b, byte(len(text))), text...)
}

func seal(identity transport.Identity, s statement) ([]byte, error) {
	body, err := s.encode()
	if err != nil {
		return nil, err
	}
	signature, err := identity.Sign(signedMessage(identity.Self(), body))
	if err != nil {
		return nil, fmt.Errorf("sign the record: %w", err)
	}
	if len(signature) != signatureSize {
		return nil, fmt.Errorf("a signature of %d bytes: only Ed25519 keys, with %d, are supported", len(signature), signatureSize)
	}
	return append(body, signature...), nil
}

func signedMessage(peer transport.PeerID, body []byte) []byte {
	message := make([]byte, 0, len(signatureLabel)+len(peer)+1+len(body))
	message = append(message, signatureLabel...)
	message = append(message, peer...)
	message = append(message, 0)
	return append(message, body...)
}

// Reasons to refuse metadata.
var (
	errOversize   = fmt.Errorf("more than %d bytes", memberlist.MetaMaxSize)
	errTruncated  = errors.New("ends early")
	errTrailing   = errors.New("has bytes left over")
	errVersion    = errors.New("is of another version of this library")
	errMalformed  = errors.New("is malformed")
	errSignature  = errors.New("is not signed by the peer whose name it bears")
	errOtherRun   = errors.New("belongs to another run")
	errOldRecord  = errors.New("is older than the one known")
	errWrongPlace = errors.New("comes with an address that is not the peer's")
	errBadName    = errors.New("bears a name that is no peer id")
	errStranger   = errors.New("is not of a peer that is admitted")
	errCrowd      = errors.New("is of a stranger, of whom there are too many to be met")
	errTooMuch    = errors.New("is more than is held of what others say")
	errBookFull   = fmt.Errorf("would be the member number %d, one more than are kept", maxMembers+1)
)

func split(meta []byte) (body, signature []byte, err error) {
	switch {
	case len(meta) > memberlist.MetaMaxSize:
		return nil, nil, errOversize
	case len(meta) < signatureSize:
		return nil, nil, errTruncated
	}
	at := len(meta) - signatureSize
	return meta[:at], meta[at:], nil
}

// decode reads what encode wrote. Every body has exactly one reading, and every
// statement one body. Nothing in the result refers to the input.
func decode(peer transport.PeerID, body []byte) (statement, error) {
	r := reader{left: body}
	if version := r.byte(); version != recordVersion && !r.short {
		return statement{}, errVersion
	}
	bits := r.byte()
	s := statement{announced: bits&bitAnnounced != 0, left: bits&bitLeft != 0}
	s.Peer = peer
	s.Run = r.text(transport.MaxRunName)
	s.life = r.uint64()
	s.ceiling = r.uint32()
	s.Incarnation = r.uint64()
	s.Sequence = r.uint64()
	s.Role = r.byte()
	s.Flags = r.byte()
	s.Steps = r.uint64()
	s.Head = r.uint64()
	addresses := int(r.byte())
	if addresses > transport.MaxAddresses || s.Incarnation > transport.MaxIncarnation || bits&^knownBits != 0 {
		return statement{}, errMalformed
	}
	for range addresses {
		address := r.text(transport.MaxAddressSize)
		r.bad = r.bad || transport.CheckAddress(address) != nil
		s.Addresses = append(s.Addresses, address)
	}
	if bits&bitMarked != 0 {
		s.mark = r.mark()
	}
	if bits&bitHolds != 0 {
		s.Rows = r.uint64()
		r.bad = r.bad || s.Rows == 0
	}
	if bits&bitPlaced != 0 {
		s.Place = transport.Place{Site: r.text(transport.MaxSite), Uplink: transport.Uplink(r.byte())}
		r.bad = r.bad || s.Place == transport.Place{} || s.Place.Validate() != nil
	}
	if bits&bitStage != 0 {
		s.Stage = r.byte()
		r.bad = r.bad || s.Stage == 0
	}
	switch {
	case r.short:
		return statement{}, errTruncated
	case r.bad:
		return statement{}, errMalformed
	case len(r.left) > 0:
		return statement{}, errTrailing
	}
	return s, nil
}

// verified reads metadata of a peer of a run, has it judged, and checks the signature,
// which costs most.
func verified(identity transport.Identity, run string, peer transport.PeerID, meta []byte, judge func(statement) error) (statement, error) {
	body, signature, err := split(meta)
	if err != nil {
		return statement{}, err
	}
	s, err := decode(peer, body)
	if err == nil && s.Run != run {
		err = errOtherRun
	}
	if err == nil && judge != nil {
		err = judge(s)
	}
	if err == nil && !identity.Verify(peer, signedMessage(peer, body), signature) {
		err = errSignature
	}
	if err != nil {
		return statement{}, err
	}
	return s, nil
}

// reader takes fields from the front of a body, and remembers if one was
// missing or out of bounds; the fields are zero from then on.
type reader struct {
	left       []byte
	short, bad bool
}

func (r *reader) take(n int) []byte {
	if r.short || len(r.left) < n {
		r.short = true
		return make([]byte, n)
	}
	field := r.left[:n]
	r.left = r.left[n:]
	return field
}

func (r *reader) byte() byte     { return r.take(1)[0] }
func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) uint64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func (r *reader) text(limit int) string {
	size := int(r.byte())
	if size > limit {
		r.bad = true
		return ""
	}
	field := r.take(size)
	if !utf8.Valid(field) {
		r.bad = true
	}
	return string(field)
}

// mark takes a mark, which has at least one byte if there is any.
func (r *reader) mark() []byte {
	size := int(r.byte())
	if size == 0 || size > transport.MaxMark {
		r.bad = true
		return nil
	}
	return append([]byte(nil), r.take(size)...)
}
