# SPDX-License-Identifier: GPL-2.0-only
# For scripts with real traffic: two network namespaces of their own, joined by veth, and an end that
# leaves nothing behind. Sourced, not run. The sender's end is 'out' in namespace $near, the
# receiver's, where weir is attached, is 'in' in namespace $far; both ends have a queue for each CPU.
# shellcheck shell=bash

script=$(realpath "$0")
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
BUILD=${BUILD:-build}
weir=$BUILD/weir
blast=$BUILD/tests/tools/blast
sink=$BUILD/tests/tools/sink
stalls=$BUILD/tests/tools/stalls

tag=weir$$
near=$tag-near
far=$tag-far
mid=$tag-mid # made by make_slow_path alone
instance=$tag
# shellcheck disable=SC2034
group=weir-${RANDOM}${RANDOM} # of control groups, which all tests share; process ids are their own (tests/apart)
far_end=in # the receiver's interface; what people are shown calls it eth0
far_mac=02:00:00:00:00:02
far_address=10.1.0.254
far_address6=fd00:1::254
work=
children=()
stays=0 # so many of them, the first, stay when a claim ends
run_pid= # a weir in the background (claims.sh)

skip() {
	echo "skipped: $*"
	exit 77
}

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

require() {
	[ "$(id -u)" -eq 0 ] || skip "needs root, for network namespaces and BPF: try 'sudo $0'"
	[ -x "$weir" ] && [ -x "$blast" ] && [ -x "$sink" ] && [ -x "$stalls" ] || fail "run 'make tests' first: $BUILD is not complete"
	ip netns add "$near" 2>/dev/null || skip "network namespaces cannot be made here"
}

# Something that comes as soon as the machine has time for it: within so many seconds where it has nothing else to do, and six
# times as many where it has. Nobody can set the uptime, and a machine that stood still all the while has not asked ten times.
within() { in_time $((6 * $1)) "${@:2}"; } # SECONDS COMMAND [ARGUMENT...]
in_time() { # SECONDS COMMAND [ARGUMENT...]
	local up_s end_s tries=0
	read -r up_s _ </proc/uptime
	end_s=$((${up_s%.*} + $1))
	shift
	until "$@"; do
		read -r up_s _ </proc/uptime
		[ "${up_s%.*}" -lt $end_s ] || [ $tries -lt 10 ] || return 1
		sleep "0.$((++tries > 10 ? 2 : 0))5" # who asks costs more than who waits
	done
}

# For tools that do little and are to be in time: before all ordinary processes, where that is allowed.
chrt -r 10 true 2>/dev/null && ahead="chrt -r 10" || ahead=

# A window of an hour ends where the hours of the uptime do, and of a capture where the clock's do: what counts in one begins
# thirty seconds before that at the latest.
await_new_hour() {
	local second
	for second in "$(cut -d. -f1 /proc/uptime)" "$(date +%s)"; do
		[ $((second % 3600)) -lt 3570 ] || sleep $((3601 - second % 3600))
	done
}

# For a test that asks when something happens: before all ordinary processes, and those of tests/bpf/cpus_test, where
# that is allowed. Call it first: it restarts the script. A machine may stand still all the same: see watch_stalls.
go_first() { # [ARGUMENT...]
	[ -z "${WEIR_WENT_FIRST:-}" ] || return 0
	[ -n "$ahead" ] || return 0
	# shellcheck disable=SC2086 # words
	WEIR_WENT_FIRST=yes exec $ahead "$script" "$@"
}

# A witness to how long the machine kept everybody waiting, by whom it may be: what fails meanwhile shows nothing. It
# goes before the test, whose own work is no excuse.
watch_stalls() { # [ahead]: where that is what the test measures with
	local before=
	[ -z "${WEIR_WENT_FIRST:-}${1:+$ahead}" ] || before="chrt -f 20"
	: >"$work/stalls"
	$before "$stalls" >"$work/stalls" &
	stalls_pid=$!
	children+=("$stalls_pid")
	within 60 grep -q watching "$work/stalls" || fail "the witness did not start"
}
end_watch() { # sets $stalled_us
	kill "$stalls_pid" 2>/dev/null
	wait "$stalls_pid" 2>/dev/null
	stalled_us=$(awk '$1 == "stalled_us" { print $2 }' "$work/stalls")
	[ -n "$stalled_us" ] || fail "the witness did not end"
}

# For a claim about every command, so that a new one cannot be forgotten.
all_commands() { "$weir" --help | sed -n '/^commands:/,/^$/ s/^  \([a-z]*\) .*/\1/p'; }

