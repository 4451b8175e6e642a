package train

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/dashboard"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/serve"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	models "github.com/seed-97356399/murmuration/peer/serve"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// serveEvery is the time between two looks at a model that is trained.
	serveEvery = time.Second
	// judgedExamples is how many held-out examples measure the models at a time: others each time.
	judgedExamples = 512
	// judgedMargin is what chance does to the accuracy on so few: less is no reason to swap back.
	judgedMargin = 0.01
)

// openServers listens on the addresses of the dashboard and of predictions; nil without one.
func openServers(s settings.Settings) (board *dashboard.Server, server *serve.Server, err error) {
	if board, err = openDashboard(s); err != nil || s.Serve == "" {
		return board, nil, err
	}
	if server, err = serve.Listen(s.Serve, s.ServeToken); err != nil {
		err = errors.Join(fmt.Errorf("--serve: %w", err), board.Close())
	}
	return board, server, err
}

// serves serves the model of a peer while it trains. A nil server does nothing.
func serves(t *training, server *serve.Server) {
	if server == nil {
		return
	}
	s := &snapshots{training: t, random: rand.New(rand.NewPCG(t.Seed, 0))}
	s.networks.New = func() any {
		m, _ := nets.Sized(t.Model, t.work.Data.Shape(), t.work.Data.Classes(), t.Sizes) // the peer has made one already
		return m
	}
	server.Serve(models.Checks{Every: serveEvery, Margin: judgedMargin, Next: s.next, Judge: s.measure}, t.Log, t.ServeToken == "")
	t.say("answering predictions at " + server.URL())
}

// snapshots makes models of the parameters of a peer that trains.
type snapshots struct {
	*training
	networks sync.Pool // of nets.Model, each for one goroutine at a time
	version  uint64
	random   *rand.Rand
}

// snapshot is the model of one moment.
type snapshot struct {
	models.Model // of a table; nil of pictures
	*snapshots
	about  models.About
	params tensor.Vector
}

// next is the model of now, nil if it is the one before.
func (s *snapshots) next(context.Context) (models.Model, error) {
	data := s.work.Data
	shape := data.Shape()
	m := &snapshot{snapshots: s, about: models.About{
		Kind: s.Model, Width: shape.Values(), Shape: []int{shape.Height, shape.Width, shape.Channels}, Outputs: data.Classes(),
	}}
	for class := range data.Classes() {
		m.about.Classes = append(m.about.Classes, strconv.Itoa(class))
	}
	before := s.version
	take := func(p *tensor.Params) (err error) {
		m.params = p.Vector()
		s.version, err = s.peer.Snapshot(m.params, before)
		return err
	}
	if s.work.Prepared == nil {
		if err := take(tensor.NewParams(s.work.Params.Layout())); err != nil {
			return nil, err
		}
	} else {
		file, err := rows.Neural(s.Model, s.Sizes, s.work.Prepared, take)
		if err == nil {
			m.Model, err = serve.Of("", "", file)
		}
		if err != nil {
			return nil, err
		}
		m.about = m.Model.About()
	}
	if s.version == before {
		return nil, nil
	}
	m.about.Version, m.about.Step, m.about.Figure = fmt.Sprint(s.version), s.peer.Stats().Steps, "accuracy"
	return m, nil
}

// measure measures models on some held-out examples.
func (s *snapshots) measure(_ context.Context, all ...models.Model) ([]float64, error) {
	held := s.recent.judges(s.work.Data.HeldOut)
	indices := make([]int32, min(judgedExamples, held.Len()))
	for i, at := range s.random.Perm(held.Len())[:len(indices)] {
		indices[i] = int32(at)
	}
	examples, network := held.Subset(indices), s.networks.Get().(nets.Model)
	defer s.networks.Put(network)
	figures := make([]float64, len(all))
	for i, m := range all {
		figures[i], _ = network.Evaluate(m.(*snapshot).params, examples)
	}
	return figures, nil
}

// About implements models.Model.
func (m *snapshot) About() models.About { return m.about }

// Predict implements models.Model: of pictures, each as its levels, 0 to 255.
func (m *snapshot) Predict(dst []float64, rows models.Rows) ([]float64, error) {
	if m.Model != nil {
		return m.Model.Predict(dst, rows)
	}
	pixels := make([]uint8, len(rows.Numbers))
	for i, v := range rows.Numbers {
		if pixels[i] = uint8(v); float32(pixels[i]) != v {
			return dst, fmt.Errorf("pixel %d of row %d is %v: want a whole number from 0 to 255", i%m.about.Width+1, i/m.about.Width+1, v)
		}
	}
	held := m.work.Data.HeldOut
	set, err := dataset.NewSet(pixels, make([]uint8, rows.Len), held.Shape(), held.Classes(), held.Norm()...)
	if err != nil {
		return dst, err
	}
	network := m.networks.Get().(nets.Model)
	defer m.networks.Put(network)
	return append(dst, network.Probabilities(m.params, set)...), nil
}
