// SPDX-License-Identifier: GPL-2.0-only
#include "cluster_world.h"

#include <inttypes.h>
#include <lua5.1/lauxlib.h>
#include <lua5.1/lua.h>
#include <lua5.1/lualib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"

struct world_message {
	struct world_message *next;
	uint64_t due_ns;
	uint32_t host;
	uint64_t process; /* whose answer it is: a process gets no answer to its predecessor */
	uint64_t turn;
	uint64_t asked_ns; /* by the host's clock */
	uint64_t sent_ns;  /* by the world's */
	bool is_answer;
	bool is_refused; /* the script found that the message was changed */
	uint32_t store;
	bool has_flow; /* the second ledger's words and answer */
	weir_ledger_word words[WEIR_LEDGER_HEAD_WORDS + 2 * WEIR_LEDGER_ASK_WORDS];
	struct weir_share_answer answer[2];
};

uint64_t world_chance(struct world *w, uint64_t below)
{
	w->chance = w->chance * 6364136223846793005ull + 1442695040888963407ull;
	return (w->chance >> 32 ^ w->chance << 32) % below;
}

static bool happens(struct world *w, uint32_t percent)
{
	return world_chance(w, 100) < percent;
}

/* What happens, for whoever looks into a world that failed: WEIR_CLUSTER_TRACE=1. */
__attribute__((format(printf, 2, 3))) static void trace(const struct world *w, const char *format, ...)
{
	va_list args;

	if (!getenv("WEIR_CLUSTER_TRACE"))
		return;
	printf("%10.3f ", (double)w->now_ns / 1e9);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

static void trace_message(const struct world *w, const struct world_message *message)
{
	uint32_t ledgers = message->has_flow ? 2 : 1;

	if (!getenv("WEIR_CLUSTER_TRACE"))
		return;
	printf("%10.3f", (double)w->now_ns / 1e9);
	for (uint32_t i = 0; i < ARRAY_SIZE(message->words); i++)
		printf(" %s", message->words[i]);
	for (uint32_t ledger = 0; ledger < ledgers; ledger++) {
		const struct weir_share_answer *answer = &message->answer[ledger];

		printf(" -> %s now %" PRId64 " share %" PRIu64 " fallback %" PRIu64 " lease %" PRId64 " hosts %" PRId64
		       " total %" PRId64,
		       answer->epoch, answer->now_us, answer->share, answer->fallback, answer->lease_us, answer->hosts,
		       answer->total);
	}
	putchar('\n');
}

/* ---- the store: a table in Lua in place of Redis ---- */

/* Scripts of Redis may not make globals; numbers that redis.call gets become text. */
static const char store_lua[] =
	"local stores, at, check = { { {}, {}, 'r1' }, { {}, {}, 'other1' } }, 1, sha1hex\n"
	"local data, copy, run = {}, {}, 'r1'\n"
	"local function clone(from)\n"
	"  local to = {}\n"
	"  for k, hash in pairs(from) do to[k] = {} for f, v in pairs(hash) do to[k][f] = v end end\n"
	"  return to\n"
	"end\n"
	"local commands = {\n"
	"  INFO = function() return 'role:master\\r\\nmaster_replid:' .. run .. '\\r\\n' end,\n"
	"  EXPIRE = function() return 1 end,\n"
	"  DEL = function(key) data[key] = nil end,\n"
	"  HDEL = function(key, field) if data[key] then data[key][field] = nil end end,\n"
	"  HSET = function(key, ...)\n"
	"    local words = { ... }\n"
	"    data[key] = data[key] or {}\n"
	"    for i = 1, #words, 2 do data[key][words[i]] = tostring(words[i + 1]) end\n"
	"  end,\n"
	"  HGETALL = function(key)\n"
	"    local all = {}\n"
	"    for f, v in pairs(data[key] or {}) do all[#all + 1] = f all[#all + 1] = v end\n"
	"    return all\n"
	"  end,\n"
	"}\n"
	"redis = { call = function(name, ...) return commands[name](...) end, sha1hex = check }\n"
	"store = {\n"
	"  use = function(n)\n"
	"    stores[at], at = { data, copy, run }, n\n"
	"    data, copy, run = unpack(stores[n])\n"
	"  end,\n"
	"  mangle = function(place, by)\n"
	"    for _, hash in pairs(data) do for field, text in pairs(hash) do\n"
	"      local at = place % #text + 1\n"
	"      local digit = tonumber(text:sub(at, at))\n"
	"      if digit then\n"
	"        hash[field] = text:sub(1, at - 1) .. (digit + by) % 10 .. text:sub(at + 1)\n"
	"        return\n"
	"      end\n"
	"    end end\n"
	"  end,\n"
	"  forget_lost = function() for _, hash in pairs(data) do hash.forget = 'lost' end end,\n"
	"  empty = function() data = {} end,\n"
	"  spoil_ledger = function() for _, hash in pairs(data) do hash.ledger = 'e r 1 2 x' end end,\n"
	"  spoil_host = function()\n"
	"    for _, hash in pairs(data) do\n"
	"      for f in pairs(hash) do if f:match('^host:') then hash[f] = 'p 1 2 3' break end end\n"
	"    end\n"
	"  end,\n"
	"  add_field = function() for _, hash in pairs(data) do hash.mine = 'e r 0 0 0' end end,\n"
	"  evict_rule = function() data['weir:{edge}:rule'] = nil end,\n"
	"  copy = function() copy = clone(data) end,\n"
	"  fail_over = function() data, run = clone(copy), run .. 'f' end,\n"
	"  restart_empty = function() data, run = {}, run .. 'r' end,\n"
	"}\n"
	"KEYS, ARGV = {}, {}\n"
	"setmetatable(_G, { __newindex = function(_, name) error('a global: ' .. name) end })\n";

static void call_store(struct world *w, const char *what, uint64_t first, uint64_t second)
{
	lua_getglobal(w->lua, "store");
	lua_getfield(w->lua, -1, what);
	lua_pushnumber(w->lua, (lua_Number)first);
	lua_pushnumber(w->lua, (lua_Number)second);
	if (lua_pcall(w->lua, 2, 0, 0) != 0)
		fail_msg("%s", lua_tostring(w->lua, -1));
	lua_pop(w->lua, 1);
}

/* What happens, happens to the store that most hosts use. */
static void store_event(struct world *w, const char *what)
{
	trace(w, "store: %s", what);
	call_store(w, "use", w->store + 1, 0);
	call_store(w, what, 0, 0);
}

/* Not SHA-1, and as different for different texts. */
static int hash_text(lua_State *lua)
{
	uint64_t hash = 14695981039346656037ull;
	size_t bytes;
	const char *text = luaL_checklstring(lua, 1, &bytes);
	char hex[2 * sizeof(hash) + 1];

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)text[i]) * 1099511628211ull;
	snprintf(hex, sizeof(hex), "%016" PRIx64, hash ^ hash >> 29);
	lua_pushstring(lua, hex);
	return 1;
}

