package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/seed-97356399/murmuration/peer"
)

// errStarted ends a hello that would have made a peer.
var errStarted = errors.New("started")

// FuzzLine: whatever a trainer sends before its peer is made is refused with a code, a detail and
// a remedy, or makes a model no larger than the memory. What it would make of it is well formed.
func FuzzLine(f *testing.F) {
	for _, line := range []string{
		`{"op":"hello","v":1,"run":"digits","join":["HOST:4001"],"layout":[{"name":"w","shape":[10,784],"kind":"conv","sharing":"shared","dtype":"bf16"}],"settings":{"codec":"bf16","steps":1e3,"to":["a"]}}`,
		`{"op":"hello","v":1,"layout":[{"name":"a","shape":[]},{"name":"b","shape":[2,3],"sharing":"frozen","kind":"norm"}]}`,
		`{"op":"hello","v":1,"layout":[{"name":"w","shape":[9223372036854775807,9223372036854775807]}]}`,
		`{"op":"commit","steps":8,"samples":512,"loss":0.31}`,
		`{"op":"commit","steps":-9,"loss":1e400}`,
		`{"op":"save","path":"/tmp/x"}`, `{"op":"leave"}`, `{"op":"merge"}`, `{}`, `[]`, `{"op":"hello"}{}`, "\x00", `{"op":"hello","layout":[{}]}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		started := 0
		s := &session{config: Config{Start: func(_ context.Context, h Hello) (*peer.Peer, error) {
			started++
			if n := h.Params.Layout().Len(); n != len(h.Params.Vector()) || n == 0 {
				t.Errorf("a model of %d values for a layout of %d", len(h.Params.Vector()), n)
			}
			return nil, errStarted
		}}, handed: file(t)}
		answer, last, err := s.answer(t.Context(), line)
		switch {
		case errors.Is(err, errStarted) && started == 1:
		case err != nil:
			if r := refusalOf(err); r.Code == CodeInternal || r.Detail == "" || r.Remedy == "" || r.Fatal {
				t.Errorf("refused with %+v", r)
			}
		case !last:
			t.Errorf("answered %v without a peer", answer)
		}
		if q, err := parse(line); err == nil {
			if _, err := q.made(); err == nil && (q.Steps < 0 || q.Steps > peer.MaxTraded || q.Samples < 0) {
				t.Errorf("a commit of %d steps and %d samples", q.Steps, q.Samples)
			}
			var again bytes.Buffer
			if err := json.NewEncoder(&again).Encode(q.Settings); err != nil {
				t.Errorf("settings that are no JSON: %v", err)
			}
		}
	})
}
