// How long the page of --report takes from navigation until its charts are drawn:
// node bench/report_page.mjs PROGRAM SOURCE_FOLDER [RUNS]
// Runs of 1,000,000 iterations in a fresh tab each time; the start of Chromium is not part of it. CPU time is that of
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
  const wall = await tab.evaluate(kDrawn);
  const { metrics } = await tab.send('Performance.getMetrics');
  await tab.close();
  return { wall: wall / 1000, cpu: metrics.find((one) => one.name === 'TaskDuration').value };
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const two = (value) => `${value.toFixed(2)} s`;

const browser = new Browser(chromium);
try {
  console.log('page of 1,000,000 iterations, window, size; best and median until drawn; median of CPU time; load');
  for (const [name, file] of [['blind-growth', page('blind-growth')], ['flip-flop, restless', page('flip-flop', kRestless)]]) {
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
