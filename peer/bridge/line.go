package bridge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/peer"
)

// Bounds of what a trainer may send.
const (
	// MaxHello is how many bytes a hello may have: a layout of 65,536 ranges has about 8 MiB.
	MaxHello = 16 << 20
	// MaxLine is how many any other line may have.
	MaxLine = 64 << 10
)

var errTooLong = fmt.Errorf("a line of more than %d bytes", MaxHello)

// readLine reads one line, and returns it without its end.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > MaxHello {
			return nil, errTooLong
		}
		line = append(line, piece...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return nil, err // an unfinished line is dropped
		}
	}
}

// parse decodes the line of a request.
func parse(line []byte) (q request, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	const remedy = "send one JSON object of this protocol a line: see docs/BRIDGE.md"
	if err := decoder.Decode(&q); err != nil {
		return q, refuse(CodeSyntax, remedy, "the line is no request: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return q, refuse(CodeSyntax, remedy, "there is more on the line than one object")
	}
	if q.Op == "" {
		return q, refuse(CodeSyntax, remedy, "the request has no op")
	}
	return q, nil
}

// request is a line of the trainer's: hello's fields, commit's, and save's.
type request struct {
	Op string `json:"op"`

	Version  int            `json:"v"`
	Run      string         `json:"run"`
	Join     []string       `json:"join"`
	Listen   []string       `json:"listen"`
	Layout   []entry        `json:"layout"`
	Settings map[string]any `json:"settings"`
	Memory   string         `json:"memory"`
	Frozen   string         `json:"frozen"`
	Resume   *resume        `json:"resume"`

	Steps   int      `json:"steps"`
	Samples int      `json:"samples"`
	Loss    *float64 `json:"loss"`
	Spent   int64    `json:"spent_us"`

	Path string `json:"path"`
}

// mostSpent is the longest that a commit can have taken a trainer.
const mostSpent = 24 * time.Hour

// made checks the figures that a commit reports.
func (q request) made() (peer.Made, error) {
	if q.Steps < 0 || q.Steps > peer.MaxTraded {
		return peer.Made{}, refuse(CodeSteps, "commit sooner", "a commit of %d steps: want 0 to %d", q.Steps, peer.MaxTraded)
	}
	if q.Samples < 0 {
		return peer.Made{}, refuse(CodeSteps, "leave it out if it is not known", "a commit of %d samples", q.Samples)
	}
	if q.Spent < 0 || q.Spent > mostSpent.Microseconds() {
		return peer.Made{}, refuse(CodeSteps, "leave it out if it is not known", "the last commit took %d microseconds: want 0 to %d", q.Spent, mostSpent.Microseconds())
	}
	loss := math.NaN()
	if q.Loss != nil {
		loss = *q.Loss
	}
	return peer.Made{Steps: q.Steps, Samples: q.Samples, Loss: loss}, nil
}

// reply has the fields with which every answer begins.
type reply struct {
	OK      bool     `json:"ok"`
	Refused *Refusal `json:"error,omitempty"`
}

// status is the state of the run, which several answers have.
type status struct {
	Interval   int     `json:"quantum"`
	Progress   float64 `json:"progress"`
	Steps      uint64  `json:"steps"`
	FlockSteps uint64  `json:"flock_steps"`
	Members    int     `json:"members"`
	Joined     bool    `json:"joined"` // another member is or was there
	Over       bool    `json:"over"`
	Resume     resume  `json:"resume"`
}

// welcome answers hello.
type welcome struct {
	reply
	Version   int      `json:"v"`
	Peer      string   `json:"peer"`
	Addresses []string `json:"addresses"`
	Values    int      `json:"values"`
	Start     string   `json:"start"`
	status
}

// committed answers commit, merge and leave.
type committed struct {
	reply
	Added  bool  `json:"added"`
	Merged bool  `json:"merged"`
	Waited int64 `json:"waited_us"`
	status
}

// saved answers save.
type saved struct {
	reply
	Values int `json:"values"`
}

// statsReply answers stats.
type statsReply struct {
	reply
	Stats figures `json:"stats"`
}

// send writes an answer.
func send(w io.Writer, answer any) error {
	line, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("answering the trainer: %w", err)
	}
	return nil
}
