// One group: what is wrong, why it rebalanced, its timeline, its members and its lag.

import { act, get } from "../api.js";
import { card, count, duration, h, link, replace, table, time } from "../dom.js";
import { ask } from "../dialogs.js";
import { LagPlot } from "../lag.js";
import { Owners } from "../owners.js";
import { drawTimeline } from "../timeline.js";
import { severity, state } from "./groups.js";

const RANGES = [["60000", "1 minute"], ["600000", "10 minutes"], ["3600000", "1 hour"], ["86400000", "1 day"], ["31536000000", "all"]];
const WHY_MAX = 20, PARTITIONS_SHOWN = 12;

export function group(main, name, reload) {
  const part = () => h("div");
  const [head, actions, health, why, drawing, members, lag] = [part(), part(), part(), part(), part(), part(), part()];
  const plot = h("div", { class: "plot", role: "img", "aria-label": "Lag over time; the table below has the numbers" });
  const range = h("select", { onchange: () => draw() }, RANGES.map(([ms, text]) => h("option", { value: ms, selected: ms === "3600000" }, text)));
  const owners = new Owners(), lags = new LagPlot(plot);
  let rebalances = [];
  main.append(h("h1", {}, `Group ${name}`), head, actions, h("h2", {}, "Health"), health, h("h2", {}, "Timeline"),
    h("label", {}, "Time shown", range), drawing, h("h2", {}, "Why"), why, h("h2", {}, "Members"), members, h("h2", {}, "Lag"), plot, lag);

  const draw = () => replace(drawing, drawTimeline(rebalances, owners, Date.now(), Number(range.value)));

  function meet(shown) {
    for (const each of rebalances.flatMap((one) => [...one.triggered_by, ...one.waited_for, ...one.joined, ...one.left, ...one.expired, ...one.moved, ...one.not_revoked, ...(one.leader ? [one.leader] : [])])) {
      if (!owners.names.has(each.member_id)) owners.meet(each.member_id, each.instance_id, each.client_id, each.client_host);
    }
    for (const each of shown.members) {
      if (!owners.names.has(each.member_id)) owners.meet(each.member_id, each.instance_id, each.client_id, each.host);
    }
  }

  return {
    title: `Group ${name}`,
    shows: (changed) => changed === "groups" || changed === `group:${name}`,
    close: () => lags.close(),
    async load() {
      const about = { group: name };
      const [shown, history, found, measured, site] = await Promise.all([
        get("group", about), get("group/timeline", about), get("group/health", about), get("group/lag", about), get("cluster")]);
      rebalances = [...history.rebalances].reverse();
      meet(shown);
      replace(head, h("div", { class: "cards" },
        h("div", { class: "card" }, h("b", {}, state(shown.state)), h("span", {}, "state")),
        card(count(shown.members.length), "members"), card(shown.assignor || "none", "assignor"),
        card(count(measured.records), "lag in records"), card(measured.age_ms < 0 ? "unknown" : duration(measured.age_ms), "age of the lag"),
        card(String(shown.coordinator), "coordinator")));
      replace(actions, site.is_read_only ? h("span") : h("p", { class: "buttons" },
        h("button", { type: "button", "data-key": "reset", onclick: () => reset(name, measured, reload) }, "Reset offsets"),
        h("button", { type: "button", class: "danger", "data-key": "delete", onclick: () => remove(name) }, "Delete the group")));
      replace(health, found.findings.length ? found.findings.map(finding) : h("p", { class: "good" }, "Nothing is wrong."));
      replace(why, rebalances.length ? history.rebalances.slice(0, WHY_MAX).map(rebalance) : h("p", { class: "quiet" }, "No rebalance is remembered."));
      draw();
      replace(members, memberTable(name, shown, owners, site.is_read_only, reload));
      lags.add(measured);
      replace(lag, lagTable(measured, owners));
    },
  };
}

function finding(each) {
  return h("div", { class: `finding ${severity(each.severity)}` }, h("strong", {}, `${each.severity}: ${each.code}`),
    h("p", {}, each.sentence), h("p", {}, each.remedy),
    h("details", { "data-key": `finding:${each.code}:${each.subject}` }, h("summary", {}, `Evidence (${each.count} times, last at ${time(each.last_ms)})`), each.evidence.map((text) => h("p", {}, text))));
}

function rebalance(each) {
  const [first, ...others] = each.sentences;
  return h("details", { class: "rebalance", "data-key": `why:${each.started_ms}:${each.from_generation}` },
    h("summary", {}, first ?? `${time(each.started_ms)}: ${each.reason}`),
    others.map((text) => h("p", {}, text)));
}

