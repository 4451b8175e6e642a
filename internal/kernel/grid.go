package kernel

// Grid says where pixels lie that are worked on with their neighbours. The pixels
// of y follow one another, Channels values each.
type Grid struct {
	Rows, Cols int // of pixels of y
	Channels   int
	Line       int // values from one row of pixels of x to the next
	Stride     int // pixels, and rows, of x for one of y
}

// gridPiece bounds the values of y that one call works on: each takes up to ten
// times as long as one that is only moved.
const gridPiece = 1 << 13

// depthRun is how many pixels Depthwise works on at once.
const depthRun = longestRun / 2

// grid is what the kernels want to know of a Grid. Distances are in bytes; xNext
// and yNext lead from where a kernel ends a row to the next, lineNext from a window's
// last pixel of a line to its first of the next.
type grid struct {
	rows, cols, channels, line, lineNext, xPixel, xNext, yNext int
	runs                                                       [depthRun + 1]int // of pixels, how many of each length
}

// parts calls work for as many rows of y as one call may have, with the places of
// the first in y and x.
func (g Grid) parts(part grid, work func(y, x int, part grid)) {
	yRow, xRow := g.Cols*g.Channels, g.Stride*g.Line
	if g.Rows <= 0 || yRow <= 0 {
		return
	}
	part.cols, part.channels, part.line = g.Cols, g.Channels, floatBytes*g.Line
	step := max(1, gridPiece/yRow)
	for from := 0; from < g.Rows; from += step {
		part.rows = min(step, g.Rows-from)
		work(from*yRow, from*xRow, part)
	}
}

// check panics unless all that is read and written is there; reach is how many rows
// and columns of x belong to a pixel of y.
func (g Grid) check(y, x, reach int) {
	if g.Rows <= 0 || g.Cols <= 0 || g.Channels <= 0 {
		return
	}
	last := ((g.Rows-1)*g.Stride+reach-1)*g.Line + ((g.Cols-1)*g.Stride+reach)*g.Channels
	if g.Line < 0 || g.Stride < 1 || last > x || g.Rows*g.Cols*g.Channels > y {
		panic("kernel: a grid beyond its pictures")
	}
}

// pooled is for kernels that leave x behind the last pixel of a row's upper line.
func (g Grid) pooled() grid {
	return grid{xNext: floatBytes * (2*g.Line - 2*g.Cols*g.Channels)}
}

// deep is for kernels that leave x and y behind the first pixel of a row.
func (g Grid) deep() grid {
	part := grid{
		lineNext: floatBytes * (g.Line - (windowLines-1)*g.Channels),
		xPixel:   floatBytes * g.Stride * g.Channels,
		xNext:    floatBytes * (g.Stride*g.Line - g.Channels),
		yNext:    floatBytes * (g.Cols - 1) * g.Channels,
	}
	divide(g.Cols, depthRun, part.runs[:])
	return part
}