in_far() { ip netns exec "$far" "$@"; }
in_near() { ip netns exec "$near" "$@"; }

end_children() {
	local child
	[ -z "$run_pid" ] || { kill -9 "$run_pid" && wait "$run_pid"; } 2>/dev/null # bash would report the kill
	run_pid=
	for child in "${children[@]:stays}"; do
		kill "$child" 2>/dev/null
		wait "$child" 2>/dev/null
	done
	children=("${children[@]:0:stays}")
}

# Remove everything. Nothing here may stop half-way.
clean_up() {
	trap '' INT TERM HUP
	stays=0
	end_children
	clean_up_more
	# Not attached, mostly. Another command may be at work for longer than one waits.
	[ ! -e "/sys/fs/bpf/weir/$instance" ] || within 180 "$weir" detach --instance "$instance" >/dev/null 2>&1 ||
		echo "left behind: instance '$instance'" >&2
	rm -f "${STATE_DIRECTORY:-/var/lib/weir}/$instance.last-good" # what a detach keeps for the next boot
	ip netns del "$near" 2>/dev/null
	ip netns del "$far" 2>/dev/null
	ip netns del "$mid" 2>/dev/null
	[ -z "$work" ] || rm -rf "$work"
}
clean_up_more() { :; } # what a script has to remove besides

# Make the namespaces. From here on any end cleans up.
make_net() {
	local cpus name
	cpus=$(nproc)
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	require
	work=$(mktemp -d)
	ip netns add "$far" || fail "cannot make a network namespace"
	# A CPU that receives anything else would take packets along that were sent meanwhile, and what comes unasked would be counted
	# with them: no neighbour is asked for a second time, and no router at all.
	for name in "$near" "$far"; do
		ip netns exec "$name" sysctl -qw net.ipv4.neigh.default.base_reachable_time_ms=7200000 \
			net.ipv6.neigh.default.base_reachable_time_ms=7200000 net.ipv6.conf.default.accept_ra=0 2>/dev/null
	done
	ip -n "$near" link add out numtxqueues "$cpus" numrxqueues "$cpus" type veth \
		peer name "$far_end" netns "$far" address "$far_mac" numtxqueues "$cpus" numrxqueues "$cpus" ||
		fail "cannot make a veth pair"
	# What comes back (ports are closed) would only cost time.
	in_far sysctl -qw net.ipv4.icmp_ratelimit=1000 net.ipv6.icmp.ratelimit=1000 2>/dev/null
	ip -n "$far" address add "$far_address/8" dev "$far_end"
	ip -n "$far" address add "$far_address6/64" dev "$far_end" nodad
	ip -n "$near" link set out up
	ip -n "$far" link set lo up
	ip -n "$far" link set "$far_end" up
	within 10 is_up || true # what needs it says so
}

# Then no packet is sent but those that a test sends.
without_ipv6() {
	local name
	for name in "$near" "$far"; do
		ip netns exec "$name" sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	done
}
# The receiver answers nothing, and nobody asks for it. The sender has these addresses.
without_answers() { # [ADDRESS...]
	local address
	without_ipv6
	for address in "${@:-10.1.0.1}"; do ip -n "$near" address add "$address/32" dev out; done
	ip -n "$near" route add "$far_address" dev out
	ip -n "$far" address flush dev "$far_end"
	in_near ip neighbour replace "$far_address" lladdr "$far_mac" dev out nud permanent
}
# Addresses of both ends.
give_near() { local a; for a in "$@"; do ip -n "$near" address add "$a" dev out; done; } # ADDRESS/BITS...
give_far() { local a; for a in "$@"; do ip -n "$far" address add "$a" dev "$far_end"; done; } # ADDRESS/BITS...

# A new interface is not ready at once.
is_up() { [ "$(in_far cat "/sys/class/net/${1:-$far_end}/operstate")" = up ]; } # [INTERFACE]
on() { ip -n "$far" -j link show dev "$1" 2>/dev/null | grep -q '"prog"'; } # INTERFACE: an XDP program is there
off() { ! on "$1"; }

# The interfaces go, and come again by numbers that none has had: a container that is started again.
take_pair() { ip -n "$near" link del out; }
make_pair() { # [NAME]
	ip -n "$near" link add out type veth peer name "${1:-in}" netns "$far" address "$far_mac" &&
		ip -n "$far" address add "$far_address/8" dev "${1:-in}" && ip -n "$far" link set "${1:-in}" up && ip -n "$near" link set out up &&
		ip -n "$near" address add 10.1.0.1/8 dev out && within 10 is_up "${1:-in}"
}

