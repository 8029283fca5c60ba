// The clients that push their metrics to this broker (KIP-714), and the last values of one of them.

import { get } from "../api.js";
import { bytes, card, count, duration, h, link, replace, table, time } from "../dom.js";

export function clients(main) {
  const numbers = h("div", { class: "cards" }), subscriptions = h("div"), list = h("div");
  main.append(h("h1", {}, "Clients"),
    h("p", { class: "quiet" }, "Clients that push their metrics (KIP-714) push them to one broker. These push to this one."),
    numbers, h("h2", {}, "Instances"), list, h("h2", {}, "Subscriptions"), subscriptions);
  return {
    title: "Clients",
    shows: () => false,
    async load() {
      const it = await get("client-metrics");
      replace(numbers,
        card(count(it.instances.length), it.instances.length === 1 ? "client" : "clients"), card(count(it.pushes), "pushes"),
        card(bytes(it.pushed_bytes), "pushed"), card(count(it.refused), "refused", it.refused > 0 && "warn"));
      replace(list, table("Clients that asked for a subscription, the last one to push at the end",
        [{ name: "Client" }, { name: "Software" }, { name: "Address" }, { name: "Pushes", number: true }, { name: "Size", number: true },
          { name: "Interval", number: true }, { name: "Last push", number: true }],
        it.instances.map((each) => [
          h("span", {}, link("client", each.client_instance_id, each.client_id || each.client_instance_id), each.is_terminating && h("span", { class: "quiet" }, " ended")),
          `${each.client_software_name} ${each.client_software_version}`.trim(), each.client_source_address,
          count(each.pushes), bytes(each.pushed_bytes), duration(each.push_interval_ms), each.last_push_ms < 0 ? "none yet" : time(each.last_push_ms),
        ]), "No client has asked for a subscription yet."));
      replace(subscriptions, table("What clients are asked for",
        [{ name: "Subscription" }, { name: "Setting" }, { name: "Value" }],
        it.subscriptions.flatMap((each) => Object.entries(each.configs).map(([name, value]) => [each.name, name, value])),
        "There is no subscription: no client pushes anything. `rota configs alter client-metrics NAME --set metrics=…` makes one."));
    },
  };
}

export function client(main, instance) {
  const about = h("p", { class: "quiet" }), values = h("div");
  main.append(h("h1", {}, `Client instance ${instance}`), about, values);
  return {
    title: `Client instance ${instance}`,
    shows: () => false,
    async load() {
      const it = await get("client-metrics/values", { instance });
      const when = it.last_push_ms < 0 ? "" : `Pushed at ${time(it.last_push_ms)}.`;
      replace(about, [when, it.remark && `${it.remark[0].toUpperCase()}${it.remark.slice(1)}.`].filter(Boolean).join(" "));
      replace(values, table("The values of the last push",
        [{ name: "Metric" }, { name: "Labels" }, { name: "Value", number: true }, { name: "Unit" }],
        it.points.map((each) => [each.metric, labels(each.labels), shown(each), each.unit]), "There are no values."));
    },
  };
}

function labels(named) {
  return Object.entries(named).map(([name, value]) => `${name}=${value}`).join(" ");
}

function shown(point) {
  const value = typeof point.value === "number" ? point.value.toLocaleString("en", { maximumFractionDigits: 3 }) : point.value ?? "unknown";
  return point.count === undefined ? value : `${value} (${count(point.count)} values)`;
}
