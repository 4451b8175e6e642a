package swim

import "encoding/binary"

func splitPacket(datagram []byte) (kind byte, nonce [nonceSize]byte, packet []byte, ok bool) {
	if len(datagram) == 0 {
		return 0, nonce, nil, false
	}
	kind, packet = datagram[0], datagram[1:]
	switch kind {
	case packetPlain:
		return kind, nonce, packet, true
	case packetAsks, packetAnswer:
		if len(packet) < nonceSize || kind == packetAnswer && len(packet) > nonceSize {
			return 0, nonce, nil, false
		}
		copy(nonce[:], packet)
		return kind, nonce, packet[nonceSize:], true
	}
	return 0, nonce, nil, false
}

// partsOf makes packets of at most so many bytes of one of memberlist's: a compound is
// taken apart, without the checksum around it, which a datagram needs no more. It
// reports false if a part is too large.
func partsOf(packet []byte, most int) (parts [][]byte, ok bool) {
	if len(packet) <= most {
		return [][]byte{packet}, true
	}
	messages, ok := messagesOf(packet)
	if !ok {
		return nil, false
	}
	var group [][]byte
	size := 2
	for _, m := range messages {
		if len(m)+4 > most {
			return nil, false
		}
		if size+2+len(m) > most {
			parts = append(parts, compound(group))
			group, size = nil, 2
		}
		group, size = append(group, m), size+2+len(m)
	}
	return append(parts, compound(group)), true
}

func compound(messages [][]byte) []byte {
	packet := []byte{messageCompound, byte(len(messages))}
	for _, m := range messages {
		packet = binary.BigEndian.AppendUint16(packet, uint16(len(m)))
	}
	for _, m := range messages {
		packet = append(packet, m...)
	}
	return packet
}

// crcSize is what a checksum puts before a packet, its type included.
const crcSize = 5

// messagesOf takes a packet apart: a checksum, which a connection and a signed datagram
// have no need of, and a compound. Compounds hold no compounds.
func messagesOf(packet []byte) (messages [][]byte, ok bool) {
	if len(packet) > crcSize && packet[0] == messageCRC {
		packet = packet[crcSize:]
	}
	if len(packet) < 2 || packet[0] != messageCompound {
		return [][]byte{packet}, len(packet) > 0
	}
	count := int(packet[1])
	sizes, parts := packet[2:], packet[min(2+2*count, len(packet)):]
	for range count {
		if len(sizes) < 2 {
			return nil, false
		}
		size := int(binary.BigEndian.Uint16(sizes))
		if size > len(parts) {
			return nil, false
		}
		messages = append(messages, parts[:size])
		sizes, parts = sizes[2:], parts[size:]
	}
	return messages, true
}
