// SPDX-License-Identifier: GPL-2.0-only
// The page: requests /api/v1 every second and shows the answers. Reads only; text is inserted as text, never as HTML.
"use strict";

const CHARTS_MAX = 12; // of the busiest resources; a page with a thousand charts would be slow
const FLOWS_SHOWN = 20;
const DROPPED_SHOWN = 20;
const FAIR_SHOWN = 20;
const CHANGES_SHOWN = 20;
const DROP_LINES_SHOWN = 20; // in addition to the changes, which no flood pushes out
const PERIOD_MS = 1000;
const PATIENCE_MS = 10000;

const byId = (id) => document.getElementById(id);
const observed = new Map(); // by resource name: what would have been dropped, by the page's own seconds
const charts = new Map(); // by resource name: the elements of its figure
const eventItems = {changes: new Map(), drops: new Map()}; // by an event's text: its item in the list
let isPaused = false, lostSince = 0, wasNumbers = null, lastStatus = null, pauseMs = PERIOD_MS;

// ---- words ----

const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const short = new Intl.NumberFormat("en", {notation: "compact", maximumSignificantDigits: 3});
const count = (n) => whole.format(n);

function span(seconds) {
	const s = Math.floor(seconds), units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
	const at = units.findIndex(([length]) => s >= length);
	if (at < 0 || at === 3)
		return `${s} s`;
	const [length, name] = units[at], [next, nextName] = units[at + 1];
	return `${Math.floor(s / length)} ${name} ${Math.floor(s % length / next)} ${nextName}`;
}

function keyOf(flow) {
	if (flow.key === null)
		return "not noted";
	const fields = Object.entries(flow.key).map(([name, value]) => `${name} ${value}`);
	const words = fields.length ? fields.join(", ") : "the whole resource";
	return flow.refResource ? `${words}, passed on ${flow.refResource}` : words;
}

// ---- elements ----

function element(name, text, className) {
	const made = document.createElement(name);
	if (text !== undefined)
		made.textContent = text;
	if (className)
		made.className = className;
	return made;
}

// Writes only what has changed, so that a screen reader does not repeat the rest and a selection stays.
function setText(node, text) {
	if (node.textContent !== text)
		node.textContent = text;
}

// Each row is a list of texts, or of {text, className, share}; the first heads the row.
function fillTable(id, rows) {
	const body = byId(id).tBodies[0], numbers = [...byId(id).tHead.rows[0].cells].map((cell) => cell.className);
	while (body.rows.length > rows.length)
		body.deleteRow(-1);
	rows.forEach((row, r) => {
		const line = body.rows[r] || body.insertRow();
		row.forEach((cell, c) => {
			const is = typeof cell === "object" ? cell : {text: String(cell)};
			let at = line.cells[c];
			if (!at) {
				at = element(c ? "td" : "th");
				if (!c)
					at.scope = "row";
				line.append(at);
			}
			const className = [numbers[c], is.className].filter(Boolean).join(" ");
			if (at.className !== className)
				at.className = className;
			if (is.share === undefined)
				setText(at, is.text);
			else
				fillShare(at, is);
		});
	});
}

function fillShare(cell, is) {
	let meter = cell.querySelector("meter");
	if (!meter) {
		cell.replaceChildren(meter = element("meter"), " ", element("span"));
		meter.setAttribute("aria-hidden", "true");
		meter.high = 0.8;
		meter.optimum = 0;
	}
	meter.value = Math.min(is.share, 1);
	setText(cell.querySelector("span"), is.text);
}

// ---- now ----

function fillTiles(tiles) {
	const list = byId("now");
	tiles.forEach(([name, value, note, isBad], i) => {
		let tile = list.children[i];
		if (!tile) {
			tile = element("div");
			tile.append(element("dt"), element("dd"));
			list.append(tile);
		}
		const [title, figure] = tile.children, text = note ? `${value} ${note}` : value;
		setText(title, name);
		figure.className = isBad ? "bad" : "";
		if (figure.textContent === text)
			return;
		figure.replaceChildren(value);
		if (note)
			figure.append(" ", element("small", note));
	});
	while (list.children.length > tiles.length)
		list.lastElementChild.remove();
}

