-- SPDX-License-Identifier: GPL-2.0-only
--
-- The store's part of "one limit for many hosts": a ledger that records which host may admit how much of a rule's
-- threshold. docs/internals/cluster-protocol.md shows why the hosts together never exceed it; its paragraph numbers
-- appear here in brackets, as [3].
--
-- A host calls this script once a round, for all its rules and all shared flows. A ledger is one hash. KEYS names the
-- ledgers, one for each rule and one for each flow:
--   ledger        "version epoch run now owed ends longest expected since missing left check": read_field()
--   host:NAME     what the ledger knows of a host: the fields of read_entry()
--   flow:NAME     for a rule with a key, each shared flow: "KEY until lack", in which KEY is encrypted by hosts
--   forget        `weir cluster forget --lost` wrote it: release what is owed
-- ARGV: host, process, turn, lease_us, settled_us; then for each ledger the ASKED fields of read_rule(), in order; then
-- the flows that this host wants to share: the number of their rule's ledger, name, key, lack. The script returns, for
-- each ledger, the fields that user/cluster/shares/ledger.c reads and, for a rule, its flows: name, key, name, key ...
--
-- In the ledger of a flow, hosts share their differences from their rule's share [9]; the sum of all differences is 0
-- or less. Numbers are never negative: a share, a hold and so on are stored as `base` plus the difference. For a rule,
-- base is 0.
--
-- Time is the ledger's own, in microseconds. It advances when a host can guarantee that at least this much time has
-- passed [1]. The store's clock is never used, because it can be set.

local ASKED = 22
local VERSION = '3' -- of a ledger's contents: a ledger of another version counts as lost [6]
local PRIME = 2147483647 -- of the checks in messages, as in ledger.c
local DAY_US, MINUTE_US = 86400000000, 60000000
local FLOW_US = 10000000 -- a flow that no host has wanted for this long is no longer shared
local NEVER = -1
local UNKNOWN = '-' -- instead of an epoch: sent by a process that has just begun
local LATE, TAKEN = 0, -1 -- instead of a lease: an old message; another process has this host's name

local host, process, turn = ARGV[1], ARGV[2], tonumber(ARGV[3])
local lease_us, settled_us = tonumber(ARGV[4]), tonumber(ARGV[5])
-- A store that has restarted, or was a replica, may have lost the latest changes. Its replication id is then another
-- one.
local run = assert(string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)'))

-- A number that depends on everything in a message or an answer [11]. One changed character changes it.
local function add_text(check, text)
  for i = 1, #text do check = (check * 31 + string.byte(text, i)) % PRIME end
  return check
end

local function add_number(check, number) return (check * 31 + number % PRIME) % PRIME end

local head_check = add_text(add_text(0, host), process)
for i = 3, 5 do head_check = add_number(head_check, tonumber(ARGV[i])) end

local function read_rule(n)
  local at, check = 5 + (n - 1) * ASKED, head_check
  local number = function(i) return tonumber(ARGV[at + i]) end
  for i = 1, ASKED - 1 do
    check = i == 9 and add_text(check, ARGV[at + i]) or i ~= 9 and add_number(check, number(i))
  end
  assert(check == number(ASKED), 'a message was changed on its way')
  return {
    threshold = number(1), rest_us = number(2), may_fall_back = ARGV[at + 3] == '1', leaves = ARGV[at + 4] == '1',
    ask = number(5), share = number(6), peak = number(7), fallback = number(8), -- peak: NEVER when the host does not know
    epoch = ARGV[at + 9], now_us = number(10), received_us = number(11), contact_us = number(12), total = number(13),
    wanted = {}, base = number(14), flows_most = number(15), -- NEVER: flows of this rule are not shared
    silent_us = number(16), stops = number(17), longest_us = number(18), expected = number(19), rises_us = number(20),
    owed = number(21),
  }
end

-- A text of the ledger ends with a check, so that nothing is read from a text that somebody else has changed.
local function check_of(field, text) return string.sub(redis.sha1hex(field .. ' ' .. text), 1, 8) end

