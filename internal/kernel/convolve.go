package kernel

// Windows says where the windows of a convolution lie in x, and the values that
// belong to them in y. A window is of three lines, each a run of Taps values. All
// are counts of values; distances may be such that windows overlap.
type Windows struct {
	Rows, Cols   int // of windows
	Taps         int // a multiple of three
	Line         int // from one line of a window to the next
	XPixel, XRow int // from a window to the next of its row, and to the next row's
	YPixel, YRow int // the same for y
}

const (
	windowLines = 3
	// longestRun bounds the pixels or taps that a kernel works on at once.
	longestRun = 12
	// convolvePiece bounds the products of a call for one channel, as piece bounds
	// the values: 2^18 take assembly about a tenth of a millisecond.
	convolvePiece = 1 << 18
)

// windows is what the kernels want to know of Windows. Distances are in bytes, and
// lead from the end of a line or row to the next.
type windows struct {
	rows, cols, taps, lineNext, xPixel, xNext, yPixel, yNext int
	runs                                                     [longestRun + 1]int // how many of each length
}

const floatBytes = 4

// over prepares a call for rows of windows. count pixels or taps are divided among
// runs that are as long as a kernel can and as equal as possible: short ones leave
// the processor waiting for its own sums.
func (c *Windows) over(rows, count, longest int) windows {
	w := windows{
		rows: rows, cols: c.Cols, taps: c.Taps, lineNext: floatBytes * (c.Line - c.Taps),
		xPixel: floatBytes * c.XPixel, xNext: floatBytes * (c.XRow - c.Cols*c.XPixel),
		yPixel: floatBytes * c.YPixel, yNext: floatBytes * (c.YRow - c.Cols*c.YPixel),
	}
	divide(count, longest, w.runs[:])
	return w
}

// divide cuts count into runs of at most longest, as equal as possible, and says how
// many there are of each length.
func divide(count, longest int, runs []int) {
	if count > 0 {
		n := (count + longest - 1) / longest
		runs[count/n] = n - count%n
		if long := count % n; long > 0 {
			runs[count/n+1] = long
		}
	}
}

// check panics unless all that a call reads and writes is there. lines is how many
// lines of a window it reads, channels how many values of y belong to a window.
func (c *Windows) check(y, x []float32, lines, channels int) {
	if c.Taps < windowLines || c.Taps%windowLines != 0 || min(c.Line, c.XPixel, c.XRow, c.YPixel, c.YRow) < 0 {
		panic("kernel: windows of no shape")
	}
	_ = x[(c.Rows-1)*c.XRow+(c.Cols-1)*c.XPixel+(lines-1)*c.Line+c.Taps-1]
	_ = y[(c.Rows-1)*c.YRow+(c.Cols-1)*c.YPixel+channels-1]
}

// Convolve16 equals, up to rounding,
//
//	for r := range c.Rows {
//		for p := range c.Cols {
//			for j := range 16 {
//				sum := 0
//				for l := range 3 {
//					for t := range c.Taps {
//						sum += x[r*c.XRow + p*c.XPixel + l*c.Line + t] * w[(l*c.Taps+t)*16 + j]
//					}
//				}
//				y[r*c.YRow + p*c.YPixel + j] = sum
//			}
//		}
//	}
//
// Assembly rounds once for each product, after adding it; so variants in assembly
// give the same bits, and the plain loop others.
func Convolve16(y, x, w []float32, c Windows) { convolveRows(y, x, w, c, 16, convolve16) }

// Convolve8 is Convolve16 for 8 channels.
func Convolve8(y, x, w []float32, c Windows) { convolveRows(y, x, w, c, 8, convolve8) }

func convolveRows(y, x, w []float32, c Windows, channels int, convolve func(y, x, w []float32, c windows)) {
	if c.Rows <= 0 || c.Cols <= 0 {
		return
	}
	c.check(y, x, windowLines, channels)
	_ = w[windowLines*c.Taps*channels-1]
	step := max(1, convolvePiece/(windowLines*c.Taps*c.Cols))
	for from := 0; from < c.Rows; from += step {
		rows := min(step, c.Rows-from)
		convolve(y[from*c.YRow:], x[from*c.XRow:], w, c.over(rows, c.Cols, convolveRun(channels)))
	}
}

// ConvolveGradient16 equals, up to rounding,
//
//	for l := range 3 {
//		for t := range c.Taps {
//			for j := range 16 {
//				sum := 0
//				for r := range c.Rows {
//					for p := range c.Cols {
//						sum += x[r*c.XRow + p*c.XPixel + l*c.Line + t] * y[r*c.YRow + p*c.YPixel + j]
//					}
//				}
//				w[(l*c.Taps+t)*16 + j] += sum
//			}
//		}
//	}
//
// with the same differences as Convolve16. More than about 2^18/c.Taps pixels are
// summed in parts.
func ConvolveGradient16(w, x, y []float32, c Windows) {
	convolveTaps(w, x, y, c, 16, convolveGradient16)
}

// ConvolveGradient8 is ConvolveGradient16 for 8 channels.
func ConvolveGradient8(w, x, y []float32, c Windows) {
	convolveTaps(w, x, y, c, 8, convolveGradient8)
}

func convolveTaps(w, x, y []float32, c Windows, channels int, gradient func(w, x, y []float32, c windows)) {
	if c.Rows <= 0 || c.Cols <= 0 {
		return
	}
	c.check(y, x, windowLines, channels)
	_ = w[windowLines*c.Taps*channels-1]
	step := max(1, convolvePiece/(c.Taps*c.Cols))
	for from := 0; from < c.Rows; from += step {
		part := c.over(min(step, c.Rows-from), c.Taps, convolveRun(channels))
		for line := range windowLines {
			gradient(w[line*c.Taps*channels:], x[from*c.XRow+line*c.Line:], y[from*c.YRow:], part)
		}
	}
}
