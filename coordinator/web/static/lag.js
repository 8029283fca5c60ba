// The lag of a group while its page is open, as a plot (uPlot).

const POINTS_MAX = 720, SERIES_MAX = 8, SPAN_SECONDS_MIN = 60;
const COLOURS = ["--text", "--o0", "--o1", "--o2", "--o3", "--o4", "--o5", "--o6", "--o7"];

export class LagPlot {
  #element; #times = []; #series = new Map(); #plot = null; #names = "";

  constructor(element) { this.#element = element; }

  /** Take a measurement: the API's answer about the lag of a group. */
  add(lag) {
    const values = new Map([["all partitions", lag.records < 0 ? null : lag.records]]);
    const largest = [...lag.partitions].filter((each) => each.records >= 0).sort((a, b) => b.records - a.records);
    for (const each of largest) {
      const name = `${each.topic}-${each.partition}`;
      if (this.#series.has(name) || this.#series.size + values.size <= SERIES_MAX) values.set(name, each.records);
    }
    if (!this.#times.length) this.#times.push(lag.time_ms / 1000 - SPAN_SECONDS_MIN); // a plot of one point has no scale
    this.#times.push(lag.time_ms / 1000);
    for (const name of values.keys()) {
      if (!this.#series.has(name)) this.#series.set(name, Array(this.#times.length - 1).fill(null));
    }
    for (const [name, points] of this.#series) {
      points.push(values.get(name) ?? null);
      if (points.length > POINTS_MAX) points.shift();
    }
    if (this.#times.length > POINTS_MAX) this.#times.shift();
    this.#draw();
  }

  #draw() {
    const names = [...this.#series.keys()].join("\u0000");
    const data = [this.#times, ...this.#series.values()];
    if (this.#plot && names === this.#names) { this.#plot.setData(data); return; }
    this.#names = names;
    this.#plot?.destroy();
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--text"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
    this.#plot = new window.uPlot({
      width: Math.max(this.#element.clientWidth, 280), height: 220, axes: [axis, { ...axis, size: 70 }], scales: { y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1)] } },
      series: [{}, ...[...this.#series.keys()].map((label, at) => ({ label, stroke: colour(COLOURS[at % COLOURS.length]), width: at ? 1.5 : 2.5, points: { show: this.#times.length < 3 } }))],
    }, data, this.#element);
  }

  close() { this.#plot?.destroy(); this.#plot = null; }
}