void world_go_to_store(struct world *w, uint32_t i, uint32_t store)
{
	trace(w, "h%u: goes to store %u", i, store);
	w->host[i].store = store;
}

void world_alternate(struct world *w)
{
	w->store = !w->store;
	for (uint32_t i = 0; i < w->hosts; i++)
		world_go_to_store(w, i, w->store);
}

void world_mangle_store(struct world *w)
{
	trace(w, "store: mangled");
	call_store(w, "use", w->store + 1, 0);
	call_store(w, "mangle", world_chance(w, 80), 1 + world_chance(w, 9));
}

void world_forget_lost(struct world *w)
{
	store_event(w, "forget_lost");
}

void world_empty_store(struct world *w)
{
	store_event(w, "empty");
}

void world_write_into_store(struct world *w)
{
	static const char *const what[] = {"spoil_ledger", "spoil_host", "add_field"};

	store_event(w, what[w->writes++ % ARRAY_SIZE(what)]);
}

void world_evict_rule(struct world *w)
{
	store_event(w, "evict_rule");
}

void world_copy_store(struct world *w)
{
	store_event(w, "copy");
}

void world_fail_over(struct world *w)
{
	store_event(w, "fail_over");
}

void world_restart_store_empty(struct world *w)
{
	store_event(w, "restart_empty");
}