// The packets of one direction.
function sumOf({seen, verdicts}) {
	const drops = Object.keys(verdicts).filter((name) => /^block$|Drop$|^deny$|^error$/.test(name));
	return {seen: seen.packets, dropped: drops.reduce((sum, name) => sum + verdicts[name].packets, 0)};
}

function perSecond(before, now, seconds) {
	const seen = (now.seen - before.seen) / seconds, dropped = (now.dropped - before.dropped) / seconds;
	return {seen, dropped, passed: Math.max(seen - dropped, 0)};
}

// Blocked packets whose sender was answered (onBlock).
const answeredOf = (stats) => stats.rules.reduce((sum, {answers}) =>
	sum + (answers ? answers.reset + answers.unreachable + answers.truncate + answers.cookie : 0), 0);

// Packets a second since the last answer; unknown before the second answer. `out` is null if the answer has no outgoing
// packets.
function ratesOf(stats) {
	const at = performance.now(), now = {at, ...sumOf(stats.totals), answered: answeredOf(stats), out: stats.out ? sumOf(stats.out) : null, observed: new Map()};
	for (const rule of stats.rules)
		now.observed.set(`${rule.resource} ${rule.name}`, {resource: rule.resource, packets: rule.wouldDrop.packets});
	const before = wasNumbers, seconds = before ? (at - before.at) / 1000 : 0;
	wasNumbers = now;
	if (!before || seconds < 0.2 || now.seen < before.seen)
		return null;
	const out = before.out && now.out ? perSecond(before.out, now.out, seconds) : null;
	return {...perSecond(before, now, seconds), answered: Math.max(now.answered - before.answered, 0) / seconds, out, wouldDrop: noteObserved(before, now)};
}

// What would have been dropped for each resource since the last answer. No counter records that by second, so the page
// does, from when it is opened. Several rules may observe a packet, so the one that would drop most counts. Returns the
// sum in packets a second.
function noteObserved(before, now) {
	const most = new Map(), [from, to] = [before.at / 1000, now.at / 1000];
	for (const [rule, {resource, packets}] of now.observed) {
		const rate = Math.max(packets - (before.observed.get(rule)?.packets ?? packets), 0) / (to - from);
		most.set(resource, Math.max(most.get(resource) ?? 0, rate));
	}
	for (const [resource, rate] of most) {
		const kept = (observed.get(resource) ?? []).filter((span) => span.to > to - 60);
		observed.set(resource, [...kept, {from, to, rate}]);
	}
	return [...most.values()].reduce((a, b) => a + b, 0);
}

// null: the page had no data for that second.
const observedAt = (resource, at) => observed.get(resource)?.find((span) => span.from <= at && at < span.to)?.rate ?? null;

const observes = (status) => status.settings.mode === "observe" || status.rules.some((rule) => rule.mode === "observe");

// One that is limited in both directions has two links.
const interfacesOf = (links) => [...new Set(links.map((link) => link.interface))].join(", ");

