// Queues side by side: which job was on which card when, what ran out of memory, and how many waited.
import { addChart, clipToRectangle } from './charts.js';
import { axisLook, bytes, count, escaped, gib, lastAtMost, make, parameterColour, seconds, tooltipLook } from './look.js';
import { allMetrics, metricsTable } from './table.js';
import { Zoom, zoomOf } from './zoom.js';

const kCross = 'path://M2,0 L5,3 L8,0 L10,2 L7,5 L10,8 L8,10 L5,7 L2,10 L0,8 L3,5 L0,2 Z';

const kColumns = ['completed', 'oom_kills', 'timeouts', 'failed', 'gpu_hours_wasted', 'makespan_s', 'mean_wait_s', 'p99_wait_s',
                  'mean_completion_s', 'memory_utilisation', 'fairness'];
const kRight = 14;
const kWaiting = 54;
const kTop = 10;
const kGap = 14;
const kHeld = 120;        // memory of one card, where jobs move what they hold
const kParameters = 100;  // and the parameters that they move

/** Stays on one card that overlap lie above each other: [stay, lane], and how many lanes each card has. */
function lanes(policy) {
  const ends = policy.cards.map(() => []);
  const placed = policy.stays.map((stay) => {
    const [, card, from, to] = stay;
    let lane = ends[card].findIndex((end) => end <= from);
    if (lane < 0) lane = ends[card].length;
    ends[card][lane] = to;
    return [stay, lane];
  });
  return { placed, counts: ends.map((list) => Math.max(1, list.length)) };
}

/** Ticks at whole seconds, minutes, hours or days, some six over `span` seconds. */
function timeAxis(span) {
  const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
  const [name, size] = units.find(([, length]) => span >= 2 * length) ?? units[3];
  const rough = span / size / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  return { interval: step * size, axisLabel: (value) => `${+(value / size).toFixed(2)} ${name}` };
}

function laneHeight(total) { return total <= 12 ? 22 : total <= 40 ? 14 : total <= 120 ? 8 : 4; }

function layout(policy) {
  if (policy.layout) return policy.layout;
  const { placed, counts } = lanes(policy);
  const starts = [];
  let rows = 0;
  for (const number of counts) {
    starts.push(rows);
    rows += number + 0.4;
  }
  policy.layout = { placed, counts, starts, rows, lane: laneHeight(rows) };
  return policy.layout;
}

function hover(section, policy, index) {
  const [[job, card, from, to, need, used, ranOut]] = policy.layout.placed[index];
  const row = (name, value) => `<tr><td>${name}</td><td class="number">${value}</td></tr>`;
  return `<b>${escaped(section.jobs[job])}</b> on ${escaped(policy.cards[card])}<table>` +
    row('from', seconds(from)) + row('to', seconds(to)) + row('for', seconds(to - from)) + row('promised', bytes(need)) +
    row('used at most', bytes(used)) + `</table>${ranOut ? '<p class="oom">× ended by an OOM</p>' : ''}`;
}

/** Where the panels of memory and parameters begin and end below the map, and how high all is. */
function below(policy, map) {
  let top = map;
  const next = (height) => {
    const grid = { top: top + kGap + 8, height };
    top = grid.top + height;
    return grid;
  };
  const held = (policy.held ?? []).map(() => next(kHeld));
  return { held, parameters: policy.curves?.length ? next(kParameters) : null, bottom: top };
}

/** Series of the memory of card `i`: what each job held, the card's limit, and where memory was short. */
function heldSeries(section, policy, i, axis, look) {
  const { total, boxes, failures } = policy.held[i];
  const at = { xAxisIndex: axis, yAxisIndex: axis };
  return [
    { id: `held ${i}`, type: 'custom', ...at, progressive: 0, encode: { x: [1, 2], y: [3, 4] },
      data: boxes.map(([job, from, to, low, high]) => [job, from, to, gib(low), gib(high)]),
      renderItem: (params, api) => {
        const [x, y] = api.coord([api.value(1), api.value(4)]);
        const [right, bottom] = api.coord([api.value(2), api.value(3)]);
        const shape = clipToRectangle({ x, y, width: Math.max(0.5, right - x), height: bottom - y }, params.coordSys);
        return shape && { type: 'rect', shape, style: { fill: parameterColour(look, api.value(0)), opacity: 0.75 } };
      } },
    { id: `limit ${i}`, type: 'line', ...at, silent: true, showSymbol: false, data: [[section.span[0], gib(total)], [section.span[1], gib(total)]],
      lineStyle: { color: look.muted, type: 'dashed', width: 1 } },
    { id: `short ${i}`, type: 'scatter', ...at, silent: true, symbol: kCross, symbolSize: 9, itemStyle: { color: look.oom },
      data: failures.map((time) => [time, gib(total)]) },
  ];
}

