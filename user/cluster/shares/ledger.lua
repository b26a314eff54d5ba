-- SPDX-License-Identifier: GPL-2.0-only
--
-- The store's part of "one limit for many hosts": a ledger of who may admit how much of a rule's threshold.
-- docs/cluster-protocol.md says why the hosts together never exceed it; its numbers stand in brackets here, as [3].
--
-- A host calls this once a round, for all its rules, and all flows that are shared. A ledger is one hash; KEYS names one a
-- rule, and one a flow:
--   ledger        "version epoch run now owed came longest": read_ledger()
--   host:NAME     what the ledger knows of a host: the fields of ENTRY
--   flow:NAME     of a rule with a key, each flow that is shared: "KEY until lack", the key encrypted by hosts
-- ARGV: host, process, turn, lease_us, settled_us; then for each ledger the fields of ASKED, in order; then the flows that
-- this host wants to be shared: the number of their rule's ledger, name, key, lack. Answers for each ledger the fields that
-- user/cluster/shares/ledger.c reads, and for a rule its flows: name, key, name, key ...
--
-- In the ledger of a flow, hosts share what they have more or less than their rule's share [9]: all differences together
-- are 0 or less. Numbers are never negative: a share, a hold and so on are `base` and that difference. To a rule base is 0.
--
-- Time is the ledger's own, in microseconds. It moves when a host can say that at least so much time has passed [1]. The
-- store's clock is never asked: it can be set.

local ASKED = 18
local VERSION = '2' -- of what stands in a ledger: one of another version counts as lost [6]
local DAY_US, MINUTE_US = 86400000000, 60000000
local FLOW_US = 10000000 -- a flow that no host has wanted for so long is not shared any more
local NEVER = -1
local UNKNOWN = '-' -- in place of an epoch: of a process that has just begun
local LATE, TAKEN = 0, -1 -- in place of a lease: a message of long ago; another process has this host's name

local host, process, turn = ARGV[1], ARGV[2], tonumber(ARGV[3])
local lease_us, settled_us = tonumber(ARGV[4]), tonumber(ARGV[5])
-- A store that has restarted, or has been a replica, may have lost the latest changes: its data have another name then.
local run = assert(string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)'))

local function read_rule(n)
  local at = 5 + (n - 1) * ASKED
  local number = function(i) return tonumber(ARGV[at + i]) end
  return {
    threshold = number(1), rest_us = number(2), may_fall_back = ARGV[at + 3] == '1', leaves = ARGV[at + 4] == '1',
    ask = number(5), share = number(6), peak = number(7), fallback = number(8), -- peak: NEVER when the host does not know
    epoch = ARGV[at + 9], now_us = number(10), received_us = number(11), contact_us = number(12), total = number(13),
    wanted = {}, base = number(14), flows_most = number(15), -- NEVER: this one's flows are not shared
    silent_us = number(16), stops = number(17), longest_us = number(18),
  }
end

-- Returns nil where somebody else has written.
local function read_entry(name, text)
  local process_of, turn_of, hold, fallback, ask, received_us, ends_us, rest_us, silent_us, stops =
    string.match(text, '^(%S+) (%d+) (%d+) (%d+) (-?%d+) (-?%d+) (%d+) (%d+) (%d+) ([01])$')
  if not process_of then return nil end
  return {
    name = name, process = process_of, turn = tonumber(turn_of),
    hold = tonumber(hold),         -- never has it enforced more since `rest_us` ago, and it will not before the next turn
    fallback = tonumber(fallback), -- without a lease it never enforces more than this, at last
    ask = tonumber(ask),           -- what it could use; NEVER: it has left
    received_us = tonumber(received_us), -- the latest answer that it has confirmed
    ends_us = tonumber(ends_us), rest_us = tonumber(rest_us),
    silent_us = tonumber(silent_us), -- its fallback is reserved for so long after its lease, and a rest
    stops = tonumber(stops),         -- 1: then it enforces nothing; 0: it goes on [10]
  }
end

local function entry_text(entry)
  return string.format('%s %d %d %d %d %d %d %d %d %d', entry.process, entry.turn, entry.hold, entry.fallback,
    entry.ask, entry.received_us, entry.ends_us, entry.rest_us, entry.silent_us, entry.stops)
end

-- The longest that anybody is waited for who has something.
local function longest(ledger)
  local longest_us = ledger.owed > ledger.came and ledger.longest_us or 0
  for _, entry in pairs(ledger.hosts) do longest_us = math.max(longest_us, entry.silent_us) end
  return longest_us
end