function showNow(status, stats, flows) {
	const rates = ratesOf(stats), figure = (n, of = rates) => of ? short.format(of[n]) : "…";
	const out = (words, n) => stats.out ? [[`Outgoing packets/s, ${words}`, figure(n, rates?.out)]] : [];
	const gone = status.links.filter((link) => !link.isAttached), state = status.controller.state;
	fillTiles([
		["Packets/s offered", figure("seen")],
		["Packets/s admitted", figure("passed")],
		["Packets/s dropped", figure("dropped")],
		...(stats.rules.some((rule) => rule.answers) ? [["Packets/s answered", figure("answered")]] : []),
		...out("offered", "seen"), ...out("admitted", "passed"), ...out("dropped", "dropped"),
		...(observes(status) ? [["Packets/s that would be dropped", figure("wouldDrop")]] : []),
		["Active flows", count(flows.active)],
		["Controller", state === "notNeeded" ? "not needed" : state, "", state === "stale" || state === "absent"],
		["Interfaces", interfacesOf(status.links) || "none", gone.length ? `${interfacesOf(gone)} gone` : "", gone.length > 0 || !status.links.length],
		["Attached for", span(status.attachedSeconds)],
		["These rules for", span(status.loadedSeconds)],
	]);
	setText(byId("instance"), status.instance);
	document.title = `weir ${status.instance}`;
	const dropsNothing = status.settings.mode === "observe", mode = byId("mode");
	mode.hidden = false;
	mode.className = dropsNothing ? "badge observe" : "badge";
	setText(mode, dropsNothing ? "observes: drops nothing" : "enforces");
	const unconfirmed = byId("unconfirmed");
	unconfirmed.hidden = status.returnsSeconds === null;
	setText(unconfirmed, `not confirmed: the previous rules return in ${status.returnsSeconds} s`);
	byId("last-good").hidden = !status.isLastGood;
	const penalised = status.rules.reduce((sum, rule) => sum + (rule.penalisedFlows ?? 0), 0), badge = byId("penalised");
	badge.hidden = !penalised;
	setText(badge, `${penalised} penalised`);
}

// ---- charts ----

// The page has its own legend, because that of dygraphs, even if hidden, sets styles that the page's policy forbids.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function options() {
	return {
		labels: ["second", "offered", "admitted", "would drop", "threshold"],
		colors: ["offered", "admitted", "observed", "threshold"].map(colour),
		includeZero: true, drawGrid: true, gridLineColor: colour("line"), axisLineColor: colour("line"),
		strokeWidth: 2, highlightCircleSize: 3, interactionModel: {},
		series: {offered: {fillGraph: true}, threshold: {strokePattern: [6, 4], strokeWidth: 1.5}},
		axes: {
			x: {axisLabelFormatter: (s) => s === 0 ? "now" : `${s} s`, pixelsPerLabel: 70, drawGrid: false},
			y: {axisLabelFormatter: (n) => short.format(n), axisLabelWidth: 44, pixelsPerLabel: 34},
		},
	};
}

function makeChart(name) {
	const figure = element("figure"), caption = element("figcaption"), words = element("p"), canvas = element("div", "", "chart");
	const title = element("b", name);
	caption.append(title, words);
	canvas.setAttribute("aria-hidden", "true"); // the words above say the same
	figure.append(caption, canvas);
	byId("charts").append(figure);
	return {figure, words, graph: new Dygraph(canvas, [[0, 0, 0, null, null]], options())};
}

// The limit for all packets of the resource together, per second: from rules whose limit does not apply per flow.
function thresholdOf(rules) {
	const limits = rules.filter((rule) => rule.statIntervalInMs && rule.unit === "packets" && rule.mode === "enforce"
		&& rule.flow && !rule.flow.length && rule.thresholdNow !== null && rule.relationStrategy === "CurrentResource");
	return limits.length ? Math.min(...limits.map((rule) => rule.thresholdNow * 1000 / rule.statIntervalInMs)) : null;
}

// Incoming packets need no label.
const wayOf = ({direction}) => direction === "in" ? "" : `${direction}: `;

function showChart(resource, rules, isObserved) {
	const {passed, blocked} = resource.lastMinute, threshold = thresholdOf(rules), last = passed.length - 2;
	if (!charts.has(resource.name))
		charts.set(resource.name, makeChart(resource.name));
	const chart = charts.get(resource.name);
	// The last second is not complete yet.
	const now = performance.now() / 1000, wouldDrop = (second) => isObserved ? observedAt(resource.name, now + second - 0.5) : null;
	chart.graph.updateOptions({file: passed.slice(0, -1).map((p, i) => [i - last, p + blocked[i], p, wouldDrop(i - last), threshold])});
	setText(chart.words, `${wayOf(resource)}offered ${count(passed[last] + blocked[last])}, admitted ${count(passed[last])}, `
		+ `blocked ${count(blocked[last])}${isObserved ? `, would block ${count(observed.get(resource.name)?.at(-1).rate ?? 0)}` : ""} packets/s` + (threshold === null ? "" : `; threshold ${count(threshold)}`)
		+ (resource.connections ? `; ${count(resource.connections.now)} connections open` : ""));
	return chart.figure;
}