static void set_words(lua_State *lua, const char *name, const weir_ledger_word *words, int count)
{
	lua_newtable(lua);
	for (int i = 0; i < count; i++) {
		lua_pushstring(lua, words[i]);
		lua_rawseti(lua, -2, i + 1);
	}
	lua_getglobal(lua, "_G");
	lua_pushvalue(lua, -2);
	lua_setfield(lua, -2, name);
	lua_pop(lua, 2);
}

/* Another digit in one of the words, the epoch's included. */
static void mangle_digit(struct world *w, char *word)
{
	size_t chars = strlen(word), at = chars ? world_chance(w, chars) : 0;

	if (word[at] >= '0' && word[at] <= '9')
		word[at] = (char)('0' + (word[at] - '0' + 1 + (int)world_chance(w, 9)) % 10);
}

static void mangle_word(struct world *w, struct world_message *message)
{
	mangle_digit(w, message->words[world_chance(w, WEIR_LEDGER_HEAD_WORDS + WEIR_LEDGER_ASK_WORDS)]);
}

static void mangle(struct world *w, char *epoch, long long numbers[WEIR_LEDGER_ANSWER_NUMBERS])
{
	uint64_t which = world_chance(w, WEIR_LEDGER_ANSWER_NUMBERS + 1);
	char digits[32];

	if (which == WEIR_LEDGER_ANSWER_NUMBERS) {
		epoch[0] = epoch[0] == '9' ? '8' : '9';
		return;
	}
	do {
		snprintf(digits, sizeof(digits), "%lld", numbers[which]);
		mangle_digit(w, digits);
	} while (strtoll(digits, NULL, 10) == numbers[which]);
	numbers[which] = strtoll(digits, NULL, 10);
}

/* Answer number `ledger`, of those that are on the stack. False: it was changed on its way. */
static bool read_answer(struct world *w, int ledger, const struct weir_share_terms *terms,
			struct weir_share_answer *ret_answer)
{
	long long numbers[WEIR_LEDGER_ANSWER_NUMBERS];
	char epoch[WEIR_CLUSTER_EPOCH_CHARS];
	lua_State *lua = w->lua;

	lua_rawgeti(lua, -1, ledger + 1);
	lua_rawgeti(lua, -1, 1);
	snprintf(epoch, sizeof(epoch), "%s", lua_tostring(lua, -1));
	lua_pop(lua, 1);
	for (int i = 0; i < WEIR_LEDGER_ANSWER_NUMBERS; i++) {
		lua_rawgeti(lua, -1, i + 2);
		numbers[i] = (long long)lua_tonumber(lua, -1);
		lua_pop(lua, 1);
	}
	lua_pop(lua, 1);
	if (happens(w, w->link.mangled_percent)) {
		mangle(w, epoch, numbers);
		assert_int_equal(weir_ledger_read_answer(epoch, numbers, terms, ret_answer), -EINVAL);
		return false;
	}
	assert_int_equal(weir_ledger_read_answer(epoch, numbers, terms, ret_answer), 0);
	return true;
}

/* EVALSHA of one key, or two. */
static void ask_ledger(struct world *w, struct world_message *message)
{
	static const weir_ledger_word keys[] = {"weir:{edge}:rule", "weir:{edge}:rule:flow:f"};
	struct weir_share_terms flow_terms = w->terms;
	lua_State *lua = w->lua;

	call_store(w, "use", message->store + 1, 0);
	set_words(lua, "KEYS", keys, 1 + message->has_flow);
	set_words(lua, "ARGV", message->words,
		  WEIR_LEDGER_HEAD_WORDS + (1 + message->has_flow) * WEIR_LEDGER_ASK_WORDS);
	lua_getfield(lua, LUA_REGISTRYINDEX, "ledger");
	if (lua_pcall(lua, 0, 1, 0) != 0) {
		message->is_refused = strstr(lua_tostring(lua, -1), "changed on its way");
		if (!message->is_refused)
			fail_msg("%s", lua_tostring(lua, -1));
	}
	flow_terms.threshold += WEIR_CLUSTER_BASE;
	if (!message->is_refused)
		message->is_refused = !read_answer(w, 0, &w->terms, &message->answer[0]) ||
				      (message->has_flow && !read_answer(w, 1, &flow_terms, &message->answer[1]));
	lua_pop(lua, 1);
	w->rounds++;
}

