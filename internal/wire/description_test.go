package wire

func descriptionVector() vector {
	return vector{
		name: "description", about: "the peer that is joined says what the run is, before its answer",
		message: Description{Text: []byte(`{"run":"digits"}`), Signer: "12D3", Signature: []byte{1, 2, 3}},
		parts: []part{
			{1, "length of the id"}, {4, "id of who signed: \"12D3\""}, {1, "length of the signature"}, {3, "signature (here no true one)"},
			{2, "length of the text"}, {16, "text"},
		},
	}
}
