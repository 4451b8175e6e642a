package dataset

import (
	"image"
	"image/draw"
)

// fitted is the largest rectangle in the middle of bounds that has the proportions of a
// shape, to within a pixel.
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

// resize writes the middle of a picture in another size: each value is the mean over the
// area that it covers. All is done in whole numbers, so that every processor finds the
// same values; golang.org/x/image/draw adds up floating-point products, which some
// processors round once and others twice.
func resize(pixels []uint8, shape Shape, picture image.Image) {
	from := fitted(picture.Bounds(), shape)
	width, height := from.Dx(), from.Dy()
	row := image.NewRGBA(image.Rect(0, 0, width, 1)) // of the picture
	values := shape.Width * shape.Channels
	across, sums := make([]uint64, values), make([]uint64, values)
	area := uint64(width) * uint64(height)
	for y := range height {
		draw.Draw(row, row.Rect, picture, from.Min.Add(image.Pt(0, y)), draw.Src)
		clear(across)
		for x := range width {
			levels := row.Pix[4*x : 4*x+3]
			if shape.Channels == 1 {
				levels[0] = brightness(levels)
			}
			overlaps(x, width, shape.Width, func(column int, share uint64) {
				for c := range shape.Channels {
					across[column*shape.Channels+c] += uint64(levels[c]) * share
				}
			})
		}
		overlaps(y, height, shape.Height, func(to int, share uint64) {
			for i, sum := range across {
				sums[i] += sum * share
			}
			if (y+1)*shape.Height < (to+1)*height {
				return // the next row belongs to it too
			}
			for i, sum := range sums {
				pixels[to*values+i] = uint8((sum + area/2) / area)
			}
			clear(sums)
		})
	}
}

// overlaps cuts one length into equal pieces in two ways, and tells which of the second
// way piece i of the first meets, and how much of each: a whole one is first shares.
func overlaps(i, first, second int, meets func(piece int, share uint64)) {
	for at, end := i*second, (i+1)*second; at < end; {
		piece := at / first
		next := min(end, (piece+1)*first)
		meets(piece, uint64(next-at))
		at = next
	}
}

// brightness is that of a pixel, as color.GrayModel has it.
func brightness(rgb []uint8) uint8 {
	const full = 0x101 // makes 16 bits of 8
	return uint8((full*(19595*uint32(rgb[0])+38470*uint32(rgb[1])+7471*uint32(rgb[2])) + 1<<15) >> 24)
}
