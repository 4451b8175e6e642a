package swim

import "encoding/binary"

// The types of memberlist's messages that hold others, which nobody here sends.
const (
	messageCompress = 9
	messageEncrypt  = 10
	messageLabel    = 244
)

// plain tells whether memberlist will find in a packet just what it shows: messages in
// the open, within a checksum and a compound if need be. It would unpack a compressed
// one to up to 40 MiB, and take what is in there as a packet again.
func plain(packet []byte) bool {
	if len(packet) > 5 && packet[0] == messageCRC {
		packet = packet[5:]
	}
	if len(packet) < 2 || packet[0] != messageCompound {
		return plainMessage(packet)
	}
	count := int(packet[1])
	sizes, parts := packet[2:], packet[min(2+2*count, len(packet)):]
	for range count {
		if len(sizes) < 2 {
			return false
		}
		size := int(binary.BigEndian.Uint16(sizes))
		if size > len(parts) || !plainMessage(parts[:size]) {
			return false
		}
		sizes, parts = sizes[2:], parts[size:]
	}
	return true
}

// plainMessage tells whether a message holds no others.
func plainMessage(message []byte) bool {
	if len(message) == 0 {
		return false
	}
	switch message[0] {
	case messageCompound, messageCompress, messageEncrypt, messageCRC, messageLabel:
		return false
	}
	return true
}