function showCharts(status, stats) {
	const busy = (r) => r.lastMinute.passed.reduce((a, b) => a + b, 0) + r.lastMinute.blocked.reduce((a, b) => a + b, 0);
	// All resources in the order of the rule files or, if there are too many, the busiest.
	const shown = stats.resources.length <= CHARTS_MAX ? stats.resources
		: [...stats.resources].sort((a, b) => busy(b) - busy(a)).slice(0, CHARTS_MAX);
	const names = new Set(shown.map((resource) => resource.name));
	for (const [name, chart] of charts)
		if (!names.has(name)) {
			chart.graph.destroy();
			chart.figure.remove();
			charts.delete(name);
		}
	const dropsNothing = status.settings.mode === "observe";
	for (const resource of shown) {
		const rules = status.rules.filter((rule) => rule.resource === resource.name);
		showChart(resource, rules, dropsNothing || rules.some((rule) => rule.mode === "observe"));
	}
	byId("observed-key").hidden = !observes(status);
	byId("more-resources").hidden = shown.length === stats.resources.length;
	setText(byId("more-resources"), `The ${CHARTS_MAX} busiest of ${count(stats.resources.length)} resources.`);
}

// ---- tables ----

function showFlows(flows) {
	const of = (list) => list || [];
	const amount = (flow, n) => flow.unit === "us" ? `${(n / 1000).toFixed(1)} ms` : count(n);
	const windows = of(flows.flows).map((flow) => [keyOf(flow), flow.rule ?? "not known", amount(flow, flow.used), flow]);
	const connections = of(flows.connections?.flows).map((flow) => [keyOf(flow), flow.rule, `${count(flow.connections.now)} open`, flow]);
	const rows = [...windows, ...connections].sort((a, b) => (b[3].share ?? 0) - (a[3].share ?? 0)).slice(0, FLOWS_SHOWN);
	fillTable("flows", rows.map(([key, rule, used, flow]) => [key, rule, used,
		flow.threshold === null ? "?" : amount(flow, flow.threshold), flow.share === null ? "?" : {share: flow.share, text: `${Math.round(100 * flow.share)} %`}]));
	byId("no-flows").hidden = rows.length > 0;
}

// "~": estimated from samples, because a CPU had more to drop than it counts one by one.
function showDropped(dropped) {
	fillTable("dropped", dropped.flows.map((flow) => [keyOf(flow), flow.rule,
		(flow.isEstimated ? "~" : "") + count(flow.packets), (flow.isEstimated ? "~" : "") + count(flow.bytes),
		`${span(flow.lastAgoMs / 1000)} ago`, flow.wouldDrop ? "passed: observed only" : "dropped"]));
	byId("no-dropped").hidden = dropped.flows.length > 0;
}

// Shown only while those who share a threshold (fairBy) want more than there is.
function showFair(rules) {
	const contended = rules.flatMap((rule) => (rule.fairShares?.contended ?? []).map((flow) => [rule, flow]));
	byId("fair-section").hidden = !contended.length;
	setText(byId("fair-words"), "Those who share such a threshold want more than there is. Each may have the level in an interval"
		+ (contended.length > FAIR_SHOWN ? `. The first ${FAIR_SHOWN} of ${count(contended.length)} flows.` : "."));
	fillTable("fair", contended.slice(0, FAIR_SHOWN).map(([rule, flow]) => [keyOf(flow), rule.name,
		flow.level ? `${short.format(flow.level)} ${rule.unit}` : "not known yet", count(flow.children), count(flow.newChildren),
		{text: count(flow.aboveLevel), className: flow.aboveLevel ? "bad" : ""}, `${short.format(flow.offered)} ${rule.unit}`]));
}

