package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/plan"
)

const batch = 10

// room is where members meet.
type room struct{ calls chan call }

type call struct {
	name  string
	data  []byte
	reply chan [][]byte
}

func (r room) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	c := call{name, data, make(chan [][]byte, 1)}
	r.calls <- c
	select {
	case all := <-c.reply:
		if all != nil {
			return all, nil
		}
	case <-ctx.Done(): // a newcomer asks how far the others are
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w: it was made before", peer.ErrSumOver)
}

// member is one that works at a speed, in seconds that a test counts.
type member struct {
	Queue
	name  string
	speed float64
	does  float64 // what of its speed it really does
}

// world is members that meet each second.
type world struct {
	t       *testing.T
	tasks   []plan.Task
	members []*member
	over    map[string]bool
	now     float64
}

// second lets all members meet, and then work for a second. It returns whether anything is left.
func (w *world) second() (more bool) {
	r := room{make(chan call)}
	type outcome struct {
		more bool
		err  error
	}
	ended := make(chan outcome, len(w.members))
	for _, m := range w.members {
		go func() {
			more, err := m.Meet(context.Background(), r, plan.State{Now: w.now, Members: []plan.Member{{Name: m.name, Speed: m.speed}}, Tasks: w.tasks})
			ended <- outcome{more, err}
		}()
	}
	var waiting []call
	for len(waiting) < len(w.members) {
		if c := <-r.calls; w.over[c.name] {
			c.reply <- nil
		} else if len(c.data) > 0 { // else it only asks whether others are further on
			waiting = append(waiting, c)
		}
	}
	slices.SortFunc(waiting, func(a, b call) int { return slices.Compare(a.data, b.data) })
	var all [][]byte
	for _, c := range waiting {
		all = append(all, c.data)
	}
	for _, c := range waiting {
		if c.name != waiting[0].name {
			w.t.Fatalf("%s and %s", c.name, waiting[0].name)
		}
		c.reply <- all
	}
	w.over[waiting[0].name] = true
	for range w.members {
		o := <-ended
		if o.err != nil {
			w.t.Fatal(o.err)
		}
		more = more || o.more
	}
	for _, m := range w.members {
		m.work(w.now)
	}
	w.now++
	return more
}

// work does for a second what is to be done.
func (m *member) work(now float64) {
	for spent := 0.0; spent < 1; {
		task, from, to, ok := m.Next(batch, now)
		if !ok {
			return
		}
		took := float64(to-from) / m.does
		m.Did(task, from, to, now+spent, now+spent+took, 0.5)
		spent += took
	}
}

func newWorld(t *testing.T, speeds ...float64) *world {
	w := &world{t: t, over: map[string]bool{}, tasks: []plan.Task{
		{Name: "monday", Kind: plan.Epoch, Samples: 3000}, {Name: "fit", Kind: plan.Fit, Samples: 600}, {Name: "judge", Kind: plan.Evaluation, Samples: 200},
	}}
	for i, s := range speeds {
		w.members = append(w.members, &member{name: fmt.Sprint("m", i), speed: s, does: s})
	}
	return w
}

// done runs until all is done, and returns the seconds that it took.
func (w *world) done() float64 {
	for w.second() {
		if w.now > 1000 {
			w.t.Fatal("it does not end")
		}
	}
	return w.now - 1
}

// TestAllIsDoneOnce: each sample is trained once, by members that are busy by their speeds.
func TestAllIsDoneOnce(t *testing.T) {
	w := newWorld(t, 100, 200, 300)
	if took := w.done(); took > 9 {
		t.Errorf("%v s for what takes 6.3", took)
	}
	samples := map[string]int{}
	for _, m := range w.members {
		c := m.Counts()
		if c.Twice != 0 || c.Skipped != 0 || c.InDoubt != 0 {
			t.Errorf("%+v", c)
		}
		for _, one := range c.List {
			if samples[one.Task] += one.Samples; (one.Task == "judge") != (one.Accuracy != nil) {
				t.Errorf("%+v", one)
			}
		}
	}
	if samples["monday"] != 3000 || samples["fit"] != 600 || samples["judge"] != 200 {
		t.Errorf("%v", samples)
	}
}

// TestWhoComesGoesAndIsLate: a member dies, one comes, tasks come, and one is a tenth as fast as it said: all is done, and
// what is done twice or may have been is counted.
func TestWhoComesGoesAndIsLate(t *testing.T) {
	synctest.Test(t, whoComesGoesAndIsLate)
}

