// Where an answer begins: files, an out-of-memory message, or a scenario that is shipped.
import { make } from '../../report/html/src/look.js';

const kKinds = { training: 'Training with tuners', epoch: 'Epochs and their batches', search: 'Search for a batch size', jobs: 'Queues of jobs' };

const kHowTo = `torch.cuda.memory._record_memory_history()
…  # what runs out of memory
torch.cuda.memory._dump_snapshot("snapshot.pickle")`;

/** A form whose button is its only way out; `take` gets its value. */
function form(heading, about, fields, action, take) {
  return make('form', { class: 'way', 'aria-label': heading, onsubmit: (event) => {
    event.preventDefault();
    take();
  } }, make('h3', {}, heading), make('p', {}, about), ...fields, make('button', { type: 'submit' }, action));
}

/** The field for files; files may be dropped anywhere on the page. */
function files(take) {
  const input = make('input', { type: 'file', id: 'files', multiple: true, 'aria-describedby': 'about-files', onchange: () => {
    const chosen = [...input.files];
    input.value = '';  // so that the same file can be chosen again
    if (chosen.length) take(chosen);
  } });
  const way = make('div', { class: 'way drop', role: 'group', 'aria-labelledby': 'head-files' },
    make('h3', { id: 'head-files' }, 'A recording'),
    make('p', { id: 'about-files' }, 'Drop snapshot.pickle anywhere on this page, or choose it. .gz and .zst are unpacked. Several files are the ranks of one job, or steps of it.'),
    make('pre', { 'aria-label': 'How a snapshot is written' }, kHowTo),
    make('label', { class: 'choose', for: 'files' }, 'Choose files'), input);
  const over = (is) => document.documentElement.toggleAttribute('data-over', is);
  addEventListener('dragover', (event) => {
    event.preventDefault();
    over(true);
  });
  addEventListener('dragleave', (event) => { if (event.relatedTarget === null) over(false); });
  addEventListener('drop', (event) => {
    event.preventDefault();
    over(false);
    const dropped = [...event.dataTransfer.files];
    if (dropped.length) take(dropped);
  });
  return way;
}

function message(take) {
  const field = make('textarea', { id: 'message', rows: 4, spellcheck: 'false', 'aria-label': 'Out-of-memory message',
    placeholder: 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate …' });
  return form('A message', 'Paste what PyTorch said when memory ran out; a whole log will do.', [field], 'Explain', () => {
    if (field.value.trim()) take(field.value);
    else field.focus();
  });
}

function scenarios(shipped, take) {
  const parsed = Object.entries(shipped).filter(([path]) => path.startsWith('/scenarios/') && path.endsWith('.json'))
    .map(([path, content]) => ({ path, ...JSON.parse(content) }));
  const groups = Object.entries(kKinds).map(([kind, label]) => make('optgroup', { label },
    ...parsed.filter((one) => one.kind === kind).map(({ path, name }) => make('option', { value: path, selected: name === 'ratchet' }, name))));
  const about = make('p', { class: 'about' });
  const select = make('select', { id: 'scenario', 'aria-label': 'Scenario', onchange: () => show() }, ...groups);
  const show = () => { about.textContent = parsed.find(({ path }) => path === select.value).description; };
  show();
  return form('A scenario', 'Which policy is best there?', [select, about], 'Compare', () => take(select.value));
}

/** The three ways; `take`: {files(list), message(text), scenario(path)}. Scenarios come when they are unpacked. */
export function ways(shipped, take) {
  const host = make('div', { class: 'ways' }, files(take.files), message(take.message));
  shipped.then((all) => host.append(scenarios(all, take.scenario)));
  return host;
}