const limitOf = (rule) => rule.fairShares ? `${rule.limit}, shared fairly per ${rule.fairShares.children.join(", ")}` : rule.limit;

function showRules(status, stats) {
	const counters = new Map(stats.rules.map((rule) => [rule.name, rule]));
	fillTable("rules", status.rules.map((rule) => {
		const counter = counters.get(rule.name), tally = (what) => counter ? count(counter[what].packets) : "?";
		return [rule.name, rule.resource === null ? "the whole host" : wayOf(rule) + rule.resource, limitOf(rule),
			rule.isPerFlow ? "per flow" : rule.thresholdNow === null ? "–" : count(rule.thresholdNow),
			rule.flow?.length ? rule.flow.join(", ") : "–", rule.mode, tally("blocked"), tally("wouldDrop")];
	}));
	byId("no-rules").hidden = status.rules.length > 0;
}

// The rule file may be long, so it is requested only when somebody opens it, and again after a reload.
let ruleFileOf = 0; // generation

async function showRuleFile(status) {
	if (!byId("rule-file").open || ruleFileOf === status.generation)
		return;
	let words, text = "";
	try {
		const set = await ask("/api/v1/rules"), lists = [["allow", set.allowCount], ["deny", set.denyCount]].filter(([, n]) => n);
		text = set.text;
		words = [`generation ${set.generation}, hash ${set.hash}`, set.files.length ? `loaded from ${set.files.join(", ")}` : "",
			...lists.map(([name, n]) => `${name}: ${count(n)} ${n === 1 ? "prefix" : "prefixes"}, which 'weir show' prints`)].filter(Boolean).join("; ");
	} catch (error) {
		words = error.message;
	}
	ruleFileOf = status.generation;
	setText(byId("rule-file-note"), words);
	setText(byId("rule-text"), text);
	byId("rule-text").hidden = !text;
}

const verdictWords = {
	pass: "passed by the rules", block: "blocked by a rule", allow: "passed by an allow list", deny: "dropped by a deny list",
	error: "dropped by a bug in weir", unmatchedPass: "in no resource, passed", unmatchedDrop: "in no resource, dropped",
	nonIpPass: "not IP, passed", nonIpDrop: "not IP, dropped", malformedPass: "malformed, passed", malformedDrop: "malformed, dropped",
	unsupportedPass: "unsupported, passed", unsupportedDrop: "unsupported, dropped",
};

// Shown only if hosts share rules. The server may not contact the store, so this is what the controller knows.
function showCluster(cluster) {
	byId("cluster-section").hidden = !cluster || !cluster.rules.length;
	if (!cluster)
		return;
	const hosts = cluster.hostsLive === null ? "its hosts are unknown now"
		: `${cluster.hostsLive} live${cluster.hostsSilent ? `, ${cluster.hostsSilent} silent` : ""}`;
	const store = cluster.store.latencyUs === null ? "does not answer" : `answers after ${(cluster.store.latencyUs / 1000).toFixed(1)} ms`;
	setText(byId("cluster-words"), `Host ${cluster.host} of cluster ${cluster.cluster}: ${hosts}; the store ${store}.`);
	fillTable("cluster", cluster.rules.map((rule) => [rule.rule, count(rule.share), count(rule.wanted), count(rule.fallback), count(rule.hosts),
		rule.aloneMs === null ? rule.leaseMs === null ? "nothing yet" : "a lease" : {text: `alone for ${span(rule.aloneMs / 1000)}`, className: "bad"}]));
}

function showVerdicts(stats) {
	const out = stats.out ? verdictRows(stats.out).map(([words, ...counts]) => [`outgoing: ${words}`, ...counts]) : [];
	fillTable("verdicts", [...verdictRows(stats.totals), ...out]);
}

