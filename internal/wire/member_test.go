package wire

import "encoding/hex"

// memberVector is one member's word on another, whose fields package peer/control has.
func memberVector() vector {
	payload, err := hex.DecodeString("08" + hex.EncodeToString([]byte("12D3KooW")) + "06" + hex.EncodeToString([]byte("active")) + "02" + "01" + "1004000000000000" +
		"07" + hex.EncodeToString([]byte("build-1")) + "06" + hex.EncodeToString([]byte("v1.2.0")) + "8403000000000000" + "dc05000000000000" + "5b00" +
		"0100000000000000" + "0200000000000000" + "0300000000000000" + "0400000000000000" + "0500000000000000" +
		"02" + "01" + "000000000000e03f" + "0000000000005940" + "000000000000d03f" + "02" + "0700000000000000" + "08000000" + "0900000000000000" + "0a000000")
	if err != nil {
		panic(err)
	}
	return vector{
		name: "member", about: "one member tells of another",
		header: Header{Type: TypeMember}, payload: payload,
		parts: []part{
			{1, "length of the id"}, {8, "id: \"12D3KooW\""}, {1, "length of the role"}, {6, "role: \"active\""}, {1, "state: 2, training"},
			{1, "flags: 1, others cannot dial it"}, {8, "steps: 1040"}, {1, "length of the name"}, {7, "name: \"build-1\""},
			{1, "length of the version"}, {6, "version: \"v1.2.0\""}, {8, "milliseconds since its digest: 900"},
			{8, "milliseconds since its last exchange: 1500"}, {2, "length of the digest: 91"}, {91, "digest, as in CONTROL"},
		},
	}
}
