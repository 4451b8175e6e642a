package peer_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// TestACheckpointSurvivesItsText, whose names are those in files: what is kept is read by later releases.
func TestACheckpointSurvivesItsText(t *testing.T) {
	want := peer.CheckpointWith(peer.Behind{
		Steps: 1, Age: 2, FlockSteps: 3, Incarnation: 4, Inherited: 5, Peers: 6, Orders: [][]byte{{7}},
		Past:        []peer.Past{{Peer: "a", Incarnation: 8, Steps: 9, Resumed: true}},
		Description: description.Signed{Text: []byte("{}"), Signer: "a", Signature: []byte{1}},
	})
	text, err := want.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	const names = `{"steps":1,"age":2,"flock_steps":3,"incarnation":4,"past":[{"peer":"a","incarnation":8,"steps":9,"resumed":true}],"inherited":5,"peers":6,"orders":["Bw=="],"description":`
	if !strings.HasPrefix(string(text), names) {
		t.Errorf("its text is %s, want %s...", text, names)
	}
	var got peer.Checkpoint
	if err := got.UnmarshalBinary(text); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v", got, err)
	}
	for what, text := range map[string]string{
		"no text": "", "another": "[]", "a number below zero": `{"steps":-1}`, "no life": `{"incarnation":18446744073709551615}`,
		"another's life that is none": `{"past":[{"peer":"a","incarnation":18446744073709551615}]}`, "nobody's life": `{"past":[{"incarnation":1}]}`,
		"too many lives": `{"past":[` + strings.Repeat("{},", flock.MaxPast) + "{}]}",
	} {
		if err := got.UnmarshalBinary([]byte(text)); err == nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: error %v, and it is %+v", what, err, got)
		}
	}
}

// TestACheckpointOfStats says what they tell, and nothing of others.
func TestACheckpointOfStats(t *testing.T) {
	got := peer.CheckpointOf(stats.Peer{Steps: 1, Age: 2, FlockSteps: 3, Incarnation: 4}).Said()
	if want := (peer.Behind{Steps: 1, Age: 2, FlockSteps: 3, Incarnation: 4}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
