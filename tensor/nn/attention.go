package nn

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// CausalSelfAttention combines, for each place of a sequence [context width], the values of that place and of the
// places before it, by several heads (Vaswani et al., 2017). Its parameters are those of torch.nn.MultiheadAttention:
// in_proj_weight [3·width width], out_proj.weight [width width], and with bias in_proj_bias and out_proj.bias.
func CausalSelfAttention(width, heads int, bias bool) Layer {
	return attention{width: width, heads: heads, bias: bias}
}

type attention struct {
	width, heads int
	bias         bool
}

func (l attention) String() string {
	return fmt.Sprintf("CausalSelfAttention(%d, %d)", l.width, l.heads)
}

func (l attention) For(in Shape) (Built, error) {
	if l.width < 1 || l.heads < 1 || l.width%l.heads != 0 {
		return Built{}, fmt.Errorf("want a width that is a multiple of the number of heads")
	}
	if len(in) != 2 || in.Width() != l.width {
		return Built{}, fmt.Errorf("want sequences of %d values a place", l.width)
	}
	projectIn, err := linear{in: l.width, out: 3 * l.width, bias: l.bias, parts: 3 * l.heads}.For(in)
	if err != nil {
		return Built{}, err
	}
	projectOut, err := linear{in: l.width, out: l.width, bias: l.bias}.For(in)
	if err != nil {
		return Built{}, err
	}
	projectIn.Params[0].Start = Uniform(math.Sqrt(6 / float64(4*l.width))) // Glorot and Bengio, 2010, as torch
	for i, p := range projectIn.Params {
		projectIn.Params[i].Name = "in_proj_" + p.Name
	}
	if l.bias {
		projectIn.Params[1].Start, projectOut.Params[1].Start = Fill(0), Fill(0)
	}
	params := append(projectIn.Params, within("out_proj", projectOut.Params)...)
	return Built{Out: in, Params: params, Make: func(r *Room) Step {
		n, line := in.Len(), oddLines(in[0])
		return &attentionStep{
			attention: l, context: in[0],
			projectIn:  link{projectIn.Make(r), 0, projectIn.values()},
			projectOut: link{projectOut.Make(r), projectIn.values(), projectIn.values() + projectOut.values()},
			mul:        r.Multiplier(), line: line,
			probabilities: r.Values(l.heads * in[0] * line), attended: r.Values(n),
			errors: r.errors(3 * n), scores: make(tensor.Vector, in[0]*line),
		}
	}}, nil
}

// attentionStep computes softmax(q·kᵀ/√d)·v for each example and head. The first projection makes q, k and v, in
// separate matrices for each head of the pass.
type attentionStep struct {
	attention
	context               int
	projectIn, projectOut link
	mul                   *tensor.Multiplier
	line                  int           // values from one place's probabilities to the next's
	examples              int           // of the last Forward
	qkv                   tensor.Vector // of the last Forward
	probabilities         tensor.Vector // the weight of each place for each place
	attended              tensor.Vector // sums of v weighted by the probabilities, all heads side by side
	errors                tensor.Vector // the gradient over qkv
	scores                tensor.Vector // the gradient over the probabilities of one head
}

func (s *attentionStep) allowsInPlaceAdd() bool { return allowsInPlaceAdd(s.projectOut.Step) }

// Places are computed in blocks of so many: a block reads only the places up to its last one.
const placeBlock = 32

// oddLines rounds n up to an odd number of whole cache lines, so that rows of a matrix spread over the sets of the
// cache.
func oddLines(n int) int {
	const line = 16
	return ((n+line-1)/line | 1) * line
}

// head has the offsets of one head's numbers in a pass. Its errors are laid out as the rows of the first projection:
// q, k and v side by side.
type head struct{ q, k, v, errors, probabilities, attended int }

func (s *attentionStep) head(example, number int) head {
	depth, at := s.width/s.heads, example*s.context
	size := s.context * depth
	apart := s.heads * s.examples * size
	q := (number*s.examples + example) * size
	return head{
		q: q, k: q + apart, v: q + 2*apart, errors: at*3*s.width + number*depth,
		probabilities: (example*s.heads + number) * s.context * s.line,
		attended:      at*s.width + number*depth,
	}
}

