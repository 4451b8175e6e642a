#!/usr/bin/env bash
# Follows docs/GUIDE.md to the letter, on four machines made of network namespaces.
#
#   sudo bash docs/guide.sh [FOLDER]      # needs Linux, ip, Go, git, curl and python3
#
# Each fenced block below a line <!-- guide: machine N --> is run in a shell on that
# machine, in its own folder of FOLDER (default: a temporary one); "runs" leaves it
# running, "interrupted" sends SIGINT to what runs there, and "when all have ended" waits
# for all. Two things stand in for the world: scp copies between the folders, and git
# clones this repository, as committed, in place of the public one.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=${1:-$(mktemp -d)}
mkdir -p "$work/blocks" "$work/bin"
echo "working in $work"

tag=guide$$
pids=(0 0 0 0 0) # of what runs on each machine
began=(0 0 0 0 0)
finish() {
	local status=$? m
	trap - EXIT
	for m in 1 2 3 4; do
		if ((pids[m])); then kill -KILL "${pids[m]}" 2>/dev/null || true; fi
	done
	for m in 0 1 2 3 4; do ip netns del "$tag-$m" 2>/dev/null || true; done
	if ((status)); then
		echo "FAILED (exit $status)" >&2
		tail -n 5 "$work"/log-* >&2 || true
	fi
}
trap finish EXIT
trap 'exit 1' INT TERM

# The machines, with a switch between them.
ip netns add "$tag-0"
ip -n "$tag-0" link add switch type bridge
ip -n "$tag-0" link set switch up
for m in 1 2 3 4; do
	mkdir -p "$work/machine-$m"
	ip netns add "$tag-$m"
	ip link add eth0 netns "$tag-$m" type veth peer name "port$m" netns "$tag-0"
	ip -n "$tag-0" link set "port$m" master switch up
	ip -n "$tag-$m" address add "192.0.2.$m/24" dev eth0
	ip -n "$tag-$m" link set lo up
	ip -n "$tag-$m" link set eth0 up
done

cat >"$work/bin/scp" <<'END'
#!/usr/bin/env bash
to=${!#}                                   # 192.0.2.N:
machine=${to#192.0.2.}
cp "${@:1:$#-1}" "../machine-${machine%:}/"
END
chmod +x "$work/bin/scp"

# What the machines share with this one: Go and what it has downloaded, and the program
# scp above before any other.
export GOMODCACHE GOCACHE PATH="$work/bin:$PATH"
GOMODCACHE=$(go env GOMODCACHE) GOCACHE=$(go env GOCACHE)
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0="url.$here.insteadOf" GIT_CONFIG_VALUE_0=https://github.com/seed-97356399/murmuration
export GIT_CONFIG_KEY_1=safe.directory GIT_CONFIG_VALUE_1='*'

# The guide's blocks, each in a file that is named by its number, with what is to be done
# with it in a file beside it.
awk -v to="$work/blocks" '
	/^<!-- guide: / { sub(/^<!-- guide: /, ""); sub(/ -->$/, ""); what = $0; next }
	/^```/ && inside { inside = 0; what = ""; close(file); next }
	/^```/ && what   { inside = 1; file = sprintf("%s/%02d", to, ++n); print what >(file ".what"); close(file ".what"); next }
	inside           { print >file }
' "$here/docs/GUIDE.md"

on() { # on MACHINE COMMAND...
	local m=$1
	shift
	(cd "$work/machine-$m" && exec ip netns exec "$tag-$m" "$@")
}

# ended waits for what runs on a machine, and tells its exit code.
ended() {
	local status=0
	wait "${pids[$1]}" || status=$?
	pids[$1]=0
	return "$status"
}

for block in "$work"/blocks/??; do
	what=$(<"$block.what")
	m=${what#machine }
	m=${m:0:1}
	echo "==> $what"
	sed 's/^/    /' "$block"
	if [[ $what == *interrupted* ]]; then
		for ((i = 0; i < 1200; i++)); do # while they train
			if grep -q "exchanges [1-9]" "$work/log-$m-${began[m]}"; then break; fi
			sleep 0.1
		done
		kill -INT "${pids[m]}"
		status=0
		ended "$m" || status=$?
		((status == 1)) || { echo "interrupted, machine $m ended with $status, want 1" >&2; exit 1; }
		ls "$work/machine-$m"/state/checkpoint-* >/dev/null # it has left one
	fi
	if [[ $what == *"all have ended"* ]]; then
		for other in 1 2 3 4; do ended "$other"; done
		echo "all have ended after $SECONDS s"
	fi
	if [[ $what == *runs* ]]; then
		((++began[m]))
		log="$work/log-$m-${began[m]}"
		# The block is one command: it takes the place of the shell, so that signals reach it.
		(cd "$work/machine-$m" && exec ip netns exec "$tag-$m" bash -c "exec $(<"$block")") >"$log" 2>&1 &
		pids[m]=$!
		# A person reads its first lines before going on.
		for ((i = 0; i < 600; i++)); do
			if [[ -s $log ]] && grep -q "^listening as" "$log"; then break; fi
			kill -0 "${pids[m]}"
			sleep 0.1
		done
	else
		on "$m" bash -euo pipefail "$block" 2>&1 | sed 's/^/  | /'
	fi
done

grep -H "resuming from a checkpoint" "$work"/log-3-2
grep -H "Held-out accuracy" "$work"/log-*
for m in 1 2 3 4; do
	accuracy=$(sed -n 's/.*Held-out accuracy[^:]*: \([0-9]*\).*/\1/p' "$work"/log-"$m"-"${began[m]}")
	((accuracy >= 95)) || { echo "machine $m: accuracy $accuracy %, want 95" >&2; exit 1; }
done
echo "the guide holds"
