// Runs side by side, step by step or batch by batch: memory against target band and limit, what happened, and the
// parameters.
import { addChart } from './charts.js';
import { axisLook, bytes, count, escaped, gib, lastAtMost, make, parameterColour, tooltipLook } from './look.js';
import { allMetrics, metricsTable } from './table.js';
import { Zoom, zoomOf } from './zoom.js';

const kCross = 'path://M2,0 L5,3 L8,0 L10,2 L7,5 L10,8 L8,10 L5,7 L2,10 L0,8 L3,5 L0,2 Z';
const kUp = 'triangle';
const kDown = 'path://M0,0 L10,0 L5,9 Z';
const kBoth = 'diamond';
const kPixelsApart = 7;   // marks closer than this become one, which says how many it stands for
const kMostReasons = 6;   // in one hover box

const kTop = 10;
const kMemory = 190;
const kLanes = 54;
const kStrip = 56;
const kGap = 14;
const kLeft = 66;
const kRight = 14;

/**
 * Marks of one kind ([first, last, count, ...]) in the stretch shown, those that would cover each other as one: where it
 * begins and ends, how much it stands for, and how much of that is growth.
 */
function grouped(marks, zoom, width) {
  const apart = (zoom.to - zoom.from) / Math.max(1, width) * kPixelsApart;
  const groups = [];
  for (let i = Math.max(0, lastAtMost(marks, zoom.from - apart)); i < marks.length; ++i) {
    const [first, last, number, grown] = marks[i];
    if (last < zoom.from - apart) continue;
    if (first > zoom.to + apart) break;
    const group = groups.at(-1);
    if (group && first - group.from < apart) {
      group.to = last;
      group.count += number;
      group.grown += grown;
    } else {
      groups.push({ from: first, to: last, count: number, grown });
    }
  }
  return groups;
}

const size = (group) => (group.count === 1 ? 8 : group.count < 10 ? 10 : 12);
const changeSymbol = (group) => (group.grown === group.count ? kUp : group.grown === 0 ? kDown : kBoth);

function points(policy, lanes, zoom, width) {
  const ooms = grouped(policy.ooms, zoom, width);
  const retries = grouped(policy.retries, zoom, width);
  const changes = grouped(policy.changes, zoom, width);
  const middle = ({ from, to }) => (Math.max(from, Math.min(to, zoom.from)) + Math.min(to, Math.max(from, zoom.to))) / 2;  // of what is shown
  return {
    atLimit: ooms.map((group) => ({ value: [middle(group), gib(limitAt(policy, group.from))], symbolSize: 9 })),
    ooms: ooms.map((group) => ({ value: [middle(group), lanes - 1], symbolSize: size(group) })),
    retries: retries.map((group) => ({ value: [middle(group), 1], symbolSize: size(group) - 1 })),
    changes: changes.map((group) => ({ value: [middle(group), 0], symbolSize: size(group), symbol: changeSymbol(group) })),
    oversize: grouped(policy.oversize, zoom, width).map((group) => ({ value: [middle(group), lanes - 2], symbolSize: size(group) })),
  };
}

const limitAt = (policy, at) => policy.limit[Math.max(0, lastAtMost(policy.limit, at))]?.[1] ?? 0;

// Where one point stands for many iterations, both ends of what they had.
function valueAt(curve, at, stride, format) {
  const last = lastAtMost(curve, at);
  if (last < 0) return '–';
  if (stride === 1) return format(curve[last][1]);
  let low = curve[last][1];
  let high = low;
  for (let i = Math.max(0, lastAtMost(curve, at - stride)); i < curve.length && curve[i][0] <= at + stride; ++i) {
    low = Math.min(low, curve[i][1]);
    high = Math.max(high, curve[i][1]);
  }
  return low === high ? format(low) : `${format(low)} to ${format(high)}`;
}

/** The marks that lie within `apart` of `at`. */
function near(marks, at, apart) {
  const found = [];
  for (let i = Math.max(0, lastAtMost(marks, at - apart)); i < marks.length && marks[i][0] <= at + apart; ++i) {
    if (marks[i][1] >= at - apart) found.push(marks[i]);
  }
  return found;
}

const total = (marks) => marks.reduce((sum, mark) => sum + mark[2], 0);
const place = (first, last) => (first === last ? count(first) : `${count(first)} to ${count(last)}`);

