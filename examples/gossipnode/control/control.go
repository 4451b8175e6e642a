// Package control is the command control, by which an operator controls a run.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/operator"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// controlTimeout is the default of --timeout: how long control tries to reach a member.
const controlTimeout = 15 * time.Second

// controlSettings are the flags of control.
type controlSettings struct {
	Join        []string
	OperatorKey string
	RunKey      string
	Run         string
	Reason      string
	At          uint64
	LR          float64
	Warmup      float64
	Schedule    string
	Every       int
	Steps       uint64
	Set         []string
	Timeout     time.Duration
	JSON        bool

	secret []byte // the run's key, if a token tells it
	role   string // that a member is to have, if the action is role
}

// The actions of control.
const (
	actPause    = "pause"
	actResume   = "resume"
	actStop     = "stop"
	actSchedule = "schedule"
	actAnnounce = "announce"
	actShow     = "show"
	actDrain    = "drain"
	actAdmit    = "admit"
	actExpel    = "expel"
	actSite     = "site"
	actRole     = "role"
	actWeight   = "weight"
)

func actions() []string {
	return []string{actPause, actResume, actStop, actSchedule, actAnnounce, actShow, actDrain, actAdmit, actExpel, actSite, actRole, actWeight}
}

// Command makes the command control.
func Command(std cli.Streams) *cobra.Command {
	var s controlSettings
	cmd := &cobra.Command{
		Use:   "control " + strings.Join(actions(), "|"),
		Short: "Pause, resume, stop or change a run, as its operator",
		Long: `Control tells a run what its operator wants. It connects to one member, which
passes the message on to all others, and keeps it for those who come later; it
trains nothing itself and is no member. It ends when the member has taken the
message. The peers of the run obey the operator whose id they were given with
run --operator, and nobody else; keygen makes the key and prints its id. The number
of the last message is kept beside the key.

  pause     hold every peer before its next step; exchanges go on
  resume    let them go on
  stop      end the run for all; it cannot be begun again
  schedule  change the learning rate (--lr, --warmup, --schedule), the steps
            between two exchanges (--every) or the work (--steps), from the
            flock's step --at on
  announce  tell what the run is (--set NAME=VALUE): peers that were started
            otherwise say so in their logs
  show      print what the operator has said and what still counts
  drain P   have a member leave: it finishes its gradient and its exchange, saves its
            checkpoint, says goodbye and exits 0; control waits until it has gone. P is
            its id, the end of that, or its name, as status shows them
  admit ID  add ids to the lists of those that may take part (run --allow), at every
            member that obeys and has one, in its file too
  expel ID  take ids off them: they are disconnected, and refused from then on
  site P S  have a member say that it is at site S (run --site), until it is started again:
            links inside a site are used more than those across
  role P R  have a member train or not, until it is started again, without leaving the run:
            R is train or none, or, of one that holds rows for others, both or hold
  weight P W
            have members that hold rows (run --hold) give P a share of each epoch that is W
            times what it would be, 0.01 to 100; 1 again ends that. It counts for members that
            train on the rows of others (run --train-only)

What was said of the last 32 ids reaches members that were away, too.`,
		Example: `  gossipnode control --join 192.0.2.7:4001 --operator-key operator.key pause
  gossipnode control --join 192.0.2.7:4001 --operator-key operator.key schedule --lr 0.01 --at 20000
  gossipnode control --join 192.0.2.7:4001 --operator-key operator.key drain build-3`,
		Args: knownAction,
		RunE: func(cmd *cobra.Command, args []string) error {
			sources, err := cli.Resolve(cmd)
			if err != nil {
				return err
			}
			commands, err := s.commands(args, sources)
			if err != nil {
				return err
			}
			return s.tell(args[0], commands, std)
		},
	}
	s.register(cmd.Flags())
	cli.TakeFile(cmd.Flags())
	return cmd
}

func knownAction(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0, !slices.Contains(actions(), args[0]), len(args) > 1 && !aboutMembers(args[0]):
		return cli.Usagef("control takes one word, %s, not %q", cli.List(actions()), args)
	}
	return wantMembers(args)
}

