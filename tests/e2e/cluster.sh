# SPDX-License-Identifier: GPL-2.0-only
# For scripts with hosts that share a limit (docs/cluster.md): three hosts with a controller each, and one real Redis. Their traffic
# is taken in by one receiver, so that it is merged on one clock. The three are instances of one kernel, each with a name, an
# interface and a ledger's entry of its own. Sourced, not run; 'flow' is the key of their resource, 'silence' more settings of the
# cluster; empty: none.
#
# Hosts, store, senders and receiver go before ordinary processes, as they have machines of their own elsewhere.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

threshold=3000
flow=
silence=
least_percent=95
hosts=(a b c)
pids=()
server=
failures=0

clean_up_cluster() {
	local i
	for i in "${!pids[@]}"; do
		kill -9 "${pids[$i]}" 2>/dev/null
	done
	for i in "${hosts[@]}"; do
		[ ! -e "/sys/fs/bpf/weir/$instance-$i" ] || "$weir" detach --instance "$instance-$i" >/dev/null 2>&1
	done
	[ -z "$server" ] || { kill -CONT "$server"; kill -9 "$server" && wait "$server"; } 2>/dev/null
}
clean_up_more() { clean_up_cluster; }

command -v redis-cli >/dev/null && command -v redis-check-rdb >/dev/null || skip "needs Debian's redis-tools"
redis() { redis-cli -s "$work/socket" "$@"; }
answers() { [ "$(redis ping 2>/dev/null)" = PONG ]; }

# As tests/e2e/cluster_store_test.
start_store() {
	# shellcheck disable=SC2086 # words
	$ahead bash -c 'exec -a redis-server redis-check-rdb --port 0 --unixsocket "$1/socket" --dir "$1" --save "" --appendonly no' \
		- "$work" >"$work/redis.log" 2>&1 &
	server=$!
	within 60 answers || { cat "$work/redis.log"; fail "redis-server does not answer"; }
}

rules_of() { # HOST
	cat <<-END
	settings:
	  cluster: { redis: "unix://$work/to-$1", name: edge, host: $1${flow:+, keyFile: $work/key-$1}${silence:+, $silence} }
	resources:
	  - { name: dns, match: { protocol: udp, destinationPort: 5001 }${flow:+, flow: $flow} }
	rules:
	  - { name: all, resource: dns, threshold: $threshold, clusterMode: true, clusterConfig: { thresholdType: GLOBAL } }
	END
}

make_hosts() {
	local host
	for host in "${hosts[@]}"; do
		ip -n "$near" link add "out$host" type veth peer name "in$host" netns "$far" address "$far_mac" ||
			fail "cannot make a veth pair"
		ip -n "$near" link set "out$host" up
		ip -n "$far" link set "in$host" up
		ln -s socket "$work/to-$host"
		echo 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f >"$work/key-$host"
		rules_of "$host" >"$work/$host.yaml"
		: >"$work/$host.log"
		# shellcheck disable=SC2086 # words
		ip netns exec "$far" $ahead "$weir" run --instance "$instance-$host" -i "in$host" "$work/$host.yaml" >"$work/$host.log" 2>&1 &
		pids+=($!)
	done
	for host in "${hosts[@]}"; do
		within 120 grep -q 'is attached' "$work/$host.log" || { cat "$work/$host.log"; fail "host $host is not up"; }
	done
}

now_ms() { awk '{ printf "%d", $1 * 1000 }' /proc/uptime; }

# Offer so many packets a second to each host for so long. All have one source, and the receiver takes them together.
offer() { # SECONDS RATE RATE RATE
	local seconds=$1 i=0 rate senders=()
	shift
	rm -f "$work"/sent.*
	for rate in "$@"; do
		if [ "$rate" -gt 0 ]; then
			# shellcheck disable=SC2086 # words
			in_near $ahead "$blast" -i "out${hosts[$i]}" --dst-mac "$far_mac" --dst 10.1.0.254 --port 5001 --cpus 1 \
				--seconds "$seconds" --source "10.1.0.1,rate=$rate" >"$work/sent.$i" 2>"$work/blast.err" &
			senders+=($!)
		fi
		i=$((i + 1))
	done
	wait "${senders[@]}"
}