function changeLine([first, last, number, grown, from, to, reason]) {
  const sign = grown === number ? '▲' : grown === 0 ? '▼' : '◆';
  const what = number === 1 ? '' : ` ${count(number)} changes`;
  const why = reason ?? `${count(grown)} up, ${count(number - grown)} down; the trace has each reason (vramlab run --trace)`;
  return `<p class="change">${sign} ${place(first, last)}:${what} (${from.join(', ')}) → (${to.join(', ')})<br><span>${escaped(why)}</span></p>`;
}

function hover(section, policy, zoom, width, at) {
  const iteration = Math.round(at);
  const apart = Math.max(0.5, (zoom.to - zoom.from) / Math.max(1, width) * kPixelsApart);
  const row = (name, value) => `<tr><td>${escaped(name)}</td><td class="number">${value}</td></tr>`;
  let html = `<b>${escaped(policy.label)}, ${section.unit} ${count(iteration)}</b><table>`;
  html += row('peak allocated', valueAt(policy.allocated, iteration, policy.stride, bytes));
  if (policy.predicted.length) html += row('predicted', valueAt(policy.predicted, iteration, policy.stride, bytes));
  if (policy.budget.length) html += row('budget', valueAt(policy.budget, iteration, policy.stride, bytes));
  html += row('reserved', valueAt(policy.reserved, iteration, policy.stride, bytes));
  html += row('limit', bytes(limitAt(policy, iteration)));
  section.parameters.forEach((name, i) => {
    html += row(name, valueAt(policy.points[i], iteration, policy.stride, count));
  });
  html += '</table>';
  const ooms = near(policy.ooms, at, apart);
  const retries = near(policy.retries, at, apart);
  const changes = near(policy.changes, at, apart);
  const oversize = near(policy.oversize, at, apart);
  const span = (marks) => {
    const [first, last, number] = [marks[0][0], marks.at(-1)[1], total(marks)];
    return first === last && number === 1 ? `at ${count(first)}` : `${count(number)}, ${first === last ? 'at' : 'from'} ${place(first, last)}`;
  };
  if (ooms.length) html += `<p class="oom">× OOM ${span(ooms)}</p>`;
  if (retries.length) html += `<p class="retry">○ retry ${span(retries)}</p>`;
  html += changes.slice(0, kMostReasons).map(changeLine).join('');
  if (oversize.length) html += `<p class="change">◆ one sample over budget ${span(oversize)}</p>`;
  if (changes.length > kMostReasons) html += `<p>and ${count(total(changes.slice(kMostReasons)))} more changes; zoom in</p>`;
  return html;
}

