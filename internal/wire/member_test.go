package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func memberSample() Member {
	digest, err := hex.DecodeString("0100000000000000" + "0200000000000000" + "0300000000000000" + "0400000000000000" + "0500000000000000" +
		"02" + "01" + "000000000000e03f" + "0000000000005940" + "000000000000d03f" + "02" + "0700000000000000" + "08000000" + "0900000000000000" + "0a000000")
	if err != nil {
		panic(err)
	}
	return Member{
		ID: "12D3KooW", Role: "active", State: 2, Flags: MemberUnreachable, Steps: 1040, Name: "build-1", Version: "v1.2.0",
		Heard: 900, Exchanged: 1500, Digest: digest,
	}
}

func memberVector() vector {
	return vector{
		name: "member", about: "one member tells of another",
		message: memberSample(),
		parts: []part{
			{1, "length of the id"}, {8, "id: \"12D3KooW\""}, {1, "length of the role"}, {6, "role: \"active\""}, {1, "state: 2, training"},
			{1, "flags: 1, others cannot dial it"}, {8, "steps: 1040"}, {1, "length of the name"}, {7, "name: \"build-1\""},
			{1, "length of the version"}, {6, "version: \"v1.2.0\""}, {8, "milliseconds since its digest: 900"},
			{8, "milliseconds since its last exchange: 1500"}, {2, "length of the digest: 91"}, {91, "digest, as in CONTROL"},
		},
	}
}

// What is told of a member survives its encoding, and so does an introduction; what a later
// release adds is kept apart, and a cut in what this one knows is refused.
func TestMembersGrow(t *testing.T) {
	member, called := memberSample(), Introduction{Incarnation: 2, Name: "build-1", Version: "v1.2.0"}
	for name, m := range map[string]struct {
		text   []byte
		decode func([]byte) (any, []byte, error)
		want   any
	}{
		"member": {member.Append(nil), func(b []byte) (any, []byte, error) {
			var got Member
			err := got.Decode(b)
			more := got.More
			got.More = nil
			return got, more, err
		}, member},
		"introduction": {called.Append(nil), func(b []byte) (any, []byte, error) {
			var got Introduction
			err := got.Decode(b)
			more := got.More
			got.More = nil
			return got, more, err
		}, called},
	} {
		for _, later := range [][]byte{nil, {1, 2, 3}} {
			got, more, err := m.decode(append(bytes.Clone(m.text), later...))
			if err != nil || !reflect.DeepEqual(got, m.want) || !bytes.Equal(more, later) {
				t.Errorf("%s with % x more: %+v, % x, %v", name, later, got, more, err)
			}
		}
		for cut := range len(m.text) {
			if got, _, err := m.decode(m.text[:cut]); !errors.Is(err, ErrMessage) {
				t.Errorf("%s cut to %d of %d bytes: %+v, %v", name, cut, len(m.text), got, err)
			}
		}
	}
}

// Names steer no terminal and have their bounds; the largest member leaves room for more.
func TestNamesAreBounded(t *testing.T) {
	for _, name := range []string{strings.Repeat("n", MaxName+1), "\x1b[2J", "two\nlines", "\xff"} {
		var got Introduction
		if err := got.Decode(Introduction{Name: name}.Append(nil)); !errors.Is(err, ErrMessage) {
			t.Errorf("name %q: %+v, %v", name, got, err)
		}
	}
	largest := Member{
		ID: strings.Repeat("i", MaxAuthor), Role: strings.Repeat("r", maxRole), Name: strings.Repeat("n", MaxName), Version: strings.Repeat("v", MaxVersion),
		Digest: make([]byte, MaxDigest),
	}
	if n := len(largest.Append(nil)); n > MaxMember/2+128 {
		t.Errorf("the largest member has %d bytes of %d", n, MaxMember)
	}
}
