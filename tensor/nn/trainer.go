package nn

import (
	"runtime"
	"sync"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// Trainer computes losses and gradients of a model. It owns the memory for that, so only one goroutine at a time may
// use it.
type Trainer struct {
	// Seed decides the random numbers of layers such as Dropout; each peer of a run has its own.
	Seed uint64
	// Ready, if it is set, is called by Gradient each time that grad has its final values from one on: with len(grad) at first,
	// then layer by layer, the last first, while those of the layers below are computed. A batch shared by several
	// goroutines is not told of.
	Ready func(from int)
	// Factors, if it is set, is called by Gradient before Ready for Linear layers of a batch that goes through the layers as a whole,
	// but for those inside of other layers, and with few outputs after Flatten: what grad has of the weights, from the at-th value on, is the product of errors, a row of as many values as there are outputs for
	// each row of the batch, transposed, and of inputs. They are valid during the call.
	Factors func(at int, inputs, errors tensor.Vector)

	model   *Model
	loss    Loss
	steps   uint64
	rest    int // values of the gradient before this one are not yet final
	workers []*worker
	lanes   []lane
	job     job
	tell    func(from int) // finished
	all     sync.WaitGroup
}

// job is the current batch.
type job struct {
	params, grad, x, y tensor.Vector
	learns             bool // whether the gradient is computed
	examples           int
	scale              float64 // weight of a term's loss in the mean
	seed               uint64
	lanes, step        int // lanes in use; distance between two lanes of one worker
}

// lane is a part of a batch whose passes follow each other. The lanes of a batch do not depend on the number of
// goroutines: each lane has its own gradient, and these are added in the order of the lanes. A lane has at least two
// passes if the batch has, since adding a gradient costs as much as some examples of a small pass.
type lane struct {
	grad tensor.Vector // nil for the first lane, which uses the batch's gradient
	loss float64
}

// Bounds of the lanes of a batch, and of the values of all their gradients.
const (
	maxLanes   = 4
	laneValues = 1 << 25
)

// worker has the memory and the step of one goroutine.
type worker struct {
	room   *Room
	step   Step
	errors tensor.Vector // the gradient over the outputs
	most   int           // examples of a pass, at most
	fresh  bool          // the worker has not yet used the parameters of this batch
	run    func()
}

func (m *Model) newWorker(room *Room) *worker {
	w := &worker{room: room, most: room.examples}
	w.room.layers = m.numbered
	w.step = m.layers.Make(w.room)
	w.errors = w.room.Gradients(m.out.Len())
	return w
}

// Trainer returns a Trainer for a loss on batches of up to batch examples. The first larger batch allocates more
// memory.
func (m *Model) Trainer(batch int, loss Loss) *Trainer {
	if loss == nil {
		panic("nn: Trainer: loss is nil: give one, such as CrossEntropy()")
	}
	t := &Trainer{model: m, loss: loss, lanes: make([]lane, 1)}
	t.tell = t.finished
	most := m.pass
	if m.layers.WholeBatch {
		most = max(batch, 1)
	}
	t.workers = []*worker{m.newWorker(newRoom(min(most, max(batch, 1)), true))}
	t.reserve(batch)
	return t
}

// Split lets at most goroutines goroutines share a batch; 0 means GOMAXPROCS, and the default is one. The results are
// the same bytes for any number.
func (t *Trainer) Split(goroutines int) {
	if goroutines <= 0 {
		goroutines = runtime.GOMAXPROCS(0)
	}
	first := t.workers[0]
	t.workers = t.workers[:1]
	for i := 1; i < min(goroutines, maxLanes); i++ {
		t.workers = append(t.workers, t.model.newWorker(newRoom(first.most, true)))
	}
	for i, w := range t.workers {
		w.run = func() { t.work(i); t.all.Done() }
	}
	first.room.mul.Threads = goroutines
}

// reserve allocates memory for a batch of n examples, and returns its number of lanes.
func (t *Trainer) reserve(n int) int {
	m, want := t.model, t.passLen(n)
	if want > t.workers[0].most {
		for i, w := range t.workers {
			threads, run := w.room.mul.Threads, w.run
			t.workers[i] = m.newWorker(newRoom(want, true))
			t.workers[i].room.mul.Threads, t.workers[i].run = threads, run
		}
	}
	passes := (n + max(want, 1) - 1) / max(want, 1)
	lanes := min((passes+1)/2, maxLanes, max(1, laneValues/max(1, m.layout.Len())))
	if m.layers.WholeBatch {
		lanes = 1
	}
	for len(t.lanes) < lanes {
		t.lanes = append(t.lanes, lane{grad: make(tensor.Vector, m.layout.Len())})
	}
	return lanes
}

// readyValues bounds what layers keep of a pass of all examples.
const readyValues = 1 << 24

// passLen is how many examples of a batch of n go through the layers at a time: all, if Ready is to be told of a gradient
// early, since only those of the last pass are final, or Factors of the whole.
func (t *Trainer) passLen(n int) int {
	m := t.model
	if m.layers.WholeBatch || (t.Ready != nil || t.Factors != nil) && n <= readyValues/max(m.kept, 1) {
		return n
	}
	return min(n, m.pass)
}

// Gradient overwrites grad with the gradient at params of the loss over a batch, and returns the loss. x are the
// examples, y the targets that the Loss asks for. It keeps none of the arguments, and allocates nothing for batches
// no larger than earlier ones. Lengths that do not fit are an error of the program: it panics.
func (t *Trainer) Gradient(params, grad, x, y tensor.Vector) float64 {
	t.model.check("Gradient", "grad", grad)
	if len(grad) > 0 && len(params) > 0 && &grad[0] == &params[0] {
		panic("nn: Gradient: params and grad are the same vector")
	}
	t.steps++
	t.rest = len(grad)
	loss, lanes := t.batch("Gradient", true, params, grad, x, y)
	if lanes == 0 {
		clear(grad)
	}
	t.add(grad, lanes, 0)
	return loss
}

// add adds the lanes' gradients from one value on.
func (t *Trainer) add(grad tensor.Vector, lanes, from int) {
	for _, l := range t.lanes[min(1, lanes):lanes] {
		kernel.Add(grad[from:t.rest], l.grad[from:t.rest])
	}
	t.rest = from
}

// listen has the last pass of a batch tell of what it has finished.
func (t *Trainer) listen(w *worker) {
	top, whole := w.step.(*chain)
	if !whole || t.job.step > 1 {
		return
	}
	if t.passLen(t.job.examples) == t.job.examples {
		top.factors = t.Factors
	}
	if t.Ready != nil {
		t.Ready(t.rest)
		top.done = t.tell
	}
}

// finished tells that the last pass has the values of its lane's gradient from one on.
func (t *Trainer) finished(from int) {
	t.add(t.job.grad, t.job.lanes, from)
	t.Ready(from)
}

// Loss returns the loss of a batch, with arguments as Gradient's, computed as for a prediction: without Dropout, for
// example.
func (t *Trainer) Loss(params, x, y tensor.Vector) float64 {
	loss, _ := t.batch("Loss", false, params, nil, x, y)
	return loss
}

// batch computes a batch, with its gradient if learns. It returns the loss and the number of lanes with parts of the
// gradient.
func (t *Trainer) batch(op string, learns bool, params, grad, x, y tensor.Vector) (loss float64, lanes int) {
	m := t.model
	m.check(op, "params", params)
	n := m.examples(op, x)
	terms := n * t.loss.Terms(m.out)
	mustLen(op, "y", len(y), terms)
	if n == 0 {
		return 0, 0
	}
	t.job = job{params: params, grad: grad, x: x, y: y, learns: learns, examples: n, scale: 1 / float64(terms), seed: mix(t.Seed) + t.steps, lanes: t.reserve(n)}
	t.share()
	t.job.params, t.job.grad, t.job.x, t.job.y = nil, nil, nil, nil
	for _, l := range t.lanes[:t.job.lanes] {
		loss += l.loss
	}
	return loss / float64(terms), t.job.lanes
}

// share divides the lanes among the workers.
func (t *Trainer) share() {
	t.job.step = min(len(t.workers), t.job.lanes)
	for _, w := range t.workers[1:t.job.step] {
		t.all.Add(1)
		go w.run()
	}
	t.work(0)
	t.all.Wait()
}

// work computes the lanes of one worker.
func (t *Trainer) work(worker int) {
	t.workers[worker].fresh = true
	for i := worker; i < t.job.lanes; i += t.job.step {
		t.pass(t.workers[worker], i)
	}
}

// pass computes the passes of a lane, forward and back.
func (t *Trainer) pass(w *worker, number int) {
	m, j, l := t.model, &t.job, &t.lanes[number]
	grad, size := l.grad, t.passLen(j.examples)
	if grad == nil {
		grad = j.grad
	}
	passes := (j.examples + size - 1) / size
	begin, end := number*passes/j.lanes, (number+1)*passes/j.lanes
	terms := t.loss.Terms(m.out)
	l.loss = 0
	for k := begin; k < end; k++ {
		from := k * size
		p := Pass{Examples: min(size, j.examples-from), From: from, First: k == begin, Last: k == end-1, Fresh: w.fresh, Train: j.learns, Seed: j.seed}
		w.fresh = false
		out := w.step.Forward(p, j.params, part(j.x, from, p.Examples, m.in.Len()))
		errors := w.errors[:len(out)]
		l.loss += t.loss.Gradient(errors, out, part(j.y, from, p.Examples, terms), j.scale)
		if !j.learns {
			continue
		}
		if p.Last && number == j.lanes-1 {
			t.listen(w)
		}
		w.step.Backward(p, j.params, grad, errors)
	}
	if top, whole := w.step.(*chain); whole {
		top.done, top.factors = nil, nil
	}
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014): seeds that differ in one bit give unrelated
// results.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
