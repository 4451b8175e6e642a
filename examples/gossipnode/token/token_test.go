package token

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestTokens(t *testing.T) {
	want := Of("digits", "12D3KooW", []string{"/ip4/192.0.2.7/tcp/4001/p2p/12D3KooW", "host:1", "c:1", "d:1", "one too many:1"})
	want.Founder, want.Secret, want.Expires = "12D3Other", []byte("a key that nobody guesses"), 1_800_000_000
	text := want.String()
	got, err := Parse(" " + text + "\n")
	if err != nil || !reflect.DeepEqual(got, want) || !Is(text) || len(got.Addresses) != maxAddresses {
		t.Fatalf("%+v, %v", got, err)
	}
	if join := got.Join(); join[0] != "/ip4/192.0.2.7/tcp/4001/p2p/12D3KooW" || join[1] != "host:1" {
		t.Errorf("%q", join)
	}
	if got.Expired(time.Unix(1_799_999_999, 0)) != nil || got.Expired(time.Unix(1_800_000_000, 0)) == nil {
		t.Error("it does not end when it says")
	}
	for _, bad := range []string{"", Prefix, text[:len(text)-1], strings.Replace(text, "a", "b", 1), text + "AAAA", Prefix + "!", "murmuration2" + text[len(Prefix):]} {
		if _, err := Parse(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Of("digits", "12D3", []string{"a:1"}).String())
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := Parse(text); err == nil {
			if again, err := Parse(got.String()); err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("%+v becomes %+v, %v", got, again, err)
			}
		}
	})
}