local function checked(field, text)
  local rest, check = string.match(text, '^(.*) (%x+)$')
  return rest and check == check_of(field, rest) and rest or ''
end

-- Returns nil if somebody else has written the entry.
local function read_entry(name, text)
  local process_of, turn_of, hold, fallback, ask, received_us, ends_us, rest_us, silent_us, stops, quiet_us =
    string.match(text, '^(%S+) (%d+) (%d+) (%d+) (-?%d+) (-?%d+) (%d+) (%d+) (%d+) ([01]) (%d+)$')
  if not process_of then return nil end
  return {
    name = name, process = process_of, turn = tonumber(turn_of),
    hold = tonumber(hold),         -- it has not enforced more for `rest_us`, and will not before its next turn
    fallback = tonumber(fallback), -- the most that it enforces in the end without a lease
    ask = tonumber(ask),           -- what it could use; NEVER: it has left
    received_us = tonumber(received_us), -- the latest answer that it has confirmed
    ends_us = tonumber(ends_us), rest_us = tonumber(rest_us),
    silent_us = tonumber(silent_us), -- how long its fallback is reserved after its lease and a rest
    stops = tonumber(stops),         -- 1: it then enforces a limit of 0; 0: it keeps its fallback [10]
    quiet_us = tonumber(quiet_us),   -- until then another ledger may count on what it does not use [6]
  }
end

local function entry_text(entry)
  local text = string.format('%s %d %d %d %d %d %d %d %d %d %d', entry.process, entry.turn, entry.hold, entry.fallback,
    entry.ask, entry.received_us, entry.ends_us, entry.rest_us, entry.silent_us, entry.stops, entry.quiet_us)
  return text .. ' ' .. check_of('host:' .. entry.name, text)
end

-- What is reserved for hosts that are not listed: it is owed to them, or nothing is free until all are here [6].
local function unknown(ledger) return math.max(ledger.owed, ledger.missing) end

-- The longest silence after which something is still reserved for a host.
local function longest(ledger)
  local longest_us = unknown(ledger) > 0 and ledger.longest_us or 0
  for _, entry in pairs(ledger.hosts) do longest_us = math.max(longest_us, entry.silent_us) end
  return longest_us
end

-- mine: nil if the caller's message was refused. An unused ledger expires some time after nothing in it is reserved any
-- more. It is enough to postpone this when the ledger begins, and once a minute.
local function write(key, ledger, mine, base, before_us)
  local text = string.format('%s %s %s %d %d %d %d %d %d %d %d', VERSION, ledger.epoch, run, ledger.now_us, ledger.owed,
    ledger.owed_ends_us, ledger.longest_us, ledger.expected, ledger.since_us, ledger.missing, ledger.left)
  text = text .. ' ' .. check_of('ledger', text)
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

-- A new epoch knows no host. The fallbacks of the previous epoch's hosts are owed to them until they have come back, or
-- have been silent for as long as any of them may be [6].
local function begin(key, ledger, base)
  ledger.longest_us, ledger.owed = longest(ledger), unknown(ledger) + (base > 0 and 0 or ledger.unread)
  ledger.owed_ends_us, ledger.expected, ledger.since_us, ledger.missing, ledger.left = 0, 0, 0, 0, 0
  for _, entry in pairs(ledger.hosts) do ledger.owed = ledger.owed + entry.fallback - base end
  redis.call('DEL', key)
  ledger.epoch, ledger.run, ledger.now_us, ledger.hosts, ledger.flows = process .. ':' .. turn, run, 0, {}, {}
end

-- The fallback in an entry that cannot be trusted, or is of another version, is owed all the same.
local function add_unread(ledger, units)
  ledger.unread = ledger.unread + math.min(tonumber(units or 0), 10000000000000)
end

