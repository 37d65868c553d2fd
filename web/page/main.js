// The page that runs the program in the browser: what is dropped or pasted, and the answers to it.
import { bytes, make } from '../../report/html/src/look.js';
import { memoryParts } from '../../report/html/src/memory.js';
import { forgetRemoved, lookButton, part, printing } from '../../report/html/src/sections.js';
import { ways } from './begin.js';
import { furtherConfs, growable, rowWords, tryOthers } from './recording.js';
import { Cancelled, compiled, Session, shippedFiles } from './session.js';
import { keepTemplate, pageOf, shareBar } from './share.js';
import { differences, explained, plans, terminal } from './views.js';
import { Work } from './work.js';

// WebAssembly addresses 4 GiB, and takes 1.3 times the size of a pickle with stacks (docs/web.md); others say more in fewer
// bytes. What passes here and is too large all the same is refused by the program, in a line.
const kMemory = 2 ** 32;
const kMemoryOfFile = 1.5;
const kLong = 128 * 2 ** 20;  // bytes of files from which on settings are tried one by one, after the first answer
const kPacking = 10;          // times that packed files grow, about
const kPacked = /\.(gz|zst)$/i;
const kText = /\.(txt|log|out|err)$/i;
const kBeside = /\.(truth|marks)\.json(\.gz|\.zst)?$/i;  // read with the recording that they lie beside

const work = new Work();
const answers = make('div', { id: 'answers' });
const shipped = shippedFiles();
let session = null;

/** Answers on what was chosen last, for tests and for the curious: what --json writes, and what a terminal shows. */
const kept = globalThis.vramlabAnswers = [];

function state(name) { document.documentElement.dataset.state = name; }

/** The answer to `words`; throws what the program says where it has none. */
async function ask(asked, words, more = {}) {
  const answer = await asked.ask(words, more);
  if (answer.code !== 0 && !(answer.code === 1 && answer.json)) throw new Error(answer.error || `${words[0]} ended with code ${answer.code}`);
  kept.push({ json: answer.json, text: answer.text });
  return answer;
}

/** Does `job` with `made`, the instance that takes the place of the one before; tells what goes on, and wrong. */
async function during(title, made, job) {
  session?.end();
  session = made;
  kept.length = 0;
  state('working');
  work.begin(title, () => made.end());
  made.onProgress = (progress) => work.progress(progress);
  made.onTimeline = (timeline) => work.timeline(timeline);
  try {
    await job(made);
    if (session !== made) return;
    work.end('The answer is below.');
    state('answered');
  } catch (error) {
    made.end();
    if (session !== made) return;
    if (error instanceof Cancelled) work.end('Cancelled.');
    else work.fail(error.message);
    state(error instanceof Cancelled ? 'cancelled' : 'failed');
  }
}

/** Shows `parts` as the only answer, or below the others. */
function show(parts, below = false) {
  if (below) answers.append(...parts);
  else answers.replaceChildren(...parts);
  forgetRemoved();
  const [head] = parts[0].querySelectorAll('h2');
  head.tabIndex = -1;
  head.focus({ preventScroll: true });
  head.scrollIntoView({ block: 'start' });
}

const answerPart = (title, ...children) => make('section', {}, make('h2', {}, title), ...children);

/** Files by the names that the program sees: none twice, none that looks like an option. */
function named(files) {
  const taken = new Set();
  return files.map((data) => {
    let name = data.name.replace(/^-/, '_');
    for (let i = 2; taken.has(name); ++i) name = `${i}-${data.name}`;
    taken.add(name);
    return { name, data };
  });
}

function tooLarge(files) {
  const needed = files.reduce((sum, { name, data }) => sum + data.size * (kPacked.test(name) ? 1 : kMemoryOfFile), 0);
  if (needed <= kMemory) return null;
  const size = files.reduce((sum, { data }) => sum + data.size, 0);
  return `${files.map(({ name }) => name).join(', ')}: ${bytes(size)} are more than a browser can hold (about ${bytes(kMemory / kMemoryOfFile)}, as WebAssembly has 4 GiB of memory). ` +
    'The program itself has no such limit: vramlab whatif FILE.';
}

// What else can be asked of the same files, below the answer.
function furtherQuestions(made, names) {
  const question = (text, words, title, view) => make('button', { type: 'button', onclick: async (event) => {
    event.target.disabled = true;
    try {
      const answer = await ask(made, words);
      show([answerPart(title, ...view(JSON.parse(answer.json)), terminal(answer))], true);
    } catch (error) {
      work.fail(error.message);
      event.target.disabled = false;
    }
  } }, text);
  const buttons = [question('Least memory', ['plan', ...names], 'The least memory it needs', plans)];
  if (names.length === 2) {
    buttons.push(question('What grew', ['diff', ...names], `From ${names[0]} to ${names[1]}`, differences));
  }
  buttons.push(question('How exact is the replay', ['verify', ...names], 'How exactly the recording is replayed', () => []));
  return buttons;
}