attach() { # RULES [OPTION...]: attach in the far namespace
	local rules=$1
	shift
	[ -z "${kept:-}" ] || end_instance # (claims.sh)
	"$weir" attach --netns "$far" --instance "$instance" -i "$far_end" "$@" "$rules" || fail "cannot attach $rules"
}

detach() { "$weir" detach --instance "$instance" || fail "cannot detach"; }

start_sink() { # OPTION...: count in the background, into $work/sink
	: >"$work/sink"
	# Not by in_far: the process to end must be the sink itself, not a shell around it.
	ip netns exec "$far" "$sink" -i "$far_end" "$@" >"$work/sink" 2>"$work/sink.err" &
	sink_pid=$!
	children+=("$sink_pid")
	until grep -q ready "$work/sink"; do
		kill -0 "$sink_pid" 2>/dev/null || fail "the sink did not start: $(cat "$work/sink.err")"
		sleep 0.05
	done
}

stop_sink() {
	sleep 0.3 # for what is still on its way
	kill "$sink_pid"
	wait "$sink_pid" || fail "the sink: $(cat "$work/sink.err")"
}

# Of a flow that moves to another CPU, what the first has leased stays unused: where a limit is to be reached to the packet, one
# CPU sends.
# shellcheck disable=SC2034
one_cpu="taskset -c 0"
sends_ahead= # $ahead, of a script that sends little and goes by how much; or $one_cpu
start_blast() { # OPTION...: send in the background, what was sent goes into $work/blast
	# shellcheck disable=SC2086 # words
	ip netns exec "$near" $sends_ahead "$blast" -i out --dst-mac "$far_mac" --dst "$far_address" --dst6 "$far_address6" "$@" >"$work/blast" &
	blast_pid=$!
	children+=("$blast_pid")
}

wait_blast() { wait "$blast_pid" || fail "the traffic generator failed"; }

# The echo server in the far namespace, on port 80, into $work/server; and clients of it, into $work/NAME.
start_server() { # OPTION...
	: >"$work/server"
	ip netns exec "$far" "$BUILD/tests/tools/echo_server" "$@" >"$work/server" 2>"$work/server.err" &
	server_pid=$!
	children+=("$server_pid")
	await "$work/server" ready
}

start_crowd() { # NAME OPTION...
	local name=$1
	shift
	: >"$work/$name"
	ip netns exec "$near" "$BUILD/tests/tools/crowd" --server "$far_address" "$@" >"$work/$name" 2>"$work/$name.err" &
	crowd_pid=$!
	children+=("$crowd_pid")
}

# A figure of its last line: opened, refused, rounds, disturbed, ...
of_crowd() { # NAME FIGURE
	awk -v f="$2" '$1 == "final" { if (f == "opened") print $2; for (i = 3; i < NF; i += 2) if ($i == f) print $(i + 1) }' "$work/$1"
}

await() { # FILE WORD: a tool prints it
	within 60 grep -q "$2" "$1" || fail "'$2' did not come: $(cat "$1" "$1.err")"
}

# What claims compare. Each says what is wrong.
equals() { # WHAT HAVE WANT
	[ "$2" = "$3" ] && return
	echo "    $1: $2 instead of $3"
	return 1
}

between() { # WHAT HAVE LEAST MOST
	[ "$2" -ge "$3" ] && [ "$2" -le "$4" ] && return
	echo "    $1: $2, not from $3 to $4"
	return 1
}

at_least() { # WHAT HAVE LEAST
	[ "$2" -ge "$3" ] && return
	echo "    $1: $2, less than $3"
	return 1
}

