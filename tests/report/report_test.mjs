// Opens the report of each kind in headless Chromium: node report_test.mjs PROGRAM SOURCE_FOLDER
// No error on the console, no request to a network, every chart drawn, hover and zoom at work, keys too.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Browser, installed } from './browser.mjs';

const [program, source] = process.argv.slice(2);
const chromium = installed();
if (!chromium) skip('Chromium is not installed (scripts/setup installs it).');
const folder = mkdtempSync(join(tmpdir(), 'vramlab-report-'));

function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(77);
}

const scenario = (name) => join(source, 'scenarios', `${name}.json`);

/** Runs the program with --report; the name of the page. */
function report(name, ...words) {
  const file = join(folder, `${name}.html`);
  const ran = spawnSync(program, [...words, '--report', file], { encoding: 'utf8', cwd: folder });
  if (ran.stderr.includes('no chart library')) skip('this build has no page (scripts/setup, then build again).');
  assert.equal(ran.status, 0, ran.stderr);
  return file;
}

/** Whether every canvas has more on it than one colour. */
const kDrawn = `[...document.querySelectorAll('.chart canvas')].map((canvas) => {
  const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return new Set(pixels).size;
})`;
const kBegin = 'vramlabCharts.forEach((one) => one.begin())';
const kSpans = `vramlabCharts.map((one) => one.chart.getModel().getComponent('xAxis', 0).axis.scale.getExtent())`;

/** What every page must do. */
async function opens(browser, file, sections) {
  const page = await browser.page(1280, 900);
  await page.open(file);
  await page.evaluate(kBegin);
  await page.frame();
  assert.equal(await page.evaluate('document.documentElement.dataset.ready'), 'yes');
  assert.deepEqual(await page.evaluate(`[...document.querySelectorAll('h2')].map((one) => one.textContent)`), sections);
  const colours = await page.evaluate(kDrawn);
  assert.ok(colours.length > 0, 'no chart');
  for (const number of colours) assert.ok(number > 3, `a chart has ${number} colours`);
  assert.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, 'wider than the window');
  return page;
}

/** Moves the mouse over a point of chart `index`, given in the coordinates of its axes; what the chart says then. */
async function hover(page, index, finder, point) {
  const place = await page.evaluate(`(() => {
    const { host, chart } = vramlabCharts[${index}];
    host.scrollIntoView({ block: 'center' });
    const { left, top } = host.getBoundingClientRect();
    const [x, y] = chart.convertToPixel(${JSON.stringify(finder)}, ${JSON.stringify(point)});
    return { x: left + x, y: top + y };
  })()`);
  await page.frame();
  await page.mouse('mouseMoved', place.x - 3, place.y);
  await page.mouse('mouseMoved', place.x, place.y);
  return page.evaluate(`vramlabCharts[${index}].host.innerText`);
}

function done(page) {
  assert.deepEqual(page.errors, []);
  assert.deepEqual(page.requests.filter((url) => !url.startsWith('file:') && !url.startsWith('data:')), []);
  return page.close();
}

const near = (a, b) => assert.ok(Math.abs(a - b) <= 1, `${a} is not about ${b}`);

async function training(browser) {
  const file = report('ratchet', 'compare', scenario('ratchet'));
  assert.ok(statSync(file).size < 3 * 2 ** 20, `${statSync(file).size} bytes`);
  const page = await opens(browser, file, ['ratchet']);
  assert.equal(await page.evaluate('vramlabCharts.length'), 6);

  // The second policy, blind, runs out of memory at its first step: the mark says so, with the reason.
  const shown = await hover(page, 1, { xAxisIndex: 0, yAxisIndex: 0 }, [1, 6]);
  assert.match(shown, /peak allocated/);
  assert.match(shown, /OOM at/);
  assert.match(shown, /→/);

  const spans = () => page.evaluate(kSpans);
  near((await spans())[0][1], 900);
  await page.evaluate('vramlabCharts[2].host.focus()');
  await page.press('+');
  for (const [from, to] of await spans()) near(to - from, 449.5);  // all charts follow
  await page.press('ArrowLeft', 'ArrowLeft');
  near((await spans())[4][0], 113);
  await page.press('0', 'Digit0');
  near((await spans())[0][1] - (await spans())[0][0], 899);
  await page.evaluate(`(() => { const to = document.querySelectorAll('.zoom input')[1]; to.value = 100; to.dispatchEvent(new Event('change')); })()`);
  for (const [, to] of await spans()) near(to, 100);
  const box = await page.evaluate(`(() => { const { left, top } = vramlabCharts[2].host.getBoundingClientRect(); return { left, top }; })()`);
  await page.mouse('mouseWheel', box.left + 200, box.top + 80, { deltaX: 0, deltaY: -240, modifiers: 2 });
  const [[from, to], [otherFrom, otherTo]] = await spans();
  assert.ok(to - from < 95, `the wheel left ${to - from}`);
  near(from, otherFrom);
  near(to, otherTo);
  await done(page);
}