// columns returns a head's columns at rows places from place from on, in rows of stride values.
func (s *attentionStep) columns(of tensor.Vector, at, from, rows, stride int) tensor.Matrix {
	return tensor.Matrix{Data: of[at+from*stride:], Rows: rows, Cols: s.width / s.heads, Stride: stride}
}

// block returns the rows of a head's probabilities from place from on, up to the column of the last place.
func (s *attentionStep) block(of tensor.Vector, at, from, rows int) tensor.Matrix {
	return tensor.Matrix{Data: of[at+from*s.line:], Rows: rows, Cols: from + rows, Stride: s.line}
}

// square returns cols columns of a head's probabilities from place from on, in the rows of that place and later ones.
func (s *attentionStep) square(of tensor.Vector, at, from, cols int) tensor.Matrix {
	return tensor.Matrix{Data: of[at+from*s.line+from:], Rows: s.context - from, Cols: cols, Stride: s.line}
}

// Forward implements Step.
func (s *attentionStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	s.examples = p.Examples
	s.qkv = s.projectIn.Forward(p, s.projectIn.of(w), x)
	for i := range p.Examples {
		for h := range s.heads {
			s.attend(s.head(i, h))
		}
	}
	return s.projectOut.Forward(p, s.projectOut.of(w), s.attended[:len(x)])
}

// scale is 1/√d.
func (s *attentionStep) scale() float32 {
	return float32(1 / math.Sqrt(float64(s.width/s.heads)))
}

// attend computes a head's probabilities and their sums of v. For q·kᵀ it takes blocks of columns, each with the rows
// from its first place on; for the sums it takes blocks of rows.
func (s *attentionStep) attend(h head) {
	depth := s.width / s.heads
	for from := 0; from < s.context; from += placeBlock {
		below := s.context - from
		k := s.columns(s.qkv, h.k, from, min(placeBlock, below), depth)
		s.mul.MatMul(s.square(s.probabilities, h.probabilities, from, k.Rows), 1, s.columns(s.qkv, h.q, from, below, depth), k.T(), 0)
	}
	ops.SoftmaxCausal(s.probabilities[h.probabilities:][:s.context*s.line], s.line, 0, s.scale())
	for from := 0; from < s.context; from += placeBlock {
		seen := s.block(s.probabilities, h.probabilities, from, min(placeBlock, s.context-from))
		s.mul.MatMul(s.columns(s.attended, h.attended, from, seen.Rows, s.width), 1, seen, s.columns(s.qkv, h.v, 0, seen.Cols, depth), 0)
	}
}

// Backward implements Step.
func (s *attentionStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	q := p
	q.Inputs = true
	e = s.projectOut.Backward(q, s.projectOut.of(w), s.projectOut.of(g), e)
	for i := range p.Examples {
		for h := range s.heads {
			s.gradient(s.head(i, h), e)
		}
	}
	return s.projectIn.Backward(p, s.projectIn.of(w), s.projectIn.of(g), s.errors[:len(s.qkv)])
}

// gradient computes the gradients over a head's q, k and v from e, the gradient over attended.
func (s *attentionStep) gradient(h head, e tensor.Vector) {
	depth, wide := s.width/s.heads, 3*s.width
	for from := 0; from < s.context; from += placeBlock {
		rows := min(placeBlock, s.context-from)
		attended := s.columns(e, h.attended, from, s.context-from, s.width)
		s.mul.MatMul(s.square(s.scores, 0, from, rows), 1, attended, s.columns(s.qkv, h.v, from, rows, depth).T(), 0)
		s.mul.MatMul(s.columns(s.errors, h.errors+2*s.width, from, rows, wide), 1, s.square(s.probabilities, h.probabilities, from, rows).T(), attended, 0)
	}
	ops.SoftmaxCausalGradient(s.scores, s.probabilities[h.probabilities:][:len(s.scores)], s.line, 0, s.scale())
	for from := 0; from < s.context; from += placeBlock {
		rows := min(placeBlock, s.context-from)
		scores := s.block(s.scores, 0, from, rows)
		s.mul.MatMul(s.columns(s.errors, h.errors, from, rows, wide), 1, scores, s.columns(s.qkv, h.k, 0, scores.Cols, depth), 0)
		s.mul.MatMul(s.columns(s.errors, h.errors+s.width, from, rows, wide), 1, s.square(s.scores, 0, from, rows).T(), s.columns(s.qkv, h.q, from, s.context-from, depth), 0)
	}
}