-- mine: nil when nothing was taken of the caller. A ledger that nobody uses is forgotten some day, when nothing in it is
-- reserved any more: it is enough to put that off when it begins, and once a minute.
local function write(key, ledger, mine, base, before_us)
  local text = string.format('%s %s %s %d %d %d %d', VERSION, ledger.epoch, run, ledger.now_us, ledger.owed,
    ledger.came, ledger.longest_us)
  if mine then
    redis.call('HSET', key, 'ledger', text, 'host:' .. host, entry_text(mine))
  else
    redis.call('HSET', key, 'ledger', text)
  end
  if not before_us or math.floor(before_us / MINUTE_US) ~= math.floor(ledger.now_us / MINUTE_US) then
    local unused_us = base > 0 and DAY_US / 24 or math.max(2 * DAY_US, longest(ledger) + DAY_US)
    redis.call('EXPIRE', key, math.floor(unused_us / 1000000))
  end
end

-- A new epoch knows nobody. What hosts of the former one may fall back to is owed to them until they have come, or have
-- been silent for as long as any of them may [6].
local function begin(key, ledger, base)
  ledger.longest_us = longest(ledger)
  ledger.owed, ledger.came = math.max(0, ledger.owed - ledger.came), 0
  for _, entry in pairs(ledger.hosts) do ledger.owed = ledger.owed + entry.fallback - base end
  redis.call('DEL', key)
  ledger.epoch, ledger.run, ledger.now_us, ledger.hosts, ledger.flows = process .. ':' .. turn, run, 0, {}, {}
end

-- Returns whether the field is one that this script writes.
local function read_field(ledger, field, text)
  local kind, name = string.match(field, '^(%a+):(.*)')
  if kind == 'host' then
    ledger.hosts[name] = read_entry(name, text)
    return ledger.hosts[name]
  elseif kind == 'flow' then
    local key, until_us, lack = string.match(text, '^(%S+) (%d+) (%d+)$')
    if key then ledger.flows[name] = { name = name, text = key, until_us = tonumber(until_us), lack = tonumber(lack) } end
    return key
  elseif field == 'ledger' then
    local version, epoch, of_run, now_us, owed, came, longest_us =
      string.match(text, '^(%S+) (%S+) (%S+) (%d+) (-?%d+) (-?%d+) (%d+)$')
    if version ~= VERSION then return nil end
    ledger.epoch, ledger.run, ledger.now_us = epoch, of_run, tonumber(now_us)
    ledger.owed, ledger.came, ledger.longest_us = tonumber(owed), tonumber(came), tonumber(longest_us)
    return epoch
  end
  return false
end

-- Returns the ledger, and whether it has just begun. One in which somebody else has written has said too little of what its
-- hosts may have: it counts as lost.
local function read_ledger(key, base)
  local ledger = { hosts = {}, flows = {}, owed = 0, came = 0, longest_us = 0 }
  local fields, is_ours = redis.call('HGETALL', key), true
  for i = 1, #fields, 2 do is_ours = read_field(ledger, fields[i], fields[i + 1]) and is_ours end
  if not is_ours or ledger.run ~= run then
    begin(key, ledger, base)
    return ledger, true
  end
  return ledger, false
end

-- Hosts that are silent have fallen back when their lease has ended, and an interval later that is all they hold [4].
-- Nothing is reserved for who has been silent for too long [10].
local function age(key, ledger, rule)
  for name, entry in pairs(ledger.hosts) do
    local for_us = ledger.now_us - entry.ends_us - entry.rest_us
    if for_us >= 0 then entry.hold = entry.fallback end
    if for_us >= 0 and (entry.hold == rule.base or for_us >= entry.silent_us) then
      ledger.hosts[name] = nil
      redis.call('HDEL', key, 'host:' .. name)
    end
  end
  if ledger.now_us >= ledger.longest_us + 2 * lease_us + rule.rest_us then ledger.owed, ledger.came = 0, 0 end
end

-- It has confirmed an answer so lately that it cannot have fallen back.
local function is_live(ledger, entry)
  return entry.received_us ~= NEVER and ledger.now_us < entry.received_us + lease_us
end

-- What of the threshold must be left alone for the sake of `entry`. A host that may have fallen back already counts with
-- both. So does everybody for a caller who has just come: the ledger's time may have stood still until then [5].
local function reserved(ledger, entry, is_settled)
  if is_settled and is_live(ledger, entry) then return entry.hold end
  return math.max(entry.hold, entry.fallback)
end

