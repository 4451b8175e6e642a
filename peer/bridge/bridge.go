package bridge

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"os"
	"sync"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// Version is that of the protocol.
const Version = 1

// MaxValues is how many values a trainer's model may have.
const MaxValues = 1 << 31

// ErrGone: the trainer's connection ended without leave. What it had not committed is lost.
var ErrGone = errors.New("the trainer has gone without a word")

// Config configures a bridge. Start is required.
type Config struct {
	// Start makes the peer that a trainer asks for, and need not wait until it has joined. Serve
	// closes it. It may return a *Refusal, of CodeSettings as a rule; peer.ErrConfig is
	// made one, with the error's text. The context ends when the trainer has gone.
	Start func(ctx context.Context, hello Hello) (*peer.Peer, error)
	// Log receives what an operator should know. Default: nothing is logged.
	Log *zap.Logger
}

// Hello is what a trainer asks for.
type Hello struct {
	Run          string
	Join, Listen []string
	// Settings are a string, json.Number, bool or []any each. What they mean is Config.Start's.
	Settings map[string]any
	// Frozen is a digest of what the trainer's model has beside Params, and others' should have
	// too; empty if it has nothing. It is for the run's description.
	Frozen string
	// Params is the model with the trainer's initial values. The peer may have it.
	Params *tensor.Params
	// Identity is a key for the peer, Checkpoint what lies behind Params, and Partners whom to look
	// for beside Join: those of its last life, if the trainer comes back from a bridge that has died.
	// A service that has an identity for its trainer uses that.
	Identity   ed25519.PrivateKey
	Checkpoint peer.Checkpoint
	Partners   []peer.Partner
	// Last is the member that Checkpoint is of, if the trainer has not kept its key. Identity is a new one then, and
	// CheckpointOf takes the place of Checkpoint.
	Last   transport.PeerID
	resume *resume
}

// Serve serves one trainer over control until the trainer says leave or goes, or ctx ends; then
// Serve closes control. Whatever happened, the peer has left its run in good order when Serve
// returns. memory is the file that came with the connection, or nil; the caller closes it.
//
// It returns nil after leave, ErrGone if the trainer has gone without, the *Refusal that ended the
// conversation, or the cause of ctx. Closing control must end a Read that waits in it.
func Serve(ctx context.Context, control io.ReadWriteCloser, memory *os.File, config Config) error {
	config.Log = cmp.Or(config.Log, zap.NewNop())
	s := &session{config: config, control: control, handed: memory}
	ctx, cancel := context.WithCancelCause(ctx)
	lines := make(chan []byte)
	hangUp := sync.OnceValue(control.Close) // a trainer that has the answer to leave may close first
	var reading sync.WaitGroup
	reading.Go(func() { cancel(read(ctx, control, lines)) })
	stop := context.AfterFunc(ctx, func() {
		if err := context.Cause(ctx); !errors.Is(err, errTooLong) { // errTooLong gets an answer
			_ = hangUp() // so that no write waits for a trainer that does not read
		}
	})
	err := s.converse(ctx, lines)
	stop()
	cancel(nil)
	fault := hangUp()
	reading.Wait()
	if errors.Is(fault, os.ErrClosed) || errors.Is(fault, io.ErrClosedPipe) || err != nil {
		fault = nil // control was closed before
	}
	return errors.Join(err, fault, s.end())
}

// read sends each line to the channel until the connection ends, and returns why. It reads
// ahead of the answers, so that a trainer's end is noticed while its commit waits.
func read(ctx context.Context, control io.Reader, lines chan<- []byte) error {
	r := bufio.NewReaderSize(control, MaxLine)
	for {
		line, err := readLine(r)
		switch {
		case errors.Is(err, errTooLong):
			return err
		case err != nil:
			return ErrGone
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return nil
		}
	}
}

// Busy answers a trainer that connects while another one is served.
func Busy(control io.Writer) error {
	return send(control, reply{Refused: refuse(CodeBusy, "wait until the other has left, or start another bridge", "this bridge serves another trainer").ends()})
}
