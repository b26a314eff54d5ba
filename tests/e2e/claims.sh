# SPDX-License-Identifier: GPL-2.0-only
# What scripts of claims share, with lib.sh: a claim is a function that returns whether it holds, its name says what. Also
# rules, a weir that runs in the background, packets that are counted, and what commands answer. Sourced, not run.
# shellcheck shell=bash disable=SC2154 # of lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

failures=0

# ---- rules ----

# Scripts have a `rules` of their own where these do not do.
rules() { # THRESHOLD: an hour's worth of packets to UDP port 5001, for each source
	cat <<-END
	resources:
	  - { name: web, match: { protocol: udp, destinationPort: 5001 }, flow: source }
	rules:
	  - { name: limit, resource: web, threshold: $1, statIntervalInMs: 3600000 }
	END
}
write_rules() { rules "$@" >"$work/rules.yaml"; } # as `rules` is asked
attach_rules() { write_rules "$@" && attach "$work/rules.yaml"; }
reload_rules() { write_rules "$@" && expect 0 reload "$work/rules.yaml"; }

# An instance that stays from claim to claim, as they only look at it or have a part of it each, until one attaches other rules.
kept= # its rules
attach_once() { # RULES
	[ "$kept" != "$1" ] || return 0
	attach "$1" && kept=$1
}

# ---- commands of the instance ----

status() { "$weir" status --instance "$instance" "$@"; }
stats() { "$weir" stats --instance "$instance" "$@"; }
flows() { "$weir" flows --instance "$instance" "$@"; }
reload() { "$weir" reload --instance "$instance" "$@"; }
far_weir() { "$weir" "$1" --netns "$far" --instance "$instance" "${@:2}"; } # COMMAND [ARGUMENT...]
value_of() { awk -v p="$2" '$1 == p { $1 = ""; print substr($0, 2); found = 1 } END { if (!found) print "none" }' "$1"; } # FILE PATH: of flat JSON
status_of() { # PATH: one value of `weir status`, as "controller.state" or "rules.limit.thresholdNow"
	status --json | flatten >"$work/status"
	value_of "$work/status" "instances.0.$1"
}

# ---- in the background ----

start() { # WORDS COMMAND [ARGUMENT...]: weir, until it has said so
	: >"$work/log"
	# As a service: SIGHUP reloads. $start_as: words before it.
	# shellcheck disable=SC2086 # words
	setsid ${start_as:-} "$weir" "${@:2}" 2>>"$work/log" &
	run_pid=$!
	comes "$1"
}
start_run() { start 'is attached' run --netns "$far" --instance "$instance" -i "$far_end" "$@"; } # [OPTION...] RULES
# ... and what it listens on is in the far namespace, too.
start_server_run() { start_as="nsenter --net=/run/netns/$far" start 'is attached' run --instance "$instance" -i "$far_end" "$@"; }
# What is asked about is when it does something, and not when it gets to.
run_goes_ahead() { [ -z "$ahead" ] || chrt -a -r -p 10 "$run_pid"; }
start_control() { start 'controlling instance' control --instance "$instance"; }
has_said() { grep -q -e "$1" "$work/log"; } # WORDS
comes() { # WORDS
	within 30 has_said "$1" && return
	echo "    nothing is said of '$1':" && sed 's/^/    | /' "$work/log"
	return 1
}
is_running() { kill -0 "$run_pid" 2>/dev/null; }
has_ended() { ! kill -0 "${1:-$run_pid}" 2>/dev/null; } # [PID]
ends() { # SIGNAL STATUS: it does so on this signal
	kill "-$1" "$run_pid" 2>/dev/null
	within 20 has_ended || { echo "    it still runs after SIG$1"; return 1; }
	wait "$run_pid"
	equals "exit code" $? "$2"
	local is_right=$?
	[ $is_right -eq 0 ] || sed 's/^/    | /' "$work/log"
	run_pid=
	return $is_right
}
kill_run() { # SIGNAL: sets $run_status
	kill "-$1" "$run_pid" 2>/dev/null
	wait "$run_pid" 2>/dev/null # bash would report the kill
	# shellcheck disable=SC2034
	run_status=$?
	run_pid=
}
# A packet socket is listed before it is bound; one of libpcap takes what comes when its ring is mapped.
listens() { # PID SOCKETS: of the far namespace
	[ "$(in_far awk 'NR > 1 { n += $6 } END { print n + 0 }' /proc/net/packet)" -eq "$2" ] && [ "$(grep -c ' socket:' "/proc/$1/maps")" -eq "$2" ]
}
run_ms() { # that it has had of a CPU
	local ns
	read -r ns _ <"/proc/$run_pid/schedstat"
	echo $((ns / 1000000))
}
is_attached() { [ -e "/sys/fs/bpf/weir/$instance" ]; }
is_gone() { ! is_attached; }