/* ---- the oracle ---- */

static uint64_t most_lately(struct host *host, uint64_t since_ns)
{
	uint64_t most = host->plane_units;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < host->plane_count; i++) {
		if (host->plane_past[i].until_ns <= since_ns)
			continue;
		if (host->plane_past[i].units > most)
			most = host->plane_past[i].units;
		host->plane_past[kept++] = host->plane_past[i];
	}
	host->plane_count = kept;
	return most;
}

/* In a window that ends now, the most of each together. */
static uint64_t most_together(struct world *w)
{
	uint64_t since_ns = w->now_ns > w->terms.interval_ns ? w->now_ns - w->terms.interval_ns : 0;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->hosts; i++)
		if (w->now_ns >= w->host[i].excused_ns)
			sum += most_lately(&w->host[i], since_ns);
	return sum;
}

/* By its own clock, of which it takes off a thousandth. What it had is in windows for an interval more. */
static void excuse(struct world *w, struct host *host)
{
	uint64_t silent_ns = w->terms.silent_ns;

	if (!w->terms.stops && w->now_ns - host->confirmed_ns >= silent_ns - silent_ns / 500)
		host->excused_ns = w->now_ns + w->terms.interval_ns + 200 * MS;
}

static void set_plane(struct world *w, struct host *host, uint64_t units)
{
	uint64_t before = host->plane_units, sum;
	uint32_t newest;

	if (units == before)
		return;
	trace(w, "%s enforces %" PRIu64 ", before %" PRIu64, host->member.host, units, before);
	if (units < before) {
		while (host->plane_count > 0 && host->plane_past[host->plane_count - 1].units <= before)
			host->plane_count--;
		newest = host->plane_count;
		assert_true(newest < ARRAY_SIZE(host->plane_past));
		host->plane_past[newest] = (struct plane_value){.units = before, .until_ns = w->now_ns};
		host->plane_count++;
	}
	host->plane_units = units;
	if (units < before)
		return;
	sum = most_together(w);
	if (sum > w->worst)
		w->worst = sum;
}

/* ---- the network ---- */

static void send(struct world *w, const struct world_message *message)
{
	uint32_t copies = 1 + happens(w, w->link.doubled_percent);

	if (w->host[message->host].is_cut || message->is_refused)
		return;
	while (copies-- > 0) {
		struct world_message *sent;
		bool is_slow = happens(w, w->link.slow_percent);

		if (happens(w, w->link.lost_percent))
			continue;
		sent = malloc(sizeof(*sent));
		assert_non_null(sent);
		*sent = *message;
		if (!sent->is_answer && happens(w, w->link.mangled_percent))
			mangle_word(w, sent);
		if (!sent->is_answer && w->host[message->host].share.has_lease && happens(w, w->link.stray_percent))
			sent->store = !sent->store;
		sent->due_ns = w->now_ns + world_chance(w, 1 + (is_slow ? w->link.slow_ns : w->link.usual_ns));
		sent->next = w->messages;
		w->messages = sent;
	}
}

static uint64_t own_ns(const struct world *w, const struct host *host)
{
	return host->clock_offset_ns + w->now_ns + (uint64_t)((int64_t)(w->now_ns / 1000000) * host->drift_ppm);
}

static void leave_out(struct world *w, struct weir_share *share)
{
	if (w->omission == OMIT_LEASE_END)
		share->ends_ns = UINT64_MAX;
	if (w->omission == OMIT_WAIT && !share->has_lease && share->rises_ns != UINT64_MAX)
		share->rises_ns = 0;
	if (w->omission == OMIT_STOP)
		share->stops_ns = UINT64_MAX;
	if (w->omission == OMIT_BEGIN)
		share->begins_ns = 0;
}

