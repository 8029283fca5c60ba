// Who owns which partition: one colour for each member, the same on the whole page.

const COLOURS = 8;

/** Gives members their colours in the order in which they are met. */
export class Owners {
  #at = new Map();
  names = new Map();

  colour(member) {
    if (!this.#at.has(member)) this.#at.set(member, this.#at.size);
    return `o${this.#at.get(member) % COLOURS}`;
  }

  name(member) {
    return this.names.get(member) ?? member;
  }

  /** Remember a short name: client id and host, or the instance id. */
  meet(member, instance, client, host) {
    const short = instance || client || member;
    const taken = [...this.names].some(([id, name]) => name === short && id !== member);
    this.names.set(member, taken ? `${short} (${member.slice(-6)})` : short);
    this.colour(member);
  }
}

/** Spans of ownership: [{topic, partition, member, from, until}], from the rebalances (oldest first). */
export function ownership(rebalances, now) {
  const spans = [], current = new Map();
  for (const rebalance of rebalances) {
    if (rebalance.outcome === "empty") end(current, spans, rebalance.ended_ms);
    if (rebalance.outcome !== "stable") continue;
    const next = new Map();
    for (const move of rebalance.moves) {
      for (const each of [...move.gained, ...move.kept]) {
        for (const partition of each.partitions) next.set(`${each.topic}\u0000${partition}`, move.member_id);
      }
    }
    for (const [key, span] of [...current]) {
      if (next.get(key) !== span.member) { spans.push({ ...span, until: rebalance.ended_ms }); current.delete(key); }
    }
    for (const [key, member] of next) {
      if (current.has(key)) continue;
      const [topic, partition] = key.split("\u0000");
      current.set(key, { topic, partition: Number(partition), member, from: rebalance.ended_ms });
    }
  }
  end(current, spans, now);
  return spans;
}

function end(current, spans, until) {
  for (const span of current.values()) spans.push({ ...span, until });
  current.clear();
}
