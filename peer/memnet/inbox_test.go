package memnet

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestInboxAgainstAList compares the ring with a list of bytes that each carry
// their own arrival time.
func TestInboxAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type timed struct {
			value byte
			at    time.Duration
		}
		b := inbox{window: rapid.IntRange(1, 3000).Draw(t, "window")}
		var list []timed
		var now, last time.Duration
		next := byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				last = max(last, now) + time.Duration(rapid.IntRange(0, 2).Draw(t, "delay"))
				p := make([]byte, rapid.IntRange(0, b.space()).Draw(t, "size"))
				for i := range p {
					p[i] = next
					next++
					list = append(list, timed{value: p[i], at: last})
				}
				if len(p) > 0 {
					b.put(p, last, now)
				}
			},
			"take": func(t *rapid.T) {
				p := make([]byte, rapid.IntRange(0, 2000).Draw(t, "size"))
				var want []byte
				for len(want) < len(p) && len(list) > 0 && list[0].at <= now {
					want = append(want, list[0].value)
					list = list[1:]
				}
				if got := p[:b.take(p, now)]; !bytes.Equal(got, want) {
					t.Fatalf("took %v, want %v", got, want)
				}
			},
			"wait": func(t *rapid.T) { now += time.Duration(rapid.IntRange(1, 3).Draw(t, "time")) },
			"cut and heal": func(t *rapid.T) {
				b.hold(now)
				now += 2
				last = now + 1
				b.release(func(size int) (time.Duration, bool) { return last, true })
				for i := range list {
					if list[i].at > now-2 {
						list[i].at = last
					}
				}
			},
			"": func(t *rapid.T) {
				want := never
				if len(list) > 0 {
					want = list[0].at
				}
				// Bytes that have arrived may be merged under an earlier time.
				if got := b.next(); got != want && (got > now || want > now) {
					t.Fatalf("next arrives at %d, want %d", got, want)
				}
				if b.size != len(list) || b.space() != b.window-len(list) {
					t.Fatalf("holds %d, want %d", b.size, len(list))
				}
			},
		})
	})
}

// BenchmarkStream moves 64 KiB through a stream per operation, both ends on one
// goroutine; it must not allocate.
func BenchmarkStream(b *testing.B) {
	n := New(Config{})
	from, err := n.Transport("a")
	if err != nil {
		b.Fatal(err)
	}
	to, err := n.Transport("b")
	if err != nil {
		b.Fatal(err)
	}
	near, far := newStream(n.cable(from.Self(), to.Self()), from, to, 0)
	p := make([]byte, 64<<10)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := near.Write(p); err != nil {
			b.Fatal(err)
		}
		for left := p; len(left) > 0; {
			n, err := far.Read(left)
			if err != nil {
				b.Fatal(err)
			}
			left = left[n:]
		}
	}
}
