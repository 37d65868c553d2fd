// What the page of scripts/build-web takes for a large recording, beside the native program:
// node bench/web_page.mjs PROGRAM LARGE_SNAPSHOT [SIZE [RUNS [PAGE]]]
// LARGE_SNAPSHOT is bench/large_snapshot. One thread each; the start of Chromium is not part of it. Memory is the most
// that the process of the tab had resident, with WebAssembly pages, JavaScript heap and the browser's own. Beside the time
// on the clock stands that of the processor (CPU), which other load moves less; the longest task has both, too.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Browser, installed } from '../tests/report/browser.mjs';

const [given, writer, size = '1GiB', runs = '3', page = join(dirname(fileURLToPath(import.meta.url)), '../build/web/vramlab.html')] = process.argv.slice(2);
const chromium = installed();
assert.ok(given && writer, 'node bench/web_page.mjs PROGRAM LARGE_SNAPSHOT [SIZE [RUNS [PAGE]]]');
assert.ok(chromium, 'Chromium is not installed (scripts/setup installs it).');
const program = resolve(given);
const folder = mkdtempSync(join(tmpdir(), 'vramlab-page-'));
const file = join(folder, 'large.pickle');
const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;
const mib = (bytes) => `${Math.round(bytes / 2 ** 20)} MiB`;

const kWatch = `
  globalThis.longTasks = [];
  new PerformanceObserver((list) => list.getEntries().forEach((one) => longTasks.push(one.duration))).observe({ entryTypes: ['longtask'] });
  globalThis.steps = {};
  const step = (name, is) => { if (!(name in steps) && is()) steps[name] = performance.now() - begun; };
  globalThis.begun = performance.now();
  const look = () => {
    step('first', () => document.querySelector('.work canvas'));
    step('answered', () => document.querySelector('#answers h2'));
    step('all', () => document.documentElement.dataset.state === 'answered');
    setTimeout(look, 20);
  };
  look();`;

/** The most that the processes of tabs had resident, in bytes. */
async function resident(browser) {
  const { processInfo } = await browser.send('SystemInfo.getProcessInfo');
  const most = ({ id }) => 1024 * Number(readFileSync(`/proc/${id}/status`, 'utf8').match(/VmHWM:\s+(\d+)/)?.[1] ?? 0);
  return Math.max(...processInfo.filter(({ type }) => type === 'renderer').map(most));
}

/** Seconds of the processor that the process of the tab has taken. */
async function processor(browser) {
  const { processInfo } = await browser.send('SystemInfo.getProcessInfo');
  return Math.max(...processInfo.filter(({ type }) => type === 'renderer').map(({ cpuTime }) => cpuTime));
}

/** Hears of every task of the page's own thread: `most()` is the longest in ms of the processor. */
async function tasksOf(browser) {
  const events = [];
  let ended = () => {};
  browser.listeners.push(({ method, params }) => {
    if (method === 'Tracing.dataCollected') events.push(...params.value);
    if (method === 'Tracing.tracingComplete') ended();
  });
  await browser.send('Tracing.start', { traceConfig: { includedCategories: ['toplevel'], excludedCategories: ['*'] }, transferMode: 'ReportEvents' });
  return { most: async () => {
    const end = new Promise((done) => { ended = done; });
    await browser.send('Tracing.end');
    await end;
    const threads = new Set(events.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(({ pid, tid }) => `${pid} ${tid}`));
    return Math.max(0, ...events.filter(({ name, pid, tid, tdur }) => /RunTask/.test(name) && tdur && threads.has(`${pid} ${tid}`)).map(({ tdur }) => tdur / 1000));
  } };
}

/** One visit: when the time line began, when the answer was there, a further setting, freezes and memory. */
async function visit() {
  const browser = new Browser(chromium);
  try {
    const tab = await browser.page(1280, 900);
    await tab.send('DOM.enable');
    await tab.open(page);
    await tab.until(`document.documentElement.dataset.ready === 'yes'`);
    await tab.evaluate(kWatch);
    const tasks = await tasksOf(browser);
    const before = await processor(browser);
    await tab.choose('#files', [file]);
    await tab.until(`document.querySelector('#answers h2') || document.querySelector('.failure')`, 900);
    const cpu = 1000 * (await processor(browser) - before);
    await tab.until(`['answered', 'failed'].includes(document.documentElement.dataset.state)`, 900);
    assert.equal(await tab.evaluate('document.documentElement.dataset.state'), 'answered', await tab.evaluate(`document.querySelector('[role=alert]').textContent`));
    await tab.frame();
    const { first, answered, all } = await tab.evaluate('steps');
    const json = await tab.evaluate('vramlabAnswers[0].json');
    const further = await tab.evaluate(`new Promise((done) => {
      const form = document.querySelector('form.rows');
      const from = performance.now();
      const rows = () => document.querySelectorAll('.settings tbody tr').length;
      const before = rows();
      form.elements.conf.value = 'max_split_size_mb:200';
      form.requestSubmit();
      const look = () => (rows() > before ? done(performance.now() - from) : setTimeout(look, 10));
      look();
    })`);
    const longest = Math.max(0, ...await tab.evaluate('longTasks'));
    const memory = await resident(browser);
    return { first, answered, cpu, all, further, longest, busiest: await tasks.most(), memory, json };
  } finally {
    await browser.close();
  }
}

/** The native program with the same question: the recorded settings. */
function native() {
  const report = join(folder, 'native.html');
  const json = join(folder, 'native.json');
  const from = performance.now();
  const { status, stderr } = spawnSync('/usr/bin/time', ['-f', '%U %S', program, 'whatif', 'large.pickle', '-j1', '--alloc-conf', 'recorded', '--report', report, '--json', json], { cwd: folder, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  const [user, system] = stderr.trim().split('\n').pop().split(' ').map(Number);
  return { wall: performance.now() - from, cpu: 1000 * (user + system), json: readFileSync(json, 'utf8') };
}

try {
  execFileSync(resolve(writer), [file, size]);
  console.log(`${size} (${statSync(file).size} bytes); page ${statSync(page).size} bytes`);
  console.log('time line begins, as recorded (CPU), all settings, a further setting, longest task (CPU), memory of the tab; native as recorded (CPU); load');
  for (let i = 0; i < Number(runs); ++i) {
    const seen = await visit();
    const other = native();
    assert.equal(seen.json.trim(), other.json.trim(), 'the page and the native program differ');
    console.log(`${seconds(seen.first)}, ${seconds(seen.answered)} (${seconds(seen.cpu)}), ${seconds(seen.all)}, ${seconds(seen.further)}, ${Math.round(seen.longest)} ms (${Math.round(seen.busiest)} ms), ` +
      `${mib(seen.memory)}; ${seconds(other.wall)} (${seconds(other.cpu)}); ${loadavg()[0].toFixed(1)}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
