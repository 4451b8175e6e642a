#!/usr/bin/env bash
# Prints the figures that docs/RESULTS.md, MEASUREMENTS.md and SEEDS.md quote, each with the command that gives it.
#
#   bash docs/figures.sh [FIGURE…]      # from the root of a checkout; default: all
#
# Figures: glyphs mnist fashion killed latecomer throughput share exchange tuned kernel
# lanes exact liars matmul step pictures colour resnet paramhub gosource codecs proportion outer
# stages seeds worlds virtual; "help" prints this list. Those on MNIST, Fashion-MNIST and CIFAR-10 look for them in
# $MURMURATION_DATA (default ../shared/data) and are skipped where it is absent. Needs python3 besides Go.
# Absolute times depend on the machine; the ratios are taken within one run of this script.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = help ]; then
	sed -n '2,10s/^# \{0,1\}//p' docs/figures.sh
	exit
fi
data=${MURMURATION_DATA:-../shared/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/gossipnode" ./examples/gossipnode

# node ARGUMENT…: runs gossipnode quietly and leaves its JSON object in $json and
# the processor seconds that it and its children took in $cpu.
node() {
	printf '\n$ gossipnode %s\n' "$*"
	read -r cpu <<<"$(python3 - "$work" "$@" <<'PY'
import resource, subprocess, sys
work, arguments = sys.argv[1], sys.argv[2:]
with open(work + "/out", "w") as out, open(work + "/log", "w") as log:
    code = subprocess.call([work + "/gossipnode", *arguments, "--json"], stdout=out, stderr=log)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime if code == 0 else "failed")
PY
	)"
	if [ "$cpu" = failed ]; then cat "$work/log"; exit 1; fi
	json=$(tail -n 1 "$work/out")
}
# field NAME [JSON]: a number of the object, nested ones by a dot.
field() {
	python3 -c 'import json,sys
v=json.loads(sys.argv[2])
for k in sys.argv[1].split("."): v=v[k]
print(v)' "$1" "${2:-$json}"
}
show() {
	for name in "$@"; do printf '  %-24s %s\n' "$name" "$(field "$name")"; done
}
wanted() { [ ${#figures[@]} -eq 0 ] || [[ " ${figures[*]} " == *" $1 "* ]]; }
have() { [ -d "$data/$1" ] || { echo "skipped: no $data/$1"; return 1; }; }
figures=("$@")
accuracy=(test_accuracy.mean test_accuracy.min test_accuracy.max)

if wanted glyphs; then
	node local; show "${accuracy[@]}" seconds join_seconds exchanges
	node local --model softmax; show "${accuracy[@]}" seconds
fi
if wanted mnist && have mnist; then
	node local --dataset mnist --data "$data/mnist" --model mlp --epochs 3
	show "${accuracy[@]}" seconds exchanges consensus_distance bits_per_parameter
	node local --dataset mnist --data "$data/mnist" --model mlp --epochs 3 --strategy alone
	show "${accuracy[@]}"
fi
if wanted fashion && have fashion-mnist; then
	node local --dataset fashion-mnist --data "$data/fashion-mnist" --epochs 5; show "${accuracy[@]}" seconds
fi

# in_the_middle ARGUMENT…: starts a run of four on MNIST in the background and
# returns when it is about a third through.
in_the_middle() {
	printf '\n$ gossipnode local --dataset mnist --data %s --epochs 6 --json &\n' "$data/mnist"
	"$work/gossipnode" local --dataset mnist --data "$data/mnist" --epochs 6 --json >"$work/flock.out" 2>"$work/flock.log" &
	flock=$!
	until grep -qE '^ *(3[0-9]|[4-9][0-9]) %' "$work/flock.log"; do
		kill -0 "$flock" || { cat "$work/flock.log"; exit 1; }
		sleep 0.2
	done
}
if wanted killed && have mnist; then
	node local --dataset mnist --data "$data/mnist" --epochs 6; show "${accuracy[@]}" seconds longest_hold
	in_the_middle
	victim=$(pgrep -P "$flock" | tail -n 1)
	echo "$ kill -9 $victim   # one of the four"
	kill -9 "$victim"
	wait "$flock" && echo "  exit code                0"
	json=$(tail -n 1 "$work/flock.out"); show peers_lost steps "${accuracy[@]}" seconds longest_hold
fi
if wanted latecomer && have mnist; then
	in_the_middle
	address=$(grep -oE 'murmuration1[A-Za-z0-9_-]+' "$work/flock.log" | head -n 1)
	node run --join "$address" --listen 127.0.0.1:0 --dataset mnist --data "$data/mnist" --epochs 6
	echo "  the fifth:"; show test_accuracy.mean steps exchanges first_exchange_seconds
	wait "$flock"
	json=$(tail -n 1 "$work/flock.out"); echo "  the four:"; show "${accuracy[@]}" steps
fi

# Machines drift: the two are measured in turn, five times, and the median counts.
if wanted throughput; then
	export GOMAXPROCS=1
	ratios=()
	for _ in 1 2 3 4 5; do
		node local --peers 1 --strategy alone --steps 6000; one=$(field samples_per_second); show samples_per_second
		node local --peers 2 --strategy adpsgd --every 16 --steps 6000; two=$(field samples_per_second); show samples_per_second
		ratios+=("$(python3 -c "print($two/$one)")")
	done
	python3 -c 'import statistics, sys; r = sorted(map(float, sys.argv[1:]))
print("  ratio: median %.2f, from %.2f to %.2f" % (statistics.median(r), r[0], r[-1]))' "${ratios[@]}"
	unset GOMAXPROCS
fi
# The share of exchanges is what the processors did more than for the same steps
# without any, drawing and evaluation included in both.
if wanted share; then
	shares=()
	for _ in 1 2 3 4 5; do
		node local --peers 2 --strategy alone --steps 6000; without=$cpu; per=$(field steps)
		echo "  processor seconds        $cpu"
		node local --peers 2 --strategy adpsgd --every auto --steps 6000; with=$cpu
		echo "  processor seconds        $cpu"; show steps every exchanges
		shares+=("$(python3 -c "a, b = $without/$per, $with/$(field steps); print((b-a)/b)")")
	done
	python3 -c 'import statistics, sys; r = sorted(map(float, sys.argv[1:]))
print("  share of exchanges: median %.3f, from %.3f to %.3f" % (statistics.median(r), r[0], r[-1]))' "${shares[@]}"
fi

if wanted exchange; then
	printf '\n$ gossipnode bench exchange --parameters 25000000\n'
	"$work/gossipnode" bench exchange --parameters 25000000
	printf '\n$ gossipnode bench exchange --parameters 1000000\n'
	"$work/gossipnode" bench exchange --parameters 1000000 --rounds 25
	printf '\n$ gossipnode bench exchange --parameters 100000\n'
	"$work/gossipnode" bench exchange --parameters 100000 --rounds 25
fi

# benchmark PACKAGE ARGUMENT…: runs go test on it and prints the command.
benchmark() {
	printf '\n$ go test %s\n' "$*"
	go test "$@"
}
if wanted tuned; then
	benchmark ./peer/p2pnet -run xxx -bench Tuned -benchtime 1x
fi
if wanted kernel; then
	benchmark ./internal/kernel -run '^$' -bench Kernels
fi
if wanted lanes; then
	benchmark ./internal/conversations -count 1 -run TestLanesAddUp -v
fi
if wanted exact; then
	benchmark ./internal/sim -count 1 -run 'Conserved|Thousand' -v
	benchmark ./peer -count 1 -run TestCutsAnywhere -v
fi
if wanted liars; then
	benchmark ./internal/sim -count 1 -run 'TestOneLiar|TestAPatientLiar' -tables -v
fi

if wanted matmul; then
	benchmark ./tensor -run "^$" -bench MatMul
fi
if wanted step; then
	for model in softmax mlp cnn mobilenet-small resnet-small; do
		printf '\n$ gossipnode bench step --model %s\n' "$model"
		"$work/gossipnode" bench step --model "$model"
	done
fi
if wanted pictures && [ -d "$data/fashion-mnist" ]; then
	fashion=(--dataset fashion-mnist --data "$data/fashion-mnist" --model cnn --epochs 12)
	node local --peers 4 --codec raw "${fashion[@]}"
	show test_accuracy.min test_accuracy.max seconds
	node run --strategy alone "${fashion[@]}"
	show test_accuracy.mean seconds
fi
if wanted colour && [ -d "$data/cifar10" ]; then
	cifar=(--dataset cifar10 --data "$data/cifar10" --model cnn --epochs 10 --optimizer adamw)
	node local --peers 4 "${cifar[@]}" --lr 0.008
	show test_accuracy.min test_accuracy.max seconds
	node run --strategy alone "${cifar[@]}" --lr 0.003
	show test_accuracy.mean seconds
fi
if wanted resnet && [ -d "$data/cifar10" ]; then
	sgd=(--model resnet-small --batch 16 --lr 0.05 --weight-decay 5e-4 --warmup 0.2)
	node local --peers 4 --dataset cifar10 --data "$data/cifar10" --codec lattice6+4 "${sgd[@]}" --epochs 7
	show test_accuracy.min test_accuracy.max seconds
	for strategy in adpsgd ps-bsp; do
		node local --peers 4 --dataset fashion-mnist --data "$data/fashion-mnist" --strategy "$strategy" "${sgd[@]}" --epochs 3
		show test_accuracy.min test_accuracy.max seconds
		printf '  %-24s %s\n' "processor seconds" "$cpu"
	done
fi
# The first so many pictures of Fashion-MNIST are a folder of their own.
first() {
	python3 -c 'import sys; sys.path.insert(0, "docs"); from rows import first_pictures; first_pictures(sys.argv[1], sys.argv[2], int(sys.argv[3]))' "$data/fashion-mnist" "$work/first-$1" "$1"
}
if wanted paramhub && [ -d "$data/fashion-mnist" ]; then
	adam=(--model cnn --optimizer adamw --lr 0.003 --epochs "${EPOCHS:-3}")
	for n in ${SIZES:-10000 20000 30000 40000 50000 60000}; do
		first "$n"
		for racer in allreduce dpsgd ps-bsp ps-bsp:2 ps-asp ps-asp:2 ps-ssp ps-ssp:2 ps-dssp ps-dssp:2 adpsgd; do
			servers=1
			[[ $racer == *:* ]] && servers=${racer#*:}
			node simulate --peers 4 --points 0 --evaluate 1 --dataset fashion-mnist --data "$work/first-$n" "${adam[@]}" --strategy "${racer%:*}" --servers "$servers"
			show seconds test_accuracy.mean
		done
	done
	travels=(local --peers 4 --holders 1 --hand-out round-robin --strategy ps-bsp --dataset fashion-mnist --data "$data/fashion-mnist" --epochs 1)
	node "${travels[@]}" --servers 2; show handed_out trained_samples lost_samples test_accuracy.mean
	printf '\n$ gossipnode %s --servers 4 --json &   # each of the four serves a quarter\n' "${travels[*]}"
	"$work/gossipnode" "${travels[@]}" --servers 4 --json >"$work/flock.out" 2>"$work/flock.log" &
	flock=$!
	until grep -qE '^ *(3[0-9]|[4-9][0-9]) %' "$work/flock.log"; do
		kill -0 "$flock" || { cat "$work/flock.log"; exit 1; }
		sleep 0.2
	done
	victim=$(pgrep -P "$flock" | sed -n 2p)
	echo "$ kill -9 $victim   # one of the four"
	kill -9 "$victim"
	wait "$flock" && echo "  exit code                0"
	json=$(tail -n 1 "$work/flock.out"); show peers_lost handed_out trained_samples lost_samples test_accuracy.mean
fi
if wanted gosource; then
	gpt=(--dataset gosource --model gpt --shard files --batch 4 --steps 1500 --optimizer adamw --beta2 0.95
		--weight-decay 0.1 --clip 1 --warmup 0.0667 --lr-floor 0.1)
	for rate in 1e-3 2e-3 4e-3; do
		node local --peers 4 "${gpt[@]}" --lr "$rate" --strategy allreduce
		show test_bits_per_byte.min test_bits_per_byte.max bytes_sent seconds
		node local --peers 4 "${gpt[@]}" --lr "$rate" --strategy adpsgd --codec lattice6+4
		show test_bits_per_byte.min test_bits_per_byte.max bytes_sent seconds
	done
fi
if wanted codecs; then
	benchmark ./quant -run '^$' -bench Codecs
	for codec in lattice6+4 int8; do
		printf '\n$ gossipnode bench exchange --codec %s\n' "$codec"
		"$work/gossipnode" bench exchange --codec "$codec"
	done
	benchmark ./internal/conversations -count 1 -run 'TestLatticesOnASlowLink|TestALinkDecidesOnTheCodec' -v
	if [ -d "$data/fashion-mnist" ]; then
		for codec in raw lattice6+4; do
			node local --dataset fashion-mnist --data "$data/fashion-mnist" --epochs 5 --codec "$codec"
			show "${accuracy[@]}" bits_per_parameter bytes_sent exchanges
		done
	fi
	benchmark ./internal/sim -count 1 -timeout 60m -run 'Codecs|FourBits|LikeAllReduce|Proportion' -tables -v
fi
# What 000's figures 3 and 4 show: training where none to all of what is sent is coded, over the run too; and what coding
# costs beside computing, of convolutions and of large dense layers.
if wanted proportion && have cifar10; then
	all=lattice6+4
	for model in cnn mlp; do
		race=(--dataset cifar10 --data "$data/cifar10" --model "$model" --epochs 2 --points 20 --link 100,20 --target 0.4
			--strategies "$(printf "adpsgd:$all quantized=%s," 0 25 50 75 100)adpsgd:$all quantized=0@0;100@0.3")
		printf '\n$ gossipnode compare %s\n' "${race[*]}"
		"$work/gossipnode" compare "${race[@]}" --plot "proportion-$model.png" 2>/dev/null
		node bench step --model "$model"; printf '%s\n' "$json"
	done
	for codec in raw fp16 lattice6+4; do node bench exchange --codec "$codec"; printf '%s\n' "$json"; done
fi
# What talking seldom costs (docs/design/052). SELDOM has further arguments (python3 docs/seldom.py --help), as
# "--rows rows.jsonl", with which it goes on where it was cut off; all arms on MNIST take hours.
if wanted outer && have mnist; then
	python3 docs/seldom.py --node "$work/gossipnode" --data "$data" --rows "$work/rows" ${SELDOM:-}
fi
# The world of the paper on data and model parallelism at once (docs/design/058): four machines of one core, 1 Gbit/s.
# --step-time and --paging are fitted to its two times, 725 s an epoch on one machine and 145 s on four; the rest follows.
# Times are of MobileNetV2. stages.png is accuracy against time and epochs, its figure 7, with $MODEL in $EPOCHS: those of
# MobileNetV2 take hours.
if wanted stages && have cifar10; then
	seed=(--dataset cifar10 --data "$data/cifar10" --peers 4 --batch 64 --link 1000,0.2 --step-time 690ms --paging 166,100
		--optimizer adamw --lr 0.001 --schedule step
		--strategies "alone peers=1,allreduce,adpsgd stages=4,adpsgd stages=2,allreduce stages=2")
	for what in "--model mobilenet_v2 --steps 16 --points 0 --evaluate 1" \
		"--model ${MODEL:-mobilenet_v2} --epochs ${EPOCHS:-10} --points 20 --target 0.5 --plot stages.png"; do
		read -ra what <<<"$what"
		printf '\n$ gossipnode compare %s\n' "${seed[*]} ${what[*]}"
		"$work/gossipnode" compare "${seed[@]}" "${what[@]}" 2>/dev/null
	done
	benchmark ./internal/stages -count 1 -run 'Busy|Straggler' -v
	benchmark ./peer/peertest -count 1 -run 'Pipeline|StragglerIn|MembersDie|LastMembers|Rounds' -v
fi
# Six processes, three stages, on real sockets: one is killed, and another joins.
if wanted stages && have mnist; then
	member() { # NUMBER PART FLAG…: its result goes to a file
		local number=$1 part=$2
		shift 2
		"$work/gossipnode" run --stages 3 --dataset mnist --data "$data/mnist" --model cnn --epochs "${EPOCHS:-1.5}" --seed 1 --json \
			--listen "127.0.0.1:$((46100 + number))" --part "$part/6" "$@" >"$work/member$number" 2>"$work/said$number" &
		members[number]=$!
	}
	members=()
	member 0 0 --min-peers 6
	sleep 2
	for number in 1 2 3 4 5; do member "$number" "$number" --join 127.0.0.1:46100 --min-peers 6; done
	until grep -q "training stage" "$work/said3"; do sleep 1; done
	sleep 10
	kill -9 "${members[3]}"
	sleep 3
	member 6 3 --join 127.0.0.1:46100
	for number in 0 1 2 4 5 6; do
		wait "${members[number]}" && printf 'member %d: exit 0, %s, %s\n' "$number" "$(grep -o 'training stage.*' "$work/said$number" | head -n 1)" \
			"$(grep -o '"test_accuracy":{"mean":[0-9.]*' "$work/member$number")"
	done
fi
# Strategies at the best of their rates, three seeds, in seven worlds; some 20 minutes of processor time. WORLDS has further arguments
# (python3 docs/worlds.py --help), as "--rows rows.jsonl --plot worlds.svg", which needs matplotlib.
if wanted worlds && have mnist; then
	# shellcheck disable=SC2086 # arguments
	python3 docs/worlds.py --node "$work/gossipnode" --data "$data" --rows "$work/rows" ${WORLDS:-}
fi
# Figures of the papers, as docs/SEEDS.md has them, and pictures in docs/img; needs matplotlib, and an hour. SEEDS has further
# arguments (python3 docs/seeds.py --help), as "--figures scaling".
if wanted seeds && have mnist && have cifar10 && have fashion-mnist && have flights; then
	# shellcheck disable=SC2086 # arguments
	python3 docs/seeds.py --node "$work/gossipnode" --data "$data" --rows "$work/seeds" ${SEEDS:-}
fi
# What docs/MEASUREMENTS.md has of virtual time.
if wanted virtual && have mnist; then
	node simulate --peers 100 --model softmax --steps 100 --every 1 --points 0; show events wall_seconds test_accuracy.mean
	node simulate --peers 1000 --model softmax --steps 100 --every 1 --points 0; show events wall_seconds test_accuracy.mean
	benchmark ./topology ./internal/replica ./internal/sim -count 1 -run 'Mix|TestHub|LockStep' -v
	go test ./examples/gossipnode -count 1 -run TestVirtualTime -v
	go test ./examples/gossipnode/simulate -count 1 -timeout 60m -run 'TestSlowWorker|TestSlowLink|TestHomogeneous|TestCrowd$' -v -args -tables
fi
