package swim

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"
	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// newIdentity is a peer with a fixed key.
func newIdentity(t testing.TB, name string) *memnet.Transport {
	t.Helper()
	identity, err := memnet.New(memnet.Config{Seed: 1}).Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func sampleStatement(peer transport.PeerID) statement {
	return statement{
		Record: transport.Record{
			Peer: peer, Run: testRun, Incarnation: 3, Sequence: 41, Role: 2, Flags: 5, Steps: 123456, Head: 7890,
			Addresses: []string{"/ip4/192.0.2.7/tcp/4001", "/dns/peer.example/tcp/4001"},
		},
		life:      0x0102030405060708,
		ceiling:   66,
		announced: true,
	}
}

func anyStatement(t *rapid.T, peer transport.PeerID) statement {
	text := func(label string, limit int) string {
		return rapid.StringN(0, limit, limit).Draw(t, label)
	}
	s := statement{
		Record: transport.Record{
			Peer:        peer,
			Run:         text("run", transport.MaxRunName),
			Incarnation: rapid.Uint64Max(transport.MaxIncarnation).Draw(t, "incarnation"),
			Sequence:    rapid.Uint64().Draw(t, "sequence"),
			Role:        rapid.Byte().Draw(t, "role"),
			Flags:       rapid.Byte().Draw(t, "flags"),
			Steps:       rapid.Uint64().Draw(t, "steps"),
			Head:        rapid.Uint64().Draw(t, "head"),
			Rows:        rapid.Uint64().Draw(t, "rows") * rapid.Uint64Max(1).Draw(t, "holds"),
			Place:       transport.Place{Site: rapid.StringMatching(`[a-zäλ -]{0,12}`).Draw(t, "site"), Uplink: transport.Uplink(rapid.ByteMax(40).Draw(t, "uplink"))},
			Stage:       rapid.Byte().Draw(t, "stage"),
		},
		life:      rapid.Uint64().Draw(t, "life"),
		ceiling:   rapid.Uint32().Draw(t, "ceiling"),
		announced: rapid.Bool().Draw(t, "announced"),
		left:      rapid.Bool().Draw(t, "left"),
	}
	if mark := rapid.SliceOfN(rapid.Byte(), 0, transport.MaxMark).Draw(t, "mark"); len(mark) > 0 {
		s.mark = mark
	}
	for range rapid.IntRange(0, transport.MaxAddresses).Draw(t, "addresses") {
		s.Addresses = append(s.Addresses, rapid.StringMatching(`[!-~äλ]{0,32}`).Draw(t, "address"))
	}
	return s
}

func TestEveryRecordWithinBoundsIsReadBack(t *testing.T) {
	identity := newIdentity(t, "a")
	rapid.Check(t, func(t *rapid.T) {
		want := anyStatement(t, identity.Self())
		meta, err := seal(identity, want)
		if err != nil {
			t.Fatal(err)
		}
		body, signature, err := split(meta)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(identity.Self(), body)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read %+v, %v\nwant %+v", got, err, want)
		}
		if !identity.Verify(identity.Self(), signedMessage(identity.Self(), body), signature) {
			t.Fatal("the signature does not verify")
		}
	})
}

func TestTheLargestRecordFits(t *testing.T) {
	identity := newIdentity(t, "a")
	s := sampleStatement(identity.Self())
	s.Run = strings.Repeat("r", transport.MaxRunName)
	s.Addresses, s.mark, s.Rows = nil, make([]byte, transport.MaxMark), 1<<40
	s.Place = transport.Place{Site: strings.Repeat("s", transport.MaxSite), Uplink: 1}
	s.Stage = 1
	for range transport.MaxAddresses {
		s.Addresses = append(s.Addresses, strings.Repeat("a", transport.MaxAddressSize))
	}
	meta, err := seal(identity, s)
	if err != nil {
		t.Fatal(err)
	}
	if len(meta) > memberlist.MetaMaxSize {
		t.Errorf("%d bytes, at most %d fit", len(meta), memberlist.MetaMaxSize)
	}
	t.Logf("the largest record has %d bytes", len(meta))
}

func TestOversizeRecordsSayWhatToShorten(t *testing.T) {
	identity := newIdentity(t, "a")
	s := sampleStatement(identity.Self())
	s.Run, s.Incarnation = strings.Repeat("r", 65), transport.MaxIncarnation+1
	s.Addresses = []string{"a", "b", "c", "d", strings.Repeat("e", 65)}
	_, err := seal(identity, s)
	for _, fault := range []string{"run's name has 65 bytes: shorten it to 64", "is beyond 4294967296", "5 addresses: keep the best 4", "has 65 bytes: shorten it to 64"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("the error does not say %q: %v", fault, err)
		}
	}
}