# Put a third namespace between the two ends, in which a tool passes everything on: the receiver's answers after as many
# ms as it is reported. The sender's end has 10.1.0.1.
make_slow_path() { # MS
	ip netns add "$mid" || fail "cannot make a network namespace"
	ip -n "$near" link del out
	ip -n "$near" link add out type veth peer name client netns "$mid" || fail "cannot make a veth pair"
	ip -n "$far" link add in address "$far_mac" type veth peer name server netns "$mid" || fail "cannot make a veth pair"
	ip netns exec "$mid" sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	ip -n "$near" address add 10.1.0.1/8 dev out
	ip -n "$far" address add "$far_address/8" dev in
	ip -n "$near" link set out up
	ip -n "$far" link set in up
	ip -n "$mid" link set client up
	ip -n "$mid" link set server up
	mkfifo "$work/delays"
	: >"$work/delay"
	# shellcheck disable=SC2086 # words
	ip netns exec "$mid" $ahead "$BUILD/tests/tools/delay" --client client --server server --ms "$1" <"$work/delays" >"$work/delay" 2>"$work/delay.err" &
	children+=("$!")
	exec 7>"$work/delays"
	await "$work/delay" ready
}
set_delay() { # MS
	echo "$1" >&7
	within 10 grep -q " $1\$" "$work/delay" || fail "the delay: $(cat "$work/delay.err")"
}
changed_ms() { awk -v ms="$1" '$1 == "changed" && $3 == ms { print $2 }' "$work/delay"; }

# Figures of a source: sent, and of the sink's last line (packets, windows, least, most, worst).
sent() { awk -v s="$1" '$1 == "final" && $2 == s { print $3 }' "$work/blast"; }
received() { awk -v s="$1" -v f="${2:-packets}" '$1 == "final" && $2 == s {
	if (f == "packets") print $3; for (i = 4; i < NF; i += 2) if ($i == f) print $(i + 1) }' "$work/sink"; }

# Packets that were sent and are in no counter of these resources: lost before weir evaluated them, by a machine that was
# too busy to take them off the queue of the veth. Their source is unknown. read_stats comes first.
lost_before_weir() { # RESOURCE...
	local resource evaluated=0
	for resource in "$@"; do
		evaluated=$((evaluated + $(figure "resources.$resource.passed.packets") + $(figure "resources.$resource.blocked.packets")))
	done
	echo $(($(awk '$1 == "final" { sum += $3 } END { print sum }' "$work/blast") - evaluated))
}
# All that was sent and not lost before weir has been evaluated, and been counted. What is on its way may lie in a queue
# while the machine has other things to do: until nothing is missing, or nothing came for three seconds; for one, where
# others than the generator have sent something, too, as it did before.
await_evaluated() { # RESOURCE...: reads the counters
	local lost=-1 before end_s=$((SECONDS + 4))
	while [ "$lost" -ne 0 ]; do
		before=$lost
		read_stats
		lost=$(lost_before_weir "$@")
		[ "$lost" -eq "$before" ] || end_s=$((SECONDS + (lost < 0 ? 2 : 4)))
		[ $SECONDS -lt $end_s ] || break
		sleep 0.1
	done
}

# The longest pause of the generator that it did not mean to make.
held_up_us() { awk '$1 == "held-up" { print $2 }' "$work/blast"; }

# Flatten what `weir ... --json` prints into lines "path value"; an object of an array that has a name goes
# by it: "resources.dns.passed.packets 17". Enough for that printer (one token a line), no JSON tool needed.
flatten() {
	awk '
	function path(  i, all) {
		for (i = 1; i <= depth; i++)
			if (key[i] != "")
				all = all (all == "" ? "" : ".") key[i]
		return all
	}
	{
		line = $0
		gsub(/^ +|,$/, "", line)
		name = ""
		if (match(line, /^"[^"]*": /)) {
			name = substr(line, 2, RLENGTH - 4)
			line = substr(line, RLENGTH + 1)
		} else if (line !~ /^[]}]/ && depth && list[depth])
			name = next_item[depth]++
		if (line == "{" || line == "[") {
			key[++depth] = name
			list[depth] = line == "["
			next_item[depth] = 0
		} else if (line == "}" || line == "]") {
			depth--
		} else {
			gsub(/"/, "", line)
			if (name == "name")
				key[depth] = line
			p = path()
			print (p == "" ? "" : p ".") name, line
		}
	}'
}

# Write all counters to $work/stats; `figure PATH` reads one of them.
read_stats() { "$weir" stats --instance "$instance" --json | flatten >"$work/stats" || fail "cannot read the counters"; }
figure() { awk -v p="$1" '$1 == p { print $2; found = 1 } END { if (!found) print "none" }' "$work/stats"; }

# Packets of a resource that passed in each of the last whole seconds of the data plane's clock, oldest first.
by_second() { # RESOURCE COUNT [blocked]: the one that is not over yet is left out
	awk -v p="resources.$1.lastMinute.${3:-passed}." -v first=$((59 - $2)) 'index($1, p) == 1 { n[substr($1, length(p) + 1)] = $2 }
		END { for (i = first; i < 59; i++) print i in n ? n[i] : "none" }' "$work/stats"
}
