package swim

import "encoding/binary"

// splitPacket reads a datagram.
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
	if len(packet) > crcSize && packet[0] == messageCRC {
		packet = packet[crcSize:]
	}
	if len(packet) < 2 || packet[0] != messageCompound {
		return nil, false
	}
	count, bodies := int(packet[1]), 2+2*int(packet[1])
	if len(packet) < bodies {
		return nil, false
	}
	lengths, rest := packet[2:bodies], packet[bodies:]
	var group [][]byte
	size := 2
	for i := range count {
		n := int(binary.BigEndian.Uint16(lengths[2*i:]))
		if n > len(rest) || n+4 > most {
			return nil, false
		}
		if size+2+n > most {
			parts = append(parts, compound(group))
			group, size = nil, 2
		}
		group, size, rest = append(group, rest[:n]), size+2+n, rest[n:]
	}
	return append(parts, compound(group)), true
}

// compound puts messages together as memberlist does.
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
