package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Kind is how the values of a parameter lie.
type Kind string

// The kinds of parameters.
const (
	Log    Kind = "log"    // from Low to High, each factor as likely as another
	Linear Kind = "linear" // from Low to High, each difference as likely as another
	Choice Kind = "choice" // one of Choices
)

// Parameter is a setting that is sought.
type Parameter struct {
	Name      string
	Kind      Kind
	Low, High float64  // of Log, above 0, and Linear; both are values, too
	Whole     bool     // Log and Linear have whole numbers only, from the first to the last between Low and High
	Choices   []string // of Choice
}

// Space is all settings that may be tried.
type Space []Parameter

// Value is a value of a parameter, as a text. In JSON it is a number if the text is one.
type Value string

// Setting is a value for each parameter, by its name.
type Setting map[string]Value

// Bounds of a search.
const (
	MaxTrials    = 512
	maxChoices   = 256 // of a parameter, and parameters
	maxText      = 256 // bytes of a name or a value
	drawsAtMost  = 64  // draws for a setting that is no other one's
	digits       = 4   // of a number that is drawn: more would tell apart what is alike
	seedsPurpose = 39  // makes random numbers differ from others of the same seed
)

// ErrInvalid is a space, or a search, that cannot be.
var ErrInvalid = errors.New("invalid")

// Validate returns all faults of a space at once.
func (s Space) Validate() error {
	var list []error
	fault := func(name, format string, args ...any) {
		list = append(list, fmt.Errorf("%.40s: %w: %s", name, ErrInvalid, fmt.Sprintf(format, args...)))
	}
	if len(s) == 0 || len(s) > maxChoices {
		fault("space", "%d parameters: want 1 to %d", len(s), maxChoices)
	}
	names := map[string]bool{}
	for _, p := range s {
		if p.Name == "" || len(p.Name) > maxText || names[p.Name] {
			fault(p.Name, "want a name of its own, of 1 to %d bytes", maxText)
		}
		names[p.Name] = true
		from, to := p.ends()
		switch finite := !math.IsInf(p.High-p.Low, 0); { // else there is nothing to go a part of between them
		case p.Kind == Choice:
			if n := len(p.Choices); n < 1 || n > maxChoices || len(slices.Compact(slices.Sorted(slices.Values(p.Choices)))) != n {
				fault(p.Name, "%d choices: want 1 to %d, each once", n, maxChoices)
			}
			if slices.ContainsFunc(p.Choices, func(c string) bool { return len(c) > maxText }) {
				fault(p.Name, "a choice has more than %d bytes", maxText)
			}
		case p.Kind != Log && p.Kind != Linear:
			fault(p.Name, "kind %.40q: want %s, %s or %s", p.Kind, Log, Linear, Choice)
		case !finite || !(p.Low < p.High):
			fault(p.Name, "from %v to %v: want two numbers, the smaller first", p.Low, p.High)
		case p.Kind == Log && !(p.Low > 0 && p.High/p.Low <= math.MaxFloat64):
			fault(p.Name, "from %v to %v: want numbers above 0 for %s, and a factor between them that is a number", p.Low, p.High, Log)
		case from > to:
			fault(p.Name, "from %v to %v: want a whole number between them", p.Low, p.High)
		}
	}
	return errors.Join(list...)
}

// ends are the first and last value of Log and Linear.
func (p Parameter) ends() (low, high float64) {
	if p.Whole {
		return math.Ceil(p.Low) + 0, math.Floor(p.High) + 0 // + 0 has no sign
	}
	return p.Low, p.High
}

// at is the value at a place from 0 to 1.
func (p Parameter) at(place float64) Value {
	p.Low, p.High = p.ends()
	x := p.Low + place*(p.High-p.Low)
	switch {
	case p.Kind == Choice:
		return Value(p.Choices[min(int(place*float64(len(p.Choices))), len(p.Choices)-1)])
	case place == 1:
		x = p.High // not a last bit less
	case p.Kind == Log:
		x = p.Low * math.Pow(p.High/p.Low, place)
	}
	if x = min(max(x, p.Low), p.High); p.Whole {
		return Value(strconv.FormatFloat(math.Round(x)+0, 'f', -1, 64))
	}
	text := strconv.FormatFloat(x, 'g', digits, 64)
	if short, _ := strconv.ParseFloat(text, 64); short < p.Low || short > p.High || x == p.Low || x == p.High {
		text = strconv.FormatFloat(x, 'g', -1, 64) // 0.99999 is an end, and 1 may be refused
	}
	return Value(text)
}

// Random draws settings, each once: fewer than n if the space has hardly more.
func (s Space) Random(n int, seed uint64) (list []Setting) {
	rng, seen := rand.New(rand.NewPCG(seed, seedsPurpose)), map[string]bool{}
	for draws := 0; len(list) < n && draws < drawsAtMost*n; draws++ {
		one := Setting{}
		for _, p := range s {
			one[p.Name] = p.at(rng.Float64())
		}
		if key := one.String(); !seen[key] {
			seen[key], list = true, append(list, one)
		}
	}
	return list
}

// Grid returns each combination of all choices and of points values of each other parameter, its ends among them. It
// stops at most settings, and returns how many there would be.
func (s Space) Grid(points, most int) (list []Setting, all float64) {
	axes, all := make([][]Value, len(s)), 1.0
	for i, p := range s {
		n := points
		if p.Kind == Choice {
			n = len(p.Choices)
		}
		for k := range n {
			place := float64(k) / float64(max(n-1, 1))
			if p.Kind == Choice {
				place = (float64(k) + 0.5) / float64(n)
			}
			if v := p.at(place); !slices.Contains(axes[i], v) {
				axes[i] = append(axes[i], v)
			}
		}
		all *= float64(len(axes[i]))
	}
	for k := 0; k < most && float64(k) < all; k++ {
		one, rest := Setting{}, k
		for i, p := range s {
			one[p.Name], rest = axes[i][rest%len(axes[i])], rest/len(axes[i])
		}
		list = append(list, one)
	}
	return list, all
}

// String is the setting in the order of the names.
func (s Setting) String() string {
	text, _ := json.Marshal(s) // texts and numbers
	return string(text)
}

// MarshalJSON implements json.Marshaler.
func (v Value) MarshalJSON() ([]byte, error) {
	if f, err := strconv.ParseFloat(string(v), 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) && json.Valid([]byte(v)) {
		return []byte(v), nil
	}
	return json.Marshal(string(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Value) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*string)(v))
	}
	var n json.Number
	err := json.Unmarshal(text, &n)
	*v = Value(n)
	return err
}
