package quant

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

// Policy says how the joint layers of a model are coded. Users write it: the fields have YAML names. The zero value
// codes everything raw.
type Policy struct {
	// Codec is the name of a codec, or Auto, which leaves the choice to each partner's link. Default: raw.
	Codec string `yaml:"codec,omitempty"`
	// Exact is the codec, of 16 bits or more, of all values that are not quantized: norms, biases, and the slices
	// that Quantized leaves out. A layer whose own codec has 16 bits or more keeps it. Default: fp16.
	Exact string `yaml:"exact,omitempty"`
	// Quantized is the share of the slices, in percent, that may be coded with fewer
	// than 16 bits: "0" to "100", or a course of it over the run, as in "0@0,100@0.3": none
	// at the beginning, all from three tenths on, and straight in between. Default: 100.
	Quantized string `yaml:"quantized,omitempty"`
	// Rules are exceptions; the first rule that fits a joint layer applies.
	Rules []Rule `yaml:"rules,omitempty"`
}

const (
	// Auto, in place of a codec's name, leaves the choice to the link.
	Auto = "auto"
	// DefaultName is the codec of a policy that names none.
	DefaultName = "raw"
)

// Rule is an exception of a Policy for some joint layers.
type Rule struct {
	// Class is dense, conv, embedding or norm+bias; empty fits any.
	Class string `yaml:"class,omitempty"`
	// Range is the name of a range in the joint layer; empty fits any.
	Range string `yaml:"range,omitempty"`
	// Codec and Quantized are as in Policy; empty leaves the policy's.
	Codec     string `yaml:"codec,omitempty"`
	Quantized string `yaml:"quantized,omitempty"`
	// Priority orders the joint layers in an exchange, the highest first. An exchange that is cut short on a slow
	// link has then averaged these first. Default: 0.
	Priority int `yaml:"priority,omitempty"`
}

// fits tells whether the rule applies to a joint layer.
func (r Rule) fits(layer coding.JointLayer) bool {
	return (r.Class == "" || r.Class == layer.Class.String()) && (r.Range == "" || slices.Contains(layer.Ranges, r.Range))
}

// Bounds of a policy.
const (
	// MaxRules is how many rules a policy may have.
	MaxRules = 64
	// MaxPriority is the largest priority; -MaxPriority is the least.
	MaxPriority = 1000
)

// ErrPolicy: the policy is not valid.
var ErrPolicy = errors.New("bad codec policy")

// Validate returns all faults of the policy for a layout in one error, which wraps ErrPolicy.
func (p Policy) Validate(layout *tensor.Layout) error {
	var faults []error
	fault := func(where, format string, args ...any) {
		faults = append(faults, fmt.Errorf("quant: %w: %s: %s", ErrPolicy, where, fmt.Sprintf(format, args...)))
	}
	checkCodec := func(where, name string) {
		if _, err := ByName(name); err != nil && name != "" && name != Auto {
			fault(where, "%q is no codec: want %s or %s", name, Auto, strings.Join(Names(), ", "))
		}
	}
	checkPercent := func(where, text string) {
		if _, err := coding.ParseCourse(cmp.Or(text, "100")); err != nil {
			fault(where, "%v", err)
		}
	}
	checkCodec("codec", p.Codec)
	checkPercent("quantized", p.Quantized)
	if exact, err := coding.ByName(p.Exact); p.Exact != "" && (err != nil || !exact.Whole()) {
		fault("exact", "%q: want raw, bf16 or fp16", p.Exact)
	}
	if len(p.Rules) > MaxRules {
		fault("rules", "%d, at most %d", len(p.Rules), MaxRules)
	}
	for i, r := range p.Rules {
		where := func(field string) string { return fmt.Sprintf("rule %d, %s", i+1, field) }
		checkCodec(where("codec"), r.Codec)
		checkPercent(where("quantized"), r.Quantized)
		if !knownClass(r.Class) {
			fault(where("class"), "%q: want dense, conv, embedding or norm+bias", r.Class)
		}
		if r.Priority > MaxPriority || r.Priority < -MaxPriority {
			fault(where("priority"), "%d: want %d to %d", r.Priority, -MaxPriority, MaxPriority)
		}
		if r.Range != "" && layout != nil {
			if _, found := layout.Lookup(r.Range); !found {
				fault(where("range"), "the model has no range %q", r.Range)
			}
		}
	}
	return errors.Join(faults...)
}

