// The cluster: brokers, the controller, disks.

import { get } from "../api.js";
import { bytes, card, count, h, replace, table } from "../dom.js";

export function cluster(main) {
  const numbers = h("div", { class: "cards" }), brokers = h("div"), quotas = h("div");
  main.append(h("h1", {}, "Cluster"), numbers, h("h2", {}, "Brokers"), brokers, h("h2", {}, "Quotas"), quotas);
  return {
    title: "Cluster",
    shows: (name) => name === "cluster",
    async load() {
      const it = await get("cluster");
      replace(numbers,
        card(it.brokers.length, it.brokers.length === 1 ? "broker" : "brokers"),
        card(it.controller_id ?? "none", "controller", it.controller_id === null && "bad"),
        card(count(it.topics), "topics"), card(count(it.partitions), "partitions"),
        card(count(it.under_replicated_partitions), "under-replicated", it.under_replicated_partitions > 0 ? "warn" : "good"),
        card(count(it.offline_partitions), "offline", it.offline_partitions > 0 ? "bad" : "good"),
        card(it.version, "version"),
        card(it.is_read_only ? "read-only" : "actions allowed", "this console"));
      replace(brokers, table(`Cluster ${it.cluster_id}, as broker ${it.broker_id} sees it`,
        [{ name: "Broker" }, { name: "Addresses" }, { name: "Rack" }, { name: "Leads", number: true },
          { name: "In sync", number: true }, { name: "Replicas", number: true }, { name: "Logs", number: true }, { name: "Disk free", number: true }],
        it.brokers.map((each) => [
          h("span", {}, each.broker_id, each.is_controller && h("span", {}, " ", h("span", { class: "badge" }, "controller"))),
          each.endpoints.join(", "), each.rack ?? "", count(each.leaders),
          h("span", { class: each.in_sync_replicas < each.replicas && "warn" }, count(each.in_sync_replicas)), count(each.replicas),
          each.answers ? bytes(each.log_bytes) : h("span", { class: "bad" }, "does not answer"),
          each.disk_bytes < 0 ? "in memory" : `${bytes(each.disk_free_bytes)} of ${bytes(each.disk_bytes)}`,
        ]), "No broker is alive."));
      replace(quotas, table("Quotas of clients",
        [{ name: "Client" }, { name: "Quota" }, { name: "Value", number: true }, { name: "Throttled here by this quota", number: true }],
        it.quotas.map((each) => [each.entity, each.quota, String(each.value), count(each.throttled)]), "No client has a quota."));
    },
  };
}
