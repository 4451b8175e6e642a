package swim

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/hashicorp/memberlist"
)

// The types of memberlist's messages.
const (
	messagePing         = 0
	messageIndirectPing = 1
	messageAck          = 2
	messageSuspect      = 3
	messageAlive        = 4
	messageDead         = 5
	messagePushPull     = 6
	messageCompound     = 7
	messageCompress     = 9
	messageEncrypt      = 10
	messageNack         = 11
	messageCRC          = 12
	messageError        = 13
)

// The states of a node in a push/pull.
const (
	stateAlive   = 0
	stateSuspect = 1
	stateLeft    = 3
)

// A message of memberlist's is its type and a map in MessagePack. It is read here before
// memberlist reads it, and strictly: memberlist makes room for what a message announces,
// skips what it does not know and takes the last of two values of a name.

// A field is a name in such a map.
type field uint8

const (
	fieldSeqNo field = iota
	fieldNode
	fieldFrom
	fieldSourceAddr
	fieldSourcePort
	fieldSourceNode
	fieldTarget
	fieldPort
	fieldNack
	fieldPayload
	fieldIncarnation
	fieldAddr
	fieldMeta
	fieldVsn
	fieldName
	fieldState
	fieldNodes
	fieldUserStateLen
	fieldJoin
	fieldError
	fields
)

type valueKind uint8

const (
	aNumber valueKind = iota
	aFlag
	aText
)

const (
	maxAddress    = 16
	maxVersions   = 6
	maxErrorText  = 1024
	maxAckPayload = 0 // no peer sends any
	// maxStates is the number of nodes in a push/pull: a whole book, and as many that
	// memberlist still remembers as dead.
	maxStates = 2 * maxMembers
)

// vocabulary tells for each field its name, its kind, and the most that it may be, or how
// long.
var vocabulary = [fields]struct {
	name string
	kind valueKind
	most uint64
}{
	fieldSeqNo:        {"SeqNo", aNumber, math.MaxUint32},
	fieldNode:         {"Node", aText, maxPeerID},
	fieldFrom:         {"From", aText, maxPeerID},
	fieldSourceAddr:   {"SourceAddr", aText, maxAddress},
	fieldSourcePort:   {"SourcePort", aNumber, math.MaxUint16},
	fieldSourceNode:   {"SourceNode", aText, maxPeerID},
	fieldTarget:       {"Target", aText, maxAddress},
	fieldPort:         {"Port", aNumber, math.MaxUint16},
	fieldNack:         {"Nack", aFlag, 1},
	fieldPayload:      {"Payload", aText, maxAckPayload},
	fieldIncarnation:  {"Incarnation", aNumber, math.MaxUint32},
	fieldAddr:         {"Addr", aText, maxAddress},
	fieldMeta:         {"Meta", aText, memberlist.MetaMaxSize},
	fieldVsn:          {"Vsn", aText, maxVersions},
	fieldName:         {"Name", aText, maxPeerID},
	fieldState:        {"State", aNumber, stateLeft},
	fieldNodes:        {"Nodes", aNumber, maxStates},
	fieldUserStateLen: {"UserStateLen", aNumber, 0},
	fieldJoin:         {"Join", aFlag, 1},
	fieldError:        {"Error", aText, maxErrorText},
}

var fieldNamed = func() map[string]field {
	named := make(map[string]field, fields)
	for f, entry := range vocabulary {
		named[entry.name] = field(f)
	}
	return named
}()

// shape is which fields a map must have, and which it may have besides.
type shape struct{ must, may uint32 }

func set(all ...field) (bits uint32) {
	for _, f := range all {
		bits |= 1 << f
	}
	return bits
}

var (
	source = set(fieldSourceAddr, fieldSourcePort, fieldSourceNode)

	shapes = map[byte]shape{
		messagePing:         {set(fieldSeqNo, fieldNode), source},
		messageIndirectPing: {set(fieldSeqNo, fieldTarget, fieldPort, fieldNode, fieldNack), source},
		messageAck:          {set(fieldSeqNo), set(fieldPayload)},
		messageNack:         {set(fieldSeqNo), 0},
		messageSuspect:      {set(fieldIncarnation, fieldNode, fieldFrom), 0},
		messageDead:         {set(fieldIncarnation, fieldNode, fieldFrom), 0},
		messageAlive:        {set(fieldIncarnation, fieldNode, fieldAddr, fieldPort, fieldMeta, fieldVsn), 0},
		messageError:        {set(fieldError), 0},
	}
	headerShape = shape{set(fieldNodes, fieldUserStateLen, fieldJoin), 0}
	stateShape  = shape{set(fieldName, fieldAddr, fieldPort, fieldMeta, fieldIncarnation, fieldState, fieldVsn), 0}
)