function verdictRows({verdicts, wouldDrop, seen}) {
	const line = (words, tally) => [words, count(tally.packets), count(tally.bytes)], rows = [];
	for (const name in verdicts)
		if (verdicts[name].packets || name === "pass" || name === "block")
			rows.push(line(verdictWords[name] ?? name, verdicts[name]));
	for (const name in wouldDrop)
		if (wouldDrop[name].packets)
			rows.push(line(`passed; ${verdictWords[name] ?? name}, if it did not observe`, wouldDrop[name]));
	return [...rows, line("seen", seen)];
}

// ---- events ----

const clock = new Intl.DateTimeFormat("en-GB", {hour: "2-digit", minute: "2-digit", second: "2-digit"});
const day = new Intl.DateTimeFormat("en-CA", {year: "numeric", month: "2-digit", day: "2-digit"});
const protocols = {1: "icmp", 6: "tcp", 17: "udp", 47: "gre", 50: "esp", 58: "icmpv6", 132: "sctp"};
const eventLooks = {drop: "alarm", stale: "alarm", wouldDrop: "observed", missed: "unreported"};

function figuresOf(drop) {
	const figure = (n) => n.toLocaleString("en");
	if (drop.requests !== undefined)
		return `, ${figure(drop.bad)} of ${figure(drop.requests)} requests were bad`;
	return drop.used === undefined ? "" : `, used ${figure(drop.used)} of ${figure(drop.threshold)}${drop.unit ? ` ${drop.unit}` : ""}`;
}

function reasonOf(drop) {
	if (drop.rule === null)
		return verdictWords[drop.verdict] ?? drop.verdict;
	const flow = drop.resource === null ? "the whole host" : keyOf(drop);
	return `rule '${drop.rule}', ${flow}${drop.penalised ? ", penalised" : ""}${figuresOf(drop)}`;
}

function packetOf({source, destination, sourcePort, destinationPort, protocol, packets, bytes, direction, interface: name}) {
	const port = (n) => n === undefined ? "" : ` port ${n}`;
	const ends = source === undefined ? "a frame"
		: `${source}${port(sourcePort)} to ${destination}${port(destinationPort)}, ${protocols[protocol] ?? `protocol ${protocol}`}`;
	return `${ends}${packets > 1 ? `, ${count(packets)} packets` : ""}, ${count(bytes)} bytes${direction === "out" ? " out" : ""}${name ? ` on ${name}` : ""}`;
}

// The kind of event, its text, and the less important part of the text.
function wordsOf(event) {
	if (event.of === "drops")
		return ["", `${count(event.count)} more ${event.count === 1 ? "drop" : "drops"} not shown`, ""];
	if (event.packet)
		return [event.event === "wouldDrop" ? "would drop" : event.event, reasonOf(event), packetOf(event.packet)];
	return [event.event, event.text ?? "", ""];
}

function makeEvent(event, [kind, words, lesser]) {
	const item = element("li", undefined, eventLooks[event.event]), text = element("span", words), time = element("time");
	const at = new Date(event.timeNs / 1e6), isToday = day.format(at) === day.format(new Date());
	time.dateTime = at.toISOString();
	time.textContent = (isToday ? "" : `${day.format(at)} `) + clock.format(at);
	if (lesser)
		text.append(" ", element("small", lesser)); // a line of its own
	item.append(time, " ", element("b", kind), " ", text);
	return item;
}

// Newest first. An item that stays is not touched, so that its reader is not disturbed.
function fillEvents(id, events) {
	const list = byId(id), items = eventItems[id], wanted = new Map();
	for (const event of events) {
		const words = wordsOf(event);
		let key = `${Math.round(event.timeNs / 1e7)} ${words.join(" ")}`; // the time of the same event varies by some ns
		while (wanted.has(key))
			key += "+";
		wanted.set(key, [event, words]);
	}
	for (const [key, item] of items)
		if (!wanted.has(key)) {
			item.remove();
			items.delete(key);
		}
	let at = list.firstElementChild;
	for (const [key, [event, words]] of [...wanted].reverse()) {
		if (!items.has(key))
			items.set(key, makeEvent(event, words));
		const item = items.get(key);
		if (item === at)
			at = at.nextElementSibling;
		else
			list.insertBefore(item, at);
	}
	list.parentElement.hidden = !items.size;
}