function options(section, policy, zoom, look, width) {
  const axis = axisLook(look);
  const inner = width - kLeft - kRight;
  const strips = section.parameters.map((_, i) => kTop + kMemory + kGap + kLanes + kGap + i * (kStrip + kGap));
  const grids = [{ top: kTop, height: kMemory }, { top: kTop + kMemory + kGap, height: kLanes },
                 ...strips.map((top) => ({ top, height: kStrip }))].map((grid) => ({ left: kLeft, right: kRight, outerBoundsMode: 'none', ...grid }));
  const all = grids.map((_, i) => i);
  const last = grids.length - 1;
  const xAxis = all.map((i) => ({
    ...axis, type: 'value', gridIndex: i, min: zoom.low, max: zoom.high, splitLine: { show: false },
    axisLabel: { ...axis.axisLabel, show: i === last, formatter: (value) => (Number.isInteger(value) ? count(value) : '') },
    axisTick: { ...axis.axisTick, show: i === last },
    axisPointer: { show: true, label: { show: false }, lineStyle: { color: look.muted } },
  }));
  const highest = section.parameters.map((_, i) => section.policies.reduce(
    (high, one) => one.points[i].reduce((best, point) => Math.max(best, point[1]), high), 1));
  const yAxis = [
    { ...axis, type: 'value', gridIndex: 0, min: 0, max: gib(section.top), name: 'GiB', nameGap: 46, nameLocation: 'middle',
      axisLabel: { ...axis.axisLabel, formatter: (value) => +value.toFixed(2), showMaxLabel: false } },
    { ...axis, type: 'category', gridIndex: 1, data: section.lanes, axisTick: { show: false },
      splitLine: { show: false }, axisLabel: { color: look.muted, fontSize: 11, interval: 0 } },
    ...section.parameters.map((name, i) => ({ ...axis, type: 'value', gridIndex: i + 2, min: 0, max: highest[i] * 1.1,
      name, nameLocation: 'middle', nameGap: 46, interval: highest[i], axisLabel: { ...axis.axisLabel, showMaxLabel: false, formatter: count } })),
  ];
  const line = (id, grid, data, colour, more = {}) => ({
    id, type: 'line', xAxisIndex: grid, yAxisIndex: grid, data, showSymbol: false, silent: true,
    lineStyle: { color: colour, width: 1.6, ...more.lineStyle }, itemStyle: { color: colour }, ...more.series });
  const marks = points(policy, section.lanes.length, zoom, inner);
  const scatter = (id, grid, data, symbol, itemStyle) => ({
    id, type: 'scatter', xAxisIndex: grid, yAxisIndex: grid, data, symbol, itemStyle, silent: true, z: 5 });
  return {
    backgroundColor: 'transparent',
    grid: grids,
    xAxis,
    yAxis,
    axisPointer: { link: [{ xAxisIndex: 'all' }] },
    tooltip: { trigger: 'axis', ...tooltipLook(look),
               formatter: (shown) => hover(section, policy, zoom, inner, shown[0].axisValue) },
    dataZoom: zoomOf(zoom, all),
    series: [
      line('reserved', 0, policy.reserved.map(([x, y]) => [x, gib(y)]), look.reserved),
      { ...line('allocated', 0, policy.allocated.map(([x, y]) => [x, gib(y)]), look.allocated),
        markArea: section.band ? { silent: true, itemStyle: { color: look.band }, data: [[
          { yAxis: gib(section.band[0] * section.total) }, { yAxis: gib(section.band[1] * section.total) }]] } : undefined },
      line('predicted', 0, policy.predicted.map(([x, y]) => [x, gib(y)]), look.change, { lineStyle: { type: [2, 3], width: 1.2 } }),
      line('budget', 0, policy.budget.map(([x, y]) => [x, gib(y)]), look.retry, { lineStyle: { width: 1.2 }, series: { step: 'end' } }),
      line('limit', 0, policy.limit.map(([x, y]) => [x, gib(y)]), look.limit,
           { lineStyle: { type: [6, 4], width: 1.2 }, series: { step: 'end' } }),
      scatter('at-limit', 0, marks.atLimit, kCross, { color: look.oom }),
      scatter('ooms', 1, marks.ooms, kCross, { color: look.oom }),
      scatter('retries', 1, marks.retries, 'circle', { color: 'transparent', borderColor: look.retry, borderWidth: 1.6 }),
      scatter('changes', 1, marks.changes, kUp, { color: look.change }),
      scatter('oversize', 1, marks.oversize, kBoth, { color: look.change }),
      ...section.parameters.map((_, i) => line(`parameter-${i}`, i + 2, policy.points[i], parameterColour(look, i),
                                                { series: { step: 'end' } })),
    ],
  };
}

const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

function facts(section, policy) {
  const last = policy.final ? `ends at ${section.parameters.map((name, i) => `${name} ${policy.final[i]}`).join(', ')}; ` : '';
  const events = [plural(total(policy.ooms), 'OOM')];
  events.push(policy.final ? plural(total(policy.changes), 'change') : plural(policy.metrics.batches ?? 0, 'batch', 'batches'));
  return `${last}${events.join(', ')}${policy.ended_early ? `; ended early: ${policy.ended_early}` : ''}`;
}

function card(section, policy, zoom) {
  const height = kTop + kMemory + kGap + kLanes + section.parameters.length * (kStrip + kGap) + 34;
  const host = make('div', { class: 'chart', style: `height:${height}px`, tabindex: '0', role: 'img',
                             'aria-label': `${policy.label}: memory, events and parameters over ${section.units}; ${facts(section, policy)}. Keys + and − zoom, arrows move, 0 shows all.`,
                             onkeydown: (event) => zoom.key(event) });
  addChart(host, (look, width) => options(section, policy, zoom, look, width), (chart) => {
    zoom.join(chart);
    zoom.listeners.push(() => {
      const marks = points(policy, section.lanes.length, zoom, chart.getWidth() - kLeft - kRight);
      chart.setOption({ series: [{ id: 'at-limit', data: marks.atLimit }, { id: 'ooms', data: marks.ooms },
                                 { id: 'retries', data: marks.retries }, { id: 'changes', data: marks.changes },
                                 { id: 'oversize', data: marks.oversize }] });
    });
  });
  return make('figure', { class: policy.reference ? 'card reference' : 'card' },
              make('figcaption', {}, make('h3', {}, policy.label, policy.reference ? make('small', {}, 'best safe fixed choice') : null),
                   make('p', {}, facts(section, policy))), host);
}

