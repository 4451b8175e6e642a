package bridge

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Codes of refusals say what happened; docs/BRIDGE.md explains each.
const (
	CodeSyntax    = "syntax"
	CodeVersion   = "version"
	CodeOrder     = "order"
	CodeLayout    = "layout"
	CodeMemory    = "memory"
	CodeSettings  = "settings"
	CodeRun       = "run"
	CodeNotFinite = "notfinite"
	CodeSteps     = "steps"
	CodeSave      = "save"
	CodeBusy      = "busy"
	CodeClosed    = "closed"
	CodeInternal  = "internal"
)

// Refusal is why the bridge does not do what a line asks for. A refused line changes
// nothing, not even the trainer's memory, and the conversation goes on unless Fatal is true.
type Refusal struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"`
	Fatal  bool   `json:"fatal,omitempty"`
}

// Error gives detail and remedy.
func (r *Refusal) Error() string {
	if r.Remedy == "" {
		return fmt.Sprintf("%s: %s", r.Code, r.Detail)
	}
	return fmt.Sprintf("%s: %s: %s", r.Code, r.Detail, r.Remedy)
}

func refuse(code, remedy, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Detail: fmt.Sprintf(format, args...), Remedy: remedy}
}

// ends marks a refusal as the end of the conversation.
func (r *Refusal) ends() *Refusal {
	r.Fatal = true
	return r
}

// refusalOf turns an error of a peer into the refusal for a trainer.
func refusalOf(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if r, ok := errors.AsType[*transport.RefusedError](err); ok {
		return refuse(CodeRun, r.Remedy, "%v", err).ends()
	}
	if _, ok := errors.AsType[*description.MismatchError](err); ok {
		return refuse(CodeRun, "give the settings that the members have, or another run name", "%v", err).ends()
	}
	switch {
	case errors.Is(err, peer.ErrClosed):
		return refuse(CodeClosed, "start another bridge, and go on from the values in the memory", "%v", err).ends()
	case errors.Is(err, peer.ErrConfig):
		return refuse(CodeSettings, "correct what it names", "%v", err)
	case errors.Is(err, optim.ErrNotFinite):
		return refuse(CodeNotFinite, "go back to values that are finite, with a lower learning rate", "%v", err)
	}
	return refuse(CodeInternal, "the bridge's log may tell more", "%v", err)
}
