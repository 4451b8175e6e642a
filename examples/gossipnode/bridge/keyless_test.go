//go:build unix

package bridge

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// standing is a resume as a trainer may write it to a file: without the key, and without addresses.
func (d *client) standing() (text, peer string) {
	d.t.Helper()
	var last struct{ Resume map[string]any }
	if err := json.Unmarshal(d.answers.Bytes(), &last); err != nil || last.Resume["peer"] == "" {
		d.t.Fatalf("no resume with a peer in %s: %v", d.answers.Bytes(), err)
	}
	delete(last.Resume, "seed")
	delete(last.Resume, "partners")
	kept, err := json.Marshal(last.Resume)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(kept), last.Resume["peer"].(string)
}

// back starts another bridge with a resume without a key, and returns whose peer it is.
func back(t *testing.T, standing, join string, args ...string) (d *client, a answer, peer string) {
	t.Helper()
	d = spawn(t, memory(t), args...)
	if a = d.say("%s", hello(fmt.Sprintf(`,"join":[%s],"resume":%s`, join, standing))); !a.OK {
		t.Fatalf("%+v", a)
	}
	_, peer = d.standing()
	return d, a, peer
}

// TestResumeWithoutAKey: with the key in the file of --key a peer is the same member as before. Without it, it is
// another one: its steps go on if it begins a flock, and the flock counts them once if it joins one.
func TestResumeWithoutAKey(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	if code, _, said := program.Try("keygen", "--out", key); code != cli.ExitDone {
		t.Fatal(said)
	}
	first := spawn(t, memory(t), "--key", key)
	if a := first.say("%s", hello(`,"settings":{"steps":1000}`)); !a.OK {
		t.Fatalf("%+v", a)
	}
	first.say(`{"op":"commit","steps":4}`)
	standing, was := first.standing()
	first.say(`{"op":"leave"}`)
	first.exits(cli.ExitDone)

	same, a, is := back(t, standing, "", "--key", key)
	if is != was || a.Steps != 4 {
		t.Errorf("with the key it is %s with %d steps, and was %s with 4", is, a.Steps, was)
	}
	other := spawn(t, memory(t)) // goes on while the first is away
	b := other.say("%s", hello(fmt.Sprintf(`,"join":[%q]`, a.Addresses[0])))
	if !b.OK {
		t.Fatalf("%+v", b)
	}
	clitest.Eventually(t, "the two to meet", func() bool {
		return same.say(`{"op":"commit"}`).Members == 2 && other.say(`{"op":"commit"}`).FlockSteps == 4
	})
	same.say(`{"op":"leave"}`)
	same.exits(cli.ExitDone)

	alone, a, is := back(t, standing, "")
	if is == was || a.Steps != 4 || a.FlockSteps != 4 {
		t.Errorf("alone without the key: %s, which was %s: %+v", is, was, a)
	}
	alone.say(`{"op":"leave"}`)
	alone.exits(cli.ExitDone)

	joined, a, is := back(t, standing, fmt.Sprintf("%q", b.Addresses[0]))
	if is == was || a.Steps != 0 {
		t.Errorf("another member, which joins: %s, which was %s: %+v", is, was, a)
	}
	clitest.Eventually(t, "the two to meet", func() bool { return joined.say(`{"op":"commit"}`).Members == 2 })
	for _, d := range []*client{joined, other} {
		if a := d.say(`{"op":"commit"}`); a.FlockSteps != 4 {
			t.Errorf("the flock has done 4 steps, and they are counted as %d", a.FlockSteps)
		}
	}
	for _, d := range []*client{joined, other} {
		d.say(`{"op":"leave"}`)
		d.exits(cli.ExitDone)
	}
}
