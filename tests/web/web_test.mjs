// What scripts/build-web made against the native program: node web_test.mjs PART PROGRAM SOURCE_FOLDER
// Equal to the byte: what is printed, said on standard error and written, and the exit codes.
import assert from 'node:assert/strict';
import {spawn, spawnSync} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {join, relative, resolve} from 'node:path';
import {gunzipSync} from 'node:zlib';

const [part, ...places] = process.argv.slice(2);
const [native, source] = places.map((place) => resolve(place));
const built = join(source, 'build/web');
const web = join(built, 'npm/vramlab.mjs');
if (!existsSync(web)) skip('there is no build/web/npm (scripts/setup web, then scripts/build-web).');
const folder = mkdtempSync(join(tmpdir(), 'vramlab-web-'));
const environment = {...process.env};
delete environment.VRAMLAB_PLUGIN_PATH;

function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(77);
}

/** A module of its own, as a page has it. */
function instance(options = {}) {
  const createVramlab = createRequire(import.meta.url)(join(built, 'vramlab.js'));
  return createVramlab({wasmBinary: readFileSync(join(built, 'vramlab.wasm')), print() {}, printErr() {}, ...options});
}

function run(program, words, options = {}) {
  return spawnSync(program, words, {cwd: source, env: environment, encoding: 'utf8', maxBuffer: 1 << 30, ...options});
}

/** Both programs say the same to these words. */
function same(words, options = {}) {
  const [expected, found] = [run(native, words, options), run(web, words, options)];
  const name = words.join(' ');
  assert.equal(found.stderr, expected.stderr, `standard error of ${name}`);
  assert.equal(found.status, expected.status, `exit code of ${name}`);
  const untimed = (text) => text.replace(/"seconds": [\d.e-]+/g, '"seconds"');  // plan says how long it took
  assert.ok(untimed(found.stdout) === untimed(expected.stdout), `what ${name} prints differs`);
  return found;
}

/** The native program without CBC, which no module can start: {code, json, error} when it has ended. */
function nativeAnswer(words) {
  const child = spawn(native, [...words, '--json', '-'], {cwd: source, env: {...environment, PATH: ''}});
  const [out, err] = [[], []];
  child.stdout.on('data', (piece) => out.push(piece));
  child.stderr.on('data', (piece) => err.push(piece));
  const text = (pieces) => Buffer.concat(pieces).toString();
  return new Promise((done) => child.on('close', (code) => done({code, json: text(out), error: text(err)})));
}

/** All files of folders, as paths from the source folder. */
const allFiles = (folders) => folders.flatMap((folder) => readdirSync(join(source, folder), {recursive: true, withFileTypes: true})
  .filter((one) => one.isFile()).map((one) => relative(source, join(one.path, one.name)))).sort();

/** Questions about every recording, message and scenario among `files`. */
function questions(files) {
  const asked = [];
  const snapshots = files.filter((name) => /\.pickle(\.gz)?$/.test(name));
  snapshots.forEach((file, i) => {
    const before = snapshots[Math.max(0, i - 1)];
    asked.push(['whatif', file], ['whatif', file, '--capacity', '3GiB', '--details', '--by', 'stack'], ['verify', file], ['plan', file], ['advise', file, '--capacity', '2GiB'],
               ['diff', file, before], ['judge', before, file], ['explain', file]);
  });
  for (const file of files) {
    if (/\.txt$/.test(file)) asked.push(['explain', file]);
    if (/oracle\/.*\.json\.gz$/.test(file)) asked.push(['verify', file]);
    if (/(scenarios|cases)\/.*\.(json|yaml)$/.test(file)) asked.push(['compare', file]);
    if (/\.csv$/.test(file)) asked.push(['plan', file], ['whatif', file]);
  }
  return asked;
}

/** Asks a module and the native program the same; says which answers differ. */
async function compareAnswers(asked) {
  const module = await instance();
  for (const place of [source, join(source, '../shared')].filter(existsSync)) {
    module.FS.mkdirTree(place);
    module.FS.mount(module.FS.filesystems.NODEFS, {root: place}, place);
  }
  module.FS.chdir(source);
  const untimed = (json) => json.replace(/"seconds": [\d.e-]+/g, '"seconds"');
  const differ = [];
  let refused = 0;
  for (const words of asked) {
    const expected = nativeAnswer(words);
    const {code, json, error} = module.ask(words);
    const {code: nativeCode, json: nativeJson, error: nativeError} = await expected;
    const same = code === nativeCode && untimed(json) === untimed(nativeJson) && error === nativeError;
    if (!same) differ.push(words.join(' '));
    if (nativeCode > 1) ++refused;
    module.forget();
  }
  console.log(`${asked.length} questions, of which ${refused} are refused`);
  assert.deepEqual(differ, []);
  return asked.length - refused;
}

