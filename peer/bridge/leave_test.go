package bridge_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/bridge"
)

// hasty is a trainer that says leave, and has gone before the answer to it is through.
type hasty struct {
	io.Reader
	gone   *io.PipeWriter
	closed chan struct{}
}

func (h *hasty) Write(answer []byte) (int, error) {
	_ = h.gone.Close()
	<-h.closed // the bridge has noticed
	return len(answer), nil
}

func (h *hasty) Close() error {
	select {
	case <-h.closed:
		return &net.OpError{Op: "close", Err: net.ErrClosed}
	default:
		close(h.closed)
		return nil
	}
}

// TestATrainerThatLeavesInHaste has left in good order all the same.
func TestATrainerThatLeavesInHaste(t *testing.T) {
	rest, gone := io.Pipe()
	trainer := &hasty{io.MultiReader(strings.NewReader(`{"op":"leave"}`+"\n"), rest), gone, make(chan struct{})}
	if err := bridge.Serve(context.Background(), trainer, nil, bridge.Config{}); err != nil {
		t.Error(err)
	}
}
