package nn

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// CausalSelfAttention lets each place of a sequence [context width] look at itself and the
// places before it, by several heads (Vaswani et al., 2017). Its parameters are those of
// torch.nn.MultiheadAttention: in_proj_weight [3·width width], out_proj.weight [width
// width], and with bias in_proj_bias and out_proj.bias.
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
		return Built{}, fmt.Errorf("want a width that is so many times the number of heads")
	}
	if len(in) != 2 || in.Width() != l.width {
		return Built{}, fmt.Errorf("want sequences of %d values a place", l.width)
	}
	into, err := linear{in: l.width, out: 3 * l.width, bias: l.bias, parts: 3 * l.heads}.For(in)
	if err != nil {
		return Built{}, err
	}
	back, err := linear{in: l.width, out: l.width, bias: l.bias}.For(in)
	if err != nil {
		return Built{}, err
	}
	into.Params[0].Start = Uniform(math.Sqrt(6 / float64(4*l.width))) // Glorot and Bengio, 2010, as torch
	for i, p := range into.Params {
		into.Params[i].Name = "in_proj_" + p.Name
	}
	if l.bias {
		into.Params[1].Start, back.Params[1].Start = Fill(0), Fill(0)
	}
	params := append(into.Params, within("out_proj", back.Params)...)
	return Built{Out: in, Params: params, Make: func(r *Room) Step {
		n, line := in.Len(), oddLines(in[0])
		return &attentionStep{
			attention: l, context: in[0],
			into: link{into.Make(r), 0, into.values()}, back: link{back.Make(r), into.values(), into.values() + back.values()},
			mul: r.Multiplier(), line: line,
			looked: r.Values(l.heads * in[0] * line), attended: r.Values(n),
			errors: r.errors(3 * n), scores: make(tensor.Vector, in[0]*line),
		}
	}}, nil
}

// attentionStep computes, for each example and head, softmax(q·kᵀ/√d)·v, where q, k and v
// are what the first projection makes: a matrix of its own for each head of the pass.
type attentionStep struct {
	attention
	context    int
	into, back link
	mul        *tensor.Multiplier
	line       int           // of the probabilities from one place to the next
	examples   int           // of the last Forward
	qkv        tensor.Vector // of the last Forward
	looked     tensor.Vector // how much each place looks at each: the probabilities
	attended   tensor.Vector // their sums of v, all heads side by side
	errors     tensor.Vector // over qkv
	scores     tensor.Vector // the gradient over the probabilities of one head
}

func (s *attentionStep) indifferent() bool { return indifferent(s.back.Step) }

// Blocks of so many places look at those up to their own last one.
const lookBlock = 32

// oddLines is n or somewhat more: whole lines of the cache, and not an even number of them,
// so that values one below the other do not share its sets.
func oddLines(n int) int {
	const line = 16
	return ((n+line-1)/line | 1) * line
}

// head is where one head's numbers are in a pass. Its errors lie as the rows of the first
// projection do, q beside k beside v.
type head struct{ q, k, v, errors, looked, attended int }

func (s *attentionStep) head(example, number int) head {
	depth, at := s.width/s.heads, example*s.context
	size := s.context * depth
	apart := s.heads * s.examples * size
	q := (number*s.examples + example) * size
	return head{
		q: q, k: q + apart, v: q + 2*apart, errors: at*3*s.width + number*depth,
		looked:   (example*s.heads + number) * s.context * s.line,
		attended: at*s.width + number*depth,
	}
}

// columns are rows places from one on, of a head's columns in rows of so many values.
func (s *attentionStep) columns(of tensor.Vector, at, from, rows, stride int) tensor.Matrix {
	return tensor.Matrix{Data: of[at+from*stride:], Rows: rows, Cols: s.width / s.heads, Stride: stride}
}

// block are the rows of a head's probabilities from one on, up to the last column that
// they look at.
func (s *attentionStep) block(of tensor.Vector, at, from, rows int) tensor.Matrix {
	return tensor.Matrix{Data: of[at+from*s.line:], Rows: rows, Cols: from + rows, Stride: s.line}
}

// square are the columns of a head's probabilities from one on, below the row that the
// first of them is the last of.
func (s *attentionStep) square(of tensor.Vector, at, from, cols int) tensor.Matrix {
	return tensor.Matrix{Data: of[at+from*s.line+from:], Rows: s.context - from, Cols: cols, Stride: s.line}
}

// Forward implements Step.
func (s *attentionStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	s.examples = p.Examples
	s.qkv = s.into.Forward(p, s.into.of(w), x)
	for i := range p.Examples {
		for h := range s.heads {
			s.look(s.head(i, h))
		}
	}
	return s.back.Forward(p, s.back.of(w), s.attended[:len(x)])
}

// scale is 1/√d.
func (s *attentionStep) scale() float32 {
	return float32(1 / math.Sqrt(float64(s.width/s.heads)))
}

// look goes through blocks of k for what is above their own first place, and through
// blocks of places for what they look at.
func (s *attentionStep) look(h head) {
	depth := s.width / s.heads
	for from := 0; from < s.context; from += lookBlock {
		below := s.context - from
		k := s.columns(s.qkv, h.k, from, min(lookBlock, below), depth)
		s.mul.MatMul(s.square(s.looked, h.looked, from, k.Rows), 1, s.columns(s.qkv, h.q, from, below, depth), k.T(), 0)
	}
	ops.SoftmaxCausal(s.looked[h.looked:][:s.context*s.line], s.line, 0, s.scale())
	for from := 0; from < s.context; from += lookBlock {
		seen := s.block(s.looked, h.looked, from, min(lookBlock, s.context-from))
		s.mul.MatMul(s.columns(s.attended, h.attended, from, seen.Rows, s.width), 1, seen, s.columns(s.qkv, h.v, 0, seen.Cols, depth), 0)
	}
}

// Backward implements Step.
func (s *attentionStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	q := p
	q.Inputs = true
	e = s.back.Backward(q, s.back.of(w), s.back.of(g), e)
	for i := range p.Examples {
		for h := range s.heads {
			s.learn(s.head(i, h), e)
		}
	}
	return s.into.Backward(p, s.into.of(w), s.into.of(g), s.errors[:len(s.qkv)])
}

// learn sets the errors over a head's q, k and v from those over what it heard.
func (s *attentionStep) learn(h head, e tensor.Vector) {
	depth, wide := s.width/s.heads, 3*s.width
	for from := 0; from < s.context; from += lookBlock {
		rows := min(lookBlock, s.context-from)
		attended := s.columns(e, h.attended, from, s.context-from, s.width)
		s.mul.MatMul(s.square(s.scores, 0, from, rows), 1, attended, s.columns(s.qkv, h.v, from, rows, depth).T(), 0)
		s.mul.MatMul(s.columns(s.errors, h.errors+2*s.width, from, rows, wide), 1, s.square(s.looked, h.looked, from, rows).T(), attended, 0)
	}
	ops.SoftmaxCausalGradient(s.scores, s.looked[h.looked:][:len(s.scores)], s.line, 0, s.scale())
	for from := 0; from < s.context; from += lookBlock {
		rows := min(lookBlock, s.context-from)
		scores := s.block(s.scores, 0, from, rows)
		s.mul.MatMul(s.columns(s.errors, h.errors, from, rows, wide), 1, scores, s.columns(s.qkv, h.k, 0, scores.Cols, depth), 0)
		s.mul.MatMul(s.columns(s.errors, h.errors+s.width, from, rows, wide), 1, s.square(s.scores, 0, from, rows).T(), s.columns(s.qkv, h.q, from, s.context-from, depth), 0)
	}
}