const under = (place) => readdirSync(join(source, place)).sort().map((name) => join(place, name));

const parts = {
  // All verbs over all scenarios and recordings: what tests/guards keeps of the native program.
  guards() {
    const ran = run('python3', ['scripts/guards', '--check', '--fast', '--no-pictures'],
                    {env: {...environment, VRAMLAB: web}});
    assert.equal(ran.status, 0, ran.stdout + ran.stderr);
  },

  // Every verb that answers in JSON, of everything that lies here and, where it is there, beside the tree.
  async fixtures() {
    assert.ok(await compareAnswers(questions(allFiles(['tests/data', 'docs/examples', 'scenarios']))) > 150);
  },
  async shared() {
    const folders = ['../shared/data', '../shared/cases'].filter((name) => existsSync(join(source, name)));
    if (folders.length < 2) return skip('there is no ../shared/data and no ../shared/cases.');
    assert.ok(await compareAnswers(questions(allFiles(folders))) > 300);
  },

  recordings() {
    const snapshots = under('tests/data/recorded').filter((name) => name.endsWith('.pickle.gz'));
    for (const file of snapshots) {
      same(['whatif', file, '--json', '-']);
      same(['whatif', file, '--json', '-', '--capacity', '3GiB', '--details', '--by', 'stack']);
      same(['verify', file, '--json', '-']);
      same(['plan', file, '--json', '-']);
      same(['diff', file, snapshots[0], '--json', '-']);
    }
    for (const file of under('tests/data/oracle')) same(['verify', file, '--json', '-']);
    for (const file of under('tests/data/plan')) same(['plan', file, '--json', '-']);
    for (const file of under('docs/examples').filter((name) => /oom.*\.txt$/.test(name))) {
      same(['explain', file, '--json', '-']);
    }
    const message = readFileSync(join(source, 'docs/examples/oom-neighbour.txt'));
    same(['explain', '-'], {input: message});
    same(['compare', 'scenarios/ratchet.json', '--json', '-', '--quiet', '-j', '3']);
  },

  // Files that are cut, and files with a byte changed, in a fixed number of ways: the same line, and the next file is
  // read as ever.
  async hostile() {
    const module = await instance();
    const seeds = [...under('tests/fuzz/seeds/snapshot').map((name) => ['verify', name]),
                   ...under('tests/fuzz/seeds/scenario').map((name) => ['check', name]),
                   ...under('tests/fuzz/seeds/list').map((name) => ['plan', name]),
                   ...under('tests/fuzz/seeds/oom').map((name) => ['explain', name])];
    let random = 1;
    const next = (most) => (random = (random * 48271) % 2147483647) % most;
    mkdirSync(join(folder, 'in/models'), {recursive: true});
    module.FS.mkdirTree(join(folder, 'in/models'));
    for (const name of under('models').filter((one) => one.endsWith('.json'))) {  // those that scenarios name
      writeFileSync(join(folder, 'in', name), readFileSync(join(source, name)));
      module.FS.writeFile(join(folder, 'in', name), readFileSync(join(source, name)));
    }
    let said = 0;
    for (let round = 0; round < 8; ++round) {
      for (const [verb, name] of seeds) {
        const bytes = Buffer.from(readFileSync(join(source, name)));
        const bent = round % 2 === 0 ? bytes.subarray(0, next(bytes.length)) : bytes;
        if (round % 2 === 1) bytes[next(bytes.length)] = next(256);
        const file = join(folder, 'in', name.split('/').pop());
        writeFileSync(file, bent);
        module.FS.writeFile(file, bent);
        const expected = run(native, [verb, file], {cwd: folder});
        const found = module.ask([verb, file]);
        assert.deepEqual([found.code, found.error, found.text], [expected.status, expected.stderr, expected.stdout],
                         `${verb} ${name}, round ${round}`);
        if (expected.status === 2) ++said;
      }
    }
    assert.ok(said > 50, `only ${said} files were refused`);
    const whole = readFileSync(join(source, 'tests/data/recorded/lstm.pickle.gz'));
    for (const cut of [whole.subarray(0, 1000), gunzipSync(whole).subarray(0, 5000)]) {
      writeFileSync(join(folder, 'in/cut.pickle'), cut);
      module.FS.writeFile(join(folder, 'in/cut.pickle'), cut);
      const words = ['whatif', join(folder, 'in/cut.pickle')];
      assert.equal(module.ask(words).error, run(native, words).stderr);
    }
    module.FS.writeFile('/lstm.pickle.gz', whole);
    assert.equal(module.ask(['whatif', '/lstm.pickle.gz']).code, 0);
  },

  // A further question about the same file reads nothing, and its answer is that of the first.
  async kept() {
    const lines = [];
    const module = await instance();
    const file = join(source, 'tests/data/recorded/resnet.pickle.gz');
    module.FS.mkdirTree(join(source, 'tests/data'));
    module.FS.mount(module.FS.filesystems.NODEFS, {root: join(source, 'tests/data')}, join(source, 'tests/data'));
    let read = 0;
    module.onProgress = (seen) => { if (seen.file === file) read = Math.max(read, seen.read); };
    module.onTimeline = (device, entry, bytes) => lines.push([device, entry, bytes]);
    for (const more of [[], ['--capacity', '4GiB'], ['--alloc-conf', 'expandable_segments:True'], ['--gpu', 'nothing']]) {
      const expected = run(native, ['whatif', file, '--json', '-', ...more]);
      const found = module.ask(['whatif', file, ...more]);
      assert.equal(found.code, expected.status);
      assert.equal(found.error, expected.stderr);
      assert.ok(found.json === expected.stdout, `another answer with ${more}`);
      if (more.length === 0) assert.equal(read, readFileSync(file).length);
      assert.ok(more.length === 0 || read === 0, `${more} has read the file again`);
      read = 0;
    }
    assert.ok(lines.length > 1 && lines.every(([device, entry], i) => device === 0 && entry === 4096 * (i + 1)));
    module.forget();
    module.ask(['whatif', file]);
    assert.ok(read > 0);
  },

  // What needs more memory than there may be is refused by its name, and the next question is answered.
  async memory() {
    const module = await instance({mostMemory: 18 << 20});
    const names = ['sr_limits', 'bert', 'resnet'];
    for (const name of names) {
      module.FS.writeFile(`/${name}.pickle.gz`, readFileSync(join(source, `tests/data/recorded/${name}.pickle.gz`)));
    }
    const refused = module.ask(['whatif', ...names.map((name) => `/${name}.pickle.gz`)]);
    assert.equal(refused.code, 2);
    assert.match(refused.error, /\/resnet\.pickle\.gz: is too large for the memory that this program may have\./);
    assert.equal(module.ask(['help-me']).code, 2);
    assert.equal(module.ask(['gpus']).code, 0);
  },

  // Packed, installed where there is no network, and asked.
  package() {
    const archive = readdirSync(built).find((name) => /^vramlab-.*\.tgz$/.test(name));
    const installed = run('npm', ['install', '--offline', '--no-audit', '--no-fund', join(built, archive)], {cwd: folder});
    assert.equal(installed.status, 0, installed.stderr);
    const npx = (...words) => run('npx', ['--offline', 'vramlab', ...words], {cwd: folder});
    const snapshot = join(source, 'tests/data/recorded/lstm.pickle.gz');
    const asked = npx('whatif', snapshot, '--json', 'answer.json');
    assert.equal(asked.status, 0, asked.stderr);
    assert.equal(readFileSync(join(folder, 'answer.json'), 'utf8'), run(native, ['whatif', snapshot, '--json', '-']).stdout);
    assert.equal(npx('whatif', 'nothing.pickle').status, 2);
    const shipped = npx('compare', join(folder, 'node_modules/vramlab/share/vramlab/scenarios/start-up.json'), '--json', '-');
    assert.ok(shipped.stdout === run(native, ['compare', 'scenarios/start-up.json', '--json', '-']).stdout);
  },
};

try {
  await parts[part]();
} finally {
  rmSync(folder, {recursive: true, force: true});
}
