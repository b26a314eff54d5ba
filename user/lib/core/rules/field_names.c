// SPDX-License-Identifier: GPL-2.0-only
/* The names of the fields of a rule file. */
#include "base/util.h"
#include "rules/rule.h"

#define NAME_OF_FIELD(constant, name) name,
#define NAME_OF_NUMBER(constant, name, high, advice) name,
const char *const weir_rule_fields[RULE_FIELD_COUNT] = {
	WEIR_RULE_FIELDS(NAME_OF_FIELD, NAME_OF_NUMBER, NAME_OF_NUMBER, NAME_OF_NUMBER)};

#define NAME_OF_SPECIAL(constant, name, member, part) name,
#define NAME_OF_RANGE(constant, name, member, highest, none, who) name,
const char *const weir_match_field_names[] = {WEIR_MATCH_FIELDS(NAME_OF_SPECIAL, NAME_OF_RANGE)};
const size_t weir_match_field_count = ARRAY_SIZE(weir_match_field_names);

const char *const weir_setting_names[WEIR_SETTING_COUNT] = {
	"flowsPerCpu",
	"malformed",
	"unsupported",
	"nonIp",
	"nonIpExcept",
	"unmatched",
	"mode",
	"memory",
	"throttling",
	"controllerTimeoutInMs",
	"occupyTimeoutInMs",
	"timedEntries",
	"timedParts",
	"timedWhenFull",
	"cluster",
	"connections",
	"connectionFlows",
	"halfOpenTimeoutInMs",
	"tcpIdleTimeoutInMs",
	"otherIdleTimeoutInMs",
	"closedTimeoutInMs",
};

const char *const *const weir_connection_timeout_names = weir_setting_names + SETTING_CONNECTION_TIMEOUTS;
