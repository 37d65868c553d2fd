// The page of scripts/build-web in headless Chromium: node page_test.mjs PROGRAM SOURCE_FOLDER [PAGE [PART...]]
// What it says of recordings, messages and scenarios is what the native program says; nothing leaves the tab.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Browser, installed } from '../report/browser.mjs';

const [program, source, page = join(source, 'build/web/vramlab.html')] = process.argv.slice(2, 5).map((name) => resolve(name));
const chosen = process.argv.slice(5);
const chromium = installed();
if (!chromium) skip('Chromium is not installed (scripts/setup installs it).');
if (!existsSync(page)) skip('there is no build/web/vramlab.html (scripts/setup web, then scripts/build-web).');

function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(77);
}

const folder = mkdtempSync(join(tmpdir(), 'vramlab-page-'));
// Recordings without what lies beside them in the tree, of which a page hears nothing.
const recordings = join(folder, 'alone');
mkdirSync(recordings);
const recorded = (name) => {
  copyFileSync(join(source, 'tests/data/recorded', name), join(recordings, name));
  return join(recordings, name);
};

/** What the native program says: {code, json, error}. */
function native(words, cwd, input) {
  const { status, stdout, stderr } = spawnSync(program, [...words, '--json', '-'], { cwd, input, encoding: 'utf8', maxBuffer: 2 ** 28 });
  return { code: status, json: stdout.trimEnd(), error: stderr.trim() };
}

/** The cells of the settings that the native program writes into its report. */
function nativeSettings(words, cwd) {
  const file = join(folder, 'native.html');
  assert.equal(spawnSync(program, [...words, '--report', file], { cwd }).status, 0);
  const [, data] = readFileSync(file, 'utf8').match(/<script type="application\/json" id="data">(.*?)<\/script>/s);
  return JSON.parse(data).sections[0].settings.rows.map(({ cells }) => cells);
}

const kEnded = `['answered', 'failed', 'cancelled'].includes(document.documentElement.dataset.state)`;
const kState = 'document.documentElement.dataset.state';
const kFailure = `[...document.querySelectorAll('.failure')].map((one) => one.textContent).join('\\n')`;
const kHeads = `[...document.querySelectorAll('#answers h2')].map((one) => one.textContent)`;
const kJson = 'vramlabAnswers.at(-1).json.trimEnd()';
const kRows = `[...document.querySelectorAll('.settings tbody tr')].map((row) => [...row.children].map((cell) => {
  const copy = cell.cloneNode(true);
  copy.querySelectorAll('button').forEach((button) => button.remove());
  return copy.textContent.trim();
}))`;

async function opened(browser, width = 1200, dark = false) {
  const tab = await browser.page(width, 900, dark);
  await tab.send('DOM.enable');
  await tab.open(page);
  await tab.until(`document.documentElement.dataset.ready === 'yes' && document.querySelector('#scenario')`);
  return tab;
}

/** Waits for the end of what `act` begins; the state it ended in. */
async function ended(tab, act) {
  await tab.evaluate(`document.documentElement.dataset.state = ''`);
  await act();
  await tab.until(kEnded, 240);
  await tab.frame();
  return tab.evaluate(kState);
}

