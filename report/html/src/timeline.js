// Memory over the entries of a history: allocated by category, stacked, with reserved above it, marks and failures.
import uPlot from 'uplot';
import { bytes, colours, count, gib, lastAtMost, make, onRedraw } from './look.js';
import { Zoom } from './zoom.js';

const kHeight = 320;
const kHeadroom = 1.18;  // above the highest figure, for names of marks and for failures
const kRoom = 0.6;  // of the width of its name that a stretch needs to be named

export const categoryColour = (look, index) => look[`category-${index % 10}`];

/** Sums from below, in GiB: what the upper edge of each category's area is. */
function stacked(timeline) {
  const sums = [];
  for (const { bytes: values } of timeline.categories) {
    const below = sums.at(-1);
    sums.push(values.map((value, i) => gib(value) + (below ? below[i] : 0)));
  }
  return sums;
}

function drawMarks(plot, timeline, look) {
  const { ctx, bbox } = plot;
  const place = (x) => Math.round(plot.valToPos(x, 'x', true)) + 0.5;
  const inside = (x) => x >= bbox.left && x <= bbox.left + bbox.width;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.textAlign = 'left';
  ctx.font = `${11 * devicePixelRatio}px sans-serif`;
  const begins = timeline.marks.map(([x]) => place(x));
  const widths = timeline.marks.map(([, text]) => ctx.measureText(text).width);
  const isRoomy = (i) => (begins[i + 1] ?? bbox.left + bbox.width) - begins[i] >= kRoom * widths[i];
  const anyRoom = widths.some((_, i) => isRoomy(i));
  let free = bbox.left;  // names that would cover each other are left out, and those that would stand in the next stretch
  for (const [i, [x, text]] of timeline.marks.entries()) {
    const at = begins[i];
    if (!inside(at)) continue;
    ctx.strokeStyle = look.line;
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    const width = widths[i];
    if (at < free || at + width > bbox.left + bbox.width || (anyRoom && !isRoomy(i))) continue;
    ctx.fillStyle = look.muted;
    ctx.fillText(text, at + 3 * devicePixelRatio, bbox.top + 11 * devicePixelRatio);
    free = at + width + 10 * devicePixelRatio;
  }
  ctx.strokeStyle = look.oom;
  ctx.lineWidth = 2 * devicePixelRatio;
  const arm = 4 * devicePixelRatio;
  for (const [x] of timeline.ooms) {
    const at = place(x);
    if (!inside(at)) continue;
    const y = bbox.top + 22 * devicePixelRatio;
    for (const way of [1, -1]) {
      ctx.beginPath();
      ctx.moveTo(at - arm, y - way * arm);
      ctx.lineTo(at + arm, y + way * arm);
      ctx.stroke();
    }
  }
  ctx.restore();
}

function options(timeline, width, look, zoom, told) {
  const area = (category, i) => ({ label: category.name, width: 1, stroke: categoryColour(look, i), fill: categoryColour(look, i),
    points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) });
  const axis = { stroke: look.muted, grid: { stroke: look.grid, width: 1 }, ticks: { stroke: look.axis, width: 1 }, font: '11px sans-serif' };
  return {
    width, height: kHeight, legend: { show: false }, cursor: { drag: { x: false, y: false }, points: { show: false } },
    scales: { x: { time: false, range: (plot, low, high) => [low, high] }, y: { range: (plot, low, high) => [0, high * kHeadroom] } },
    axes: [{ ...axis, size: 28, values: (plot, at) => at.map(count) },
           { ...axis, size: 44, label: 'GiB', labelSize: 18, labelFont: '11px sans-serif' }],
    series: [{ label: timeline.unit },
             ...timeline.categories.map(area).reverse(),
             { label: 'reserved', width: 1.6, stroke: look.limit, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }],
    hooks: {
      draw: [(plot) => drawMarks(plot, timeline, look)],
      setCursor: [(plot) => told(plot.cursor.idx)],
    },
  };
}

/** What stands below the chart for the entry number `i`. */
function words(timeline, i) {
  const mark = timeline.marks.length ? timeline.marks[Math.max(0, lastAtMost(timeline.marks, timeline.x[i]))][1] : '';
  const parts = timeline.categories.map((category) => [category.name, category.bytes[i]]).filter(([, value]) => value > 0);
  return `${timeline.unit} ${count(timeline.x[i])}${mark ? `, ${mark}` : ''}: reserved ${bytes(timeline.reserved[i])}; ` +
    parts.map(([name, value]) => `${name} ${bytes(value)}`).join(', ');
}