func (s *controlSettings) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringArrayVar(&s.Join, "join", nil, "host:port, multiaddr or token of a member; repeatable, the first that answers is told")
	flags.StringVar(&s.OperatorKey, "operator-key", "", "file of the operator's key, made by keygen")
	flags.StringVar(&s.RunKey, "run-key", "", "file of the key that all peers of the run share, if they do")
	flags.StringVar(&s.Run, "run", settings.DefaultRun, "name of the run")
	flags.StringVar(&s.Reason, "reason", "", "why, for those who read logs (pause, resume, stop, drain, admit, expel, site, role, weight)")
	flags.Uint64Var(&s.At, "at", 0, "flock's step from which on a schedule holds (default: at once)")
	flags.Float64Var(&s.LR, "lr", 0, "full learning rate")
	flags.Float64Var(&s.Warmup, "warmup", 0, "with --lr: share of the work over which the learning rate rises, 0 to 1")
	flags.StringVar(&s.Schedule, "schedule", settings.ScheduleCosine, "course of the learning rate, with --lr: "+cli.List(settings.Schedules())+"; what the peers were started with no longer counts")
	flags.IntVar(&s.Every, "every", 0, "steps between two exchanges, 0 for as few as the link allows")
	flags.Uint64Var(&s.Steps, "steps", 0, "work to do: so many steps times the number of peers")
	flags.StringArrayVar(&s.Set, "set", nil, "NAME=VALUE of an announcement; repeatable")
	flags.DurationVar(&s.Timeout, "timeout", controlTimeout, "how long to try to reach a member")
	flags.BoolVar(&s.JSON, "json", false, "print one JSON object")
}

// commands checks the settings and makes the commands of them.
func (s *controlSettings) commands(args []string, from cli.Origins) ([]control.Command, error) {
	action := args[0]
	var faults cli.Faults
	// Only flags count: a file or variable that is meant for run must not change a command.
	given := func(name string) bool { return from.Source(name) == cli.FromFlag }
	if len(s.Join) == 0 {
		faults.Add(errors.New("control needs --join, the address of a member"))
	}
	join, run, secret, err := settings.Redeemed(s.Join, s.Run, from)
	if err != nil {
		return nil, err
	}
	s.Join, s.Run, s.secret = join, run, secret
	faults.Add(settings.Network{Join: s.Join, Run: s.Run, Gathering: settings.Gathering{MinPeers: 1}, Membership: settings.CarrierAuto, Unreachable: settings.UnreachableAuto}.Faults()...)
	if s.OperatorKey == "" {
		faults.Add(errors.New("control needs --operator-key, the file of the operator's key"))
	}
	faults.If(s.Timeout <= 0, "timeout", "%s: want a positive time", s.Timeout)
	for _, name := range []string{"reason", "set", "at", "lr", "warmup", "schedule", "every", "steps"} {
		of := []string{actSchedule}
		switch name {
		case "reason":
			of = []string{actPause, actResume, actStop, actDrain, actAdmit, actExpel, actSite, actRole, actWeight}
		case "set":
			of = []string{actAnnounce}
		}
		faults.If(given(name) && !slices.Contains(of, action), name, "is for control %s, not %s", cli.List(of), action)
	}
	var commands []control.Command
	switch action {
	case actPause, actResume, actStop:
		kind := map[string]control.Kind{actPause: control.Pause, actResume: control.Resume, actStop: control.Stop}[action]
		commands = []control.Command{{Kind: kind, Why: s.Reason}}
	case actSchedule:
		changes, wrong := s.changes(given)
		commands, faults = changes, append(faults, wrong...)
	case actDrain, actAdmit, actExpel, actSite, actRole, actWeight:
		commands = []control.Command{s.ofMembers(args)}
	case actAnnounce:
		settings, wrong := s.settings()
		commands, faults = []control.Command{{Kind: control.Announce, Settings: settings}}, append(faults, wrong...)
	}
	return commands, from.Usage(faults...)
}

// changes returns the changes of action schedule.
func (s *controlSettings) changes(given func(string) bool) (commands []control.Command, faults cli.Faults) {
	if given("lr") || given("warmup") || given("schedule") {
		faults.Add(cli.OneOf("schedule", s.Schedule, settings.Schedules()))
		switch {
		case !given("lr"):
			faults.Add(errors.New("--warmup and --schedule are parts of a schedule, which also needs --lr, its full learning rate"))
		case !(s.LR > 0):
			faults.Add(cli.Faultf("lr", "%v: a schedule needs a positive learning rate", s.LR))
		}
		faults.If(!(s.Warmup >= 0 && s.Warmup <= 1), "warmup", "%v: want a share of the work, 0 to 1", s.Warmup)
		course := optim.Schedule{Rate: s.LR, Warmup: s.Warmup}
		course.Shape, course.At = settings.ShapeOf(s.Schedule)
		commands = append(commands, control.Command{Kind: control.SetSchedule, At: s.At, Schedule: course})
	}
	if given("every") {
		faults.If(s.Every < 0, "every", "%d: want 0 or more steps", s.Every)
		commands = append(commands, control.Command{Kind: control.SetPace, At: s.At, Every: s.Every})
	}
	if given("steps") {
		commands = append(commands, control.Command{Kind: control.SetWork, At: s.At, StepsPerPeer: s.Steps})
	}
	if len(commands) == 0 {
		faults.Add(errors.New("control schedule changes nothing: give --lr, --every or --steps"))
	}
	return commands, faults
}

