package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Limits of sums over a flock.
const (
	// MaxSumName is the most bytes in the name of a sum.
	MaxSumName = 64
	// NumberSize is the bytes of a number in a SHARE.
	NumberSize = 8
	// MaxShare is the most bytes of numbers in one SHARE.
	MaxShare = 128 << 10
	// MaxSumPartners is the most partners of a participant.
	MaxSumPartners = 64
	maxID          = 128
	maxWhy         = 152 // of a Detail
	// SumMasked is the Op of a sum with masks, and MaxMasks the most bytes that a SUM carries for them: a list of
	// 1,024 participants, and keys.
	SumMasked = 4
	MaxMasks  = 32 << 10
	maxSum    = 3 + 1 + MaxSumName + 8 + 8 + 6*4 + 8 + 1 + maxID + 1 + MaxSumPartners*(1+maxID) + 1 + maxWhy + 4 + MaxMasks
	// shareInfo is the most bytes of a SHARE before the numbers.
	shareInfo = 1 + MaxSumName + 8 + 4 + 8 + 8
)

// CheckSumName tells what is wrong with the name of a sum: it has 1 to MaxSumName bytes of
// UTF-8, without control characters.
func CheckSumName(name string) error {
	if name == "" || len(name) > MaxSumName || !clean(name) {
		return fmt.Errorf("the name of a sum, %q: want 1 to %d bytes of printable UTF-8: %w", name, MaxSumName, ErrMessage)
	}
	return nil
}

// SumKind is what a Sum says.
type SumKind uint8

// What members say of a sum. A member of the flock coordinates; those who take part are its
// participants.
const (
	// SumStatus: a participant tells the coordinator where it is: Op, Length, Least and
	// Patience are its caller's, Stage its stage in Attempt, the last it had a place in. In
	// Term it takes COMMIT of nobody else. Size is the bytes that it brings to a gathering, Rank 4096 for
	// each step that it has taken and a share of the next, Next the one that handed it a number that is not
	// finite before all had added theirs.
	SumStatus SumKind = 1 + iota
	// SumLeft: a participant gives up.
	SumLeft
	// SumBroken: what is sent in Attempt cannot reach Next, or came to an end; the participant of Rank
	// among Size brings too much, if there is a Size.
	SumBroken
	// SumAsk: a coordinator asks whether the receiver has, or had, a part in the sum; or, with Stage 1,
	// a participant does, that is to be alone with another, and only NONE is an answer to it.
	SumAsk
	// SumNone answers that: no. SumDone: it has the result of Attempt, or, if that is 0, the sum has failed as SumFault says. SumLeader: another
	// coordinates, Next.
	SumNone
	SumDone
	SumLeader
	// SumPlace: the receiver's place in Attempt: the Rank-th of Size, with Partners, in the order of
	// their ranks. Until its STATUS names Attempt it is said again.
	SumPlace
	// SumVoid: Attempt is given up; the receiver says again where it is.
	SumVoid
	// SumCommit: all have the sum of Attempt; Term is that of the participant's status, Detail says
	// of whom a number came that is not finite.
	SumCommit
	// SumFault: the sum fails, for the reason that Op has as a code and Detail in words.
	SumFault
	// SumReveal: all have the masked sum of Attempt; the receiver tells the seed of its second mask, and, if there
	// is a Size, its piece of the seed of the participant of Rank among Size, which tells none.
	SumReveal
	lastSumKind = SumReveal
)

// Sum is what a member says of a sum that the members make of numbers of their own.
type Sum struct {
	Kind SumKind
	// Op is what is done with the numbers.
	Op uint8
	// Stage is where a participant is.
	Stage uint8
	// Name is the sum's, of 1 to MaxSumName bytes.
	Name string
	// Attempt numbers the attempts at it: those of one coordinator grow.
	Attempt uint64
	// Length is the number of numbers.
	Length uint64
	// Least is how many participants there must be, and Timeout for how many milliseconds
	// the sum waits for members that have not come.
	Least, Timeout uint32
	// Term counts the coordinators to which a participant has sent its status. A coordinator
	// repeats it in COMMIT, which is void once the participant has followed another.
	Term uint32
	// Question numbers those of a coordinator; an answer repeats it.
	Question uint32
	// Rank, from 0, and Size are a place among participants.
	Rank, Size uint32
	// Value is what a participant brings beside numbers that it moves itself, and in COMMIT the least of them.
	Value float64
	// Next is the id of a member.
	Next string
	// Partners are ids of members, at most MaxSumPartners.
	Partners []string
	// Detail is for people.
	Detail string
	// Masks is there if Op is SumMasked: of a status, what its participant brings for masks, and tells of them; of a
	// place, all participants, and keys; of COMMIT, and of DONE with an attempt, all seeds. docs/WIRE.md has the bytes.
	Masks []byte
}

