package kernel

func addCellsGo(to *[4]*[256]Cell, bins []uint32, stride int, rows []int32, add []Cell) {
	p, q, r, s := to[0], to[1], to[2], to[3]
	for i, row := range rows {
		four, a := bins[int(row)*stride], add[i]
		c := &p[uint8(four)]
		c.G += a.G
		c.HN += a.HN
		c = &q[uint8(four>>8)]
		c.G += a.G
		c.HN += a.HN
		c = &r[uint8(four>>16)]
		c.G += a.G
		c.HN += a.HN
		c = &s[four>>24]
		c.G += a.G
		c.HN += a.HN
	}
}