// settings returns the settings of action announce.
func (s *controlSettings) settings() (settings map[string]string, faults cli.Faults) {
	settings = make(map[string]string)
	for _, pair := range s.Set {
		name, value, ok := strings.Cut(pair, "=")
		faults.If(!ok || name == "", "set", "%q: want NAME=VALUE", pair)
		settings[name] = value
	}
	return settings, faults
}

// tell sends the commands to the first member that answers, and prints which commands are then in force there.
func (s *controlSettings) tell(action string, commands []control.Command, std cli.Streams) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.Timeout)
	defer cancel()
	log := cli.NewLog(zapcore.WarnLevel, std.Err)
	defer p2pnet.BridgeLogs(log)()
	if ofOne(action) {
		if err := s.find(ctx, &commands[0].Changes[0], log); err != nil {
			return err
		}
	}
	member, standing, err := operator.Operator{Join: s.Join, Key: s.OperatorKey, RunKey: s.RunKey, Secret: s.secret, Run: s.Run}.Deliver(ctx, commands, log)
	if err != nil {
		return fmt.Errorf("no member has taken %s: %w", action, settings.Remedied(err))
	}
	if err := s.await(ctx, member, commands, log); err != nil {
		return err
	}
	return s.print(action, member, standing, std.Out)
}

// controlResult is what control prints with --json.
type controlResult struct {
	Action   string            `json:"action"`
	Run      string            `json:"run"`
	Peer     string            `json:"peer"`
	Standing []standingCommand `json:"standing"`
}

// standingCommand is a command in force.
type standingCommand struct {
	Command  string            `json:"command"`
	Sequence uint64            `json:"sequence"`
	At       uint64            `json:"at"`
	Reason   string            `json:"reason,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
	LR       float64           `json:"lr,omitempty"`
	Every    *int              `json:"every,omitempty"`
	Steps    uint64            `json:"steps,omitempty"`
	Members  []standingChange  `json:"members,omitempty"`
}

func standingOf(c control.Command) standingCommand {
	w := standingCommand{
		Command: c.Kind.String(), Sequence: c.Sequence, At: c.At, Reason: c.Why, Settings: c.Settings,
		LR: c.Schedule.Rate, Steps: c.StepsPerPeer,
	}
	if c.Kind == control.SetPace {
		w.Every = &c.Every
	}
	for _, n := range c.Changes {
		w.Members = append(w.Members, standingChange{string(n.Peer), n.Do.String(), n.Site, n.Weight, n.Since})
	}
	return w
}

func (s *controlSettings) print(action string, member transport.PeerID, standing []control.Command, out io.Writer) error {
	if s.JSON {
		r := controlResult{Action: action, Run: s.Run, Peer: string(member), Standing: []standingCommand{}}
		for _, c := range standing {
			r.Standing = append(r.Standing, standingOf(c))
		}
		return json.NewEncoder(out).Encode(r)
	}
	text := fmt.Sprintf("%s of run %s has taken: %s\n", member, s.Run, action)
	if action == actShow {
		text = fmt.Sprintf("%s of run %s holds:\n", member, s.Run)
	}
	for _, c := range standing {
		text += "  " + line(c) + "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}

// line describes a command in words.
func line(c control.Command) string {
	text := fmt.Sprintf("%d %s", c.Sequence, c.Kind)
	switch c.Kind {
	case control.SetSchedule:
		text += fmt.Sprintf(" --lr %v", c.Schedule.Rate)
	case control.SetPace:
		text += fmt.Sprintf(" --every %d", c.Every)
	case control.SetWork:
		text += fmt.Sprintf(" --steps %d", c.StepsPerPeer)
	}
	if c.At > 0 {
		text += fmt.Sprintf(" from the flock's step %d", c.At)
	}
	if c.Why != "" {
		text += ": " + c.Why
	}
	for _, n := range c.Changes {
		text += strings.TrimRight(fmt.Sprintf("\n    %d %s %s %s", n.Since, n.Do, n.Peer, n.Site), " ")
		if n.Do == control.Weigh {
			text += fmt.Sprintf(" %v", n.Weight)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		text += " " + name + "=" + c.Settings[name]
	}
	return text
}
