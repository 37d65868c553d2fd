// Makes the page one file: node bundle.mjs FOLDER, which holds vramlab.js and vramlab.wasm and gets vramlab.html.
// Styles and views are those of the report page (report/html); all that is long goes in packed.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { licences } from '../../report/html/licences.mjs';
import { lettersOf } from './letters.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const report = join(root, 'report', 'html');
const { build } = createRequire(join(report, 'package.json'))('esbuild');
const folder = process.argv[2];
const read = (...parts) => readFileSync(join(...parts), 'utf8');
const packed = (content) => gzipSync(content, { level: 9 }).toString('base64');

// The program is by far the longest part: a quarter shorter than with gzip, which is all that browsers unpack themselves.
const densely = (file) => execFileSync('zstd', ['--ultra', '-22', '--quiet', '--stdout', file], { maxBuffer: 2 ** 28 });
const fzstd = `fzstd\n\n${read(report, 'node_modules/fzstd/LICENSE').trim()}`;

/** The scenarios that need no recording, and what they name, as {path: text}. */
function scenarios() {
  const files = {};
  const add = (path) => { files[`/${path}`] = read(root, path); };
  for (const name of readdirSync(join(root, 'scenarios')).filter((one) => one.endsWith('.json') && one !== 'schema.json')) {
    if (JSON.parse(read(root, 'scenarios', name)).kind !== 'snapshot') add(`scenarios/${name}`);
  }
  for (const part of ['scenarios/lengths', 'scenarios/series', 'models']) {
    readdirSync(join(root, part)).filter((one) => /\.(json|csv)$/.test(one)).forEach((name) => add(`${part}/${name}`));
  }
  return JSON.stringify(files);
}

const { outputFiles } = await build({ entryPoints: [join(here, 'main.js')], bundle: true, minify: true, write: false, legalComments: 'none',
  target: 'es2022', charset: 'utf8', nodePaths: [join(report, 'node_modules')] });
const script = outputFiles[0].text.trim();
const begin = read(here, 'unpack.js').trim();
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
// No connection at all. Charts set styles on their elements, which a hash cannot name.
const policy = ["default-src 'none'", `script-src ${hash(begin)} ${hash(script)} 'wasm-unsafe-eval'`, "style-src 'unsafe-inline'", 'img-src data: blob:',
  'worker-src blob:', "connect-src 'none'", "form-action 'none'", "base-uri 'none'"].join('; ');

const program = densely(join(folder, 'vramlab.wasm'));
const parts = {
  POLICY: policy,
  STYLE: [read(report, 'node_modules/uplot/dist/uPlot.min.css'), read(report, 'src/style.css'), read(here, 'page.css')].map((one) => one.trim()).join('\n'),
  VERSION: read(root, 'CMakeLists.txt').match(/project\(vramlab VERSION ([\d.]+)/)[1],
  LICENCES: `${licences}\n\n\n${fzstd}`,
  PROGRAM: lettersOf(program),
  BYTES: program.length,
  WORKER: packed(`${read(folder, 'vramlab.js')}\n${read(here, 'worker.js')}`),
  SCENARIOS: packed(scenarios()),
  PAGE: packed(script),
  BEGIN: begin,
};
const page = read(here, 'page.html').replace(/%([A-Z]+)%/g, (mark, name) => parts[name]);
const file = join(folder, 'vramlab.html');
writeFileSync(`${file}.part`, page);
renameSync(`${file}.part`, file);
console.log(`${file}: ${page.length} bytes`);
