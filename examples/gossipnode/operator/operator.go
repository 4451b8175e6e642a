// Package operator sends an operator's commands to a run, for the command control and the dashboard.
package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Operator sends commands to a run.
type Operator struct {
	// Join are addresses of members; the first one that answers gets the commands.
	Join []string
	// Key is the file of the operator's key, RunKey the file of the run's key, if it has one.
	Key, RunKey string
	// Secret is the run's key itself, if a token told it.
	Secret []byte
	Run    string
}

// Deliver sends commands, if there are any, to the first member that answers, and returns the commands that are then
// in force there.
func (o Operator) Deliver(ctx context.Context, commands []control.Command, log *zap.Logger) (member transport.PeerID, standing []control.Command, err error) {
	admission, tr, err := settings.Settings{Network: settings.Network{Key: o.Key, RunKey: o.RunKey, Invitation: settings.Invitation{Secret: o.Secret}}}.Outside(log)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	voice := control.Operator{Transport: tr, Run: o.Run, After: LastSequence(o.Key), RunKey: admission.RunKey}
	var failed []error
	for _, address := range o.Join {
		if member, err = tr.Connect(ctx, address); err != nil {
			failed = append(failed, err)
			continue
		}
		if len(commands) == 0 {
			standing, err = voice.Ask(ctx, member)
		} else {
			standing, err = voice.Send(ctx, member, commands...)
		}
		if err == nil {
			err = keepSequence(o.Key, voice.After, standing)
		}
		if err == nil {
			return member, standing, nil
		}
		failed = append(failed, fmt.Errorf("%s: %w", address, err))
	}
	return "", nil, errors.Join(failed...)
}

// sequenceSuffix is appended to the key's name for the file with the number of the operator's last message: a member
// that was disconnected may not know it.
const sequenceSuffix = ".sequence"

// LastSequence is the number of the last message sent with a key, if known. If the file is missing or damaged, the
// number comes from members.
func LastSequence(key string) uint64 {
	text, _ := os.ReadFile(key + sequenceSuffix)
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// keepSequence stores the highest number in use.
func keepSequence(key string, known uint64, standing []control.Command) error {
	highest := known
	for _, c := range standing {
		highest = max(highest, c.Sequence)
	}
	if highest == known {
		return nil
	}
	if err := files.Replace(key+sequenceSuffix, keys.Mode, files.Text(strconv.AppendUint(nil, highest, 10))); err != nil {
		return fmt.Errorf("the member has taken it, but the number of the last message cannot be kept: %w", err)
	}
	return nil
}