// Type is TypeSum.
func (Sum) Type() Type { return TypeSum }

// Append implements Message.
func (m Sum) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Sum) Decode(payload []byte) error { return m.fields(reader(TypeSum, payload)).Finish() }

func (m *Sum) fields(c Coder) Coder {
	number(&c, &m.Kind, 1)
	if m.Kind == 0 || m.Kind > lastSumKind {
		c.Fault("kind %d", m.Kind)
	}
	c.Uint8(&m.Op)
	c.Uint8(&m.Stage)
	c.Text(&m.Name, 1, MaxSumName)
	c.uint64s(&m.Attempt, &m.Length)
	c.Uint32(&m.Least)
	c.Uint32(&m.Timeout)
	c.Uint32(&m.Term)
	c.Uint32(&m.Question)
	c.Uint32(&m.Rank)
	if c.Uint32(&m.Size); m.Kind != SumStatus && m.Rank >= max(m.Size, 1) {
		c.Fault("place %d of %d", m.Rank, m.Size)
	}
	c.Float(&m.Value)
	c.Text(&m.Next, 0, maxID)
	c.partners(&m.Partners)
	c.Text(&m.Detail, 0, maxWhy)
	kind := m.Kind == SumStatus || m.Kind == SumPlace || m.Kind == SumCommit || m.Kind == SumDone && m.Attempt > 0
	if kind && m.Op == SumMasked { // of others Op is why a sum fails
		c.copied(&m.Masks, 4, 0, MaxMasks, "bytes of masks")
	}
	return c
}

// partners codes ids, after their number.
func (c *Coder) partners(ids *[]string) {
	if n := c.Count(len(*ids), 1, 0, MaxSumPartners, "partners"); c.Reading {
		*ids = append([]string(nil), make([]string, n)...)
	}
	for i := range *ids {
		c.Text(&(*ids)[i], 1, maxID)
	}
}

// Share is a run of bytes that a participant hands to another: of the numbers as they have
// been summed so far, or of the whole sum.
type Share struct {
	// Name and Attempt are as in Sum.
	Name    string
	Attempt uint64
	// Step counts what one participant hands on, from 0, or in a gathering by how much the rank of whose
	// block it is is beyond the receiver's, less 1: of Total bytes, these begin at Offset.
	Step          uint32
	Offset, Total uint64
	// Data is 0 to MaxShare bytes, and a part of the payload if it was decoded.
	Data []byte
	// Values, or the Words of a masked sum, are sent as Data, which is nil then; what is decoded has none, but Number
	// and Word.
	Values []float64
	Words  []uint64
}

// Number is the i-th in Data.
func (m *Share) Number(i int) float64 { return math.Float64frombits(m.Word(i)) }

// Word is the same of a masked sum.
func (m *Share) Word(i int) uint64 { return binary.LittleEndian.Uint64(m.Data[i*NumberSize:]) }

// Type is TypeShare.
func (Share) Type() Type { return TypeShare }

// Append implements Message.
func (m Share) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Share) Decode(payload []byte) error { return m.fields(reader(TypeShare, payload)).Finish() }

func (m *Share) fields(c Coder) Coder {
	c.Text(&m.Name, 1, MaxSumName)
	c.Uint64(&m.Attempt)
	c.Uint32(&m.Step)
	c.uint64s(&m.Offset, &m.Total)
	if n := uint64(len(c.rest)); c.Reading && (n > MaxShare || m.Offset > m.Total || n > m.Total-m.Offset) {
		c.Fault("%d bytes from byte %d of %d, at most %d", n, m.Offset, m.Total, MaxShare)
	}
	if c.Remaining(&m.Data); !c.Reading {
		c.out = slices.Grow(c.out, NumberSize*(len(m.Values)+len(m.Words)))
		for _, v := range m.Values {
			c.out = binary.LittleEndian.AppendUint64(c.out, math.Float64bits(v))
		}
		for _, v := range m.Words {
			c.out = binary.LittleEndian.AppendUint64(c.out, v)
		}
	}
	return c
}