// What the dark look changes, and that paper gets the light one.
async function looks(browser) {
  const file = join(folder, 'ratchet.html');
  const page = await browser.page(420, 900, true);
  await page.open(file);
  const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
  assert.equal(await background(), 'rgb(17, 22, 29)');
  await page.evaluate(`document.querySelector('button.look').click()`);
  assert.equal(await background(), 'rgb(246, 247, 249)');
  assert.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true);
  const { data } = await page.send('Page.printToPDF', { printBackground: true });
  assert.ok(Buffer.from(data, 'base64').length > 20000, 'a page on paper');
  await done(page);
}

async function sweep(browser) {
  const text = JSON.parse(readFileSync(scenario('ratchet'), 'utf8'));
  text.workload = { ...text.workload, iterations: 60, model: join(source, 'models/superres-rrdb6.json') };
  text.policies = text.policies.slice(0, 1);
  delete text.expect;
  text.sweep = [{ vary: '/device/limit', over: ['10GiB', '12GiB', '14GiB'] }, { vary: '/workload/start/batch', from: 6, to: 9 }];
  const file = join(folder, 'sweep.json');
  writeFileSync(file, JSON.stringify(text));
  const page = await opens(browser, report('sweep', 'compare', file), ['ratchet']);
  assert.match(await hover(page, 0, { seriesIndex: 0 }, [1, 2]), /limit 12GiB, batch 8: regret/);
  await page.evaluate('vramlabCharts[0].host.focus()');
  await page.press('ArrowRight', 'ArrowRight');
  assert.match(await page.evaluate(`document.querySelector('.spoken').textContent`), /limit 12GiB, batch 6: regret/);
  await done(page);
}

async function memory(browser) {
  const recording = join(source, 'tests/data/recorded/resnet.pickle.gz');
  const page = await browser.page(1280, 900);
  await page.open(report('whatif', 'whatif', recording, '--alloc-conf', '', '--capacity', '80GiB'));
  await page.frame();
  const data = await section(page);
  const sum = (list) => list.reduce((total, value) => total + value, 0);
  // Categories add up to what is allocated, pins to what is idle, and blocks to every segment.
  assert.equal(sum(data.categories.map((one) => one.bytes)), data.categories_at.allocated_bytes);
  assert.equal(sum(data.pins.map((one) => one.bytes_held)), data.pins_at.idle_bytes);
  for (const segment of data.moment.segments) assert.equal(sum(segment.blocks.map(([bytes]) => bytes)), segment.bytes);
  assert.equal(sum(data.moment.segments.map((one) => one.bytes)), data.pins_at.reserved_bytes);
  assert.deepEqual(data.settings.rows.map((row) => row.cells[0]), ['(default)', 'planned']);
  const text = (selector) => page.evaluate(`[...document.querySelectorAll('${selector}')].map((one) => one.textContent)`);
  assert.deepEqual(await text('h3'), ['Over the history', 'Who holds it', 'Where it lies', 'Pins']);
  for (const number of await page.evaluate(kDrawn)) assert.ok(number > 3, `a chart has ${number} colours`);
  // The time line zooms by keys, the map tells its blocks one after the other.
  await page.evaluate(`document.querySelector('.chart').focus()`);
  await page.press('+');
  const [from, to] = await page.evaluate(`[...document.querySelectorAll('.zoom input')].map((one) => Number(one.value))`);
  near(to - from, data.timeline.x.at(-1) / 2);
  await page.evaluate(`document.querySelector('canvas.map').focus()`);
  await page.press('ArrowRight');
  assert.match((await text('.under'))[1], /^(idle|weights|[a-z ]+), .* at 0x[0-9a-f]+/);
  // The button of a row shows its address space: any cell of the map, with its entries and addresses.
  await page.evaluate(`document.querySelector('th button').click()`);
  await page.evaluate(kBegin);
  await page.frame();
  const [first, last, low, high] = data.settings.rows[0].map.cells
    .reduce((best, cell) => ((cell[1] - cell[0]) * (cell[3] - cell[2]) > (best[1] - best[0]) * (best[3] - best[2]) ? cell : best));
  assert.match(await hover(page, 0, { xAxisIndex: 1, yAxisIndex: 1 }, [(first + last) / 2, (low + high) / 2]), /0x[0-9a-f]+ to 0x[0-9a-f]+/);
  assert.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, 'wider than the window');
  await done(page);
}