# What is to be seen before the moment comes, in little time; a machine that took longer has shown nothing, and has twice the time.
before_moment() { # TRIAL COMMAND: TRIAL begins with $trial_s seconds to go, or says in began_us since when
	local began_us
	for trial_s in 2 4 8 16 32 64; do
		began_us=${EPOCHREALTIME/./}
		$1 || return 1
		$2 && return
		[ $((${EPOCHREALTIME/./} - began_us)) -gt $((trial_s * 1000000)) ] || return 1
	done
	return 1
}
moment_has_come() { sleep "$trial_s.2"; }
# What goes by when something comes shows nothing where the machine stood still meanwhile for longer than so many us: then it is
# tried again, from the beginning. No stall opens a limit: what never_above() found is no matter of time.
unless_stalled() { # US COMMAND [ARGUMENT...]
	local attempt result
	for attempt in 1 2 3 4; do
		is_above=
		watch_stalls
		"${@:2}"
		result=$?
		end_watch
		[ $result -ne 0 ] && [ -z "$is_above" ] && [ "$stalled_us" -gt "$1" ] || return $result
		echo "    attempt $attempt of 4: this machine stood still for $stalled_us us: shows nothing"
		end_claim
	done
	shows_nothing=yes
}
never_above() { # NAME VALUE MOST
	[ "$2" -le "$3" ] || { is_above=yes && echo "    $1: $2, above $3" && return 1; }
}

# ---- packets that are counted ----

# Of IP, of whatever verdict: who asks for a neighbour is no matter of a test.
evaluated() {
	read_stats
	awk '$1 == "totals.seen.packets" { n += $2 } $1 ~ /^totals\.verdicts\.nonIp.*\.packets$/ { n -= $2 } END { print n + 0 }' "$work/stats"
}
has_evaluated() { [ "$(evaluated)" -ge "$1" ]; } # COUNT
verdict() { # NAME: packets of it
	read_stats
	figure "totals.verdicts.$1.packets"
}
counts() { # [PATH VALUE]...: of the counters
	local is_right=0
	read_stats
	while [ $# -gt 0 ]; do
		equals "$1" "$(figure "$1")" "$2" || is_right=1
		shift 2
	done
	return $is_right
}
to=$far_address to_port=5001
send_as=$one_cpu # words before it
# By bash itself (/dev/udp), 43 bytes each; what was sent may lie in a queue while the machine has other things to do.
send() { # COUNT [ADDRESS [PORT]]: packets, until they have been evaluated
	local wanted
	wanted=$(($(evaluated) + $1))
	# shellcheck disable=SC2086 # words
	in_near $send_as bash -c "for ((i = 0; i < $1; i++)); do echo >/dev/udp/${2:-$to}/${3:-$to_port}; done" 2>/dev/null
	within 10 has_evaluated "$wanted" || echo "    $(evaluated) packets were evaluated, not $wanted"
}

# ---- what a command answers ----

# expect STATUS COMMAND...: words go to $work/words, results to $work/results
expect() {
	local wanted=$1 got
	shift
	"$@" >"$work/results" 2>"$work/words"
	got=$?
	[ "$got" -eq "$wanted" ] && return
	echo "    exit $got instead of $wanted: $*" && sed 's/^/    | /' "$work/words"
	return 1
}
has_line() { # FILE PATTERN [MORE]: with a single blank for several
	sed 's/^ *//; s/  */ /g' "$1" | grep -q -e "${@:2}" && return
	echo "    no '$2':" && sed 's/^/    | /' "$1"
	return 1
}
says() { # PATTERN: the command before
	grep -q -e "$1" "$work/words" && return
	echo "    nothing is said of '$1':" && sed 's/^/    | /' "$work/words"
	return 1
}
answers() { # PATTERN: one or the other
	cat "$work/words" "$work/results" >"$work/said"
	has_line "$work/said" "$@"
}
shows() { has_line "$work/results" "$1"; } # PATTERN: the command before
flows_show() { # PATTERN...: lines of the table of `weir flows`, in their order
	local line=1 pattern
	flows >"$work/results" || return 1
	for pattern in "$@"; do
		line=$((line + 1))
		sed -n "${line}p" "$work/results" | sed 's/^ *//; s/  */ /g' | grep -q -e "^$pattern" && continue
		echo "    line $line is not '$pattern':" && sed 's/^/    | /' "$work/results"
		return 1
	done
}
said() { # PATTERN COMMAND...: it says or shows so, whatever its exit code
	"${@:2}" >"$work/said" 2>&1
	has_line "$work/said" "$1"
}

# ---- claims ----

begin_claim() { :; } # a script's own may say what each claim begins with
# What a claim left goes. Where something is to stay, or more has to go, a script has one of its own.
end_claim() { [ -n "$kept" ] || end_instance; }
end_instance() {
	kept=
	end_children
	! is_attached || "$weir" detach --instance "$instance" 2>/dev/null
}
attempt() { "$1"; } # CLAIM: how it is tried
claim() {
	await_new_hour
	begin_claim
	shows_nothing= # the machine stood still in each attempt
	if attempt "$1"; then
		# So that tests/run counts and names it.
		if [ -n "$shows_nothing" ]; then echo "[  SKIPPED ] $1"; else echo "ok: $1"; fi
	else
		echo "FAILED: $1"
		failures=$((failures + 1))
	fi
	end_claim
}

# brief: those of $brief, which `make test` has.
claim_all() { # [brief | NAME...]: these, or all in their order: functions of the script whose names have four words at least
	local name
	# shellcheck disable=SC2086 # words
	[ "${1:-}" != brief ] || set -- ${brief:?}
	stays=${#children[@]}
	# shellcheck disable=SC2046 # words
	for name in ${*:-$(shopt -s extdebug; declare -F $(compgen -A function) | awk -v script="$0" '$3 == script && $1 ~ /_.*_.*_/ { print $2, $1 }' | sort -n | cut -d" " -f2)}; do
		claim "$name"
	done
	[ "$failures" -eq 0 ]
}