/** The first parameter of a job is solid and on the left axis, others are dashed and on the right one. */
function curveSeries(policy, axis, look) {
  return policy.curves.map((curve, i) => ({
    id: `curve ${i}`, name: curve.name, type: 'line', step: 'end', showSymbol: false, silent: true, connectNulls: false, data: lasting(curve.values), xAxisIndex: axis,
    yAxisIndex: axis + (curve.number > 0 ? 1 : 0), lineStyle: { color: parameterColour(look, curve.job), width: 1.8, type: curve.number > 0 ? 'dashed' : 'solid' } }));
}

/** A value holds until the next one, also where that says that the curve ends. */
const lasting = (values) => values.flatMap(([time, value], i) => (value === null && i > 0 ? [[time, values[i - 1][1]], [time, null]] : [[time, value]]));

function heldHover(section, policy, card, index) {
  const [job, from, to, low, high] = policy.held[card].boxes[index];
  const row = (name, value) => `<tr><td>${name}</td><td class="number">${value}</td></tr>`;
  const values = policy.curves.filter((curve) => curve.job === job).map((curve) => {
    const at = lastAtMost(curve.values, from);
    return row(escaped(curve.name.slice(section.jobs[job].length + 2)), at < 0 || curve.values[at][1] === null ? '–' : count(curve.values[at][1]));
  });
  return `<b>${escaped(section.jobs[job])}</b> on ${escaped(policy.cards[card])}<table>` + row('from', seconds(from)) + row('to', seconds(to)) +
    row('holds', bytes(high - low)) + row('card', bytes(policy.held[card].total)) + values.join('') + '</table>';
}

