// All groups: state, members, lag and what is wrong.

import { get } from "../api.js";
import { count, h, link, replace, table } from "../dom.js";

const DETAILS_MAX = 50; // groups whose lag and findings are asked for with the list

export function groups(main) {
  const list = h("div");
  main.append(h("h1", {}, "Groups"), list);
  return {
    title: "Groups",
    shows: (name) => name === "groups",
    async load() {
      const it = await get("groups");
      const about = new Map(await Promise.all(it.groups.slice(0, DETAILS_MAX).map(async (each) => [each.group, await details(each.group)])));
      replace(list, table(`${it.groups.length} groups`,
        [{ name: "Group" }, { name: "State" }, { name: "Members", number: true }, { name: "Lag", number: true }, { name: "Health" }, { name: "Coordinator", number: true }],
        it.groups.map((each) => {
          const found = about.get(each.group);
          return [link("group", each.group), state(each.state), found?.members ?? "", found?.lag ?? "", found?.health ?? "", String(each.coordinator)];
        }), "There is no group yet."));
    },
  };
}

async function details(name) {
  try {
    const [group, lag, health] = await Promise.all([get("group", { group: name }), get("group/lag", { group: name }), get("group/health", { group: name })]);
    const worst = health.findings[0];
    return {
      members: count(group.members.length), lag: count(lag.records),
      health: worst ? h("span", { class: severity(worst.severity) }, `${health.findings.length}: ${worst.code}`) : h("span", { class: "good" }, "good"),
    };
  } catch { return null; } // it may have just been deleted
}

export function state(name) {
  return h("span", { class: `badge ${{ Stable: "good", Empty: "quiet", Dead: "quiet" }[name] ?? "warn"}` }, name);
}

export function severity(name) {
  return { error: "bad", warning: "warn" }[name] ?? "quiet";
}
