// Package travel moves training data from peers that hold it to peers that train and hold none.
package travel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	tables "github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/rows"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

const (
	// maxAbout bounds the bytes of a holder's description of its data, the examples for evaluation included.
	maxAbout = 64 << 20
	// look is the time between two checks whether a member still trains; after is how long a holder stays once none does.
	look  = 100 * time.Millisecond
	after = 500 * time.Millisecond
)

// Data is training data, with how it was prepared if it is rows of a table.
type Data struct {
	*dataset.Data
	Prepared *prepare.Prepared
}

// about is a holder's description of its data: a line of JSON, sent before the examples for evaluation.
type about struct {
	Dataset  string            `json:"dataset"`
	Format   string            `json:"format"`
	Norm     string            `json:"norm,omitempty"`
	Total    int               `json:"total"` // number of examples of all holders: an epoch of the flock
	Prepared *prepare.Prepared `json:"prepared,omitempty"`
}

// Counts converts counts to those of a result.
func Counts(c rows.Counts) result.Travelled {
	return result.Travelled{HandedOut: c.HandedOut, TrainedSamples: c.Trained, LostSamples: c.Lost + c.Outstanding()}
}

// tell encodes a holder's description of its data, and the examples for evaluation, as many as fit, evenly spread.
func tell(s settings.Settings, data Data) ([]byte, error) {
	held := data.HeldOut
	said := about{Dataset: s.Dataset, Format: held.Format(), Total: data.Total, Prepared: data.Prepared}
	if norm := held.Norm(); norm != nil {
		said.Norm = dataset.FormatNorm(norm)
	}
	line, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	one, err := dataset.Stored{Set: held}.Append(nil, []int32{0})
	if err != nil {
		return nil, fmt.Errorf("looking for examples to evaluate models with: %w", err)
	}
	held = held.Spread(max(0, maxAbout-len(line)-1) / len(one))
	all := make([]int32, held.Len())
	for i := range all {
		all[i] = int32(i)
	}
	return dataset.Stored{Set: held}.Append(append(line, '\n'), all)
}

// read decodes what tell encoded. It returns a reader of the holder's examples, and the examples for evaluation.
func read(told []byte, s settings.Settings) (reader *dataset.Reader, data Data, err error) {
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
	if err == nil {
		err = fits(said, s)
	}
	if err == nil {
		reader, err = dataset.NewReader(said.Format, norm, s.Augmentation(), s.Seed)
	}
	if err != nil {
		return nil, data, fmt.Errorf("what a holder tells of its data: %w", err)
	}
	data = Data{&dataset.Data{Total: said.Total}, said.Prepared}
	data.HeldOut, err = reader.Set(heldOut)
	return reader, data, err
}

// fits checks that the format of a holder's examples is one of the data set, and of its preparation if it is a table.
func fits(said about, s settings.Settings) error {
	want := dataset.FormatOf(s.Dataset)
	if s.IsTable() {
		columns, classes, err := tables.Shape(said.Prepared)
		if err != nil {
			return err
		}
		want = fmt.Sprintf("numbers 1x%dx1/%d", columns, classes)
	}
	if any := strings.HasSuffix(want, " ") && strings.HasPrefix(said.Format, want); said.Format != want && !any {
		return fmt.Errorf("%w: %q for %s, want %q", dataset.ErrFormat, said.Format, s.Dataset, want)
	}
	return nil
}

// Give lets a node give data to members that train. The caller closes the holder before the node.
func Give(ctx context.Context, node *peer.Node, s settings.Settings, data Data, log *zap.Logger) (*rows.Holder, error) {
	given, err := data.Given(ctx)
	if errors.Is(err, dataset.ErrTooLarge) {
		err = fmt.Errorf("%w (--memory)", err)
	}
	if err != nil {
		return nil, cli.Config(err)
	}
	told, err := tell(s, data)
	if err != nil {
		return nil, err
	}
	reader, _, err := read(told, s)
	if err != nil {
		return nil, err
	}
	return rows.Hold(node, given, rows.HoldConfig{About: told, Seed: s.Seed, Log: log, Check: reader.Check, Policy: s.Dividing()})
}

