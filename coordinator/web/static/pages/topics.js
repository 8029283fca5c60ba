// All topics; a topic can be created.

import { act, get } from "../api.js";
import { bytes, count, h, link, replace, table } from "../dom.js";
import { ask } from "../dialogs.js";

export function topics(main, _, reload) {
  const list = h("div"), actions = h("div");
  main.append(h("h1", {}, "Topics"), actions, list);
  return {
    title: "Topics",
    shows: (name) => name === "cluster",
    async load() {
      const [it, about] = await Promise.all([get("topics"), get("cluster")]);
      replace(actions, about.is_read_only ? h("span") : h("button", { type: "button", "data-key": "create", onclick: () => create(reload) }, "Create a topic"));
      replace(list, table(`${it.topics.length} topics`,
        [{ name: "Topic" }, { name: "Partitions", number: true }, { name: "Replicas", number: true }, { name: "Under-replicated", number: true }, { name: "Size", number: true }],
        it.topics.map((each) => [
          h("span", {}, link("topic", each.topic), each.is_internal && h("span", { class: "quiet" }, " internal")),
          count(each.partitions), count(each.replication_factor),
          h("span", { class: each.under_replicated_partitions > 0 && "warn" }, count(each.under_replicated_partitions)), bytes(each.size_bytes),
        ]), "There is no topic yet."));
    },
  };
}

function create(reload) {
  const fields = [
    h("label", {}, "Name", h("input", { name: "topic", required: true, autocomplete: "off" })),
    h("label", {}, "Partitions (empty: the broker's default)", h("input", { name: "partitions", type: "number", min: "1" })),
    h("label", {}, "Replicas (empty: the broker's default)", h("input", { name: "replicas", type: "number", min: "1" })),
  ];
  ask("Create a topic", fields, "Create", async (data) => {
    const made = await act("create-topic", {
      topic: data.get("topic"), partitions: Number(data.get("partitions") || -1), replication_factor: Number(data.get("replicas") || -1),
    });
    reload();
    return `Topic ${made.topic} was created`;
  });
}