-- Returns whether this script has written the field.
local function read_field(ledger, field, text)
  local kind, name = string.match(field, '^(%a+):(.*)')
  if kind == 'host' then
    ledger.hosts[name] = read_entry(name, checked(field, text))
    if not ledger.hosts[name] then add_unread(ledger, string.match(text, '^%S+ %d+ %d+ (%d+) ')) end
    return ledger.hosts[name]
  elseif kind == 'flow' then
    local key, until_us, lack = string.match(text, '^(%S+) (%d+) (%d+)$')
    if key then ledger.flows[name] = { name = name, text = key, until_us = tonumber(until_us), lack = tonumber(lack) } end
    return key
  elseif field == 'ledger' then
    local version, epoch, of_run, now_us, owed, ends_us, longest_us, expected, since_us, missing, left =
      string.match(checked(field, text), '^(%S+) (%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
    if version ~= VERSION then
      add_unread(ledger, string.match(text, '^%S+ %S+ %S+ %d+ (%d+) '))
      return nil
    end
    ledger.epoch, ledger.run, ledger.now_us = epoch, of_run, tonumber(now_us)
    ledger.owed, ledger.owed_ends_us, ledger.longest_us = tonumber(owed), tonumber(ends_us), tonumber(longest_us)
    ledger.expected, ledger.since_us, ledger.missing = tonumber(expected), tonumber(since_us), tonumber(missing)
    ledger.left = tonumber(left)
    return epoch
  elseif field == 'forget' then
    ledger.forgets = true
    return true
  end
  return false
end

-- Returns the ledger, and whether it has just begun. If somebody else has written to a ledger, it no longer shows
-- reliably what its hosts may have, so it counts as lost.
local function read_ledger(key, base)
  local ledger = { hosts = {}, flows = {}, owed = 0, longest_us = 0, expected = 0, missing = 0, left = 0, unread = 0 }
  local fields, is_ours = redis.call('HGETALL', key), true
  for i = 1, #fields, 2 do is_ours = read_field(ledger, fields[i], fields[i + 1]) and is_ours end
  if ledger.forgets then
    ledger.owed, ledger.expected, ledger.missing = 0, 0, 0
    redis.call('HDEL', key, 'forget')
  end
  if not is_ours or ledger.run ~= run then
    begin(key, ledger, base)
    return ledger, true
  end
  return ledger, false
end

-- A silent host falls back when its lease ends, and an interval later it holds no more than its fallback [4]. For a
-- host that has been silent for too long, nothing is reserved [10].
local function age(key, ledger, rule)
  for name, entry in pairs(ledger.hosts) do
    local for_us = ledger.now_us - entry.ends_us - entry.rest_us
    if for_us >= 0 then entry.hold = entry.fallback end
    if for_us >= 0 and (entry.hold == rule.base or for_us >= entry.silent_us) then
      ledger.hosts[name] = nil
      redis.call('HDEL', key, 'host:' .. name)
    end
  end
  if ledger.now_us >= ledger.owed_ends_us then ledger.owed, ledger.expected, ledger.missing = 0, 0, 0 end
end

-- Whether the host has confirmed an answer so recently that it cannot have fallen back.
local function is_live(ledger, entry)
  return entry.received_us ~= NEVER and ledger.now_us < entry.received_us + lease_us
end

-- The part of the threshold that is reserved for `entry`. A host that may already have fallen back counts with the
-- larger of its hold and its fallback, and so does one that has just come [6]. For a caller that has just come, every
-- host does, because the ledger's time may have stood still until then [5].
local function reserved(ledger, entry, is_settled)
  if is_settled and is_live(ledger, entry) and ledger.now_us >= entry.quiet_us then return entry.hold end
  return math.max(entry.hold, entry.fallback)
end

-- Sets entry.due: every host gets what it asks for, up to a common level at which everything is given out. Returns what
-- is left for each host then, and how much the others lack of what is due to them. This affects utilisation, not
-- safety.
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

-- A share that suits all hosts: it grows while the others lack nothing, and shrinks when they do. Moving a share has a
-- cost: nobody can use it while it rests. So small differences stay.
local function suitable(rule, due, spare, lacking, free, hosts)
  local slack = math.max(0, due - rule.base) / 64 + rule.threshold / (64 * hosts)
  if lacking == 0 then return math.max(rule.share, due + spare) end
  if rule.share < due or lacking > free and rule.share > due + slack then return due end
  return rule.share
end

-- Returns the number of known hosts that have not left, the sum of all fallbacks, what is reserved for all hosts except
-- `mine`, what is reserved for hosts that are not listed, and, for people, how much of all this is reserved for silent
-- hosts.
local function add_up(ledger, mine, is_settled, base)
  local hosts, fallbacks, others, owed = 0, 0, 0, unknown(ledger)
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

-- Whether the host has taken an answer of this ledger since hosts began to come from another one, or has left. A host
-- that has only asked may still use the other ledger.
local function is_here(ledger, entry)
  return entry.received_us >= ledger.since_us or entry.ask == NEVER and entry.ends_us - lease_us >= ledger.since_us
end

-- What hosts that are not listed may have of the threshold. Every ledger bounds what all hosts together may have: the
-- sum of what it has listed, and of what it owes. A host that comes from another ledger reports that ledger's bound, so
-- the larger bound holds for both, and what is listed is not owed. A host that is not listed claims its part; its second
-- message claims nothing, because it is listed then. No more is owed than the hosts that are here leave.
-- What is free in two ledgers must not be given out twice: until as many hosts are here as the other ledger knew, nothing
-- is free. When all are here, no more is owed than the other ledger owed [6].
local function owe(ledger, rule, is_listed)
  local owed, listed, here, hosts = ledger.owed, 0, 0, 0
  if not is_listed and rule.is_of_former then owed = math.max(0, owed - (rule.fallback - rule.base)) end
  for _, entry in pairs(ledger.hosts) do
    listed = listed + entry.fallback - rule.base
    if is_here(ledger, entry) then here, hosts = here + entry.fallback - rule.base, hosts + 1 end
  end
  if rule.is_foreign then
    owed = math.max(owed, rule.total - listed)
    ledger.expected, ledger.left = math.max(ledger.expected, rule.expected), math.max(ledger.left, rule.owed)
  elseif ledger.expected > 0 and not is_listed and rule.epoch == UNKNOWN then
    ledger.expected = ledger.expected + 1
  end
  if ledger.expected > 0 then owed = math.max(0, math.min(owed, rule.limit - here)) end
  if ledger.expected > 0 and hosts >= ledger.expected then
    ledger.expected, owed = 0, math.min(owed, ledger.left)
  end
  if owed > ledger.owed then ledger.owed_ends_us = math.max(ledger.owed_ends_us, rule.released_us) end
  ledger.owed = owed
  ledger.missing = ledger.expected > 0 and rule.may_fall_back and math.max(0, rule.limit - listed) or 0
end

-- The caller's own report replaces what the ledger knew of it. A process that has just begun has nothing to report. If
-- a host was silent for so long that others have its fallback, it comes back without one [10].
local function note(ledger, rule)
  local known = ledger.hosts[host]
  local mine = known or { name = host, hold = rule.base, fallback = rule.base, quiet_us = 0 }
  local is_new = rule.epoch == UNKNOWN and (not known or known.process ~= process)
  local had = rule.fallback
  if not rule.is_foreign and (known or not rule.is_of_former) then
    rule.fallback = math.min(rule.fallback, mine.fallback)
  end
  if rule.peak == NEVER then
    mine.hold = math.max(mine.hold, mine.fallback, rule.share)
    mine.fallback = math.max(mine.fallback, known and had or rule.fallback)
  else
    mine.hold, mine.fallback = rule.peak, rule.fallback
  end
  mine.process, mine.turn, mine.ask = process, turn, rule.leaves and NEVER or rule.ask
  mine.received_us, mine.rest_us = rule.received_us, rule.rest_us
  mine.silent_us, mine.stops = rule.silent_us, rule.stops
  -- One lease more: the ledger's time may be that far behind the time in a host's next message [4].
  mine.ends_us = ledger.now_us + (rule.leaves and 0 or lease_us) + lease_us
  -- Another ledger may have given to others what this host does not use [6].
  if rule.is_foreign or is_new then
    mine.quiet_us = math.max(mine.quiet_us, ledger.now_us + math.max(rule.rises_us, lease_us + rule.rest_us))
  end
  ledger.hosts[host] = mine
  owe(ledger, rule, known)
  return mine
end

local function decide(ledger, rule, mine)
  local is_quiet = ledger.now_us < mine.quiet_us -- leases of another ledger may be in force [6]
  local is_settled = rule.contact_us >= settled_us
  local base, limit = rule.base, rule.limit
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
  -- This line alone keeps the threshold [3]: no more than the others leave, or than the fallbacks allow anyway.
  share = math.min(share, math.max(room, math.min(rule.share, rule.fallback, fallback)))
  return share, fallback, hosts, fallbacks - mine.fallback + fallback + ledger.owed, silent
end

-- Flows that lack most come first: without a place they would lose most. Otherwise an attacker could forge as many
-- flows as there are places, drive each a little above its share, and keep all other flows out.
local function by_lack(a, b)
  return a.lack > b.lack or a.lack == b.lack and a.name < b.name
end

-- Frees the place of the flow that lacks least if `lack` is more than twice as much: a change costs both flows seconds.
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

-- The flows that are still shared; the one that lacks least is last. Hosts repeat their wishes in each round, but the
-- ledger is written less often.
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

-- The shared flows of a rule, including new ones.
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

-- A message that was on its way for too long no longer describes its sender. A name belongs to one process at a time.
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
  -- A process that has just begun knows no epoch. What its program has comes from an earlier epoch, unless it may come
  -- from this one and is no longer reserved.
  rule.is_foreign = rule.epoch ~= ledger.epoch and rule.epoch ~= UNKNOWN
  rule.is_of_former = rule.is_foreign or rule.epoch == UNKNOWN and ledger.now_us < rule.silent_us
  if rule.epoch == ledger.epoch then
    ledger.now_us = math.max(ledger.now_us, rule.now_us)
  else
    rule.received_us, rule.contact_us = NEVER, 0
    ledger.longest_us = math.max(ledger.longest_us, rule.longest_us)
  end
  rule.limit = rule.base > 0 and 0 or rule.threshold
  rule.released_us = ledger.now_us + ledger.longest_us + 2 * lease_us + rule.rest_us
  if begins then ledger.owed_ends_us = rule.released_us end
  age(key, ledger, rule)
  local for_us, share, fallback, hosts, total, silent, mine = refusal(ledger, rule), 0, 0, 0, 0, 0, nil
  if not for_us then
    -- What hosts have taken from now on counts: those that were here before may have left since. The microsecond, which
    -- has passed, tells it from what they had before.
    if rule.is_foreign then
      if ledger.expected == 0 then ledger.left = 0 end
      ledger.now_us = ledger.now_us + 1
      ledger.since_us = ledger.now_us
      ledger.owed_ends_us = math.max(ledger.owed_ends_us, ledger.expected == 0 and rule.released_us or 0)
    end
    mine = note(ledger, rule)
    share, fallback, hosts, total, silent = decide(ledger, rule, mine)
    mine.hold = math.max(mine.hold, share)
    mine.fallback = rule.leaves and 0 or math.max(mine.fallback, fallback)
    for_us = lease_us
  end
  write(key, ledger, mine, rule.base, before_us)
  local answer = {
    ledger.epoch, ledger.now_us, share, fallback, for_us, hosts, total, silent, longest(ledger),
    math.max(hosts, ledger.expected), ledger.owed,
  }
  local check = add_text(0, ledger.epoch)
  for i = 2, #answer do check = add_number(check, answer[i]) end
  answer[#answer + 1] = check
  if rule.flows_most ~= NEVER then answer[#answer + 1] = list_flows(key, ledger, rule) end
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
