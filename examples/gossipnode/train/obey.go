package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
)

// errDrained ends the work of a peer that the operator asks to leave. It is an interruption after which all is well.
var errDrained = fmt.Errorf("%w: the operator asks this peer to leave", cli.ErrInterrupted)

// errRefused: the members refused this peer. Package peer has logged which, why, and the remedy.
var errRefused = errors.New("no peer to join will have this one, as logged above")

// drained tells whether the operator has asked the peer with this context to leave.
func drained(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errDrained) }

// unlessDrained is an error, or nil if it says no more than that a peer leaves as the operator asks.
func unlessDrained(ctx context.Context, err error) error {
	if drained(ctx) && errors.Is(err, cli.ErrInterrupted) {
		return nil
	}
	return err
}

// obedient carries out what the operator says of members: the context ends when this peer is to leave, changes of
// who may take part are written to the list in the file allow, which is read again, and duties hear the rest.
func obedient(ctx context.Context, allow string, to Observer, with *duties) (context.Context, func(string, []control.Change)) {
	ctx, leave := context.WithCancelCause(ctx)
	context.AfterFunc(ctx, func() { leave(nil) }) // releases it with its parent
	return ctx, func(why string, changes []control.Change) {
		with.hear(changes)
		ofList := slices.DeleteFunc(slices.Clone(changes), func(n control.Change) bool { return n.Do != control.Admit && n.Do != control.Expel })
		switch {
		case len(ofList) == 0:
		case allow == "":
			to.Log.Warn("the operator changes who may take part: this peer admits as before, as it has no list. Start it with --allow FILE", zap.String("why", why))
		default:
			if err := amend(allow, ofList); err != nil {
				to.Log.Error("the operator's change of who may take part is not in the list: write it there", zap.String("list", allow), zap.Any("changes", ofList), zap.Error(err))
			}
		}
		if slices.ContainsFunc(changes, func(n control.Change) bool { return n.Do == control.Drain }) {
			said := "leaving, as the operator asks"
			if why != "" {
				said += ": " + why
			}
			to.Tell(watch.Report{Kind: watch.ReportNews, Said: said})
			leave(errDrained)
		}
	}
}

// maxList bounds the file of a list, as package peer does.
const maxList = 1 << 20

// amend writes the ids that a list is to have into its file, and takes those out that it is not to have. All else stays.
// Peers of one machine may share the file: each writes beside it under a name of its own, and all changes in the end.
func amend(path string, changes []control.Change) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	text, err := files.Read(path, maxList)
	if err != nil {
		return err
	}
	after := amended(string(text), changes)
	if after == string(text) {
		return nil
	}
	beside := fmt.Sprintf("%s.%d", path, time.Now().UnixNano())
	if err := files.Create(beside, info.Mode().Perm(), files.Text([]byte(after))); err != nil {
		return err
	}
	return os.Rename(beside, path)
}

// amended is the text of a list after changes.
func amended(text string, changes []control.Change) string {
	has := map[string]bool{}
	for _, n := range changes {
		if p2pnet.CheckPeer(n.Peer) == nil { // another would be a fault of the whole list
			has[string(n.Peer)] = n.Do == control.Admit
		}
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		id, _, _ := strings.Cut(line, "#")
		id = strings.TrimSpace(id)
		stays, said := has[id]
		if said && !stays {
			continue
		}
		delete(has, id)
		out.WriteString(strings.TrimSuffix(line, "\n") + "\n")
	}
	for _, id := range slices.Sorted(maps.Keys(has)) {
		if has[id] {
			out.WriteString(id + " # admitted by the operator\n")
		}
	}
	return out.String()
}
