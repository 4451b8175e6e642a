// Package travel moves data from peers that hold it, and do not train, to peers that train, and hold none.
package travel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	// maxAbout bounds the bytes of a holder's description of its data, the examples for evaluation included.
	maxAbout = 64 << 20
	// look is the time between two checks whether a member still trains; after is how long a holder stays once none does.
	look  = 100 * time.Millisecond
	after = 500 * time.Millisecond
)

// about is a holder's description of its data: a line of JSON, sent before the examples for evaluation.
type about struct {
	Dataset string `json:"dataset"`
	Format  string `json:"format"`
	Norm    string `json:"norm,omitempty"`
	Total   int    `json:"total"` // number of examples of all holders: an epoch of the flock
}

// counts converts counts to those of a result.
func counts(c rows.Counts) result.Travelled {
	return result.Travelled{HandedOut: c.HandedOut, TrainedSamples: c.Trained, LostSamples: c.Lost + c.Outstanding()}
}

// tell encodes a holder's description of its data, and the examples for evaluation.
func tell(s settings.Settings, data *dataset.Data) ([]byte, error) {
	said := about{Dataset: s.Dataset, Format: data.Train.Format(), Total: data.Total}
	if norm := data.Train.Norm(); norm != nil {
		said.Norm = dataset.FormatNorm(norm)
	}
	line, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	all := make([]int32, data.HeldOut.Len())
	for i := range all {
		all[i] = int32(i)
	}
	return dataset.Stored{Set: data.HeldOut}.Append(append(line, '\n'), all)
}

// read decodes what tell encoded. It returns a reader of the holder's examples, and the examples for evaluation.
func read(told []byte, s settings.Settings) (reader *dataset.Reader, data *dataset.Data, err error) {
	var (
		said about
		norm []dataset.Normalization
	)
	line, heldOut, _ := bytes.Cut(told, []byte{'\n'})
	if err = json.Unmarshal(line, &said); err == nil && said.Norm != "" {
		norm, err = dataset.ParseNorm(said.Norm)
	}
	if err == nil && (said.Dataset != s.Dataset || said.Total < 1 || said.Total > dataset.MaxRecords) {
		err = fmt.Errorf("%d examples of %q are held, want some of %s", said.Total, said.Dataset, s.Dataset)
	}
	digits := fmt.Sprintf("pixels %dx%dx1/%d", dataset.Side, dataset.Side, dataset.Classes)
	if err == nil && s.IsText() != strings.HasPrefix(said.Format, "text ") || err == nil && !s.IsText() && said.Format != digits {
		err = fmt.Errorf("%w: %q for %s", dataset.ErrFormat, said.Format, s.Dataset)
	}
	if err == nil {
		reader, err = dataset.NewReader(said.Format, norm, s.Augmentation(), s.Seed)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("what a holder tells of its data: %w", err)
	}
	data = &dataset.Data{Total: said.Total}
	data.HeldOut, err = reader.Set(heldOut)
	return reader, data, err
}

// Hold lets a node give data until all members that train have ended. It calls show regularly, and once at the end.
func Hold(ctx context.Context, node *peer.Node, s settings.Settings, data *dataset.Data, log *zap.Logger, show func(result.Travelled)) error {
	if data.Train == nil {
		return cli.Usage(cli.Faultf("hold", "cannot give %s, which is read from its files as needed; what is held in memory can be given: mnist, fashion-mnist, glyphs, text or gosource", s.Dataset))
	}
	told, err := tell(s, data)
	if err != nil {
		return err
	}
	reader, _, err := read(told, s)
	if err != nil {
		return err
	}
	holder, err := rows.Hold(node, dataset.Stored{Set: data.Train}, rows.HoldConfig{
		About: told, Seed: s.Seed, Log: log, Check: reader.Check, Policy: s.Dividing(),
	})
	if err != nil {
		return err
	}
	trained, last := false, time.Now()
	ended := func() bool { // rows whose end nobody tells do not keep the holder for ever
		rest := time.Since(last)
		return trained && rest >= after && (holder.Counts().Outstanding() == 0 || rest >= rows.Patience)
	}
	for ctx.Err() == nil && !ended() {
		working := slices.ContainsFunc(node.Members(), func(m control.Member) bool {
			return m.ID != node.Self() && m.State != control.Idle && m.State != control.Over && !m.Leaving
		})
		if trained = trained || working; working {
			last = time.Now()
		}
		show(counts(holder.Counts()))
		select {
		case <-time.After(look):
		case <-ctx.Done():
		}
	}
	err = holder.Close()
	show(counts(holder.Counts()))
	return errors.Join(err, context.Cause(ctx))
}

// Taker takes batches of data that others hold. It is a dataset.Batches; any goroutine may call its Close.
type Taker struct {
	ctx     context.Context
	stop    context.CancelFunc // ends a Next that waits
	wait    time.Duration      // the longest wait for a batch
	batches *rows.Batches
	reader  *dataset.Reader
	mu      sync.Mutex // held by Next, and by Close
	closed  bool
}

// Take waits for a holder, at most --join-wait, and returns its data, with batches from all holders.
func Take(ctx context.Context, node *peer.Node, s settings.Settings, log *zap.Logger) (*Taker, *dataset.Data, error) {
	t := &Taker{wait: s.JoinWait}
	t.ctx, t.stop = context.WithCancel(ctx)
	check := func(n int, data []byte) error { return t.reader.Check(n, data) } // rows come only after the reader is set
	var err error
	if t.batches, err = rows.From(node, rows.FromConfig{Batch: s.Drawn(), Hops: s.Hops, Seed: s.Seed, Check: check, Log: log}); err != nil {
		return nil, nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.JoinWait)
	defer cancel()
	var data *dataset.Data
	told, err := t.batches.About(bounded, maxAbout)
	if err == nil {
		t.reader, data, err = read(told, s)
	}
	if err == nil && data.HeldOut.Len() == 0 {
		err = errors.New("a holder has nothing to evaluate models with")
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%w: start a member with run --hold, and the same --dataset", err), t.Close())
	}
	data.Supply = func(int, uint64, dataset.Augment) (dataset.Batches, error) { return t, nil }
	return t, data, nil
}

// Next implements dataset.Batches.
func (t *Taker) Next(b *dataset.Batch) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return dataset.ErrClosed
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.wait)
	defer cancel()
	got, err := t.batches.Next(ctx)
	if err == nil {
		t.reader.Fill(b, got.Data)
	} else if t.ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", dataset.ErrClosed, err)
	} else {
		err = fmt.Errorf("no member gave rows for %v (--join-wait): start one with run --hold, and the same --dataset: %w", t.wait, err)
	}
	return err
}

// Close implements dataset.Batches. The last batch counts as trained.
func (t *Taker) Close() error {
	t.stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		t.batches.Done()
	}
	return t.batches.Close()
}

// Counts tells what became of rows, in all and by holder.
func (t *Taker) Counts() (all result.Travelled, by map[string]result.Travelled) {
	whole, each := t.batches.Counts()
	by = make(map[string]result.Travelled, len(each))
	for holder, c := range each {
		by[string(holder)] = counts(c)
	}
	return counts(whole), by
}