static void enforce_share(struct world *w, struct host *host)
{
	uint64_t now_ns = own_ns(w, host);

	leave_out(w, &host->share);
	weir_share_advance(&host->share, now_ns);
	if (w->has_flow) {
		leave_out(w, &host->flow.share);
		weir_share_advance(&host->flow.share, now_ns);
	}
	if (host->is_up)
		set_plane(w, host,
			  w->has_flow ? weir_flow_units(&host->flow, &host->share, now_ns)
				      : weir_share_units(&host->share, now_ns));
}

static void take_answer(struct world *w, const struct world_message *message)
{
	struct host *host = &w->host[message->host];
	uint64_t now_ns = own_ns(w, host);

	if (!host->has_process || strtoull(host->member.process, NULL, 16) != message->process || host->is_cut ||
	    host->is_deaf || (message->store != host->store && !w->link.stray_percent))
		return;
	if (!weir_member_takes_answer(&host->member, message->turn, now_ns) && w->omission != OMIT_TURN)
		return;
	if (w->omission == OMIT_BELIEF) {
		memcpy(host->share.heard, message->answer[0].epoch, sizeof(host->share.heard));
		memcpy(host->flow.share.heard, message->answer[1].epoch, sizeof(host->share.heard));
	}
	if (weir_share_take(&host->share, &message->answer[0], message->asked_ns, now_ns) &&
	    message->answer[0].lease_us > 0)
		host->confirmed_ns = message->sent_ns;
	if (message->has_flow && host->has_flow)
		weir_flow_take(&host->flow, &host->share, &message->answer[1], message->asked_ns, now_ns);
	if (w->omission == OMIT_EARLY_END && host->share.has_lease)
		host->share.ends_ns = now_ns + WEIR_CLUSTER_LEASE_NS;
	enforce_share(w, host);
}

static void give_to_store(struct world *w, struct world_message *message)
{
	ask_ledger(w, message);
	trace_message(w, message);
	message->is_answer = true;
	send(w, message);
}

/* Messages that are due, in no order. Those to a store that is stopped wait until it continues, however old. */
static void deliver(struct world *w)
{
	struct world_message **link = &w->messages, *due = NULL, *message;

	while ((message = *link)) {
		if (message->due_ns > w->now_ns || (!message->is_answer && !w->store_runs)) {
			link = &message->next;
			continue;
		}
		*link = message->next;
		message->next = due;
		due = message;
	}
	while ((message = due)) {
		due = message->next;
		if (message->is_answer)
			take_answer(w, message);
		else
			give_to_store(w, message);
		free(message);
	}
}

/* ---- hosts ---- */

static void say(struct world *w, struct host *host, struct weir_share_ask *ask, struct world_message *message,
		int ledger)
{
	if (w->omission == OMIT_RISES || w->omission == OMIT_LONG_REST)
		ask->rises_us = 0;
	if (w->omission == OMIT_TOTAL)
		ask->total = ask->owed = 0;
	if (w->omission == OMIT_EXPECTED)
		ask->expected = 0;
	if (w->omission == OMIT_REST)
		ask->peak = (int64_t)ask->share;
	if (w->omission == OMIT_UNKNOWN_PEAK && ask->peak == WEIR_PEAK_UNKNOWN)
		ask->peak = (int64_t)ask->share;
	if (w->omission == OMIT_TIME_BOUND && ask->now_us > 0)
		ask->now_us += 400000;
	if (w->omission == OMIT_LONG_REST)
		ask->rest_us = w->terms.interval_ns / 1000 + 51000;
	weir_ledger_write_ask(&host->member, ask,
			      message->words + WEIR_LEDGER_HEAD_WORDS + ledger * WEIR_LEDGER_ASK_WORDS);
}