/** Ctrl and the wheel zoom around the pointer, dragging moves, as in the other charts. */
function follow(host, zoom) {
  host.addEventListener('wheel', (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const at = zoom.from + (zoom.to - zoom.from) * event.offsetX / host.clientWidth;
    const factor = event.deltaY > 0 ? 1.25 : 0.8;
    zoom.set(at - (at - zoom.from) * factor, at + (zoom.to - at) * factor);
  }, { passive: false });
  host.addEventListener('pointermove', (event) => {
    if (event.buttons === 1) zoom.move(-event.movementX / host.clientWidth);
  });
}

const kMostGrown = 6000;  // points: above it every second one goes

/** A time line that grows while a file is read: {figure, add([[x, allocated bytes], ...])}. Bytes count from the first
 *  entry, so that they may fall below 0. */
export function growingTimeline(unit, units) {
  const timeline = { unit, units, categories: [{ name: 'allocated' }], marks: [], ooms: [] };
  const host = make('div', { class: 'chart', style: `min-height:${kHeight}px`, role: 'img', 'aria-label': `Allocated memory over the ${units} read so far` });
  let data = [[], [], []];
  let plot = null;
  let waits = false;
  const draw = () => {
    if (host.clientWidth === 0) return;
    plot?.destroy();
    const look = options(timeline, host.clientWidth, colours(), null, () => {});
    look.scales.y.range = (chart, low, high) => [Math.min(0, low), Math.max(0, high) * kHeadroom];
    plot = new uPlot(look, data, host);
  };
  const show = () => {
    waits = false;
    if (plot?.width === host.clientWidth) plot.setData(data);
    else draw();
  };
  onRedraw(host, draw);
  const add = (points) => {
    for (const [x, allocated] of points) [x, gib(allocated), null].forEach((value, i) => data[i].push(value));
    while (data[0].length > kMostGrown) data = data.map((values) => values.filter((_, i) => i % 2 === 0));
    if (!waits) requestAnimationFrame(show);
    waits = true;
  };
  return { figure: make('figure', { class: 'wide' }, make('figcaption', {}, make('p', {}, `Allocated while it is read, over ${units}`)), host), add };
}

/** The chart with its zoom bar, legend and the words of the entry below the pointer. */
export function timelineChart(timeline) {
  const first = 0;
  const last = Math.max(first + 1, timeline.x.at(-1));
  const zoom = new Zoom(first, last, timeline.unit, timeline.units);
  const data = [timeline.x, ...stacked(timeline).reverse(), timeline.reserved.map(gib)];  // the highest sum lies behind the others
  const under = make('p', { class: 'hint under', 'aria-live': 'polite' }, ' ');
  const host = make('div', { class: 'chart', style: `min-height:${kHeight}px`, tabindex: '0', role: 'img', onkeydown: (event) => zoom.key(event),
    'aria-label': `Allocated memory by category and reserved memory over ${timeline.units}. Keys + and − zoom, arrows move, 0 shows all.` });
  let plot = null;
  zoom.listeners.push(({ from, to }) => plot?.setScale('x', { min: from, max: to }));
  follow(host, zoom);
  const draw = () => {
    const width = host.clientWidth;
    if (width === 0) return;
    plot?.destroy();
    plot = new uPlot(options(timeline, width, colours(), zoom, (i) => { if (i !== null && i !== undefined) under.textContent = words(timeline, i); }), data, host);
    plot.setScale('x', { min: zoom.from, max: zoom.to });
  };
  new ResizeObserver(() => { if (plot?.width !== host.clientWidth) draw(); }).observe(host);
  onRedraw(host, draw);
  const legend = make('ul', { class: 'legend' },
    ...timeline.categories.map(({ name }, i) => make('li', {}, make('span', { class: 'box', style: `background:var(--category-${i % 10})`, 'aria-hidden': 'true' }), name)),
    make('li', {}, make('span', { class: 'box', style: 'background:var(--limit)', 'aria-hidden': 'true' }), 'line: reserved'));
  return [make('div', { class: 'tools' }, zoom.bar(), legend), make('figure', { class: 'wide' }, host, under)];
}