// Hold lets a node give data until all members that train have ended. It calls begun with the holder, and show regularly, and once at
// the end.
func Hold(ctx context.Context, node *peer.Node, s settings.Settings, data Data, log *zap.Logger, begun func(*rows.Holder), show func(result.Travelled)) error {
	holder, err := Give(ctx, node, s, data, log)
	if err != nil {
		return err
	}
	begun(holder)
	trained, last := false, time.Now()
	for ctx.Err() == nil {
		working, waiting := others(node)
		if trained = trained || working; working {
			last = time.Now()
		}
		least := after
		if waiting {
			least = max(after, s.JoinWait)
		}
		if holder.Counts().Outstanding() > 0 { // rows whose end nobody tells do not keep the holder for ever
			least = max(least, rows.Patience)
		}
		if trained && time.Since(last) >= least {
			break
		}
		show(Counts(holder.Counts()))
		select {
		case <-time.After(look):
		case <-ctx.Done():
		}
	}
	err = holder.Close()
	show(Counts(holder.Counts()))
	return errors.Join(err, context.Cause(ctx))
}

// others tells whether other members train, and whether some without rows may begin to.
func others(node *peer.Node) (working, waiting bool) {
	for _, m := range node.Members() {
		if m.ID != node.Self() && !m.Leaving && m.State != control.Over {
			working = working || m.State != control.Idle
			waiting = waiting || m.Rows == 0
		}
	}
	return working, waiting
}

// Taker takes batches of data that others hold. It is a dataset.Batches; any goroutine may call its Close.
type Taker struct {
	node    *peer.Node
	ctx     context.Context
	stop    context.CancelFunc // ends a Next that waits
	wait    time.Duration      // the longest wait for a batch
	batches *rows.Batches
	reader  *dataset.Reader
	mu      sync.Mutex // held by Next, and by Close
	closed  bool
}

// Take waits for a holder, at most --join-wait, and returns its data, with batches from all holders.
func Take(ctx context.Context, node *peer.Node, s settings.Settings, log *zap.Logger) (*Taker, Data, error) {
	t := &Taker{node: node, wait: s.JoinWait}
	t.ctx, t.stop = context.WithCancel(ctx)
	check := func(n int, data []byte) error { return t.reader.Check(n, data) } // rows come only after the reader is set
	var err error
	if t.batches, err = rows.From(node, rows.FromConfig{Batch: s.Drawn(), Hops: s.Hops, Seed: s.Seed, Check: check, Log: log}); err != nil {
		return nil, Data{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.JoinWait)
	defer cancel()
	var data Data
	told, err := t.batches.About(bounded, maxAbout)
	if err == nil {
		t.reader, data, err = read(told, s)
	}
	if err == nil && data.HeldOut.Len() == 0 {
		err = errors.New("a holder has nothing to evaluate models with")
	}
	if err != nil {
		return nil, data, errors.Join(fmt.Errorf("%w: start a member with run --hold, and the same --dataset", err), t.Close())
	}
	data.Supply = func(int, uint64, dataset.Augment) (dataset.Batches, error) { return t, nil }
	return t, data, nil
}

// Next implements dataset.Batches. While no holder has rows for this peer, the others may do all the work: peer.ErrRunOver.
func (t *Taker) Next(b *dataset.Batch) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return dataset.ErrClosed
	}
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(t.ctx, min(look, t.wait))
		got, err := t.batches.Next(ctx)
		cancel()
		switch {
		case err == nil:
			t.reader.Fill(b, got.Data)
			return nil
		case t.ctx.Err() != nil:
			return fmt.Errorf("%w: %w", dataset.ErrClosed, err)
		case t.node.State() == control.Over:
			return peer.ErrRunOver
		case time.Since(began) >= t.wait:
			return fmt.Errorf("no member gave rows for %v (--join-wait): start one with run --hold, and the same --dataset: %w", t.wait, err)
		}
	}
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
		by[string(holder)] = Counts(c)
	}
	return Counts(whole), by
}
