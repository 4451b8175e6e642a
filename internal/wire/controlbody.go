package wire

import (
	"encoding/binary"
	"math"
)

// Bounds of the bodies of control messages.
const (
	// MaxSettings, MaxSettingName and MaxSettingValue bound what an announcement
	// tells of a run.
	MaxSettings     = 16
	MaxSettingName  = 32
	MaxSettingValue = 80
	// MaxWhy bounds the reason that an operator gives.
	MaxWhy = 200
	// MaxMilestones bounds those of a learning rate.
	MaxMilestones = 16
)

// Setting is a name and a value that mean something to who started the run.
type Setting struct{ Name, Value string }

// Announce says what a run is.
type Announce struct {
	Layout [32]byte
	// Settings are ordered by name, each name once.
	Settings []Setting
}

// Append appends the encoded body to dst.
func (b Announce) Append(dst []byte) []byte {
	dst = append(append(dst, b.Layout[:]...), uint8(min(len(b.Settings), 255)))
	for _, s := range b.Settings {
		dst = appendText(appendText(dst, s.Name), s.Value)
	}
	return dst
}

// Decode reads a body into b. If it fails, with ErrMessage, b is meaningless.
func (b *Announce) Decode(body []byte) error {
	c := cursor{what: TypeControl, rest: body}
	b.Layout = c.hash()
	n := int(c.uint8())
	if n > MaxSettings {
		c.fault("%d settings, at most %d", n, MaxSettings)
		return c.finish()
	}
	b.Settings = make([]Setting, 0, n)
	last := ""
	for range n {
		s := Setting{c.text(MaxSettingName), c.text(MaxSettingValue)}
		if s.Name <= last {
			c.fault("settings without a name, twice, or out of order")
		}
		last = s.Name
		b.Settings = append(b.Settings, s)
	}
	return c.finish()
}

// Hold says whether trainers wait.
type Hold struct {
	Paused bool
	Why    string
}

// Append appends the encoded body to dst.
func (b Hold) Append(dst []byte) []byte {
	var paused byte
	if b.Paused {
		paused = 1
	}
	return appendText(append(dst, paused), b.Why)
}

// Decode reads a body into b. If it fails, with ErrMessage, b is meaningless.
func (b *Hold) Decode(body []byte) error {
	c := cursor{what: TypeControl, rest: body}
	paused := c.uint8()
	if paused > 1 {
		c.fault("paused is %d, not 0 or 1", paused)
	}
	b.Paused, b.Why = paused == 1, c.text(MaxWhy)
	return c.finish()
}

// Stop ends a run.
type Stop struct{ Why string }

// Append appends the encoded body to dst.
func (b Stop) Append(dst []byte) []byte { return appendText(dst, b.Why) }

// Decode reads a body into b. If it fails, with ErrMessage, b is meaningless.
func (b *Stop) Decode(body []byte) error {
	c := cursor{what: TypeControl, rest: body}
	b.Why = c.text(MaxWhy)
	return c.finish()
}

// Rate is a learning rate over the progress of a run.
type Rate struct {
	Full, Warmup, Factor float64
	Shape                uint8
	Milestones           []float64
}

// Append appends the encoded body to dst.
func (b Rate) Append(dst []byte) []byte {
	dst = appendFloats(dst, b.Full, b.Warmup, b.Factor)
	dst = append(dst, b.Shape, uint8(min(len(b.Milestones), 255)))
	return appendFloats(dst, b.Milestones...)
}

// Decode reads a body into b. If it fails, with ErrMessage, b is meaningless. What
// the numbers may be is for the caller to judge; they are finite.
func (b *Rate) Decode(body []byte) error {
	c := cursor{what: TypeControl, rest: body}
	b.Full, b.Warmup, b.Factor = c.finite(), c.finite(), c.finite()
	b.Shape = c.uint8()
	n := int(c.uint8())
	if n > MaxMilestones {
		c.fault("%d milestones, at most %d", n, MaxMilestones)
		return c.finish()
	}
	b.Milestones = make([]float64, n)
	for i := range b.Milestones {
		b.Milestones[i] = c.finite()
	}
	return c.finish()
}

// Pace is the number of local steps between two exchanges, 0 for as the link allows.
type Pace struct{ Every uint32 }