/** One entry of a legend: a sign drawn as in the charts, and its name. */
function sign(svg, name) {
  const image = make('span', { class: 'sign', 'aria-hidden': 'true' });
  image.innerHTML = `<svg viewBox="0 0 26 12" width="26" height="12">${svg}</svg>`;
  return make('li', {}, image, name);
}

function legend(section) {
  const stroke = (name, more = '') => `<path d="M1 6H25" stroke="var(--${name})" stroke-width="2" ${more}/>`;
  const tuned = section.policies.some((policy) => policy.budget.length || policy.changes.length);
  return make('ul', { class: 'legend' },
    sign(stroke('allocated'), `peak allocated in the ${section.step}`), sign(stroke('reserved'), 'reserved'),
    sign(stroke('limit', 'stroke-dasharray="6 4"'), 'limit'),
    section.band ? sign('<rect x="1" y="1" width="24" height="10" fill="var(--band)"/>', 'target band') : null,
    sign('<path transform="translate(8 1)" d="M2,0 L5,3 L8,0 L10,2 L7,5 L10,8 L8,10 L5,7 L2,10 L0,8 L3,5 L0,2 Z" fill="var(--oom)"/>', 'OOM'),
    ...(section.lanes.includes('retries') ? [
      sign('<circle cx="13" cy="6" r="4" fill="none" stroke="var(--retry)" stroke-width="1.6"/>', 'retry'),
      sign('<path d="M2 10L7 1L12 10Z M14 2H24L19 11Z" fill="var(--change)"/>', 'parameters grow, shrink')] : [
      sign(stroke('change', 'stroke-dasharray="2 3"'), 'predicted peak'),
      sign('<path d="M13 1L18 6L13 11L8 6Z" fill="var(--change)"/>', 'one sample, predicted over budget'),
      tuned ? sign(stroke('retry'), 'budget that a tuner moves') : null]));
}

const kTrainingColumns = ['peak_allocated_ratio', 'mean_peak_ratio', 'peak_reserved_ratio', 'ooms', 'alloc_retries', 'adjustments',
                          'direction_changes', 'samples_per_s', 'pixels_per_s', 'regret'];
const kEpochColumns = ['ooms', 'untrained_samples', 'batches', 'samples_per_s', 'budget_use', 'peak_allocated_ratio',
                       'peak_reserved_ratio', 'padding_share', 'predictor_error', 'predictor_unsafe_share', 'task_share'];

function view(section, names) {
  section.top = 1.06 * section.policies.reduce((top, policy) => [policy.reserved, policy.allocated, policy.predicted, policy.limit].reduce(
    (high, curve) => curve.reduce((best, point) => Math.max(best, point[1]), high), top), section.total);
  const rows = section.policies.map((policy) => ({ label: policy.label, metrics: policy.metrics, reference: policy.reference, lost: policy.lost, best_in: policy.best_in,
    note: policy.final ? section.parameters.map((name, i) => `${name} ${policy.final[i]}`).join(', ') : null }));
  const columns = names.map((name) => section.metrics.find((metric) => metric.name === name))
                       .filter((metric) => metric && rows.some((row) => metric.name in row.metrics));
  const zoom = new Zoom(1, Math.max(2, section.iterations), section.unit, section.units);
  const longest = Math.max(...section.policies.map((policy) => policy.stride));
  return [
    metricsTable(rows, columns, 'Policies; ★ marks the best of a column, of those that finished'),
    allMetrics(rows, section.metrics),
    make('div', { class: 'tools' }, zoom.bar(), legend(section)),
    longest > 1 ? make('p', { class: 'hint' }, `A point of a curve stands for up to ${count(longest)} ${section.units}, with their lowest and highest figure; marks are all there, and those that lie close say how many they are.`) : null,
    make('div', { class: 'cards' }, ...section.policies.map((policy) => card(section, policy, zoom))),
  ];
}

export function training(section) {
  Object.assign(section, { unit: 'iteration', units: 'iterations', step: 'step', lanes: ['changes', 'retries', 'OOMs'] });
  for (const policy of section.policies) Object.assign(policy, { predicted: [], oversize: [], budget: [] });
  return view(section, kTrainingColumns);
}

/** Batches of epochs: each was predicted, and a tuner may move their budget. */
export function epoch(section) {
  const tuned = section.policies.some((policy) => policy.changes.length);
  Object.assign(section, { unit: 'batch', units: 'batches', step: 'batch',
                           lanes: tuned ? ['changes', 'oversize', 'OOMs'] : ['oversize', 'OOMs'] });
  for (const policy of section.policies) Object.assign(policy, { budget: [], ...policy, retries: [] });
  return view(section, kEpochColumns);
}
