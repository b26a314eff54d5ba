/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of an instance, table by table: its maps, which outlive a load. Each has a layout version of its own, which
 * stands in the instance's description (weir_description.h). So another version of weir takes over the tables that it
 * knows, and makes anew only the others.
 *
 * Whoever changes the layout of a table, or what its words mean, gives it another version, and says so in CHANGELOG.md.
 * The size beside each version is there to remind you: another size does not compile.
 */
#ifndef WEIR_ABI_TABLES_H
#define WEIR_ABI_TABLES_H

#include "weir_abi.h"

/*
 * TABLE(identifier, name of the map and of its pin, type, its bytes, version). Tables are found by name in a
 * description, so their order may change. `narrow_flows`, `medium_flows`, `wide_flows` and `talkers` hold chunks
 * of their type.
 */
#define WEIR_STATE_TABLES(TABLE)                                                                                       \
	TABLE(INSTANCE, instance, struct weir_instance_info, 11680, WEIR_ABI_VERSION)                                  \
	TABLE(RULE_INFO, rule_info, struct weir_rule_info, 744, 5)                                                     \
	TABLE(RESOURCE_INFO, resource_info, struct weir_resource_info, 152, 1)                                         \
	TABLE(TIMINGS, timings, struct weir_timing, 24, 1)                                                             \
	TABLE(NARROW_FLOWS, narrow_flows, struct weir_narrow_row, 32, 1)                                               \
	TABLE(MEDIUM_FLOWS, medium_flows, struct weir_medium_row, 64, 1)                                               \
	TABLE(WIDE_FLOWS, wide_flows, struct weir_wide_row, 128, 1)                                                    \
	TABLE(PRESENCE, presence, struct weir_presence_line, 64, 1)                                                    \
	TABLE(REMNANTS, remnants, struct weir_remnant_set, 64, 3)                                                      \
	TABLE(STRANGERS, strangers, struct weir_strangers, 128, 2)                                                     \
	TABLE(LONE_ROWS, lone_rows, struct weir_wide_row, 128, 1)                                                      \
	TABLE(TALKERS, talkers, struct weir_talker, 64, 1)                                                             \
	TABLE(OFFENDERS, offenders, struct weir_offender_set, 384, 1)                                                  \
	TABLE(OFFENDER_KEYS, offender_keys, struct weir_offender, 80, 1)                                               \
	TABLE(RULE_COUNTERS, rule_counters, struct weir_rule_counters, 80, 1)                                          \
	TABLE(RESOURCE_COUNTERS, resource_counters, struct weir_resource_counters, 800, 1)                             \
	TABLE(TOTALS, totals, struct weir_totals, 432, 2)                                                              \
	TABLE(CONTROL, control, struct weir_control, 16, 1)                                                            \
	TABLE(RULE_SECONDS, rule_seconds, struct weir_rule_seconds, 264, 1)                                            \
	TABLE(WARM_STATES, warm_states, struct weir_warm_state, 32, 1)                                                 \
	TABLE(SHARES, shares, struct weir_shared_threshold, 160, 3)                                                    \
	TABLE(FLOW_SHARES, flow_shares, struct weir_flow_share_set, 512, 2)                                            \
	TABLE(FLOW_DEMANDS, flow_demands, __u64, 8, 1)                                                                 \
	TABLE(THROTTLED_RESOURCES, throttled_resources, __u64, 8, 1)                                                   \
	TABLE(THROTTLED_FLOWS, throttled_flows, struct weir_throttle_set, 128, 1)                                      \
	TABLE(PENALISED_FLOWS, penalised_flows, struct weir_penalty_set, 128, 1)                                       \
	TABLE(PENALTY_KEYS, penalty_keys, struct weir_penalised, 56, 1)                                                \
	TABLE(PENALISED_RULES, penalised_rules, struct weir_rule_penalty, 16, 1)                                       \
	TABLE(BORROWING_RESOURCES, borrowing_resources, struct weir_borrowing, 192, 1)                                 \
	TABLE(BORROWING_FLOWS, borrowing_flows, struct weir_borrowing_set, 1408, 1)                                    \
	TABLE(TIMED_STATE, timed_state, struct weir_timed_state, 16, 1)                                                \
	TABLE(TIMED_ADDRESSES, timed_addresses, struct weir_timed, 24, 1)                                              \
	TABLE(TIMED_PREFIXES, timed_prefixes, struct weir_timed, 24, 1)                                                \
	TABLE(WARMING_FLOWS, warming_flows, struct weir_warming_set, 512, 1)                                           \
	TABLE(TOKEN_RESOURCES, token_resources, struct weir_token_bucket, 16, 1)                                       \
	TABLE(TOKEN_FLOWS, token_flows, struct weir_token_set, 128, 1)                                                 \
	TABLE(CONNECTIONS, connections, struct weir_connection_set, 192, 2)                                            \
	TABLE(CONNECTION_FLOWS, connection_flows, struct weir_connection_flow_set, 3200, 3)                            \
	TABLE(LONE_CONNECTIONS, lone_connections, struct weir_connection_flow, 448, 2)                                 \
	TABLE(CONNECTION_TOTALS, connection_totals, struct weir_connection_total, 408, 3)                              \
	TABLE(HANDSHAKES, handshakes, struct weir_handshakes, 512, 1)                                                  \
	TABLE(SIGNALS, signals, struct weir_signals, 32, 1)                                                            \
	TABLE(REQUESTS, requests, struct weir_request_set, 128, 1)                                                     \
	TABLE(BREAKERS, breakers, struct weir_breaker_set, 1920, 1)                                                    \
	TABLE(LONE_BREAKERS, lone_breakers, struct weir_breaker, 256, 1)                                               \
	TABLE(REQUEST_GROUPS, request_groups, struct weir_request_group, 24, 1)                                        \
	TABLE(LONE_GROUPS, lone_groups, struct weir_request_group, 24, 1)                                              \
	TABLE(PACE, pace_counters, struct weir_pace_counters, 32, 1)                                                   \
	TABLE(EVENTS, events, struct weir_events, 727296, 3)

/*
 * Of a generation, and so made anew by every load; but commands of another version read and write it while it is in
 * force, so it has a version, too. That of `overrides`, which `weir flows` reads, is the same.
 */
#define WEIR_SHOWN_TABLES(TABLE) TABLE(THRESHOLDS, thresholds, struct weir_pushed, 112, 3)

#define WEIR_CHECK_TABLE(identifier, map, type, bytes, version)                                                        \
	_Static_assert(sizeof(type) == (bytes), "another layout of " #map " needs another version");                   \
	_Static_assert(sizeof(#map) <= WEIR_TABLE_NAME_BYTES, "the name of " #map " is too long for a description");
WEIR_STATE_TABLES(WEIR_CHECK_TABLE)
WEIR_SHOWN_TABLES(WEIR_CHECK_TABLE)
#undef WEIR_CHECK_TABLE

#endif