const choose = (tab, ...files) => ended(tab, () => tab.choose('#files', files));
const press = (tab, selector) => tab.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`);
const narrow = async (tab) => assert.equal(await tab.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, 'wider than the window');

function done(tab) {
  assert.deepEqual(tab.errors, []);
  assert.deepEqual(tab.requests.filter((url) => !/^(file|data|blob):/.test(url)), []);
  return tab.close();
}

// One file, within its bound; its policy refuses every connection.
async function policy(browser) {
  assert.ok(statSync(page).size < 3e6, `${statSync(page).size} bytes`);
  const tab = await opened(browser);
  const rule = await tab.evaluate(`document.querySelector('meta[http-equiv]').content`);
  for (const part of ["default-src 'none'", "connect-src 'none'", 'worker-src blob:', "'wasm-unsafe-eval'"]) assert.ok(rule.includes(part), part);
  assert.ok(!/script-src[^;]*unsafe-inline/.test(rule), rule);
  const refused = (way) => tab.evaluate(`new Promise((done) => {
    addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective), { once: true });
    ${way};
  })`);
  const there = 'https://example.com/';
  assert.equal(await refused(`fetch('${there}').catch(() => {})`), 'connect-src');
  assert.equal(await refused(`new XMLHttpRequest().open('GET', '${there}'); navigator.sendBeacon('${there}')`), 'connect-src');
  assert.equal(await refused(`new Image().src = '${there}x.png'`), 'img-src');
  assert.equal(await refused(`document.head.append(Object.assign(document.createElement('script'), { src: '${there}x.js' }))`), 'script-src-elem');
  assert.equal(await refused(`const form = Object.assign(document.createElement('form'), { action: '${there}' }); document.body.append(form); form.submit()`), 'form-action');
  tab.errors.length = 0;  // what the policy said of these
  tab.requests.length = 0;
  await done(tab);
}

// A dropped file: all figures are those of the native program, and so are those of a row that is typed.
async function recording(browser) {
  const tab = await opened(browser);
  assert.equal(await ended(tab, () => tab.drop(300, 300, [recorded('bert.pickle.gz')])), 'answered', await tab.evaluate(kFailure));
  assert.deepEqual(await tab.evaluate(kHeads), ['bert.pickle.gz']);
  assert.deepEqual(await tab.evaluate(kRows), nativeSettings(['whatif', 'bert.pickle.gz'], recordings));
  for (const part of ['Over the history', 'Who holds it', 'Where it lies', 'Pins']) {
    assert.ok((await tab.evaluate(`[...document.querySelectorAll('h3')].map((one) => one.textContent)`)).includes(part), part);
  }
  assert.equal(await tab.evaluate(`document.activeElement.textContent`), 'bert.pickle.gz');  // a screen reader goes on there

  const conf = 'max_split_size_mb:32';
  await tab.evaluate(`Object.assign(document.querySelector('form.rows').elements.conf, { value: '${conf}' })`);
  await tab.evaluate(`Object.assign(document.querySelector('form.rows').elements.card, { value: '4GiB' })`);
  await press(tab, 'form.rows button');
  await tab.until(`${kRows}.some(([name]) => name === '${conf}')`);
  const words = ['whatif', 'bert.pickle.gz', '--alloc-conf', conf, '--capacity', '4GiB'];
  assert.equal(await tab.evaluate(kJson), native(words, recordings).json);
  const [[name, ...cells]] = nativeSettings(words, recordings);
  assert.deepEqual((await tab.evaluate(kRows)).find(([first]) => first === conf), [name, 'a card of 4.0 GiB', ...cells]);

  // A card that there is not: one line, and the table stays.
  const before = await tab.evaluate(kRows);
  await tab.evaluate(`Object.assign(document.querySelector('form.rows').elements.card, { value: 'rtx-1' })`);
  await press(tab, 'form.rows button');
  await tab.until(`document.querySelector('.failure')`);
  assert.match(await tab.evaluate(kFailure), /--gpu: "rtx-1" is not a known card/);
  assert.deepEqual(await tab.evaluate(kRows), before);
  await done(tab);
}

// The whole answer as JSON, packed or not; the page that is saved opens by itself.
async function sharing(browser) {
  const tab = await opened(browser);
  const plain = join(folder, 'twostream.pickle');
  writeFileSync(plain, gunzipSync(readFileSync(recorded('twostream.pickle.gz'))));
  const files = [plain];
  if (spawnSync('zstd', ['-q', '-f', plain]).status === 0) files.push(`${plain}.zst`);
  await tab.send('Page.setDownloadBehavior', { behavior: 'allow', downloadPath: folder });
  for (const file of files) {
    assert.equal(await choose(tab, file), 'answered', await tab.evaluate(kFailure));
    rmSync(join(folder, 'twostream.json'), { force: true });
    await press(tab, '.share button:nth-of-type(2)');
    const saved = await arrived('twostream.json');
    assert.equal(saved.trimEnd(), native(['whatif', basename(file)], folder).json);
  }
  await press(tab, '.share button');
  assert.match(await arrived('twostream.html'), /<\/html>\s*$/);
  await done(tab);
  const report = await browser.page(1200, 900);
  await report.open(join(folder, 'twostream.html'));
  assert.deepEqual(await report.evaluate(kRows), nativeSettings(['whatif', basename(files.at(-1))], folder));
  await done(report);
}

async function arrived(name) {
  for (const end = Date.now() + 20000; Date.now() < end; await new Promise((wait) => setTimeout(wait, 50))) {
    if (existsSync(join(folder, name)) && statSync(join(folder, name)).size) return readFileSync(join(folder, name), 'utf8');
  }
  throw new Error(`${name} did not arrive`);
}

// Two files are asked together; what grew from one to the other, and the least memory, below.
async function several(browser) {
  const tab = await opened(browser);
  const names = ['lstm.pickle.gz', 'bert.pickle.gz'];
  assert.equal(await choose(tab, ...names.map(recorded)), 'answered', await tab.evaluate(kFailure));
  assert.deepEqual(await tab.evaluate(kRows), nativeSettings(['whatif', ...names], recordings));
  const further = async (text, head) => {
    await tab.evaluate(`[...document.querySelectorAll('.share button')].find((one) => one.textContent === '${text}').click()`);
    await tab.until(`${kHeads}.includes('${head}')`);
    return tab.evaluate(kJson);
  };
  assert.equal(await further('What grew', `From ${names[0]} to ${names[1]}`), native(['diff', ...names], recordings).json);
  const untimed = (json) => json.replace(/"seconds": [^,]*/g, '');
  assert.equal(untimed(await further('Least memory', 'The least memory it needs')), untimed(native(['plan', ...names], recordings).json));
  assert.equal(await further('How exact is the replay', 'How exactly the recording is replayed'), native(['verify', ...names], recordings).json);
  await done(tab);
}

async function message(browser) {
  const tab = await opened(browser, 420);
  const text = readFileSync(join(source, 'docs/examples/oom-container.txt'), 'utf8');
  await tab.evaluate(`document.querySelector('#message').value = ${JSON.stringify(text)}`);
  assert.equal(await ended(tab, () => press(tab, '[aria-label="A message"] button')), 'answered');
  assert.equal(await tab.evaluate(kJson), native(['explain', '-'], source, text).json);
  assert.match(await tab.evaluate(`document.querySelector('.verdict').textContent`), /^Cause: fragmentation\. 910\.35 MiB idle/);
  await narrow(tab);
  await done(tab);
}

async function scenario(browser) {
  const tab = await opened(browser, 420, true);
  assert.equal(await tab.evaluate('getComputedStyle(document.body).backgroundColor'), 'rgb(17, 22, 29)');
  for (const name of ['flip-flop', 'queue-three-of-twelve', 'find-phases', 'epoch-seven-billion']) {
    await tab.evaluate(`document.querySelector('#scenario').value = '/scenarios/${name}.json'`);
    assert.equal(await ended(tab, () => press(tab, '[aria-label="A scenario"] button')), 'answered', await tab.evaluate(kFailure));
    assert.equal(await tab.evaluate(kJson), native(['compare', `scenarios/${name}.json`], source).json);
    await narrow(tab);
  }
  await done(tab);
}

// Broken files give the program's own line, and the next file is taken.
async function hostile(browser) {
  const tab = await opened(browser);
  const seed = readFileSync(join(source, 'tests/fuzz/seeds/snapshot/whole.pickle'));
  const bent = { 'cut.pickle': seed.subarray(0, seed.length / 2), 'empty.pickle': Buffer.alloc(0), 'text.pickle': Buffer.from('not a pickle\n'),
                 'zeros.pickle.gz': Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]) };
  for (const [place, byte] of [[2, 0xff], [40, 0x63], [200, 0x8a], [seed.length - 1, 0]]) {
    const changed = Buffer.from(seed);
    changed[place] = byte;
    bent[`byte${place}.pickle`] = changed;
  }
  for (const [name, content] of Object.entries(bent)) {
    writeFileSync(join(folder, name), content);
    const expected = native(['whatif', name], folder);
    const state = await choose(tab, join(folder, name));
    assert.equal(state, expected.code === 0 ? 'answered' : 'failed', name);
    if (state === 'failed') assert.equal(await tab.evaluate(kFailure), expected.error.replaceAll('\n\n', '\n'), name);
  }
  copyFileSync(recorded('lstm.pickle.gz'), join(folder, 'good.pickle.gz'));
  assert.equal(await choose(tab, join(folder, 'good.pickle.gz')), 'answered');
  assert.equal(await tab.evaluate(kFailure), '');

  // What no browser can hold is refused before it is read.
  writeFileSync(join(folder, 'huge.pickle'), '');
  truncateSync(join(folder, 'huge.pickle'), 5 * 2 ** 30);
  assert.equal(await choose(tab, join(folder, 'huge.pickle')), 'failed');
  assert.match(await tab.evaluate(kFailure), /^huge\.pickle: 5\.00 GiB are more than a browser can hold/);
  assert.deepEqual(await tab.evaluate(kHeads), ['good.pickle.gz']);  // what was there stays
  await done(tab);
}

// A long comparison is cancelled, and the tab goes on.
async function cancelling(browser) {
  const tab = await opened(browser);
  await tab.evaluate(`document.querySelector('#scenario').value = '/scenarios/epoch-tuned-budget.json'`);
  assert.equal(await ended(tab, async () => {
    await press(tab, '[aria-label="A scenario"] button');
    await tab.until(`document.querySelector('.cancel')`);
    await press(tab, '.cancel');
  }), 'cancelled');
  assert.equal(await tab.evaluate(`document.querySelector('.work').hidden`), true);
  assert.equal(await choose(tab, recorded('lstm.pickle.gz')), 'answered');
  await done(tab);
}

// From the first key to an explained message without a mouse; every control has a name.
async function keyboard(browser) {
  const tab = await opened(browser);
  const tabKey = () => tab.press('Tab');
  const focused = `(document.activeElement.id || document.activeElement.className || document.activeElement.textContent)`;
  const order = [];
  for (let i = 0; i < 7; ++i) {
    await tabKey();
    order.push(await tab.evaluate(focused));
    if (order.at(-1) === 'message') break;
  }
  assert.deepEqual(order, ['skip', 'look', 'files', 'message']);
  await tab.send('Input.insertText', { text: 'CUDA out of memory. Tried to allocate 98.00 MiB. GPU 0 has a total capacity of 79.18 GiB of which 86.62 MiB is free.' });
  await tabKey();
  assert.equal(await ended(tab, async () => {
    await tab.send('Input.dispatchKeyEvent', { type: 'keyDown', key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' });
    await tab.send('Input.dispatchKeyEvent', { type: 'keyUp', key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13 });
  }), 'answered');
  assert.equal(await tab.evaluate('document.activeElement.textContent'), 'The message');
  await choose(tab, recorded('bert.pickle.gz'));
  const { nodes } = await tab.send('Accessibility.getFullAXTree');
  const roles = new Set(['button', 'textbox', 'combobox', 'image', 'progressbar', 'table', 'region', 'form', 'group', 'listbox']);
  const nameless = nodes.filter(({ ignored, role, name }) => !ignored && roles.has(role?.value) && !name?.value && role.value !== 'group');
  assert.deepEqual(nameless.map(({ role }) => role.value), []);
  assert.ok(nodes.some(({ role }) => role?.value === 'status'), 'a place that is spoken');
  await done(tab);
}

const browser = new Browser(chromium);
try {
  for (const part of [policy, recording, sharing, several, message, scenario, hostile, cancelling, keyboard]) {
    if (chosen.length && !chosen.includes(part.name)) continue;
    await part(browser);
    console.log(`${part.name}: done`);
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