// A recording that ran out of memory shows its failures, with the names of the columns; a page of one card names it once.
async function failures(browser) {
  const page = await browser.page(420, 900);
  await page.open(report('failed', 'whatif', join(source, 'tests/data/recorded/sr_limits.pickle.gz'), '--alloc-conf', ''));
  const { failures: { columns }, settings } = await section(page);
  const heads = await page.evaluate(`[...document.querySelectorAll('.part:last-child thead th')].map((one) => one.textContent)`);
  assert.deepEqual(heads, columns.map((column) => column.name));
  assert.equal(await page.evaluate(`document.body.innerText.includes('[object')`), false);
  assert.equal(settings.columns.some(({ name }) => name === 'card'), false);
  assert.match(settings.caption, /^Settings, as recorded/);
  assert.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, 'wider than the window');
  await done(page);
}

/** The data that section `number` of the page draws. */
const section = (page, number = 0) =>
  page.evaluate(`JSON.parse(document.getElementById('data').textContent).sections[${number}]`);

/** What marks ([first, last, count, ...]) stand for in all. */
const total = (marks) => marks.reduce((sum, mark) => sum + mark[2], 0);

/** Keys in chart `index` change what all charts show: + halves it, 0 shows all again. */
async function zooms(page, index, followers = undefined) {
  const spans = async () => (await page.evaluate(kSpans)).map(([from, to]) => to - from);
  const whole = (await spans())[index];
  const least = Math.min(4, whole);
  await page.evaluate(`vramlabCharts[${index}].host.focus()`);
  await page.press('+');
  const zoomed = await spans();
  for (const i of followers ?? zoomed.keys()) near(zoomed[i] / Math.max(whole / 2, least) * 100, 100);
  await page.press('0', 'Digit0');
  near((await spans())[index] / whole * 100, 100);
}

// Every OOM of the queue is a bar that says so, whatever else is left out.
async function jobs(browser) {
  const file = report('jobs', 'compare', scenario('queue-mixed-day'), '--json', join(folder, 'jobs.json'));
  const page = await opens(browser, file, ['queue-mixed-day']);
  const result = JSON.parse(readFileSync(join(folder, 'jobs.json'), 'utf8'));
  const { policies, jobs: names } = await section(page);
  assert.equal(policies.length, result.policies.length);
  policies.forEach((policy, i) => {
    const killed = new Set(policy.stays.filter((stay) => stay[6]).map((stay) => `${stay[0]} ${stay[2]}`));
    assert.equal(killed.size, result.policies[i].metrics.oom_kills, policy.label);
  });
  const [from, to, row, job] = await page.evaluate(`vramlabCharts[0].chart.getOption().series.find((one) => one.id === 'stays').data
    .reduce((best, one) => (one[1] - one[0] > best[1] - best[0] ? one : best))`);
  const shown = await hover(page, 0, { xAxisIndex: 1, yAxisIndex: 1 }, [(from + to) / 2, row + 0.5]);
  assert.ok(shown.includes(names[job]), shown);
  assert.match(shown, /promised/);
  await zooms(page, 1);
  // no-admission is through first because it lost 153 jobs: its row says so, and no star is in it.
  const marks = await page.evaluate(`[...document.querySelectorAll('.scroll table')[0].tBodies[0].rows].map((row) =>
    [row.querySelector('.lost') !== null, row.querySelectorAll('.star').length])`);
  assert.deepEqual(marks.map(([lost]) => lost), policies.map((policy) => policy.metrics.finished !== 1));
  for (const [lost, stars] of marks) assert.ok(!lost || stars === 0, 'a star in a row that lost jobs');
  assert.ok(marks.some(([lost]) => lost) && marks.some(([, stars]) => stars > 0));
  await done(page);
}

// What jobs held of the card lies above its bars' axis, and says which parameters they ran at.
async function moves(browser) {
  const page = await opens(browser, report('moves', 'compare', scenario('queue-tuners')), ['queue-tuners']);
  const { policies } = await section(page);
  const [together] = policies;
  assert.equal(together.held[0].failures.length, together.metrics.failed_steps);
  const shown = await hover(page, 0, { xAxisIndex: 2, yAxisIndex: 2 }, [60, 5]);
  assert.match(shown, /first on card 0[^]*holds[^]*batch[^]*lq/);
  await zooms(page, 2);
  await done(page);
}