func knownClass(name string) bool {
	for c := range coding.Scales + 1 {
		if name == "" || name == c.String() {
			return true
		}
	}
	return false
}

// Changes tells whether the share of slices of some joint layer changes in the run.
func (p Policy) Changes() bool {
	timed := func(text string) bool { return strings.Contains(text, "@") }
	return timed(p.Quantized) || slices.ContainsFunc(p.Rules, func(r Rule) bool { return timed(r.Quantized) })
}

// Choosing tells whether the link chooses the codec of some joint layer.
func (p Policy) Choosing() bool {
	return p.Codec == Auto || slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Codec == Auto })
}

// Plan returns the plan of an exchange for the joint layers of a model; packages that carry out exchanges use it.
// chosen is the codec where the link decides. Parts of the policy that are not valid become raw.
func (p Policy) Plan(layers []coding.JointLayer, chosen coding.Codec) coding.Plan {
	plan := make(coding.Plan, len(layers))
	for i, layer := range layers {
		plan[i] = p.forLayer(layer, chosen)
	}
	if len(layers) == 0 {
		return coding.Uniform(resolve(DefaultName, chosen))
	}
	return plan
}

func (p Policy) forLayer(layer coding.JointLayer, chosen coding.Codec) coding.LayerPlan {
	name, quantized, priority := p.Codec, p.Quantized, 0
	for _, r := range p.Rules {
		if r.fits(layer) {
			name, quantized = cmp.Or(r.Codec, name), cmp.Or(r.Quantized, quantized)
			priority = r.Priority
			break
		}
	}
	l := coding.LayerPlan{Codec: resolve(name, chosen), Priority: priority}
	course, err := coding.ParseCourse(cmp.Or(quantized, "100"))
	if err != nil {
		course = coding.Course{{}} // not reached: Validate has checked it
	}
	if l.Proportion = course[0].Percent; len(course) > 1 {
		l.Course = course
	}
	switch exact, err := coding.ByName(p.Exact); {
	case l.Codec.Whole():
		l.Exact, l.Proportion, l.Course = l.Codec, 100, nil
	case err == nil:
		l.Exact = exact
	default:
		l.Exact, _ = coding.ByID(coding.FP16)
	}
	if layer.Class == coding.Scales && !l.Codec.Whole() {
		l.Codec, l.Proportion, l.Course = l.Exact, 100, nil
	}
	return l
}

// Effective is the policy with its defaults filled in. Its plans are the same.
func (p Policy) Effective() Policy {
	p.Codec, p.Exact, p.Quantized = cmp.Or(p.Codec, DefaultName), cmp.Or(p.Exact, "fp16"), cmp.Or(p.Quantized, "100")
	return p
}

// Explain describes each joint layer of a model: its ranges, and how the policy codes it.
func (p Policy) Explain(layout *tensor.Layout) []string {
	layers := coding.JointLayers(layout)
	texts := make([]string, len(layers))
	for i, layer := range layers {
		// Auto stands for the choice of the link.
		texts[i] = fmt.Sprintf("%v: %v", layer, p.forLayer(layer, coding.Codec{Name: Auto}))
	}
	return texts
}

// resolve is the codec of a name in a policy.
func resolve(name string, chosen coding.Codec) coding.Codec {
	if name == Auto {
		return chosen
	}
	codec, err := coding.ByName(name)
	if err != nil {
		codec, _ = coding.ByID(coding.Raw)
	}
	return codec
}
