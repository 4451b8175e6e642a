// Package ewma keeps exponentially weighted running means.
package ewma

// Mean is a running mean that starts at its first sample. The zero value is ready.
type Mean struct {
	value float64
	known bool
}

// Add takes a sample, of the given weight from 0 to 1.
func (m *Mean) Add(sample, weight float64) {
	if !m.known {
		m.value, m.known = sample, true
		return
	}
	m.value += weight * (sample - m.value)
}

// Value is the mean, 0 before the first sample.
func (m *Mean) Value() float64 { return m.value }

// Known tells whether there was a sample.
func (m *Mean) Known() bool { return m.known }