static void speak(struct world *w, uint32_t i, bool leaves)
{
	struct host *host = &w->host[i];
	struct world_message message = {
		.host = i, .store = host->store, .process = strtoull(host->member.process, NULL, 16)};
	struct weir_share_ask ask;
	uint64_t now_ns = own_ns(w, host);

	weir_share_advance(&host->share, now_ns);
	if (host->has_flow && !leaves) {
		message.has_flow = true;
		weir_flow_ask(&host->flow, &host->share, now_ns, (uint64_t)host->offered, &ask);
		say(w, host, &ask, &message, 1);
	}
	host->share.lent = w->has_flow && w->omission != OMIT_LENT ? weir_flow_lent(&host->flow) : 0;
	if (leaves)
		weir_share_leave(&host->share, now_ns, &ask);
	else
		weir_share_ask(&host->share, now_ns, (uint64_t)host->offered, (uint64_t)host->blocked, &ask);
	say(w, host, &ask, &message, 0);
	message.turn = host->member.turn;
	message.asked_ns = host->member.asked_ns;
	message.sent_ns = w->now_ns;
	weir_ledger_write_head(&host->member, message.words);
	send(w, &message);
}

void world_share_flow(struct world *w, uint32_t i, bool takes_part)
{
	struct host *host = &w->host[i];

	trace(w, "h%u: %s part in the flow", i, takes_part ? "takes" : "has no");
	if (host->has_flow && !takes_part)
		weir_flow_end(&host->flow, own_ns(w, host));
	host->has_flow = takes_part;
}

/* The data plane keeps its schedule, and the new process takes that over. */
void world_restart_process(struct world *w, uint32_t i)
{
	struct host *host = &w->host[i];
	struct weir_share_schedule schedule, of_flow;
	uint64_t now_ns = own_ns(w, host);

	trace(w, "h%u: another process", i);
	w->processes++;
	host->store = w->store;
	weir_share_plan(&host->share, now_ns, &schedule);
	weir_share_plan(&host->flow.share, now_ns, &of_flow);
	host->has_process = true;
	host->member.turn = 0;
	host->member.is_waiting = false;
	snprintf(host->member.process, sizeof(host->member.process), "%" PRIx64, w->processes);
	if (schedule.leased | schedule.ended | schedule.fallen_back)
		weir_share_resume(&host->share, &w->terms, &schedule, now_ns);
	else
		weir_share_begin(&host->share, &w->terms, now_ns);
	weir_flow_resume(&host->flow, &host->share, &of_flow, now_ns);
	enforce_share(w, host);
}

void world_start_host(struct world *w, uint32_t i)
{
	struct host *host = &w->host[i];

	trace(w, "h%u: a process starts", i);
	w->processes++;
	host->store = w->store;
	host->is_up = true;
	host->has_process = true;
	host->member = (struct weir_member){};
	snprintf(host->member.host, sizeof(host->member.host), "h%u", i);
	snprintf(host->member.process, sizeof(host->member.process), "%" PRIx64, w->processes);
	weir_share_begin(&host->share, &w->terms, own_ns(w, host));
	weir_flow_begin(&host->flow, &host->share, own_ns(w, host));
	host->has_flow = w->has_flow;
	enforce_share(w, host);
}

void world_kill_process(struct world *w, uint32_t i)
{
	trace(w, "h%u: its process ends", i);
	w->host[i].has_process = false;
}

void world_crash_host(struct world *w, uint32_t i)
{
	trace(w, "h%u: crashes", i);
	set_plane(w, &w->host[i], 0);
	w->host[i].is_up = false;
	w->host[i].has_process = false;
}

void world_leave(struct world *w, uint32_t i)
{
	struct host *host = &w->host[i];

	trace(w, "h%u: leaves", i);
	host->member.turn++;
	world_share_flow(w, i, false);
	speak(w, i, true);
	enforce_share(w, host);
	host->has_process = false;
}

void world_detach(struct world *w, uint32_t i)
{
	struct host *host = &w->host[i];
	struct weir_member member = host->member;
	struct world_message message = {.host = i, .store = host->store};
	struct weir_share_ask ask;

	trace(w, "h%u: is detached", i);
	world_crash_host(w, i);
	member.turn = WEIR_CLUSTER_LAST_TURN;
	weir_share_farewell(&w->terms, &ask);
	weir_ledger_write_head(&member, message.words);
	weir_ledger_write_ask(&member, &ask, message.words + WEIR_LEDGER_HEAD_WORDS);
	send(w, &message);
}

