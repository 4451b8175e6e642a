package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Limits of sums over a flock.
const (
	// MaxSumName bounds the bytes of a sum's name.
	MaxSumName = 64
	// NumberSize is the size of a number in a SHARE, in bytes.
	NumberSize = 8
	// MaxShare bounds the bytes of numbers in one SHARE.
	MaxShare = 128 << 10
	// MaxSumPartners bounds the partners of a participant.
	MaxSumPartners = 64
	maxID          = 128
	maxWhy         = 152 // of a Detail
	// SumMasked is the Op of a sum with masks, below the bits of its shape. MaxMasks bounds the bytes of masks in a SUM: a list of 1,024
	// participants, and keys.
	SumMasked = 4
	sumOp     = 15
	MaxMasks  = 32 << 10
	maxSum    = 3 + 1 + MaxSumName + 8 + 8 + 6*4 + 8 + 1 + maxID + 1 + MaxSumPartners*(1+maxID) + 1 + maxWhy + 4 + MaxMasks
	// shareInfo bounds the bytes of a SHARE before the numbers.
	shareInfo = 1 + MaxSumName + 8 + 4 + 8 + 8
)

// CheckSumName returns an error unless name is a valid name of a sum: 1 to MaxSumName bytes of UTF-8 without control
// characters.
func CheckSumName(name string) error {
	if name == "" || len(name) > MaxSumName || !clean(name) {
		return fmt.Errorf("the name of a sum, %q: want 1 to %d bytes of printable UTF-8: %w", name, MaxSumName, ErrMessage)
	}
	return nil
}

// SumKind is the kind of a Sum.
type SumKind uint8

// The kinds. One member of the flock coordinates a sum; the members that take part in it are its participants.
const (
	// SumStatus: a participant tells the coordinator its state. Op, Length, Least and Timeout are those of its
	// caller. Stage is its stage in Attempt, the last attempt in which it had a place. While in Term, it accepts
	// COMMIT from no other coordinator. Size is the number of bytes it brings to a gathering. Rank is 4096 times its
	// steps, including a part of the current step. Next is the member that sent it a partial sum with a
	// number that is not finite.
	SumStatus SumKind = 1 + iota
	// SumLeft: a participant leaves the sum.
	SumLeft
	// SumBroken: the stream to Next in Attempt cannot be opened, or has ended. If Size is above 0: the participant of
	// Rank among Size sends too many bytes.
	SumBroken
	// SumAsk: a coordinator asks whether the receiver takes, or took, part in the sum. With Stage 1, a participant
	// asks that would be alone with one other; then only NONE counts as an answer.
	SumAsk
	// Answers to SumAsk. SumNone: the sender takes no part. SumDone: it has the result of Attempt, or, if Attempt is
	// 0, the sum has failed for the reason given as in SumFault. SumLeader: Next coordinates the sum.
	SumNone
	SumDone
	SumLeader
	// SumPlace: the receiver's place in Attempt is Rank among Size. Partners are in the order of their ranks. The
	// coordinator repeats it until the receiver's STATUS names Attempt.
	SumPlace
	// SumVoid: Attempt is abandoned; the receiver answers with its status.
	SumVoid
	// SumCommit: all participants have the sum of Attempt. Term is the term in the receiver's status. Detail names
	// the member that sent a number that is not finite.
	SumCommit
	// SumFault: the sum fails. Op is the code of the reason, Detail the reason in words.
	SumFault
	// SumReveal: all participants have the masked sum of Attempt. The receiver answers with the seed of its second
	// mask. If Size is above 0, the participant of Rank among Size does not answer, and the receiver adds its piece
	// of that participant's seed.
	SumReveal
	lastSumKind = SumReveal
)

// Sum is a message about a sum of numbers that members bring.
type Sum struct {
	Kind SumKind
	// Op is the operation.
	Op uint8
	// Stage is the stage of a participant.
	Stage uint8
	// Name is the name of the sum, 1 to MaxSumName bytes.
	Name string
	// Attempt is the number of an attempt at the sum; the numbers of one coordinator grow.
	Attempt uint64
	// Length is how many numbers are summed.
	Length uint64
	// Least is the least number of participants. Timeout is how long the sum waits for absent members, in
	// milliseconds.
	Least, Timeout uint32
	// Term counts the coordinators to which a participant has sent its status. A coordinator repeats the term in
	// COMMIT, which is void if the participant has followed another coordinator since.
	Term uint32
	// Question is the number of a coordinator's question; the answer repeats it.
	Question uint32
	// Rank, from 0, and Size are a place among the participants and their number.
	Rank, Size uint32
	// Value is a number that a participant brings in addition to those it transfers itself. In COMMIT it is the least
	// of all participants'.
	Value float64
	// Next is the id of a member.
	Next string
	// Partners are ids of members, at most MaxSumPartners.
	Partners []string
	// Detail is a text for people.
	Detail string
	// Masks has the data of a sum with masks (Op is SumMasked). In STATUS it is the participant's own, in PLACE that
	// of all participants and the keys, in COMMIT, and in DONE with an attempt, all seeds. docs/WIRE.md has the
	// bytes.
	Masks []byte
}

func (Sum) Type() Type                     { return TypeSum }
func (m Sum) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
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
	if kind && m.Op&sumOp == SumMasked { // in other kinds, Op is the reason of a fault
		c.copied(&m.Masks, 4, 0, MaxMasks, "bytes of masks")
	}
	return c
}

// partners codes a list of ids after its length.
func (c *Coder) partners(ids *[]string) {
	if n := c.Count(len(*ids), 1, 0, MaxSumPartners, "partners"); c.Reading {
		*ids = append([]string(nil), make([]string, n)...)
	}
	for i := range *ids {
		c.Text(&(*ids)[i], 1, maxID)
	}
}

// Share is a run of bytes that a participant sends to another: partial sums, or the final sum.
type Share struct {
	// Name and Attempt are those of Sum.
	Name    string
	Attempt uint64
	// Step numbers the steps in which one participant sends, from 0. In a gathering it is the rank of the block less
	// that of the receiver, less 1. Data begins at byte Offset of the Total bytes of the step.
	Step          uint32
	Offset, Total uint64
	// Data is 0 to MaxShare bytes; decoded, it is a part of the payload.
	Data []byte
	// Values, or the Words of a masked sum, are sent as Data, which must be nil then. Decode sets only Data: use
	// Number and Word.
	Values []float64
	Words  []uint64
}

// Number is number i in Data.
func (m *Share) Number(i int) float64 { return math.Float64frombits(m.Word(i)) }

// Word is word i in Data, of a masked sum.
func (m *Share) Word(i int) uint64 { return binary.LittleEndian.Uint64(m.Data[i*NumberSize:]) }

func (Share) Type() Type                     { return TypeShare }
func (m Share) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
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
