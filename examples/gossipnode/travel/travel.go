// Package travel has peers that hold data and do not train give it to peers that train and hold none.
package travel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/rows"
)

const (
	// maxHeldOut bounds the bytes of what is held out.
	maxHeldOut = 256 << 20
	// look is the time between two looks at who still trains, and after for how long a holder stays once nobody does.
	look  = 200 * time.Millisecond
	after = 2 * time.Second
)

// about is what a holder tells of its data beside the format.
type about struct {
	Dataset string `json:"dataset"`
	Norm    string `json:"norm,omitempty"`
	Total   int    `json:"total"` // examples of all holders: an epoch of the flock
}

// counts are those of a result.
func counts(c rows.Counts) result.Travelled {
	return result.Travelled{HandedOut: c.HandedOut, TrainedSamples: c.Trained, LostSamples: c.Lost + c.Outstanding}
}

// Hold has a node give data until all that train have ended. It calls tell now and then, and once more at the end.
func Hold(ctx context.Context, node *peer.Node, s settings.Settings, data *dataset.Data, log *zap.Logger, tell func(holder string, c result.Travelled)) error {
	if data.Train == nil {
		return cli.Usage(cli.Faultf("hold", "%s is read from its files as it is needed, and a holder gives what it has in memory: mnist, fashion-mnist, glyphs, text or gosource", s.Dataset))
	}
	said := about{Dataset: s.Dataset, Total: data.Total}
	if norm := data.Train.Norm(); norm != nil {
		said.Norm = dataset.FormatNorm(norm)
	}
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	holder, err := rows.Hold(node, dataset.Stored{Set: data.Train}, rows.HoldConfig{
		Kind: data.Train.Format(), About: text, HeldOut: dataset.Stored{Set: data.HeldOut}, Seed: s.Seed, Log: log, Check: checker(s),
		Policy: rows.Policy(slices.Index(settings.HandOuts(), s.HandOut)),
	})
	if err != nil {
		return err
	}
	trained, last := false, time.Now()
	for ctx.Err() == nil && (!trained || time.Since(last) < after) {
		working := slices.ContainsFunc(node.Members(), func(m control.Member) bool {
			return m.ID != node.Self() && m.State != control.Idle && m.State != control.Over && !m.Leaving
		})
		if trained = trained || working; working || holder.Counts().Outstanding > 0 {
			last = time.Now()
		}
		tell(holder.Account(), counts(holder.Counts()))
		select {
		case <-time.After(look):
		case <-ctx.Done():
		}
	}
	err = holder.Close()
	tell(holder.Account(), counts(holder.Counts()))
	return errors.Join(err, context.Cause(ctx))
}

// read reads what a holder says of its rows.
func read(of rows.Holding, s settings.Settings) (said about, reader *dataset.Reader, err error) {
	if err = json.Unmarshal(of.About, &said); err != nil {
		return said, nil, fmt.Errorf("what a holder tells of its data: %w", err)
	}
	var norm []dataset.Normalization
	if said.Norm != "" {
		norm, err = dataset.ParseNorm(said.Norm)
	}
	if err == nil && (said.Dataset != s.Dataset || said.Total < 1 || said.Total > dataset.MaxRecords) {
		err = fmt.Errorf("%d examples of %q are held, want some of %s", said.Total, said.Dataset, s.Dataset)
	}
	if err != nil {
		return said, nil, err
	}
	reader, err = dataset.NewReader(of.Kind, norm, s.Augmentation(), s.Seed)
	return said, reader, err
}

// checker looks at rows. What holders say of them is read once, as long as they say the same.
func checker(s settings.Settings) func(of rows.Holding, n int, data []byte) error {
	type known struct {
		said   string
		reader *dataset.Reader
	}
	var last atomic.Pointer[known]
	return func(of rows.Holding, n int, data []byte) error {
		k := last.Load()
		if said := of.Kind + string(of.About); k == nil || k.said != said {
			_, reader, err := read(of, s)
			if err != nil {
				return err
			}
			k = &known{said, reader}
			last.Store(k)
		}
		return k.reader.Check(n, data)
	}
}

// Taker takes batches of what others hold: a dataset.Batches, whose Close may be called by others.
type Taker struct {
	ctx     context.Context
	batches *rows.Batches
	reader  *dataset.Reader
	mu      sync.Mutex // held by Next, and by Close
	closed  bool
}

// Take waits for a holder, for --join-wait, and makes data of what it holds.
func Take(ctx context.Context, node *peer.Node, s settings.Settings, log *zap.Logger) (*Taker, *dataset.Data, error) {
	few := 0
	if s.Hops > 1 {
		few = 1
	}
	t := &Taker{ctx: ctx}
	var err error
	t.batches, err = rows.From(node, rows.FromConfig{Batch: s.Drawn(), Hops: s.Hops, Holders: few, Seed: s.Seed, Check: checker(s), Wait: s.JoinWait, Log: log})
	if err != nil {
		return nil, nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.JoinWait)
	defer cancel()
	of, n, held, err := t.batches.HeldOut(bounded, maxHeldOut)
	var said about
	if err == nil {
		said, t.reader, err = read(of, s)
	}
	if err == nil && n == 0 {
		err = errors.New("a holder has nothing to evaluate models with")
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%w: start a member with run --hold, and the same --dataset", err), t.Close())
	}
	supply := func(int, uint64, dataset.Augment) (dataset.Batches, error) { return t, nil }
	return t, &dataset.Data{HeldOut: t.reader.Set(held), Total: said.Total, Supply: supply}, nil
}

// Next implements dataset.Batches.
func (t *Taker) Next(b *dataset.Batch) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	got, err := t.batches.Next(t.ctx)
	if err == nil {
		t.reader.Fill(b, got.Data)
	}
	return err
}

// Close implements dataset.Batches. The last batch counts as trained.
func (t *Taker) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		t.batches.Done()
	}
	return t.batches.Close()
}

// Counts tell what became of rows, in all and by holder.
func (t *Taker) Counts() (all result.Travelled, by map[string]result.Travelled) {
	whole, each := t.batches.Counts()
	by = make(map[string]result.Travelled, len(each))
	for name, c := range each {
		by[name] = counts(c)
	}
	return counts(whole), by
}
