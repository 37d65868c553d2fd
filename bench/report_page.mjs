// How long the page of --report takes from navigation until its charts are drawn:
// node bench/report_page.mjs PROGRAM SOURCE_FOLDER [RUNS]
// Runs of 1,000,000 iterations, and whatif of a program of 1,000,000 actions, in a fresh tab each time; the start of Chromium is not part of it. CPU time is that of
// the page's main thread, which other load on the machine moves less than the time on the clock.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Browser, installed } from '../tests/report/browser.mjs';

const [program, source, runs = '15'] = process.argv.slice(2);
const chromium = installed();
assert.ok(program && source, 'node bench/report_page.mjs PROGRAM SOURCE_FOLDER [RUNS]');
assert.ok(chromium, 'Chromium is not installed (scripts/setup installs it).');
const folder = mkdtempSync(join(tmpdir(), 'vramlab-page-'));

/** A page of the scenario `name`, a million iterations long. */
function page(name, policies = undefined) {
  const scenario = JSON.parse(readFileSync(join(source, 'scenarios', `${name}.json`), 'utf8'));
  const { model } = scenario.workload;
  scenario.workload.iterations = 1000000;
  if (typeof model === 'string') scenario.workload.model = join(source, model);
  scenario.policies = policies ?? scenario.policies;
  delete scenario.expect;
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(scenario));
  const file = join(folder, `${name}.html`);
  const ran = spawnSync(program, ['compare', join(folder, `${name}.json`), '--report', file], { encoding: 'utf8' });
  assert.equal(ran.status, 0, ran.stderr);
  return file;
}

// Every step fails or follows one that did, and every one changes the parameters; or a tenth of them do.
const kRestless = [1, 10].map((every) => ({ use: 'threshold-step', step: 4, adjustment_frequency: every, label: `every ${every}` }));

/** A page of whatif: training in steps of 1,000 actions, written as an allocation script. */
function whatifPage() {
  const lines = ['op,id,bytes,stream,pool,text'];
  const kept = [];
  let id = 0;
  const alloc = (bytes) => { lines.push(`alloc,${id},${bytes}`); return id++; };
  for (let layer = 0; layer < 100; ++layer) alloc(65536 + 37888 * layer);
  for (let step = 0; lines.length < 1000000; ++step) {
    const scale = 40000 + 3000 * (step * 7 % 13);
    const saved = [];
    for (let layer = 0; layer < 100; ++layer) {
      saved.push(alloc(scale), alloc(2 * scale));
      lines.push(`free,${alloc(4 * scale)}`);
    }
    for (const block of kept.splice(0)) lines.push(`free,${block}`);
    for (let layer = 99; layer >= 0; --layer) {
      kept.push(alloc(65536 + 37888 * layer));
      lines.push(`free,${saved.pop()}`, `free,${saved.pop()}`);
    }
    lines.push(`mark,,,,,step ${step}`);
  }
  writeFileSync(join(folder, 'million.csv'), lines.join('\n') + '\n');
  const file = join(folder, 'million.html');
  const ran = spawnSync(program, ['whatif', join(folder, 'million.csv'), '--report', file], { encoding: 'utf8', maxBuffer: 2 ** 26 });
  assert.equal(ran.status, 0, ran.stderr);
  return file;
}

const kWhatifDrawn = `new Promise((done) => {
  const look = () => {
    const drawn = document.documentElement?.dataset.ready && document.querySelector('.uplot canvas') && document.querySelector('canvas.map')?.width > 0;
    requestAnimationFrame(drawn ? () => requestAnimationFrame(() => done(performance.now())) : look);
  };
  look();
})`;

const kDrawn = `new Promise((done) => {
  const look = () => {
    const begun = document.documentElement?.dataset.ready ? vramlabCharts.filter((one) => one.chart) : [];
    if (begun.length && begun.every((one) => one.drawn)) done(Math.max(...begun.map((one) => one.drawn)));
    else requestAnimationFrame(look);
  };
  look();
})`;

async function opened(browser, file, width, height) {
  const tab = await browser.page(width, height);
  await tab.send('Performance.enable', { timeDomain: 'threadTicks' });
  await tab.send('Page.navigate', { url: `file://${file}` });
  const wall = await tab.evaluate(file.endsWith('million.html') ? kWhatifDrawn : kDrawn);
  const { metrics } = await tab.send('Performance.getMetrics');
  await tab.close();
  return { wall: wall / 1000, cpu: metrics.find((one) => one.name === 'TaskDuration').value };
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const two = (value) => `${value.toFixed(2)} s`;

const browser = new Browser(chromium);
try {
  console.log('page of 1,000,000 iterations, window, size; best and median until drawn; median of CPU time; load');
  for (const [name, file] of [['whatif', whatifPage()], ['blind-growth', page('blind-growth')], ['flip-flop, restless', page('flip-flop', kRestless)]]) {
    for (const [width, height] of [[1280, 900], [420, 900]]) {
      const times = [];
      for (let i = 0; i < Number(runs); ++i) times.push(await opened(browser, file, width, height));
      const walls = times.map((one) => one.wall);
      console.log(`${name}, ${width} x ${height}, ${(statSync(file).size / 2 ** 20).toFixed(1)} MiB: ${two(Math.min(...walls))}, ` +
                  `${two(median(walls))}; ${two(median(times.map((one) => one.cpu)))}; ${loadavg()[0].toFixed(1)}`);
    }
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