function options(section, policy, zoom, look, width) {
  const axis = axisLook(look);
  const { placed, counts, starts, rows, lane } = layout(policy);
  const left = Math.min(110, width * 0.22);
  const map = kTop + kWaiting + kGap;
  const grids = [{ outerBoundsMode: 'none', left, right: kRight, top: kTop, height: kWaiting }, { outerBoundsMode: 'none', left, right: kRight, top: map, height: rows * lane }];
  const panels = below(policy, map + rows * lane);
  const right = panels.parameters ? 62 : kRight;
  for (const grid of [...panels.held, panels.parameters].filter(Boolean)) grids.push({ outerBoundsMode: 'none', left, right, ...grid });
  for (const grid of grids) grid.right = right;
  const time = timeAxis(zoom.high - zoom.low);
  const bottom = grids.length - 1;
  const xAxis = grids.map((_, i) => ({ ...axis, type: 'value', gridIndex: i, min: zoom.low, max: zoom.high, interval: time.interval, splitLine: { show: i > 0, lineStyle: { color: look.grid } },
    axisLabel: { ...axis.axisLabel, show: i === bottom, showMaxLabel: false, formatter: (value) => time.axisLabel(value) }, axisTick: { show: i === bottom } }));
  const values = { ...axis, type: 'value', min: 0, splitNumber: 3, nameLocation: 'middle', nameGap: 34 };
  const moved = panels.held.map((_, i) => ({ ...values, gridIndex: 2 + i, name: 'GiB' }));
  if (panels.parameters) {
    moved.push({ ...values, gridIndex: bottom, name: policy.curves.find((curve) => curve.number === 0).parameter });
    moved.push({ ...values, gridIndex: bottom, position: 'right', splitLine: { show: false }, name: policy.curves.find((curve) => curve.number > 0)?.parameter ?? '' });
  }
  const most = Math.max(1, ...policy.waiting.map(([, number]) => number));
  const data = placed.map(([[job, card, from, to, , , ranOut], level]) => [from, to, starts[card] + level, job, ranOut ? 1 : 0]);
  return {
    backgroundColor: 'transparent',
    grid: grids,
    xAxis,
    yAxis: [
      { ...axis, type: 'value', gridIndex: 0, min: 0, max: most, interval: most, name: 'waiting', nameLocation: 'middle', nameGap: 30 },
      { ...axis, type: 'value', gridIndex: 1, min: 0, max: rows, inverse: true, show: false },
      ...moved,
    ],
    tooltip: { ...tooltipLook(look), trigger: 'item', formatter: ({ seriesId, dataIndex }) => (seriesId === 'stays' ? hover(section, policy, dataIndex)
      : seriesId.startsWith('held') ? heldHover(section, policy, Number(seriesId.slice(5)), dataIndex) : '') },
    dataZoom: zoomOf(zoom, grids.map((_, i) => i)),
    series: [
      { id: 'waiting', type: 'line', step: 'end', showSymbol: false, silent: true, data: policy.waiting, xAxisIndex: 0, yAxisIndex: 0,
        lineStyle: { color: look.retry, width: 1.6 }, areaStyle: { color: look.retry, opacity: 0.18 } },
      { id: 'cards', type: 'custom', xAxisIndex: 1, yAxisIndex: 1, silent: true, clip: false, data: starts.map((start, i) => [zoom.low, start, i]),
        renderItem: (params, api) => {
          const { x, width: across } = params.coordSys;
          const y = api.coord([zoom.low, api.value(1)])[1];
          const i = api.value(2);
          const height = counts[i] * lane;
          return { type: 'group', children: [
            { type: 'rect', shape: { x, y, width: across, height }, style: { fill: look.low, opacity: 0.6 } },
            { type: 'text', style: { text: policy.cards[i], x: x - 8, y: y + height / 2, textAlign: 'right', textVerticalAlign: 'middle',
                                     fill: look.muted, fontSize: 11, width: left - 14, overflow: 'truncate' },
              invisible: height + lane * 0.4 < 9 && i % Math.ceil(9 / (height + lane * 0.4)) !== 0 }] };
        } },
      { id: 'stays', type: 'custom', xAxisIndex: 1, yAxisIndex: 1, data, progressive: 0, encode: { x: [0, 1], y: 2 },
        renderItem: (params, api) => {
          const [x, y] = api.coord([api.value(0), api.value(2)]);
          const right = api.coord([api.value(1), 0])[0];
          const shape = clipToRectangle({ x, y: y + 1, width: Math.max(1.5, right - x - 1), height: lane - 2 }, params.coordSys);
          if (!shape) return undefined;
          const job = api.value(3);
          const ranOut = api.value(4) === 1;
          const children = [{ type: 'rect', shape: { ...shape, r: lane > 8 ? 2 : 0 },
            style: { fill: parameterColour(look, job), opacity: ranOut ? 0.35 : 0.75, stroke: ranOut ? look.oom : 'none', lineWidth: ranOut ? 2 : 0 } }];
          const name = `${ranOut ? '× ' : ''}${section.jobs[job]}`;
          if (lane >= 14 && shape.width > Math.min(60, 10 + 6 * name.length)) {  // of a shorter piece nobody can tell the job
            children.push({ type: 'text', style: { text: name, x: shape.x + 5, y: shape.y + shape.height / 2, textVerticalAlign: 'middle', fontSize: 10,
                                                   fill: ranOut ? look.text : look.raised, width: shape.width - 8, overflow: 'truncate' } });
          }
          return { type: 'group', children };
        } },
      ...panels.held.flatMap((_, i) => heldSeries(section, policy, i, 2 + i, look)),
      ...(panels.parameters ? curveSeries(policy, bottom, look) : []),
    ],
  };
}