// Append appends the encoded body to dst.
func (b Pace) Append(dst []byte) []byte { return binary.LittleEndian.AppendUint32(dst, b.Every) }

// Decode reads a body into b. If it fails, with ErrMessage, b is meaningless.
func (b *Pace) Decode(body []byte) error {
	c := cursor{what: TypeControl, rest: body}
	if b.Every = c.uint32(); b.Every > math.MaxInt32 {
		c.fault("%d steps between exchanges", b.Every)
	}
	return c.finish()
}

// Work is what a flock has to do; 0 is no bound.
type Work struct{ Steps, StepsPerPeer uint64 }

// Append appends the encoded body to dst.
func (b Work) Append(dst []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, b.Steps), b.StepsPerPeer)
}

// Decode reads a body into b. If it fails, with ErrMessage, b is meaningless.
func (b *Work) Decode(body []byte) error {
	c := cursor{what: TypeControl, rest: body}
	b.Steps, b.StepsPerPeer = c.uint64(), c.uint64()
	return c.finish()
}

// Digest is what a peer tells of itself.
type Digest struct {
	Incarnation       uint64
	Steps, FlockSteps uint64
	Exchanges, Failed uint64
	// State is as package peer numbers it.
	State uint8
	// HasLoss tells whether Loss is known; where it is not, Loss is 0.
	HasLoss bool
	// Loss, Samples a second and Distance are finite.
	Loss, Samples, Distance float64
	// Met is the number of Partners that are given.
	Met      uint8
	Partners [MaxDigestPartners]DigestPartner
}

// MaxDigestPartners bounds the partners that a digest tells of.
const MaxDigestPartners = 16

// DigestPartner tells of exchanges that the author of a digest began with one partner.
type DigestPartner struct {
	// Mark stands for the partner's id (FNV-1a, 64 bits): it is a hint for people who
	// look at a run, and proves nothing.
	Mark uint64
	// Exchanges counts those that completed.
	Exchanges uint32
}

// Append appends the encoded body to dst.
func (b Digest) Append(dst []byte) []byte {
	for _, v := range []uint64{b.Incarnation, b.Steps, b.FlockSteps, b.Exchanges, b.Failed} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	var hasLoss byte
	if b.HasLoss {
		hasLoss = 1
	}
	dst = appendFloats(append(dst, b.State, hasLoss), b.Loss, b.Samples, b.Distance)
	dst = append(dst, b.Met)
	for _, p := range b.Partners[:b.Met] {
		dst = binary.LittleEndian.AppendUint64(dst, p.Mark)
		dst = binary.LittleEndian.AppendUint32(dst, p.Exchanges)
	}
	return dst
}

// Decode reads a body into b. If it fails, with ErrMessage, b is meaningless.
func (b *Digest) Decode(body []byte) error {
	c := cursor{what: TypeControl, rest: body}
	for _, v := range []*uint64{&b.Incarnation, &b.Steps, &b.FlockSteps, &b.Exchanges, &b.Failed} {
		*v = c.uint64()
	}
	b.State = c.uint8()
	hasLoss := c.uint8()
	b.HasLoss = hasLoss == 1
	b.Loss, b.Samples, b.Distance = c.finite(), c.finite(), c.finite()
	if hasLoss > 1 || !b.HasLoss && math.Float64bits(b.Loss) != 0 {
		c.fault("a loss that is and is not")
	}
	if b.Met = c.uint8(); b.Met > MaxDigestPartners {
		c.fault("%d partners, at most %d", b.Met, MaxDigestPartners)
		b.Met = 0
	}
	b.Partners = [MaxDigestPartners]DigestPartner{}
	for i := range b.Partners[:b.Met] {
		b.Partners[i] = DigestPartner{Mark: c.uint64(), Exchanges: c.uint32()}
	}
	return c.finish()
}

func appendFloats(dst []byte, values ...float64) []byte {
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	return dst
}

// finite reads a float64 that is neither NaN nor infinite.
func (c *cursor) finite() float64 {
	v := math.Float64frombits(c.uint64())
	if math.IsNaN(v) || math.IsInf(v, 0) {
		c.fault("%v where a finite number is due", v)
		return 0
	}
	return v
}