// message is what a map says. Its texts are parts of the input.
type message struct {
	has     uint32
	numbers [fields]uint64
	texts   [fields][]byte
	// stateAt is where in the input the byte of State is.
	stateAt int
}

func (m *message) text(f field) string { return string(m.texts[f]) }

var (
	errShort    = errors.New("ends early")
	errNoFields = errors.New("has other fields than memberlist's")
	errValue    = errors.New("has a value that is out of bounds")
)

// readFields reads one map of a shape from the front of b and returns what follows.
// errShort means that more bytes may make it whole; there is never need for more than
// maxMap.
func readFields(b []byte, of shape) (m message, rest []byte, err error) {
	switch {
	case len(b) == 0:
		return m, nil, errShort
	case b[0]&0xf0 != 0x80: // fifteen fields at most
		return m, nil, errNoFields
	}
	rest = b[1:]
	for range b[0] & 0x0f {
		var name []byte
		if name, rest, err = readText(rest, maxFieldName); err != nil {
			return m, nil, err
		}
		f, known := fieldNamed[string(name)]
		if bit := uint32(1) << f; !known || (of.must|of.may)&bit == 0 || m.has&bit != 0 {
			return m, nil, errNoFields
		}
		m.has |= 1 << f
		if f == fieldState {
			m.stateAt = len(b) - len(rest)
		}
		if rest, err = m.read(f, rest); err != nil {
			return m, nil, err
		}
	}
	if m.has&of.must != of.must {
		return m, nil, errNoFields
	}
	return m, rest, nil
}

const (
	maxFieldName = 16
	// maxMap is more bytes than any map of the above has.
	maxMap = 4 << 10
)

func (m *message) read(f field, b []byte) (rest []byte, err error) {
	v := vocabulary[f]
	switch {
	case len(b) == 0:
		return nil, errShort
	case v.kind == aText && b[0] == 0xc0: // nil
		return b[1:], nil
	case v.kind == aText:
		m.texts[f], rest, err = readText(b, int(v.most))
		return rest, err
	case v.kind == aFlag:
		if b[0]&^1 != 0xc2 {
			return nil, errValue
		}
		m.numbers[f] = uint64(b[0] & 1)
		return b[1:], nil
	case f == fieldState && b[0] > stateLeft: // it is one byte, so that it can be changed
		return nil, errValue
	}
	m.numbers[f], rest, err = readNumber(b)
	if err == nil && m.numbers[f] > v.most {
		err = errValue
	}
	return rest, err
}

// readText reads a string or a byte string of at most so many bytes.
func readText(b []byte, most int) (value, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errShort
	}
	var size, head int
	switch kind := b[0]; {
	case kind&0xe0 == 0xa0:
		size, head = int(kind&0x1f), 1
	case kind == 0xd9 || kind == 0xc4:
		head = 2
	case kind == 0xda || kind == 0xc5:
		head = 3
	default:
		return nil, nil, errValue
	}
	if len(b) < head {
		return nil, nil, errShort
	}
	for _, digit := range b[1:head] {
		size = size<<8 | int(digit)
	}
	switch {
	case size > most:
		return nil, nil, errValue
	case len(b) < head+size:
		return nil, nil, errShort
	}
	return b[head : head+size], b[head+size:], nil
}

// readNumber reads an integer that is not negative and has at most 32 bits.
func readNumber(b []byte) (value uint64, rest []byte, err error) {
	if len(b) == 0 {
		return 0, nil, errShort
	}
	size, signed := 0, false
	switch kind := b[0]; kind {
	case 0xcc, 0xcd, 0xce:
		size = 1 << (kind - 0xcc)
	case 0xd0, 0xd1, 0xd2:
		size, signed = 1<<(kind-0xd0), true
	default:
		if kind > 0x7f {
			return 0, nil, errValue
		}
		return uint64(kind), b[1:], nil
	}
	if len(b) < 1+size {
		return 0, nil, errShort
	}
	for _, digit := range b[1 : 1+size] {
		value = value<<8 | uint64(digit)
	}
	if signed && b[1]&0x80 != 0 {
		return 0, nil, errValue
	}
	return value, b[1+size:], nil
}

func appendHeader(b []byte, nodes int, join bool) []byte {
	b = append(b, messagePushPull, 0x83)
	b = appendName(b, fieldNodes)
	b = binary.BigEndian.AppendUint32(append(b, 0xce), uint32(nodes))
	b = append(appendName(b, fieldUserStateLen), 0)
	b = appendName(b, fieldJoin)
	if join {
		return append(b, 0xc3)
	}
	return append(b, 0xc2)
}

func appendName(b []byte, f field) []byte {
	name := vocabulary[f].name
	return append(append(b, 0xa0|byte(len(name))), name...)
}