function owner(member, owners) {
  return member ? h("span", {}, h("span", { class: `swatch ${owners.colour(member)}` }), owners.name(member)) : h("span", { class: "quiet" }, "nobody");
}

function memberTable(name, shown, owners, isReadOnly, reload) {
  const columns = [{ name: "Member" }, { name: "Host" }, { name: "Partitions" }, ...(isReadOnly ? [] : [{ name: "Action" }])];
  return table("Members and the partitions that they own", columns, shown.members.map((each) => {
    const owned = each.partitions.map((one) => `${one.topic}-${one.partition}`);
    const cells = [
      h("span", {}, owner(each.member_id, owners), h("div", { class: "quiet" }, each.member_id)), each.host,
      owned.length ? owned.slice(0, PARTITIONS_SHOWN).join(", ") + (owned.length > PARTITIONS_SHOWN ? ` and ${owned.length - PARTITIONS_SHOWN} more` : "") : "none",
    ];
    const button = h("button", { type: "button", "data-key": `remove:${each.member_id}`, "aria-label": `Remove ${owners.name(each.member_id)}`, onclick: () => removeMember(name, each.member_id, owners, reload) }, "Remove");
    return isReadOnly ? cells : [...cells, button];
  }), "The group has no members.");
}

function lagTable(measured, owners) {
  return table("Lag by partition", [{ name: "Partition" }, { name: "Owner" }, { name: "Committed", number: true }, { name: "End", number: true }, { name: "Lag", number: true }, { name: "Age", number: true }],
    measured.partitions.map((each) => [
      h("span", {}, link("topic", each.topic), ` ${each.partition}`), owner(each.member_id, owners), each.committed < 0 ? "nothing" : count(each.committed),
      count(each.end), h("span", { class: each.records > 0 && "warn" }, count(each.records)), each.age_ms < 0 ? "unknown" : duration(each.age_ms),
    ]), "The group has committed nothing and owns nothing.");
}

// ---- actions

function removeMember(name, member, owners, reload) {
  ask(`Remove ${owners.name(member)} from ${name}?`, [h("p", {}, "The group rebalances without it. A member that still runs joins again at once.")], "Remove", async () => {
    await act("remove-member", { group: name, member_id: member });
    reload();
    return `${owners.name(member)} was removed`;
  }, "danger");
}

function remove(name) {
  ask(`Delete group ${name}?`, [h("p", {}, "Its committed offsets are deleted. A group with members is not deleted.")], "Delete", async () => {
    await act("delete-group", { group: name });
    location.hash = "#/groups";
    return `Group ${name} was deleted`;
  }, "danger");
}

function reset(name, measured, reload) {
  const topics = [...new Set(measured.partitions.map((each) => each.topic))];
  const preview = h("div", { role: "status" });
  const value = h("input", { name: "value", type: "number", value: "0" });
  const at = h("input", { name: "at", type: "datetime-local", step: "1" });
  const fields = [
    topics.length ? h("label", {}, "Topic", h("select", { name: "topic" }, topics.map((each) => h("option", {}, each)))) : h("label", {}, "Topic", h("input", { name: "topic", required: true })),
    h("label", {}, "To", h("select", { name: "to" }, [["earliest", "the first record"], ["latest", "the end"], ["offset", "an offset"], ["shift", "so many records later (negative: earlier)"], ["time", "a time"]]
      .map(([key, text]) => h("option", { value: key }, text)))),
    h("label", {}, "Offset or number of records", value), h("label", {}, "Time", at), preview,
  ];
  let isShown = false;
  const dialog = ask(`Reset offsets of ${name}`, fields, "Show what would change", async (data) => {
    const body = { group: name, topic: data.get("topic"), to: data.get("to"), dry_run: !isShown };
    if (body.to === "offset") body.offset = Number(data.get("value"));
    if (body.to === "shift") body.by = Number(data.get("value"));
    if (body.to === "time") body.time_ms = new Date(data.get("at")).getTime();
    const it = await act("reset-offsets", body);
    if (!isShown) {
      isShown = true;
      dialog.querySelector("button[type=submit]").textContent = "Reset";
      replace(preview, table("What would be committed", [{ name: "Partition", number: true }, { name: "Now", number: true }, { name: "After", number: true }],
        it.changes.map((each) => [String(each.partition), each.before < 0 ? "nothing" : count(each.before), count(each.after)]), "Nothing would change."));
      return false;
    }
    reload();
    return `Offsets of ${it.changes.length} partitions were reset`;
  });
  dialog.addEventListener("change", () => { isShown = false; preview.replaceChildren(); dialog.querySelector("button[type=submit]").textContent = "Show what would change"; });
}