async function epoch(browser) {
  const file = report('epoch', 'compare', scenario('epoch-mixed-tasks'), '--json', join(folder, 'epoch.json'));
  const page = await opens(browser, file, ['epoch-mixed-tasks']);
  const result = JSON.parse(readFileSync(join(folder, 'epoch.json'), 'utf8'));
  const { policies } = await section(page);
  policies.forEach((policy, i) => assert.equal(total(policy.ooms), result.policies[i].metrics.ooms, policy.label));
  assert.match(await hover(page, 0, { xAxisIndex: 0, yAxisIndex: 0 }, [20, 6]), /batch 20[^]*peak allocated[^]*samples/);
  await zooms(page, 0);
  await done(page);
}

// Each trial is a step of the ladder; find-batch shows one searcher, compare all of them.
async function search(browser) {
  const one = await opens(browser, report('find', 'find-batch', scenario('find-gpt2')), ['find-gpt2']);
  assert.equal(await one.evaluate('vramlabCharts.length'), 1);
  await done(one);
  const page = await opens(browser, report('search', 'compare', scenario('find-gpt2')), ['find-gpt2']);
  const { policies } = await section(page);
  assert.ok(policies.length > 1);
  const { batch } = policies[0].trials[1];
  assert.match(await hover(page, 0, { xAxisIndex: 0, yAxisIndex: 0 }, [2, batch]), new RegExp(`trial 2: batch ${batch}[^]*peak`));
  await zooms(page, 0);
  await done(page);
}

async function snapshot(browser) {
  const rows = ['default', 'expandable', 'max_split 512'];
  const page = await opens(browser, report('snapshot', 'compare', scenario('allocator/k1-22-small-first')),
                           rows.map((row) => `k1-22-small-first, ${row}`));
  await zooms(page, 0, [0]);
  await done(page);
}

// A million steps, of which every second fails and every one changes the batch: all are in the marks, the highest step
// keeps its height, and the page stays small.
async function long(browser) {
  const text = JSON.parse(readFileSync(scenario('flip-flop'), 'utf8'));
  text.workload.iterations = 1000000;
  text.policies = [{ use: 'threshold-step', step: 4, adjustment_frequency: 1, label: 'rule' }];
  delete text.expect;
  const file = join(folder, 'long.json');
  writeFileSync(file, JSON.stringify(text));
  const made = report('long', 'compare', file, '--json', join(folder, 'long-result.json'));
  const { metrics } = JSON.parse(readFileSync(join(folder, 'long-result.json'), 'utf8')).policies[0];
  assert.equal(metrics.iterations, 1000000);
  assert.equal(metrics.ooms, 500000);
  assert.ok(statSync(made).size < 3 * 2 ** 20, `${statSync(made).size} bytes`);
  const page = await opens(browser, made, ['flip-flop']);
  const { policies: [policy], total: memory } = await section(page);
  assert.ok(policy.allocated.length <= 4001, `${policy.allocated.length} points`);
  for (const kind of ['ooms', 'retries', 'changes']) assert.ok(policy[kind].length <= 8000, `${policy[kind].length} ${kind}`);
  assert.equal(total(policy.ooms), metrics.ooms);
  assert.equal(total(policy.retries), metrics.alloc_retries);
  assert.equal(total(policy.changes), metrics.adjustments);
  near(Math.max(...policy.allocated.map((point) => point[1])) / memory * 1e6, metrics.peak_allocated_ratio * 1e6);
  // From 8 to 12 and back: half of the changes of a mark are growth.
  assert.ok(policy.changes.every(([, , number, grown]) => Math.abs(grown - number / 2) <= 0.5));
  const shown = await hover(page, 0, { xAxisIndex: 0, yAxisIndex: 0 }, [500000, 6]);
  assert.match(shown, /OOM [\d\u202f]+, from 4[89]\d\u202f\d{3} to 5[01]\d\u202f\d{3}/);
  assert.match(shown, /◆ [^:]+: 125 changes \((8|12)\) → \((8|12)\)/);
  await zooms(page, 0);
  await done(page);
}

const browser = new Browser(chromium);
try {
  for (const test of [training, looks, jobs, moves, epoch, search, sweep, memory, failures, snapshot, long]) {
    await test(browser);
    console.log(`ok ${test.name}`);
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
