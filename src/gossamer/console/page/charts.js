// Charts: lines over time, drawn by uPlot.

import { by } from "./dom.js";
import { bits, count, decimal, short } from "./words.js";

// The greatest value of an axis whose values are all zero: it has no other number.
const EMPTY = 1;
const height = () => (innerWidth > 560 ? 190 : 140);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const KINDS = [
  { id: "chart-pages", says: (v) => `${decimal(v)} pages/s`, ticks: short, series: [
    { label: "pages", column: 1, stroke: "--mark", fill: "--wash", value: (v) => `${decimal(v)}/s` },
  ] },
  { id: "chart-others", says: (v) => `${decimal(v)} errors, redirects and refusals/s`, ticks: short, series: [
    { label: "others", column: 2, stroke: "--second", value: (v) => `${decimal(v)}/s` },
  ] },
  { id: "chart-bits", says: bits, ticks: short, series: [
    { label: "received", column: 3, stroke: "--mark", fill: "--wash", value: bits },
  ] },
  { id: "chart-pending", says: (v) => `${count(v)} URLs`, ticks: short, series: [
    { label: "URLs", column: 4, stroke: "--mark", fill: "--wash", value: count },
  ] },
];

export class Charts {
  constructor(course) {
    this.course = course;
    this.span_s = 300;
    this.drawn = [];
    this.draw();
    const redraw = () => this.draw();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    this.watch = new ResizeObserver(() => this.fit());
    for (const kind of KINDS) this.watch.observe(by(kind.id));
    for (const input of document.getElementsByName("range")) {
      input.addEventListener("change", () => {
        this.span_s = Number(input.value);
        this.update();
      });
    }
  }

  draw() {
    for (const { chart } of this.drawn) chart.destroy();
    this.drawn = KINDS.map((kind) => ({ kind, chart: drawn(kind, by(kind.id)) }));
    this.update();
  }

  fit() {
    for (const { kind, chart } of this.drawn) {
      const width = by(kind.id).clientWidth;
      if (width && width !== chart.width) chart.setSize({ width, height: height() });
    }
  }

  // What is over is looked at as a whole.
  all() {
    const whole = document.querySelector("[name=range][value='0']");
    whole.checked = true;
    this.span_s = 0;
    this.update();
  }

  update() {
    const { columns, begin, end } = this.course.columns(this.span_s);
    const isOver = document.body.classList.contains("over");
    by("charts").hidden = isOver && !columns[0].length;
    for (const { kind, chart } of this.drawn) {
      const lines = kind.series.map((line) => columns[line.column]);
      chart.setData([columns[0], ...lines], false);
      if (!(chart.cursor.left >= 0)) chart.setLegend({ idx: columns[0].length ? columns[0].length - 1 : null });
      chart.setScale("x", { min: begin, max: Math.max(end, begin + 10) });
      const known = lines[0].filter((value) => value !== null);
      const now = known.at(-1) ?? 0;
      by(kind.id).parentElement.hidden = isOver && !known.length;
      by(kind.id).setAttribute("aria-label", `now ${kind.says(now)}, at most ${kind.says(Math.max(0, ...known))}`);
    }
  }
}

function drawn(kind, place) {
  const axis = { stroke: colour("--soft"), font: "11px system-ui, sans-serif", grid: { stroke: colour("--edge"), width: 1 }, ticks: { stroke: colour("--edge"), width: 1, size: 4 } };
  place.setAttribute("role", "img");
  return new globalThis.uPlot({
    width: place.clientWidth || 300,
    height: height(),
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    legend: { live: true },
    scales: { x: { time: true }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : EMPTY] } },
    axes: [
      { ...axis, space: 70, size: 32, values: times },
      { ...axis, size: 52, values: (plot, ticks) => ticks.map((tick) => (tick && plot.scales.y.max === EMPTY ? "" : kind.ticks(tick))) },
    ],
    series: [
      { label: "at", value: (_, at) => (at ? new Date(1000 * at).toLocaleTimeString("en-GB") : "–") },
      ...kind.series.map((line) => ({
        label: line.label, stroke: colour(line.stroke), width: 1.75, points: { show: false }, spanGaps: false,
        fill: line.fill && colour(line.fill), value: (_, value) => (value === null || value === undefined ? "–" : line.value(value)),
      })),
    ],
  }, [[], ...kind.series.map(() => [])], place);
}

function times(_, ticks, __, ___, step_s) {
  return ticks.map((at) => {
    const date = new Date(1000 * at);
    if (step_s >= 86400) return date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
    return date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(step_s < 60 && { second: "2-digit" }) });
  });
}