-- Everybody gets what they ask for, as far as it is below a level at which all is given out: entry.due. Returns what is
-- then left for each, and how much others lack of what is due to them. This is about use, not safety.
local function share_out(ledger, mine, budget, base)
  local live, lacking = {}, 0
  for _, entry in pairs(ledger.hosts) do
    if entry == mine or entry.ask ~= NEVER and is_live(ledger, entry) then
      live[#live + 1] = entry
    else
      budget = budget - (reserved(ledger, entry, true) - base)
    end
  end
  table.sort(live, function(a, b) return a.ask < b.ask or a.ask == b.ask and a.name < b.name end)
  for i, entry in ipairs(live) do
    entry.due = math.max(0, math.min(entry.ask, base + math.floor(budget / (#live - i + 1))))
    budget = budget - (entry.due - base)
    if entry ~= mine then lacking = lacking + math.max(0, entry.due - entry.hold) end
  end
  return math.max(0, math.floor(budget / #live)), lacking
end

-- What suits all: a share grows while others lack nothing, and shrinks when they do. Moving a share costs: it is of no use
-- while it rests. So small differences stay.
local function suitable(rule, due, spare, lacking, free, hosts)
  local slack = math.max(0, due - rule.base) / 64 + rule.threshold / (64 * hosts)
  if lacking == 0 then return math.max(rule.share, due + spare) end
  if rule.share < due or lacking > free and rule.share > due + slack then return due end
  return rule.share
end

-- Known hosts that have not left, what all have as fallback, what must be left for all but `mine`, and what is left alone
-- for those of a former epoch. The last is for people: how much of it all is left for hosts that are silent.
local function add_up(ledger, mine, is_settled, base)
  local hosts, fallbacks, others, owed = 0, 0, 0, math.max(0, ledger.owed - ledger.came)
  local silent = owed
  for _, entry in pairs(ledger.hosts) do
    if entry.ask ~= NEVER then hosts = hosts + 1 end
    fallbacks = fallbacks + entry.fallback - base
    if entry ~= mine then others = others + reserved(ledger, entry, is_settled) - base end
    if entry ~= mine and entry.ask ~= NEVER and not is_live(ledger, entry) then
      silent = silent + reserved(ledger, entry, true) - base
    end
  end
  return hosts, fallbacks, others, owed, silent
end

-- The caller's own account replaces what the ledger knew of it. A process that has just begun has none. Who was silent for
-- so long that its fallback is others' comes back as one who has none [10].
local function note(ledger, rule)
  local known = ledger.hosts[host]
  local mine = known or { name = host, hold = rule.base, fallback = rule.base }
  if known or not rule.is_of_former then rule.fallback = math.min(rule.fallback, mine.fallback) end
  if rule.peak == NEVER then
    mine.hold = math.max(mine.hold, mine.fallback, rule.share)
    mine.fallback = math.max(mine.fallback, rule.fallback)
  else
    mine.hold, mine.fallback = rule.peak, rule.fallback
  end
  mine.process, mine.turn, mine.ask = process, turn, rule.leaves and NEVER or rule.ask
  mine.received_us, mine.rest_us = rule.received_us, rule.rest_us
  mine.silent_us, mine.stops = rule.silent_us, rule.stops
  -- Once more a lease: the ledger's time may be so far behind what a host will vouch for in its next message [4].
  mine.ends_us = ledger.now_us + (rule.leaves and 0 or lease_us) + lease_us
  ledger.hosts[host] = mine
  return mine
end

local function decide(ledger, rule, mine)
  local is_quiet = ledger.now_us < lease_us + rule.rest_us -- leases of a former epoch may be in force [6]
  local is_settled = rule.contact_us >= settled_us
  local base, limit = rule.base, rule.base > 0 and 0 or rule.threshold
  local hosts, fallbacks, others, owed, silent = add_up(ledger, mine, is_settled, base)
  local part = rule.may_fall_back and math.floor(limit / math.max(hosts, 1)) or 0
  local fallback, share = math.min(rule.fallback, base + part), 0

  if rule.leaves then return 0, 0, hosts, 0, silent end
  if is_settled and not is_quiet then
    fallback = math.max(fallback, math.min(base + part, limit - owed - fallbacks + mine.fallback))
  end
  mine.ask = math.max(mine.ask, math.floor(limit / (50 * hosts)))
  local spare, lacking = share_out(ledger, mine, limit - owed, base)
  local room = is_quiet and 0 or base + limit - owed - others
  share = suitable(rule, mine.due, spare, lacking, room - mine.hold, hosts)
  -- The one line that keeps the threshold [3]: not more than others leave, or what fallbacks would allow anyhow.
  share = math.min(share, math.max(room, math.min(rule.share, rule.fallback, fallback)))
  return share, fallback, hosts, math.max(fallbacks + owed, hosts * part), silent
end

-- Those that lack most come first: without a place they would be dropped so much more. Else whoever forges as many flows as
-- there are places, and drives each a little above its share, would keep all others out.
local function by_lack(a, b)
  return a.lack > b.lack or a.lack == b.lack and a.name < b.name
end

-- Takes the place of the flow that lacks least, if `lack` is twice as much: each change costs both flows some seconds.
local function make_room(key, ledger, places, lack)
  local least = places[#places]
  if not least or lack <= 2 * least.lack then return false end
  places[#places] = nil
  ledger.flows[least.name] = nil
  redis.call('HDEL', key, 'flow:' .. least.name)
  return true
end

local function keep_flow(key, ledger, want)
  local text = string.format('%s %d %d', want.text, ledger.now_us + FLOW_US, want.lack)
  want.until_us = ledger.now_us + FLOW_US
  ledger.flows[want.name] = want
  redis.call('HSET', key, 'flow:' .. want.name, text)
end

-- Those that are shared still, the one that lacks least last. Hosts that want one say so each round; it is written less often.
local function keep_flows(key, ledger, rule)
  local places = {}
  for name, flow in pairs(ledger.flows) do
    if ledger.now_us >= flow.until_us then
      ledger.flows[name] = nil
      redis.call('HDEL', key, 'flow:' .. name)
    end
  end
  for _, want in ipairs(rule.wanted) do
    local flow = ledger.flows[want.name]
    if flow and (flow.until_us < ledger.now_us + FLOW_US / 2 or want.lack > 2 * flow.lack) then
      keep_flow(key, ledger, want)
    elseif flow then
      flow.lack = math.max(flow.lack, want.lack)
    end
  end
  for _, flow in pairs(ledger.flows) do places[#places + 1] = flow end
  table.sort(places, by_lack)
  return places
end

-- The flows of a rule that are shared.
local function list_flows(key, ledger, rule)
  local places, listed = keep_flows(key, ledger, rule), {}
  local count = #places
  table.sort(rule.wanted, by_lack)
  for _, want in ipairs(rule.wanted) do
    local is_new = not ledger.flows[want.name]
    if is_new and count >= rule.flows_most and make_room(key, ledger, places, want.lack) then count = count - 1 end
    if is_new and count < rule.flows_most then
      count = count + 1
      keep_flow(key, ledger, want)
    end
  end
  for name, flow in pairs(ledger.flows) do
    listed[#listed + 1] = name
    listed[#listed + 1] = flow.text
  end
  return listed
end

-- Messages that were on the way too long say nothing of their sender any more. A name belongs to one process at a time.
local function refusal(ledger, rule)
  local mine = ledger.hosts[host]
  if mine and mine.process ~= process then
    if rule.leaves or ledger.now_us < mine.ends_us or rule.peak ~= NEVER then return TAKEN end
  elseif mine and turn <= mine.turn then
    return LATE
  end
  if rule.received_us ~= NEVER and not is_live(ledger, rule) then return LATE end
  return nil
end

local function serve(key, rule)
  local ledger, begins = read_ledger(key, rule.base)
  local before_us = not begins and ledger.now_us or nil
  -- A process that has just begun knows no epoch. What its program has is of a former one, unless it can be of this one and
  -- not reserved any more.
  rule.is_of_former = rule.epoch ~= ledger.epoch and (rule.epoch ~= UNKNOWN or ledger.now_us < rule.silent_us)
  if rule.epoch == ledger.epoch then
    ledger.now_us = math.max(ledger.now_us, rule.now_us)
  else
    rule.received_us, rule.contact_us = NEVER, 0
    ledger.owed, ledger.longest_us = math.max(ledger.owed, rule.total), math.max(ledger.longest_us, rule.longest_us)
    if not ledger.hosts[host] and rule.is_of_former then ledger.came = ledger.came + rule.fallback - rule.base end
  end
  age(key, ledger, rule)
  local for_us, share, fallback, hosts, total, silent, mine = refusal(ledger, rule), 0, 0, 0, 0, 0, nil
  if not for_us then
    mine = note(ledger, rule)
    share, fallback, hosts, total, silent = decide(ledger, rule, mine)
    mine.hold = math.max(mine.hold, share)
    mine.fallback = rule.leaves and 0 or math.max(mine.fallback, fallback)
    for_us = lease_us
  end
  write(key, ledger, mine, rule.base, before_us)
  local answer = { ledger.epoch, ledger.now_us, share, fallback, for_us, hosts, total, silent, longest(ledger) }
  if rule.flows_most ~= NEVER then answer[10] = list_flows(key, ledger, rule) end
  return answer
end

local rules, answers = {}, {}
for n = 1, #KEYS do rules[n] = read_rule(n) end
for at = 5 + #KEYS * ASKED + 1, #ARGV, 4 do
  local wanted = rules[tonumber(ARGV[at])].wanted
  wanted[#wanted + 1] = { name = ARGV[at + 1], text = ARGV[at + 2], lack = tonumber(ARGV[at + 3]) }
end
for n = 1, #KEYS do answers[n] = serve(KEYS[n], rules[n]) end
return answers
