//go:build !amd64 || purego

package kernel

// Tilers returns none.
func Tilers() []Tiler { return nil }

// BestTiler returns the zero Tiler.
func BestTiler() Tiler { return 0 }

// String names the instructions.
func (Tiler) String() string { return "none" }

// The zero Tiler, which is the only one here, has no microkernels to call.

// Columns returns how many columns the panels have.
func (Tiler) Columns() (wide, narrow int) { return 0, 0 }

// Multiply must not be called.
func (Tiler) Multiply(*GemmPanel, int) { panic("kernel: no microkernels") }

// Transpose must not be called.
func (Tiler) Transpose(*float32, int, *float32, int, int, int) { panic("kernel: no microkernels") }

func multiplyAddPeak(iterations int) float64 { return multiplyAddPeakGo(iterations) }
