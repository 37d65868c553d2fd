// One instance of the program in a worker: it reads files where they are, and answers what it is asked.
// `createVramlab` stands before this text. A worker is thrown away to cancel, and after a failure.
const kTold = 100;  // ms between two tellings of progress, or of the time line
let program = null;

const folders = (path) => path.split('/').slice(1, -1).map((_, i, parts) => `/${parts.slice(0, i + 1).join('/')}`);

function write(path, text) {
  for (const folder of folders(path)) if (!program.FS.analyzePath(folder).exists) program.FS.mkdir(folder);
  program.FS.writeFile(path, text);
}

/** Collects the points of the time line, and tells them in groups. */
function timeLine() {
  let points = [];
  let last = -1;
  let told = 0;
  return (device, entry, bytes) => {
    if (device !== last || entry < points.at(-1)?.[0] || performance.now() - told > kTold) {
      if (points.length) postMessage({ timeline: { device: last, points } });
      points = [];
      last = device;
      told = performance.now();
    }
    points.push([entry, bytes]);
  };
}

/** Tells how far a file is read, and that it is. */
function progressTeller() {
  let told = 0;
  return (progress) => {
    if (progress.read < progress.total && performance.now() - told < kTold) return;
    told = performance.now();
    postMessage({ progress });
  };
}

async function begin({ module, files, texts }) {
  program = await createVramlab({
    instantiateWasm: (imports, done) => {
      WebAssembly.instantiate(module, imports).then((instance) => done(instance, module));
      return {};
    },
    print() {},
    printErr() {},
  });
  program.onProgress = progressTeller();
  program.onTimeline = timeLine();
  for (const [path, text] of Object.entries(texts)) write(path, text);
  program.FS.mkdir('/in');
  if (files.length) program.FS.mount(program.WORKERFS, { blobs: files }, '/in');
  program.FS.chdir(files.length ? '/in' : '/');
}

/** The data of a page with the cells of its maps in one array each, which goes to the page without being copied:
 *  {data, buffers}. */
function packed(text) {
  const data = JSON.parse(text);
  const buffers = [];
  for (const { settings } of data.sections) {
    for (const { map } of settings?.rows ?? []) {
      if (!map) continue;
      map.cells = Float64Array.from(map.cells.flat());
      buffers.push(map.cells.buffer);
    }
  }
  return { data, buffers };
}

function ask({ words, texts, page }) {
  const answer = program.ask(words, texts, page);
  if (!answer.page) return [{ answer }, []];
  const { data, buffers } = packed(answer.page);
  return [{ answer: { ...answer, page: data, rows: JSON.parse(answer.json).rows } }, buffers];
}

onmessage = async ({ data }) => {
  try {
    if (data.begin) postMessage({ answer: await begin(data.begin) });
    else if (data.template) postMessage({ answer: program.reportTemplate() });
    else postMessage(...ask(data.ask));
  } catch (error) {
    postMessage({ failure: String(error?.message ?? error) });
  }
};
