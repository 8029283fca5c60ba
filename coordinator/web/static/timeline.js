// The timeline of a group as a drawing: one row of phases with causes, then one row for each partition, coloured by owner.

import { clock, duration, h, s } from "./dom.js";
import { ownership } from "./owners.js";

const WIDTH = 1100, LEFT = 150, ROW = 16, TOP = 34, ROWS_MAX = 32, MARGIN_MS = 1000, PHASE_PX_MIN = 3, TICKS = 6, LABEL_PX = 90;

export function drawTimeline(rebalances, owners, now, range) {
  const shown = rebalances.filter((each) => Math.max(each.ended_ms, each.started_ms) >= now - range);
  if (!shown.length) return h("p", { class: "quiet" }, "The group did not rebalance in this time.");
  const from = Math.max(Math.min(...shown.map((each) => each.started_ms)) - MARGIN_MS, now - range);
  const x = (ms) => LEFT + (WIDTH - LEFT - 10) * Math.min(Math.max((ms - from) / Math.max(now - from, 1), 0), 1);
  const spans = ownership(rebalances, now).filter((span) => span.until >= from);
  const keys = [...new Set(spans.map((span) => `${span.topic}\u0000${span.partition}`))].sort(compare);
  const rows = keys.slice(0, ROWS_MAX);
  const height = TOP + 34 + rows.length * (ROW + 3) + 24;
  const drawing = s("svg", { class: "timeline", viewBox: `0 0 ${WIDTH} ${height}`, role: "img",
    "aria-label": `Timeline from ${clock(from)} to ${clock(now)}: ${shown.length} rebalances. The list "Why" says the same in sentences.` });
  drawing.append(s("text", { x: 0, y: TOP + 14 }, "phases"));
  drawing.append(...axis(from, now, x, height));
  let labelled = -Infinity;
  shown.forEach((each, at) => {
    const until = shown[at + 1]?.started_ms ?? now;
    drawing.append(...phases(each, until, now, x));
    if (x(each.started_ms) - labelled > LABEL_PX) {
      labelled = x(each.started_ms);
      drawing.append(s("text", { x: labelled, y: TOP - 4, class: "cause" }, each.trigger || "rebalance"));
    }
  });
  rows.forEach((key, at) => {
    const [topic, partition] = key.split("\u0000"), y = TOP + 34 + at * (ROW + 3);
    drawing.append(s("text", { x: 0, y: y + 12 }, short(`${topic}-${partition}`)));
    for (const span of spans.filter((each) => `${each.topic}\u0000${each.partition}` === key)) {
      drawing.append(bar(x(span.from), x(span.until), y, ROW, owners.colour(span.member), `${topic}-${partition}: ${owners.name(span.member)}, ${clock(span.from)} to ${clock(span.until)}`));
    }
  });
  const more = keys.length > rows.length ? h("p", { class: "quiet" }, `${keys.length - rows.length} more partitions are not drawn.`) : null;
  return h("div", {}, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Timeline" }, drawing), legend(spans, owners), more);
}

function phases(each, until, now, x) {
  const byBroker = each.joins_ms < 0 && each.assignment_ms >= 0; // a group of the consumer protocol: nobody joins again
  const joined = byBroker ? each.started_ms : each.joins_ms >= 0 ? each.started_ms + each.joins_ms : each.ended_ms >= 0 ? each.ended_ms : now;
  const ended = each.ended_ms >= 0 ? each.ended_ms : now;
  const reconciles = each.events.some((one) => one.name === "reconciliation-started");
  const assigned = reconciles ? Math.min(each.started_ms + Math.max(each.assignment_ms, 0), ended) : ended;
  const said = each.sentences.join(" ");
  const found = byBroker ? [] : [bar(x(each.started_ms), x(joined), TOP, 20, "joins", `Waiting for joins, ${duration(joined - each.started_ms)}. ${said}`)];
  const awaited = byBroker ? "Waiting for the broker's assignment" : "Waiting for the leader's assignment";
  const stable = byBroker ? "Group epoch" : "Stable in generation";
  if (assigned > joined || each.assignment_ms >= 0) found.push(bar(x(joined), x(assigned), TOP, 20, "assignment", `${awaited}, ${duration(Math.max(assigned - joined, 0))}. ${said}`));
  if (reconciles) found.push(bar(x(assigned), x(ended), TOP, 20, "reconciling", `Waiting for members to revoke and take partitions, ${duration(ended - assigned)}. ${said}`));
  if (each.outcome === "stable") found.unshift(bar(x(ended), x(until), TOP + 5, 10, "stable", `${stable} ${each.generation} for ${duration(until - ended)}`));
  if (each.outcome === "empty") found.unshift(bar(x(ended), x(until), TOP + 5, 10, "empty", `Empty for ${duration(until - ended)}`));
  return found;
}

function bar(from, until, y, height, kind, title) {
  return s("rect", { x: from.toFixed(1), y, width: Math.max(until - from, PHASE_PX_MIN).toFixed(1), height, rx: 2, class: kind }, s("title", {}, title));
}

function axis(from, now, x, height) {
  const found = [];
  for (let at = 0; at <= TICKS; at += 1) {
    const ms = from + (now - from) * at / TICKS;
    found.push(s("line", { class: "axis", x1: x(ms), x2: x(ms), y1: TOP, y2: height - 20 }),
      s("text", { class: "quiet", x: x(ms), y: height - 6, "text-anchor": at === TICKS ? "end" : "middle" }, clock(ms)));
  }
  return found;
}

function legend(spans, owners) {
  const members = [...new Set(spans.map((span) => span.member))];
  const kinds = [["joins", "waiting for joins"], ["assignment", "waiting for the assignment"], ["reconciling", "waiting for members to revoke"], ["stable", "stable"], ["empty", "empty"]];
  return h("ul", { class: "legend", "aria-label": "Colours" },
    kinds.map(([kind, text]) => h("li", {}, h("span", { class: `swatch ${kind}` }), text)),
    members.map((member) => h("li", {}, h("span", { class: `swatch ${owners.colour(member)}` }), owners.name(member))));
}

function compare(a, b) {
  const [topicA, partitionA] = a.split("\u0000"), [topicB, partitionB] = b.split("\u0000");
  return topicA === topicB ? partitionA - partitionB : topicA < topicB ? -1 : 1;
}

function short(text) {
  return text.length > 22 ? `…${text.slice(-21)}` : text;
}
