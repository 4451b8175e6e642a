package watch

// Row is what the flock knows of one peer.
type Row struct {
	ID     string
	Phase  phase
	Status Status
}

// phase is how far a peer has come.
type phase uint8

const (
	phaseWaiting  phase = iota // not started yet
	PhaseStarting              // loading its data
	PhaseJoining               // waiting for the others
	PhaseReady                 // waiting for leave to begin
	PhaseTraining
	PhaseDone
	PhaseLeft   // when asked to
	PhaseLost   // it was killed, or asked by somebody else to leave
	PhaseFailed // by its own fault
)

func (p phase) String() string {
	return [...]string{"waiting", "starting", "joining", "ready", "training", "done", "left", "lost", "failed"}[p]
}
