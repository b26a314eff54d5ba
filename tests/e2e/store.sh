# SPDX-License-Identifier: GPL-2.0-only
# A real Redis for scripts of claims, beside lib.sh and claims.sh; and hosts of a cluster that are instances of one
# kernel, each with an interface of its own in the far namespace. Store and hosts go before ordinary processes, as they have
# machines of their own elsewhere: leases last a second. Sourced, not run.
# shellcheck shell=bash disable=SC2154 # of lib.sh

server=
host_pids=() # by their order
host_names=()

needs_store() { command -v redis-cli >/dev/null && command -v redis-check-rdb >/dev/null || skip "needs Debian's redis-tools"; }
redis() { redis-cli -s "$work/socket" "$@"; }
answers() { [ "$(redis ping 2>/dev/null)" = PONG ]; }

# Debian's redis-tools has the server's program under another name. It runs in the far namespace.
start_store() { # OPTION...
	# shellcheck disable=SC2086 # words
	ip netns exec "$far" $ahead bash -c 'exec -a redis-server redis-check-rdb --unixsocket "$1/socket" --dir "$1" --save "" --appendonly no "${@:2}"' \
		- "$work" --port 0 "$@" >"$work/redis.log" 2>&1 &
	server=$!
	within 60 answers || { cat "$work/redis.log"; fail "redis-server does not answer"; }
}
end_store() {
	[ -z "$server" ] || { kill -CONT "$server"; kill -9 "$server" && wait "$server"; } 2>/dev/null
	server=
	rm -f "$work/socket"
}

shared_rules() { # HOST [URL] [RULES]: so many rules of 3,000 a second that hosts share
	local i
	cat <<-END
	settings:
	  cluster: { redis: "${2:-unix://$work/socket}", name: edge, host: $1 }
	resources:
	  - { name: dns, match: { protocol: udp, destinationPort: 5001 } }
	rules:
	END
	for ((i = 1; i <= ${3:-1}; i++)); do
		echo "  - { name: all$( [ "$i" -eq 1 ] || echo "$i"), resource: dns, threshold: 3000, clusterMode: true, clusterConfig: { thresholdType: GLOBAL } }"
	done
}

start_host() { # HOST [OPTION...]: with rules in $work/HOST.yaml
	local host=$1
	ip -n "$near" link add "out$host" type veth peer name "in$host" netns "$far" address "$far_mac" || fail "cannot make a veth pair"
	ip -n "$near" link set "out$host" up
	ip -n "$far" link set "in$host" up
	: >"$work/$host.log"
	# shellcheck disable=SC2086 # words
	ip netns exec "$far" $ahead "$weir" run --instance "$instance-$host" -i "in$host" "${@:2}" "$work/$host.yaml" >"$work/$host.log" 2>&1 &
	host_names+=("$host")
	host_pids+=($!)
	within 120 grep -q 'is attached' "$work/$host.log" || { cat "$work/$host.log"; fail "host $host is not up"; }
}
pid_of() { # HOST
	local i
	for i in "${!host_names[@]}"; do
		[ "${host_names[$i]}" != "$1" ] || echo "${host_pids[$i]}"
	done
}

clean_up_more() { clean_up_hosts; }
clean_up_hosts() {
	local pid host
	for pid in "${host_pids[@]}"; do
		kill -9 "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null # bash would report the kill
	done
	for host in "${host_names[@]}"; do
		[ ! -e "/sys/fs/bpf/weir/$instance-$host" ] || "$weir" detach --instance "$instance-$host" >/dev/null 2>&1
	done
	end_store
}
