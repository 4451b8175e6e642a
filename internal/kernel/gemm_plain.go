//go:build !amd64 || purego

package kernel

// Tilers returns none.
func Tilers() []Tiler { return nil }

// BestTiler returns the zero Tiler.
func BestTiler() Tiler { return 0 }

func multiplyPanel(Tiler, *GemmPanel, int) { panic("kernel: no microkernels") }

func transposePanel(*float32, int, *float32, int, int, int) { panic("kernel: no microkernels") }

func multiplyAddPeak(iterations int) float64 { return multiplyAddPeakGo(iterations) }
