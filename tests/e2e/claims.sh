# SPDX-License-Identifier: GPL-2.0-only
# What scripts of claims share, beside lib.sh: a claim is a function that returns whether it holds, its name says what.
# Also a weir that runs in the background, and what a command answers. Sourced, not run.
# shellcheck shell=bash disable=SC2154 # of lib.sh

run_pid=
failures=0
after_claim= # a function that takes away what claims make

rules() { # THRESHOLD: an hour's worth of packets to UDP port 5001, for each source
	cat <<-END
	resources:
	  - { name: web, match: { protocol: udp, destinationPort: 5001 }, flow: source }
	rules:
	  - { name: limit, resource: web, threshold: $1, statIntervalInMs: 3600000 }
	END
}

clean_up_all() {
	[ -z "$run_pid" ] || kill -9 "$run_pid" 2>/dev/null
	clean_up
}

# ---- in the background ----

start() { # WORDS COMMAND [ARGUMENT...]: until it has said so
	local words=$1
	shift
	: >"$work/log"
	setsid "$weir" "$@" 2>>"$work/log" & # as a service: SIGHUP reloads
	run_pid=$!
	comes "$words"
}
comes() { # WORDS
	within 30 grep -q -e "$1" "$work/log" && return
	echo "    nothing is said of '$1':" && sed 's/^/    | /' "$work/log"
	return 1
}
is_running() { kill -0 "$run_pid" 2>/dev/null; }
has_ended() { ! kill -0 "$1" 2>/dev/null; } # PID
ends() { # SIGNAL STATUS: it does so on this signal
	kill "-$1" "$run_pid" 2>/dev/null
	within 20 has_ended "$run_pid" || { echo "    it goes on after SIG$1"; return 1; }
	wait "$run_pid"
	equals "exit code" $? "$2"
	local is_right=$?
	[ $is_right -eq 0 ] || sed 's/^/    | /' "$work/log"
	run_pid=
	return $is_right
}
is_attached() { [ -e "/sys/fs/bpf/weir/$instance" ]; }

# ---- packets that are counted ----

evaluated() { # packets, of whatever verdict
	read_stats
	figure totals.seen.packets
}
verdict() { # NAME: packets of it
	read_stats
	figure "totals.verdicts.$1.packets"
}
send() { # COUNT: packets to port 5001, until they have been evaluated
	local wanted
	wanted=$(($(evaluated) + $1))
	in_near bash -c "for i in \$(seq $1); do echo >/dev/udp/$far_address/5001; done" 2>/dev/null
	within 10 has_evaluated "$wanted" || echo "    $(evaluated) packets were evaluated, not $wanted"
}
has_evaluated() { [ "$(evaluated)" -ge "$1" ]; }

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
says() {
	grep -q -e "$1" "$work/words" && return
	echo "    nothing is said of '$1':" && sed 's/^/    | /' "$work/words"
	return 1
}
equals() { # WHAT IS SHOULD_BE
	[ "$2" = "$3" ] && return
	echo "    $1: $2, not $3"
	return 1
}

# ---- claims ----

claim() {
	if "$1"; then
		echo "ok: $1"
	else
		echo "FAILED: $1"
		failures=$((failures + 1))
	fi
	if [ -n "$run_pid" ]; then
		kill -9 "$run_pid" 2>/dev/null
		wait "$run_pid" 2>/dev/null # bash would report the kill
	fi
	run_pid=
	"$weir" detach --instance "$instance" 2>/dev/null
	$after_claim
}

claim_all() { # [NAME...]: these, or all: functions of at least three words
	local name
	for name in ${*:-$(declare -F | sed 's/^declare -f //' | grep -E '_.*_.*_')}; do
		claim "$name"
	done
	[ "$failures" -eq 0 ]
}
