package kernel

// run is a call of one kernel on memory that all have. Results that a kernel does
// not have are zero.
type run struct {
	name  string
	sum   bool // the first result need not be exact
	apply func(v variant, m *memory) [2]float64
}

// nothing is the result of a kernel that only writes.
func nothing(do func(v variant, m *memory)) func(v variant, m *memory) [2]float64 {
	return func(v variant, m *memory) [2]float64 { do(v, m); return [2]float64{} }
}

func truth(b bool) [2]float64 {
	if b {
		return [2]float64{1}
	}
	return [2]float64{}
}

func runs() []run {
	momentum := Momentum{Rate: 0.1, Momentum: 0.9, Decay: 5e-4}
	adam := AdamW{
		Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, OneMinus1: 0.1, OneMinus2: 0.001,
		Correction1: 1.25, Correction2: 7.5, Epsilon: 1e-8, Decay: 0.01,
	}
	lion := Lion{Rate: 1e-4, Beta1: 0.9, OneMinus1: 0.1, Beta2: 0.99, OneMinus2: 0.01, Decay: 0.01}
	return []run{
		{"Add", false, nothing(func(v variant, m *memory) { v.add(m.a, m.b) })},
		{"Sub", false, nothing(func(v variant, m *memory) { v.sub(m.a, m.b) })},
		{"Mul", false, nothing(func(v variant, m *memory) { v.mul(m.a, m.b) })},
		{"Axpy", false, nothing(func(v variant, m *memory) { v.axpy(m.a, m.factor, m.b) })},
		{"Scale", false, nothing(func(v variant, m *memory) { v.scale(m.a, m.factor) })},
		{"ScaledDifference", false, nothing(func(v variant, m *memory) { v.scaledDifference(m.a, m.factor, m.b, m.c) })},
		{"SumSquares", true, func(v variant, m *memory) [2]float64 { return [2]float64{v.squares(m.a)} }},
		{"SquaredDistance", true, func(v variant, m *memory) [2]float64 { return [2]float64{v.distance(m.a, m.b)} }},
		{"ScaledDistance", true, func(v variant, m *memory) [2]float64 {
			return [2]float64{v.scaledDistance(m.a, m.factor, m.b, m.c)}
		}},
		{"MaxAbs", false, func(v variant, m *memory) [2]float64 { return [2]float64{float64(v.maxAbs(m.a))} }},
		{"Finite", false, func(v variant, m *memory) [2]float64 { return truth(v.finite(m.a)) }},
		{"BF16Encode", false, nothing(func(v variant, m *memory) { v.bf16Encode(m.half, m.a) })},
		{"BF16Decode", false, nothing(func(v variant, m *memory) { v.bf16Decode(m.a, m.half) })},
		{"FP16Decode", false, nothing(func(v variant, m *memory) { v.fp16Decode(m.a, m.half) })},
		{"BF16Finite", false, func(v variant, m *memory) [2]float64 { return truth(v.bf16Finite(m.half)) }},
		{"Float32Finite", false, func(v variant, m *memory) [2]float64 { return truth(v.float32Finite(m.full)) }},
		{"Rectify", false, nothing(func(v variant, m *memory) { v.rectify(m.a) })},
		{"RectifyGradient", false, nothing(func(v variant, m *memory) { v.rectifyGradient(m.a, m.b) })},
		{"ReLU6", false, nothing(func(v variant, m *memory) { v.relu6(m.a, m.b) })},
		{"ReLU6Gradient", false, nothing(func(v variant, m *memory) { v.relu6Gradient(m.a, m.b) })},
		{"MomentumStep", false, nothing(func(v variant, m *memory) { v.momentum(m.a, m.b, m.c, m.d, momentum) })},
		{"NesterovStep", false, nothing(func(v variant, m *memory) { v.nesterov(m.a, m.b, m.c, m.d, momentum) })},
		{"AdamWStep", false, nothing(func(v variant, m *memory) { v.adamW(m.a, m.b, m.e, m.c, m.d, adam) })},
		{"LionStep", false, nothing(func(v variant, m *memory) { v.lion(m.a, m.b, m.c, m.d, lion) })},
		{"Exp", false, nothing(func(v variant, m *memory) { v.exp(m.a, m.b) })},
		{"GELU", false, nothing(func(v variant, m *memory) { v.gelu(m.a, m.b) })},
		{"SiLU", false, nothing(func(v variant, m *memory) { v.silu(m.a, m.b) })},
		{"Sigmoid", false, nothing(func(v variant, m *memory) { v.sigmoid(m.a, m.b) })},
		{"Tanh", false, nothing(func(v variant, m *memory) { v.tanh(m.a, m.b) })},
		{"GELUGradient", false, nothing(func(v variant, m *memory) { v.geluGradient(m.a, m.b) })},
		{"SiLUGradient", false, nothing(func(v variant, m *memory) { v.siluGradient(m.a, m.b) })},
		{"SigmoidGradient", false, nothing(func(v variant, m *memory) { v.sigmoidGradient(m.a, m.b) })},
		{"TanhGradient", false, nothing(func(v variant, m *memory) { v.tanhGradient(m.a, m.b) })},
	}
}