function card(section, policy, zoom) {
  const { rows, lane } = layout(policy);
  const facts = `${count(policy.metrics.completed)} of ${count(policy.metrics.jobs)} jobs done in ${seconds(policy.metrics.makespan_s)}, ${count(policy.metrics.oom_kills)} killed for lack of memory`;
  const height = below(policy, kTop + kWaiting + kGap + rows * lane).bottom;
  const host = make('div', { class: 'chart', style: `height:${height + 34}px`, tabindex: '0', role: 'img',
    'aria-label': `${policy.label}: jobs on cards over time; ${facts}. Keys + and − zoom, arrows move, 0 shows all.`, onkeydown: (event) => zoom.key(event) });
  addChart(host, (look, width) => options(section, policy, zoom, look, width), (chart) => zoom.join(chart));
  const left = policy.omitted ? `; ${count(policy.omitted)} further stays are not drawn` : '';
  return make('figure', { class: 'wide' }, make('figcaption', {}, make('h3', {}, policy.label), make('p', {}, facts + left)), host);
}

function tunedCells(job) {
  const known = (value, text) => (value === null ? '–' : text(value));
  const point = (values) => Object.entries(values).map(([name, value]) => `${name} ${value}`).join(', ');
  return [known(job.promised, bytes), known(job.most_used, bytes), known(job.point, point), known(job.changes, count), known(job.failed_steps, count),
          known(job.samples, count)];
}

/** What became of each job, those that did not end well first where not all are there. */
function fates(policy) {
  const list = policy.jobs ?? [];
  const bad = policy.metrics.jobs - policy.metrics.completed;
  const left = policy.metrics.jobs - list.length;
  const tuned = list.some((job) => job.changes !== undefined);
  const heads = ['job', 'state', 'cards', 'submitted', 'started', 'ended', 'batch', 'kills',
                 ...(tuned ? ['promised', 'most used', 'ended at', 'changes', 'failed steps', 'samples'] : []), 'reason'];
  const time = (value) => (value === null ? '–' : seconds(value));
  const batch = (job) => (job.batch === null ? '–' : job.accumulation === 1 ? `${job.batch}` : `${job.batch} · ${job.accumulation}`);
  const cells = (job) => [job.state.replace('_', ' '), job.cards.join(' '), time(job.submitted_s), time(job.started_s), time(job.ended_s),
                          batch(job), `${job.kills}`, ...(tuned ? tunedCells(job) : [])];
  return make('details', { open: bad > 0 && list.length <= 24 },
    make('summary', {}, `What became of each job under ${policy.label}: ${bad > 0 ? `${count(bad)} of ${count(policy.metrics.jobs)} did not end well` : 'all done'}`
      + (left > 0 ? `; ${count(left)} further jobs are not listed` : '')),
    make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Jobs under ${policy.label}` },
      make('table', {}, make('thead', {}, make('tr', {}, ...heads.map((head) => make('th', { scope: 'col' }, head)))),
        make('tbody', {}, ...list.map((job) => make('tr', {}, make('th', { scope: 'row' }, job.name),
          ...cells(job).map((text) => make('td', {}, text)), make('td', { class: 'meaning' }, job.reason)))))));
}

export function jobs(section) {
  const rows = section.policies.map((policy) => ({ label: policy.label, metrics: policy.metrics, lost: policy.lost, best_in: policy.best_in }));
  const steered = section.policies.some((policy) => policy.curves) ? ['overruns', 'failed_steps', 'samples_per_s'] : [];
  const columns = [...kColumns, ...steered].map((name) => section.metrics.find((metric) => metric.name === name)).filter(Boolean);
  const [first, last] = section.span;
  const zoom = new Zoom(first < last / 10 ? 0 : first, last, 'second');
  return [metricsTable(rows, columns, 'Policies; ★ marks the best of a column, of those that finished'), allMetrics(rows, section.metrics),
          make('div', { class: 'tools' }, zoom.bar(), make('p', { class: 'hint' }, 'A bar is one job on one card, from its admission until its memory is back; a framed pale one with × ended in an OOM.'
            + (section.policies.some((policy) => policy.curves) ? ' Below: what each job holds of a card, × where memory was short, and the parameters of its tuner (first solid, left; others dashed, right).' : ''))),
          ...section.policies.flatMap((policy) => [card(section, policy, zoom), fates(policy)])];
}