# Packets that the receiver had by then, from when it was ready on. It reports every 10 ms: up to 6,000 packets a second come in
# one part of each, so that a tenth of a second at either end would be a tenth of what is counted.
has_reported_by() { [ "$(awk '$1 ~ /^[0-9]+$/ { at = $1 } END { print at + 0 }' "$work/sink")" -ge "$1" ]; } # MS
arrived_by() { awk -v at="$1" '$1 ~ /^[0-9]+$/ && $1 <= at { n = $3 } END { print n + 0 }' "$work/sink"; }

# The longest pause of a sender of the last offer, or of the machine.
longest_pause_us() { cat "$work"/sent.* | awk -v most="$stalled_us" '$1 == "held-up" && $2 > most { most = $2 } END { print most }'; }

# From so many seconds after its beginning on, a phase admits at least $least_percent of the threshold, unless the machine stood still.
phase() { # WHAT SECONDS AFTER RATE RATE RATE
	local what=$1 seconds=$2 after=$3 start_ms end_ms passed wanted pause_us
	shift 3
	watch_stalls ahead
	start_ms=$(($(now_ms) - sink_ms))
	offer "$seconds" "$@"
	end_ms=$(($(now_ms) - sink_ms))
	end_watch
	pause_us=$(longest_pause_us)
	[ "$end_ms" -lt $((start_ms + seconds * 1000)) ] || end_ms=$((start_ms + seconds * 1000))
	start_ms=$((start_ms + after * 1000))
	within 10 has_reported_by "$end_ms"
	passed=$(($(arrived_by "$end_ms") - $(arrived_by "$start_ms")))
	wanted=$((threshold * (end_ms - start_ms) / 1000))
	printf '%-44s %5d of %5d, %3d %%' "$what" "$passed" "$wanted" $((100 * passed / wanted))
	if [ $((100 * passed)) -ge $((least_percent * wanted)) ]; then
		echo
	elif [ "$pause_us" -gt 100000 ]; then
		echo ", but the machine stood still for $((pause_us / 1000)) ms: shows nothing"
	else
		echo ": too little"
		failures=$((failures + 1))
	fi
}

# The controller of a host (its place in hosts) is killed; there is none, or another one comes.
kill_controller() { # PLACE
	kill -9 "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null
}
start_controller() { # PLACE
	local host=${hosts[$1]}
	# shellcheck disable=SC2086 # words
	ip netns exec "$far" $ahead "$weir" control --instance "$instance-$host" >"$work/$host.log" 2>&1 &
	pids[$1]=$!
	within 60 grep -q 'controlling instance' "$work/$host.log" || { cat "$work/$host.log"; fail "host $host has no controller"; }
}

has_lease() { "$weir" cluster explain all --instance "$instance-$1" --json 2>/dev/null | grep -q '"stage": "leased"'; } # HOST

# The net, the store, the hosts, and the receiver.
start_cluster() {
	local host
	make_net
	start_store
	make_hosts
	# shellcheck disable=SC2086 # words
	ip netns exec "$far" $ahead "$sink" -i any --source 10.1.0.1 --interval-ms 900 --report-ms 10 >"$work/sink" 2>"$work/sink.err" &
	sink_pid=$!
	within 60 grep -q ready "$work/sink" || fail "the receiver did not start"
	sink_ms=$(now_ms)
	for host in "${hosts[@]}"; do
		within 60 has_lease "$host" || fail "host $host has no lease"
	done
}

# Never above the threshold.
end_receiver() {
	local final most worst
	kill "$sink_pid"
	wait "$sink_pid" || { cat "$work/sink.err"; fail "the receiver was too slow"; }
	final=$(grep '^final' "$work/sink")
	echo "$final"
	read -r _ _ _ _ _ _ _ _ most _ worst <<<"$final"
	# Any T less a bucket, as docs/cluster.md says of leap.
	[ "$worst" -le "$threshold" ] || { echo "FAILED: $worst in 0.9 s"; failures=$((failures + 1)); }
	[ "$most" -le "$threshold" ] || { echo "FAILED: $most in 0.9 s from a bucket on"; failures=$((failures + 1)); }
}