func whoComesGoesAndIsLate(t *testing.T) {
	w := newWorld(t, 100, 100, 100)
	w.second()
	w.second()
	dead := w.members[2]
	w.members = append(w.members[:2], &member{name: "new", speed: 400, does: 400})
	w.tasks = append(w.tasks, plan.Task{Name: "late", Kind: plan.Epoch, Samples: 500})
	w.second()
	if c := w.members[0].Counts(); c.InDoubt < 100 || c.InDoubt > 210 {
		t.Errorf("%d in doubt, and the dead did %d since it told", c.InDoubt, 100)
	}
	w.members[0].does = 10
	w.done()
	all := map[string]int{}
	for _, m := range append(w.members, dead) {
		for _, one := range m.Counts().List {
			all[one.Task] += one.Samples
		}
	}
	for _, m := range w.members[:2] { // who has seen the death
		c := m.Counts()
		if c.Skipped != 0 {
			t.Errorf("%+v", c)
		}
		if twice := all["monday"] + all["late"] + all["fit"] - 4100; twice > c.Twice+c.InDoubt+batch {
			t.Errorf("%d samples were trained twice, and %s counts %d and %d", twice, m.name, c.Twice, c.InDoubt)
		}
	}
	if c := w.members[2].Counts(); len(c.List) == 0 || c.Plans < 1 || c.Skipped != 0 {
		t.Errorf("who came has done %+v", c)
	}
}

// TestATaskGoesOnElsewhere: the fit of a member that has become slow is done by another.
func TestATaskGoesOnElsewhere(t *testing.T) {
	w := newWorld(t, 100, 100)
	w.tasks = w.tasks[1:2]
	w.second()
	slow := slices.IndexFunc(w.members, func(m *member) bool { return len(m.Counts().List) > 0 })
	w.members[slow].does = 1
	if took := w.done(); took > 20 {
		t.Errorf("%v s", took)
	}
	other := w.members[1-slow].Counts()
	if len(other.List) != 1 || other.List[0].Samples != 600 || other.Skipped != 0 || other.Twice == 0 || other.Twice > 200 {
		t.Errorf("%+v", other)
	}
}

// answer is a meeting in which the others brought these blocks.
type answer [][]byte

func (a answer) Gather(_ context.Context, _ string, own []byte) ([][]byte, error) {
	return append(slices.Clone(a), own), nil
}

func TestWhoIsLeftOutOfAPlanIsTold(t *testing.T) {
	own := plan.State{Members: []plan.Member{{Name: "me", Speed: 1}}, Tasks: []plan.Task{{Name: "mine", Kind: plan.Fit, Samples: 10, Deadline: 60}}}
	var q Queue
	if more, err := q.Meet(context.Background(), answer{[]byte("rubbish")}, own); err != nil || !more || q.LeftOut() == nil {
		t.Errorf("a member that tells rubbish: more %t, %v, left out: %v", more, err, q.LeftOut())
	}
	if more, err := q.Meet(context.Background(), answer{}, own); err != nil || !more || q.LeftOut() != nil {
		t.Errorf("without it: more %t, %v, left out: %v", more, err, q.LeftOut())
	}
	if _, err := q.Meet(context.Background(), nobody{}, own); err == nil {
		t.Error("a plan without this member is taken")
	}
}

// nobody is a meeting of which nothing is heard.
type nobody struct{}

func (nobody) Gather(context.Context, string, []byte) ([][]byte, error) { return [][]byte{nil}, nil }

// One that tells of work by many that never were does not end the work of the others.
func TestManyThatNeverWere(t *testing.T) {
	w := newWorld(t, 100, 100)
	w.second()
	for i := range 2 * maxTold {
		w.members[0].done = append(w.members[0].done, plan.Part{Task: "monday", Member: fmt.Sprint("ghost", i), From: 0, To: 1})
	}
	if told := w.members[0].told(); len(told) > 10 {
		t.Errorf("%d parts are told", len(told))
	}
	w.members[0].done = w.members[0].done[:50]
	w.done()
	if slices.ContainsFunc(w.members[1].done, func(d plan.Part) bool { return strings.HasPrefix(d.Member, "ghost") }) {
		t.Errorf("others believe it: %v", w.members[1].done)
	}
}