/* A sum of twelve is a bell: counts of packets scatter by their root. */
static double scatter(struct world *w, double mean)
{
	double bell = -6;

	for (int i = 0; i < 12; i++)
		bell += (double)world_chance(w, 1000000) / 1e6;
	return fmax(0, mean + bell * sqrt(mean));
}

static void offer(struct world *w, struct host *host)
{
	double seconds = (double)STEP_NS / 1e9;
	double units = scatter(w, host->rate * seconds);
	double room = (double)host->plane_units * seconds * 1e9 / (double)w->terms.interval_ns;

	host->offered += units;
	host->blocked += fmax(0, units - room);
}

bool world_step(struct world *w)
{
	w->now_ns += STEP_NS;
	for (uint32_t i = 0; i < w->hosts; i++)
		if (w->host[i].is_up) {
			excuse(w, &w->host[i]);
			enforce_share(w, &w->host[i]);
		}
	deliver(w);
	for (uint32_t i = 0; i < w->hosts; i++) {
		struct host *host = &w->host[i];

		if (host->is_up && host->rate > 0)
			offer(w, host);
		if (host->has_process && weir_member_takes_turn(&host->member, own_ns(w, host)))
			speak(w, i, false);
	}
	return w->worst <= w->terms.threshold;
}

bool world_run(struct world *w, uint64_t ns)
{
	uint64_t end_ns = w->now_ns + ns;
	bool is_kept = true;

	while (is_kept && w->now_ns < end_ns)
		is_kept = world_step(w);
	return is_kept;
}

double world_admitted(const struct world *w)
{
	double sum = 0;

	for (uint32_t i = 0; i < w->hosts; i++) {
		double offered = w->host[i].rate * (double)w->terms.interval_ns / 1e9;

		if (w->host[i].is_up)
			sum += fmin(offered, (double)w->host[i].plane_units);
	}
	return sum;
}

double world_mean_admitted(struct world *w, uint64_t ns)
{
	uint64_t end_ns = w->now_ns + ns;
	double sum = 0;
	uint32_t steps = 0;

	while (w->now_ns < end_ns) {
		assert_true(world_step(w));
		sum += world_admitted(w);
		steps++;
	}
	return steps ? sum / steps : 0;
}

void world_add_hosts(struct world *w, uint32_t hosts)
{
	for (; hosts > 0 && w->hosts < HOSTS_MAX; hosts--, w->hosts++) {
		w->host[w->hosts].drift_ppm = (int32_t)world_chance(w, 1001) - 500;
		w->host[w->hosts].store = w->store;
		w->host[w->hosts].clock_offset_ns = world_chance(w, 1000) * SECOND_NS;
	}
}

void world_end(struct world *w)
{
	struct world_message *message;

	while ((message = w->messages)) {
		w->messages = message->next;
		free(message);
	}
	if (w->lua)
		lua_close(w->lua);
	w->lua = NULL;
}

void world_begin(struct world *w, uint64_t seed, const struct weir_share_terms *terms, uint32_t hosts,
		 const char *script, size_t script_bytes)
{
	world_end(w);
	*w = (struct world){.terms = *terms, .now_ns = SECOND_NS, .chance = seed, .store_runs = true};
	w->link = (struct link){.usual_ns = 2 * MS};
	for (uint32_t i = 0; i < 4; i++)
		world_chance(w, 2);
	world_add_hosts(w, hosts);
	if (!script)
		script = weir_ledger_script(&script_bytes);
	w->lua = luaL_newstate();
	assert_non_null(w->lua);
	luaL_openlibs(w->lua);
	lua_register(w->lua, "sha1hex", hash_text);
	if (luaL_dostring(w->lua, store_lua) || luaL_loadbuffer(w->lua, script, script_bytes, "@ledger.lua"))
		fail_msg("%s", lua_tostring(w->lua, -1));
	lua_setfield(w->lua, LUA_REGISTRYINDEX, "ledger");
}