/** The JSON of an answer with further rows. */
function withRows(text, rows) {
  const json = JSON.parse(text);
  json.rows.push(...rows);
  return `${JSON.stringify(json, null, 2)}\n`;
}

const isLong = (files) => files.reduce((sum, { name, data }) => sum + data.size * (kPacked.test(name) ? kPacking : 1), 0) > kLong;

/** Comes back when the browser has drawn what is there, and answered to whoever uses it; a hidden tab draws nothing. */
const drawn = () => new Promise((done) => {
  requestAnimationFrame(() => setTimeout(done));
  setTimeout(done, 200);
});

async function showRecording(made, names, answer, long) {
  keepTemplate(made);
  const [section] = answer.page.sections;
  const [settings, ...views] = memoryParts(section);
  const shown = part(section, [settings()]);
  const added = [];  // rows, as JSON has them
  const cards = JSON.parse((await made.ask(['gpus'])).json).map(({ id }) => id);
  const another = async (row) => {
    const other = await ask(made, ['whatif', ...names, ...rowWords(row), ...(long ? ['--rows'] : [])], { page: true });
    added.push(...other.rows);
    return other.page.sections[0].settings;
  };
  growable(shown, section, cards, another);
  const name = names[0].replace(/(\.pickle)?(\.gz|\.zst)?$/i, '');
  shown.insertBefore(shareBar([
    ['Save as a page', `${name}.html`, () => pageOf(answer.page)],
    ['Save as JSON', `${name}.json`, () => (added.length ? withRows(answer.json, added) : answer.json)],
  ], furtherQuestions(made, names)), shown.querySelector('.settings-part'));
  const below = terminal(answer);
  shown.append(below);
  show([shown]);
  for (const view of views) {
    await drawn();
    below.before(view());
  }
  await drawn();
  if (long) await tryOthers(section, shown.querySelector('.settings-part'), furtherConfs(answer.rows[0].alloc_conf), another);
}

async function takeFiles(list) {
  if (list.every(({ name }) => kText.test(name))) return takeMessage((await Promise.all(list.map((file) => file.text()))).join('\n'));
  const files = named(list);
  const names = files.map(({ name }) => name).filter((name) => !kBeside.test(name));
  const refused = names.length ? tooLarge(files) : `${files[0].name} goes with a recording: choose that one, too.`;
  if (refused) {
    state('failed');
    return work.fail(refused);
  }
  return during(`Reading ${names.join(', ')}`, new Session({ files }), async (made) => {
    const long = isLong(files);
    const conf = long ? ['--alloc-conf', 'recorded'] : [];
    await showRecording(made, names, await ask(made, ['whatif', ...names, ...conf], { page: true }), long);
  });
}

function takeMessage(text) {
  return during('Reading the message', new Session({}), async (made) => {
    const answer = await ask(made, ['explain', '-'], { texts: { '-': text } });
    show([answerPart('The message', shareBar([['Save as JSON', 'explained.json', () => answer.json]]), ...explained(JSON.parse(answer.json)), terminal(answer))]);
  });
}

async function takeScenario(path) {
  const texts = await shipped;
  return during(`Comparing policies in ${path.replace(/^.*\/|\.json$/g, '')}`, new Session({ texts }), async (made) => {
    const answer = await ask(made, ['compare', path.slice(1)], { page: true });
    keepTemplate(made);
    const name = path.replace(/^.*\/|\.json$/g, '');
    const parts = answer.page.sections.map((section) => part(section));
    parts[0].insertBefore(shareBar([['Save as a page', `${name}.html`, () => pageOf(answer.page)], ['Save as JSON', `${name}.json`, () => answer.json]]),
      parts[0].querySelector('h2').nextSibling);
    parts.at(-1).append(terminal(answer));
    show(parts);
  });
}

document.getElementById('page').append(
  make('header', {}, make('h1', {}, 'vramlab in the browser'), lookButton()),
  make('main', { id: 'content' },
    make('section', { class: 'begin' }, make('h2', {}, 'Would it have fitted?'),
      make('p', { class: 'head' }, 'A memory snapshot that PyTorch wrote is replayed under other allocator settings and on other cards. It is read here, in this tab; nothing is uploaded.'),
      ways(shipped, { files: takeFiles, message: takeMessage, scenario: takeScenario })),
    work.element, answers));
printing();
compiled().then(() => { document.documentElement.dataset.ready = 'yes'; },
  (error) => work.fail(`The program could not be started: ${error.message}`));
