package wire

import "testing"

// packs returns, for each type of message, a step that builds its frame in a
// buffer with room.
func packs(t testing.TB) map[Type]func() {
	buf := make([]byte, 0, HeaderSize+MaxHandshake)
	// Not constants, which a compiler could put in place beforehand.
	number, text, codecs, indices := uint64(len(t.Name())), t.Name(), []uint8{1, 2}, []uint32{1, 2, 3}
	hashes := make([]byte, 2*HashSize)
	return map[Type]func(){
		TypeHello:   func() { packInto(t, buf, Hello{Run: text, Steps: number}) },
		TypeWelcome: func() { packInto(t, buf, Welcome{Steps: number}) },
		TypeRefuse:  func() { packInto(t, buf, Refuse{Reason: ReasonBusy, Detail: text}) },
		TypePropose: func() {
			packInto(t, buf, Propose{Opening: Opening{Run: text, Steps: number, SliceLen: 1, Codecs: codecs}, Overlap: 1, Lanes: 1})
		},
		TypeAccept:       func() { packInto(t, buf, Accept{Window: 1, Steps: number, Overlap: 1, Lanes: 1, Codecs: codecs}) },
		TypeStatus:       func() { packInto(t, buf, Status{Incarnation: number, Slices: indices}) },
		TypeSettled:      func() { packInto(t, buf, Settled{Known: true, Applied: number}) },
		TypeLane:         func() { packInto(t, buf, Lane{Lane: 1}) },
		TypeRecord:       func() { packInto(t, buf, Record{Signed: codecs}) },
		TypeDescription:  func() { packInto(t, buf, Description{Text: codecs, Signer: text, Signature: codecs}) },
		TypeChallenge:    func() { packInto(t, buf, Challenge{}) },
		TypeProof:        func() { packInto(t, buf, Proof{}) },
		TypeStateRequest: func() { packInto(t, buf, StateRequest{Run: text}) },
		TypeManifest: func() {
			packInto(t, buf, Manifest{Run: text, Server: text, Signature: codecs, Steps: number, Values: 1, SliceLen: 1})
		},
		TypeStateHashes: func() { packInto(t, buf, StateHashes{Signature: codecs, Hashes: hashes}) },
		TypeStateWant:   func() { packInto(t, buf, StateWant{First: indices[0], Count: 1}) },
		TypeControl:     func() { packInto(t, buf, Control{Kind: ControlHold, Run: text, Author: text, Body: codecs}) },
		TypeTell:        func() { packInto(t, buf, Tell{Kind: 1, Round: number}) },
		TypeSum:         func() { packInto(t, buf, Sum{Kind: SumPlace, Name: text, Attempt: number, Next: text}) },
		TypeWant:        func() { packInto(t, buf, Want{Rows: indices, Hops: 1}) },
		TypeDone:        func() { packInto(t, buf, Done{Trained: 1}) },
		TypeValues:      func() { packInto(t, buf, Values{Count: 1}) },
		TypeServed:      func() { packInto(t, buf, Served{Server: text}) },
		TypeBatch:       func() { packInto(t, buf, Batch{Source: text}) },
		TypeOutcome:     func() { packInto(t, buf, Outcome{Loss: 1}) },
		TypeOffer: func() {
			packInto(t, buf, Offer{Opening: Opening{Run: text, Steps: number, SliceLen: 1, Codecs: codecs}, Parts: 1})
		},
	}
}

func packInto[M Message](t testing.TB, buf []byte, m M) {
	if _, err := Pack(buf, 7, m); err != nil {
		t.Fatal(err)
	}
}

// unpacks returns a step that decodes a message for each type without text, into
// the same variable each time.
func unpacks(t testing.TB) map[Type]func() {
	return map[Type]func(){
		TypeWelcome:     unpack[Welcome](t, Welcome{Steps: 5}),
		TypeAccept:      unpack[Accept](t, Accept{Window: 4, Overlap: 1, Lanes: 2, Codecs: []uint8{1, 2}}),
		TypeStatus:      unpack[Status](t, Status{Slices: make([]uint32, MaxInDoubt)}),
		TypeSettled:     unpack[Settled](t, Settled{Known: true, Applied: 5}),
		TypeLane:        unpack[Lane](t, Lane{Lane: 1}),
		TypeProof:       unpack[Proof](t, Proof{}),
		TypeStateHashes: unpack[StateHashes](t, StateHashes{Signature: []byte{1}, Hashes: make([]byte, HashSize)}),
		TypeStateWant:   unpack[StateWant](t, StateWant{First: 4, Count: 8}),
		TypeTell:        unpack[Tell](t, Tell{Kind: 1, Value: 2}),
		TypeWant:        unpack[Want](t, Want{Rows: []uint32{32}, Hops: 1}),
		TypeRows:        unpack[Rows](t, Rows{Rows: []uint32{1}, Bytes: []uint32{1}, Data: []byte{1}}),
		TypeDone:        unpack[Done](t, Done{Trained: 1}),
		TypeValues:      unpack[Values](t, Values{Count: 1}),
		TypeOutcome:     unpack[Outcome](t, Outcome{Loss: 1}),
	}
}

func unpack[M Message, P interface {
	*M
	Decode([]byte) error
}](t testing.TB, m M) func() {
	payload := m.Append(nil)
	return func() {
		if err := P(&m).Decode(payload); err != nil {
			t.Fatal(err)
		}
	}
}

// What an exchange says before and after its slices costs no memory either.
func TestMessagesAllocateNothing(t *testing.T) {
	packing, decoding := packs(t), unpacks(t)
	for _, typ := range knownTypes() {
		if _, carries := messageDecoders()[typ]; carries && packing[typ] == nil {
			t.Errorf("nobody has looked at packing %v", typ)
		}
	}
	for what, steps := range map[string]map[Type]func(){"packing": packing, "decoding": decoding} {
		for typ, step := range steps {
			if n := testing.AllocsPerRun(20, step); n != 0 {
				t.Errorf("%s %v allocates %v times", what, typ, n)
			}
		}
	}
}