func TestGoldenRecord(t *testing.T) {
	identity := newIdentity(t, "golden")
	meta, err := seal(identity, sampleStatement(identity.Self()))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "record.hex")
	text := hex.EncodeToString(meta) + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("the layout of records has changed; if that is meant, raise recordVersion and run with -update:\n%s%s", text, want)
	}
}

func TestMalformedRecordsAreRefused(t *testing.T) {
	peer := newIdentity(t, "a").Self()
	body, err := sampleStatement(peer).encode()
	if err != nil {
		t.Fatal(err)
	}
	for cut := range body {
		if _, err := decode(peer, body[:cut]); !errors.Is(err, errTruncated) {
			t.Errorf("cut to %d bytes: %v", cut, err)
		}
	}
	const runAt, incarnationAt, addressesAt = 2, 2 + 1 + len(testRun) + 8 + 4, 2 + 1 + len(testRun) + 8 + 4 + 2*8 + 2 + 2*8
	change := func(at int, value byte) []byte {
		changed := bytes.Clone(body)
		changed[at] = value
		return changed
	}
	for name, c := range map[string]struct {
		body []byte
		want error
	}{
		"version":        {change(0, 1), errVersion},
		"unknown bit":    {change(1, 65), errMalformed},
		"stage of none":  {append(change(1, 33), 0), errMalformed},
		"no stage":       {change(1, 33), errTruncated},
		"place of none":  {append(change(1, 17), 0, 0), errMalformed},
		"no such place":  {append(change(1, 17), 1, 7, 0), errMalformed},
		"no place":       {change(1, 17), errTruncated},
		"rows of none":   {append(change(1, 9), make([]byte, 8)...), errMalformed},
		"no rows":        {change(1, 9), errTruncated},
		"mark of none":   {append(change(1, 3), 0), errMalformed},
		"long mark":      {append(change(1, 3), append([]byte{transport.MaxMark + 1}, make([]byte, transport.MaxMark+1)...)...), errMalformed},
		"no mark":        {change(1, 3), errTruncated},
		"long run":       {change(runAt, transport.MaxRunName+1), errMalformed},
		"run not UTF-8":  {change(runAt+1, 0xff), errMalformed},
		"many addresses": {change(addressesAt, transport.MaxAddresses+1), errMalformed},
		"incarnation":    {change(incarnationAt+4, 2), errMalformed},
		"new line":       {change(addressesAt+2, '\n'), errMalformed},
		"trailing":       {append(bytes.Clone(body), 0), errTrailing},
	} {
		if _, err := decode(peer, c.body); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, _, err := split(make([]byte, memberlist.MetaMaxSize+1)); !errors.Is(err, errOversize) {
		t.Errorf("oversize: %v", err)
	}
	if _, _, err := split(make([]byte, signatureSize-1)); !errors.Is(err, errTruncated) {
		t.Errorf("shorter than a signature: %v", err)
	}
}

// FuzzDecode: whatever decodes is within bounds and encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	peer := transport.PeerID("peer")
	placed := sampleStatement(peer)
	placed.Rows, placed.Place = 3, transport.Place{Site: "a", Uplink: 7}
	placed.Stage = 2
	for _, s := range []statement{sampleStatement(peer), placed} {
		body, err := s.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := decode(peer, body)
		if err != nil {
			return
		}
		again, err := s.encode()
		if err != nil || !bytes.Equal(again, body) {
			t.Fatalf("%x decodes to %+v, which encodes to %x, %v", body, s, again, err)
		}
	})
}

// FuzzReadSized: a packet is within bounds and what its header says.
func FuzzReadSized(f *testing.F) {
	f.Add([]byte{0, 3, 'a', 'b', 'c', 0, 1, 'd'})
	f.Add([]byte{0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		for left := data; ; {
			packet, err := readSized(r, maxPacket)
			if err != nil {
				return
			}
			size := int(left[0])<<8 | int(left[1])
			if len(packet) != size || size > maxPacket || !bytes.Equal(packet, left[2:2+size]) {
				t.Fatalf("read %x from %x", packet, left)
			}
			left = left[2+size:]
		}
	})
}
