package dataset

import (
	"image"
	"image/draw"
)

// fitted is the largest rectangle in the middle of bounds with the proportions of a shape, to within a pixel.
func fitted(bounds image.Rectangle, shape Shape) image.Rectangle {
	size := bounds.Size()
	if size.X*shape.Height > size.Y*shape.Width {
		size.X = max(1, size.Y*shape.Width/shape.Height)
	} else {
		size.Y = max(1, size.X*shape.Height/shape.Width)
	}
	from := bounds.Min.Add(bounds.Size().Sub(size).Div(2))
	return image.Rectangle{Min: from, Max: from.Add(size)}
}

// fit writes a picture in a shape, and reports whether it was resized.
func fit(pixels []uint8, shape Shape, picture image.Image) (resized bool) {
	if bounds := picture.Bounds(); bounds.Size() == image.Pt(shape.Width, shape.Height) {
		whole := image.NewRGBA(image.Rectangle{Max: bounds.Size()})
		draw.Draw(whole, whole.Rect, picture, bounds.Min, draw.Src)
		copy(pixels, channelsOf(whole.Pix, shape.Channels))
		return false
	}
	resize(pixels, shape, picture)
	return true
}

// resize writes the middle of a picture in another size: each value is the mean over the area that it covers. It
// computes in whole numbers, so every processor gets the same values. golang.org/x/image/draw adds up floating-point
// products, which processors round differently.
func resize(pixels []uint8, shape Shape, picture image.Image) {
	from := fitted(picture.Bounds(), shape)
	width, height := from.Dx(), from.Dy()
	row := image.NewRGBA(image.Rect(0, 0, width, 1)) // of the source picture
	values := shape.Width * shape.Channels
	across, sums := make([]uint64, values), make([]uint64, values)
	area := uint64(width) * uint64(height)
	for y := range height {
		draw.Draw(row, row.Rect, picture, from.Min.Add(image.Pt(0, y)), draw.Src)
		levels := channelsOf(row.Pix, shape.Channels)
		clear(across)
		for x := range width {
			overlaps(x, width, shape.Width, func(column int, share uint64) {
				for c := range shape.Channels {
					across[column*shape.Channels+c] += uint64(levels[x*shape.Channels+c]) * share
				}
			})
		}
		overlaps(y, height, shape.Height, func(to int, share uint64) {
			for i, sum := range across {
				sums[i] += sum * share
			}
			if (y+1)*shape.Height < (to+1)*height {
				return // the next row also needs it
			}
			for i, sum := range sums {
				pixels[to*values+i] = uint8((sum + area/2) / area)
			}
			clear(sums)
		})
	}
}

// channelsOf converts pixels of four bytes to red, green and blue, or to brightness as color.GrayModel does, in
// place.
func channelsOf(pix []uint8, channels int) []uint8 {
	const full = 0x101 // factor that makes 16 bits of 8
	for from, to := 0, 0; from < len(pix); from, to = from+4, to+channels {
		r, g, b := pix[from], pix[from+1], pix[from+2]
		if channels == 1 {
			pix[to] = uint8((full*(19595*uint32(r)+38470*uint32(g)+7471*uint32(b)) + 1<<15) >> 24)
		} else {
			pix[to], pix[to+1], pix[to+2] = r, g, b
		}
	}
	return pix[:len(pix)/4*channels]
}

// overlaps divides one length into first equal pieces and into second equal pieces. It calls meets for each of the
// second pieces that overlaps piece i of the first, with the overlap in shares; a whole piece of the second has first
// shares.
func overlaps(i, first, second int, meets func(piece int, share uint64)) {
	for at, end := i*second, (i+1)*second; at < end; {
		piece := at / first
		next := min(end, (piece+1)*first)
		meets(piece, uint64(next-at))
		at = next
	}
}