// Kept apart, because an instance of another version may have no events, but the other figures.
function showEvents(answer) {
	const failed = answer instanceof Error, events = failed ? [] : answer;
	const isOfDrops = (event) => event.packet || event.of === "drops";
	fillEvents("changes", events.filter((event) => !isOfDrops(event)));
	fillEvents("drops", events.filter(isOfDrops));
	setText(byId("no-changes"), failed ? answer.message : "Nothing has changed.");
	byId("no-changes").hidden = eventItems.changes.size > 0;
	byId("no-drops").hidden = failed || !byId("wants-drops").checked || eventItems.drops.size > 0;
}

// ---- requests ----

async function ask(path) {
	const reply = await fetch(path, {signal: AbortSignal.timeout(PATIENCE_MS)}), said = await reply.json();
	if (!reply.ok)
		throw new Error(said.error);
	return said;
}

function say(words, isLost) {
	const state = byId("state");
	state.className = isLost ? "lost" : "";
	document.body.classList.toggle("stale", isLost);
	setText(state, words);
}

async function update() {
	try {
		const drops = byId("wants-drops").checked ? `&drops=${DROP_LINES_SHOWN}` : "";
		const [all, stats, flows, dropped, events] = await Promise.all([ask("/api/v1/status"), ask("/api/v1/stats"),
			ask(`/api/v1/flows?number=${FLOWS_SHOWN}`), ask(`/api/v1/dropped?number=${DROPPED_SHOWN}`),
			ask(`/api/v1/events?number=${CHANGES_SHOWN}${drops}`).catch((error) => error)]);
		const status = all.instances[0], cluster = status.cluster ? await ask("/api/v1/cluster") : null;
		showNow(status, stats, flows);
		showCharts(status, stats);
		showFlows(flows);
		showDropped(dropped);
		showRules(status, stats);
		showFair(status.rules);
		showCluster(cluster);
		showVerdicts(stats);
		showEvents(events);
		lastStatus = status;
		await showRuleFile(status);
		lostSince = 0;
		say(`live: ${pauseMs < 2000 ? "each second" : `every ${span(pauseMs / 1000)}`}`, false);
	} catch (error) {
		lostSince ||= Date.now();
		wasNumbers = null;
		ruleFileOf = 0; // another instance may come back with the same number
		// A failed connection has no message of its own that would help.
		const words = error instanceof TypeError || error.name === "TimeoutError" ? "weir does not answer" : error.message;
		say(`${words}; shown is what was known ${span((Date.now() - lostSince) / 1000)} ago`, true);
	}
}

// Rates need two answers, so the second request is not delayed. After that, a slow answer delays the next request: at
// most a tenth of the time is spent waiting for a busy server. If weir is lost, the page shows that every second.
async function goOn() {
	const begun = performance.now(), isFirst = !wasNumbers;
	if (!isPaused && !document.hidden)
		await update();
	pauseMs = lostSince || isFirst ? PERIOD_MS : Math.max(PERIOD_MS, 10 * (performance.now() - begun));
	setTimeout(goOn, pauseMs);
}

byId("pause").addEventListener("click", () => {
	isPaused = !isPaused;
	wasNumbers = null;
	byId("pause").setAttribute("aria-pressed", String(isPaused));
	say(isPaused ? "paused" : "going on …", false);
});
// At once, and even while the page is paused.
byId("rule-file").addEventListener("toggle", () => lastStatus && showRuleFile(lastStatus));
byId("wants-drops").addEventListener("change", () => fillEvents("drops", [])); // the next answer fills the list
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
	for (const {graph} of charts.values())
		graph.updateOptions(options());
});
goOn();
