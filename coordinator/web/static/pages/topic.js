// One topic: partitions, configs, and its records by offset or time.

import { get } from "../api.js";
import { bytes, card, count, h, replace, table, time } from "../dom.js";

export function topic(main, name) {
  const numbers = h("div", { class: "cards" }), partitions = h("div"), configs = h("div"), records = h("div"), page = h("p", { class: "quiet" });
  const partition = h("select", { name: "partition" });
  const form = h("form", { class: "row" },
    h("label", {}, "Partition", partition),
    h("label", {}, "From offset", h("input", { name: "offset", inputmode: "numeric", size: "12", placeholder: "the last ones" })),
    h("label", {}, "or from time", h("input", { name: "time", type: "datetime-local", step: "1" })),
    h("label", {}, "Key contains", h("input", { name: "key", size: "12" })),
    h("label", {}, "Records", h("select", { name: "limit" }, ["25", "100", "500"].map((each) => h("option", {}, each)))),
    h("button", { class: "main" }, "Show"));
  let next = null;
  const onward = h("button", { type: "button", onclick: () => browse(next) }, "Next records");
  form.addEventListener("submit", (event) => { event.preventDefault(); browse(null); });
  main.append(h("h1", {}, `Topic ${name}`), numbers, h("h2", {}, "Partitions"), partitions, h("h2", {}, "Records"), form, page, records, onward,
    h("h2", {}, "Configs"), configs);

  async function browse(offset) {
    const data = new FormData(form);
    const from = data.get("time");
    try {
      const it = await get("records", {
        topic: name, partition: data.get("partition") ?? "0", limit: data.get("limit"),
        offset: offset ?? data.get("offset").trim(), time_ms: offset === null && from ? String(new Date(from).getTime()) : "",
      });
      const wanted = data.get("key");
      const shown = it.records.filter((record) => !wanted || (record.key?.text ?? "").includes(wanted));
      next = it.next_offset;
      page.textContent = `Offsets ${it.start_offset} to ${it.end_offset} are in partition ${it.partition}. ${shown.length} records are shown`
        + (wanted ? ` of ${it.records.length} that were read.` : ".");
      onward.disabled = it.next_offset >= it.end_offset;
      replace(records, table(`Records of partition ${it.partition}`,
        [{ name: "Offset", number: true }, { name: "Time" }, { name: "Key" }, { name: "Value" }, { name: "Headers" }],
        shown.map((record) => [String(record.offset), time(record.timestamp_ms), content(record.key), content(record.value),
          [...record.headers.map((header) => h("div", {}, h("code", {}, header.key), ": ", content(header.value))),
            record.header_count > record.headers.length && h("div", { class: "quiet" }, `the first of ${count(record.header_count)} headers`)]]), "No record is there."));
    } catch (error) { page.textContent = error.message; }
  }

  let isFirst = true;
  return {
    title: `Topic ${name}`,
    shows: (changed) => changed === "cluster",
    async load() {
      const it = await get("topic", { topic: name });
      replace(numbers, card(count(it.partitions), "partitions"), card(count(it.replication_factor), "replicas"),
        card(bytes(it.size_bytes), "size"), card(count(it.under_replicated_partitions), "under-replicated", it.under_replicated_partitions ? "warn" : "good"));
      replace(partitions, table(`Partitions of ${name}`,
        [{ name: "Partition", number: true }, { name: "Leader", number: true }, { name: "Replicas" }, { name: "In sync" },
          { name: "Start", number: true }, { name: "End", number: true }, { name: "Size", number: true }],
        it.partition_list.map((each) => [String(each.partition), each.leader < 0 ? h("span", { class: "bad" }, "none") : String(each.leader),
          each.replicas.join(", "), h("span", { class: each.isr.length < each.replicas.length && "warn" }, each.isr.join(", ")),
          count(each.start_offset), count(each.end_offset), bytes(each.size_bytes)]), ""));
      replace(configs, table("Configs; those that were set for this topic come first", [{ name: "Name" }, { name: "Value" }, { name: "Set by" }, { name: "What it does" }],
        [...it.configs].sort((a, b) => (b.source === "topic") - (a.source === "topic")).map((each) => [
          h("code", {}, each.name), h("code", {}, each.value ?? ""), each.source, h("span", { class: "quiet" }, each.documentation)]), ""));
      if (partition.options.length !== it.partitions) replace(partition, it.partition_list.map((each) => h("option", {}, String(each.partition))));
      if (isFirst) { isFirst = false; await browse(null); }
    },
  };
}

function content(data) {
  if (data === null) return h("span", { class: "quiet" }, "null");
  let text = data.text;
  if (data.format === "json") {
    try { text = JSON.stringify(JSON.parse(data.text), null, 1); } catch { /* too deep: shown as it is */ }
  }
  return [h("code", {}, text), data.format === "base64" && h("span", { class: "quiet" }, " base64"), data.is_cut && h("span", { class: "quiet" }, ` cut; ${bytes(data.size_bytes)} in all`)];
}
