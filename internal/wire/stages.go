package wire

// Limits of what travels between the stages of a model.
const (
	// MaxExamples bounds the examples of a micro-batch, and MaxActivations its values on their way, and those of the
	// parameters of a stage. ActivationsLen is how many values a frame has, but for the last.
	MaxExamples    = 1 << 16
	MaxActivations = 1 << 31
	ActivationsLen = 32 << 10

	maxBatch    = 3 + 1 + MaxPeerName + 2*8 + 3*4
	outcomeSize = 1 + 4 + 8 + 8 + 4
)

// BatchKind says what a BATCH is for.
type BatchKind uint8

// The kinds.
const (
	BatchTrain   BatchKind = iota // a micro-batch to train on
	BatchOutputs                  // one of which the outputs are wanted
	BatchLoad                     // a question how much the receiver has to do
	BatchKeep                     // a copy of the sender's parameters, for the receiver to keep
	BatchFetch                    // a question for the copy that the receiver keeps of a stage; a BatchKeep answers it
	BatchRound                    // word of how far the sender is, in a run of rounds
	batchKinds
)

// Batch opens a conversation between members that train stages of a model. Its values follow in ACTIVATIONS frames, and
// then its targets, which are never coded.
type Batch struct {
	Kind BatchKind
	// Stage is the stage, from 1, that the receiver is to have, or that parameters are of. Codec is that of the values.
	Stage, Codec uint8
	// Source and Number name the micro-batch: whose rows it is made of, and a number there. Of a copy, Number is the flock's
	// steps when it was made; of a word, the version of the stage's parameters in that round.
	Source string
	Number uint64
	// Round is the one that a micro-batch belongs to, from 1; of a word, the first of which not all micro-batches of the sender's rows
	// are back. 0: there are no rounds, or the sender does not know yet in which it is.
	Round uint64
	// Examples are at most MaxExamples, Values and Targets at most MaxActivations.
	Examples, Values, Targets uint32
}

func (Batch) Type() Type                     { return TypeBatch }
func (m Batch) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
func (m *Batch) Decode(payload []byte) error { return m.fields(reader(TypeBatch, payload)).Finish() }

func (m *Batch) fields(c Coder) Coder {
	c.Uint8((*uint8)(&m.Kind))
	c.Uint8(&m.Stage)
	c.Uint8(&m.Codec)
	c.Text(&m.Source, 0, MaxPeerName)
	c.Uint64(&m.Number)
	c.Uint64(&m.Round)
	c.Uint32(&m.Examples)
	c.Uint32(&m.Values)
	c.Uint32(&m.Targets)
	if m.Kind >= batchKinds || m.Examples > MaxExamples || m.Values > MaxActivations || m.Targets > MaxActivations {
		c.Fault("kind %d, %d examples, %d values, %d targets", m.Kind, m.Examples, m.Values, m.Targets)
	}
	return c
}

// Outcome answers a BATCH, once it is computed, or at once. Its values follow in ACTIVATIONS frames, coded as those of the
// BATCH were.
type Outcome struct {
	// Answer is 0 if it is computed, 1 if there was no room for it, 2 if it is given up.
	Answer uint8
	// Waiting is how many micro-batches wait at the sender, and Each how many nanoseconds it takes for one; 0 if it does not
	// know.
	Waiting uint32
	Each    uint64
	// Loss is the mean loss over the micro-batch.
	Loss   float64
	Values uint32
}

func (Outcome) Type() Type                 { return TypeOutcome }
func (m Outcome) Append(dst []byte) []byte { return m.fields(writer(dst)).out }
func (m *Outcome) Decode(payload []byte) error {
	return m.fields(reader(TypeOutcome, payload)).Finish()
}

func (m *Outcome) fields(c Coder) Coder {
	c.Uint8(&m.Answer)
	c.Uint32(&m.Waiting)
	c.Uint64(&m.Each)
	c.Float(&m.Loss)
	if c.Uint32(&m.Values); m.Answer > 2 || m.Each > 1<<63-1 || m.Values > MaxActivations {
		c.Fault("answer %d, %d ns, %d values", m.Answer, m.Each, m.Values)
	}
	return c
}
