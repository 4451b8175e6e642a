package quant

import "fmt"

// Effective is the policy with its defaults written out. It plans the same.
func (p Policy) Effective() Policy {
	if p.Codec == "" {
		p.Codec = DefaultName
	}
	if p.Exact == "" {
		p.Exact = fp16Name
	}
	if p.Quantized == "" {
		p.Quantized = "100"
	}
	return p
}

// Explain tells, for each joint layer, what it is made of and how the policy codes it.
func (p Policy) Explain(layers []JointLayer) []string {
	texts := make([]string, len(layers))
	for i, layer := range layers {
		// Where the link decides, its choice stands for whatever that will be.
		texts[i] = fmt.Sprintf("%v: %v", layer, p.forLayer(layer, Codec{Name: Auto}))
	}
	return texts
}

func (l planned) String() string {
	text := l.codec.Name
	switch {
	case l.proportion == 0:
		text = l.exact.Name
	case l.proportion < 100:
		text = fmt.Sprintf("%s for %d %% of the slices, %s for the others", l.codec.Name, l.proportion, l.exact.Name)
	}
	if l.priority != 0 {
		text += fmt.Sprintf(", priority %d", l.priority)
	}
	return text
}
