// Course: where the counts stood, and the rates between. Bounded: old points become few.

const POINTS_MAX = 4_000;
const SHOWN_MAX = 300;
const GAP_S = 60;

export class Course {
  constructor() {
    this.points = [];
  }

  begin(points) {
    this.points = points.map((point) => [...point]);
  }

  add(point) {
    const last = this.points.at(-1);
    if (last && point[0] <= last[0]) return;
    this.points.push(point);
    if (this.points.length > POINTS_MAX) this.points = this.points.filter((_, index) => index % 2 || index > POINTS_MAX / 2);
  }

  // Return columns: instants, pages/s, attempts without a page/s, bit/s, and what was pending, of the last `span_s` (0: all).
  columns(span_s) {
    const all = this.points;
    const end = all.at(-1)?.[0] ?? 0;
    const first = all[0]?.[0] ?? 0;
    const begin = span_s ? Math.max(first, end - span_s) : first;
    const step_s = Math.max((end - begin) / SHOWN_MAX, Math.min(0.9, (end - begin) / 20));
    const columns = [[], [], [], [], []];
    let before = null, usual_s = 0;
    for (const point of all) {
      if (point[0] < begin - step_s) continue;
      if (before === null) {
        before = point;
        continue;
      }
      const lasted_s = point[0] - before[0];
      if (lasted_s < step_s && point !== all.at(-1)) continue;
      if (lasted_s < step_s / 2) continue;
      const anew = point[1] < before[1] || point[2] < before[2];
      const gap = anew || (usual_s > 0 && lasted_s > Math.max(GAP_S, 20 * usual_s));
      const pages = (point[1] - before[1]) / lasted_s;
      const row = gap
        ? [point[0], null, null, null, null]
        : [point[0], pages, Math.max(0, (point[2] - before[2]) / lasted_s - pages), (8 * (point[3] - before[3])) / lasted_s, point[4]];
      row.forEach((value, index) => columns[index].push(value));
      if (!gap) usual_s = lasted_s;
      before = point;
    }
    return { columns, begin, end };
  }
}
