// One instance of the program in a worker: it reads files where they are, and answers what it is asked.
// `createVramlab` stands before this text. A worker is thrown away to cancel, and after a failure.
const kTold = 100;  // ms between two tellings of the time line
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

async function begin({ module, files, texts }) {
  program = await createVramlab({
    instantiateWasm: (imports, done) => {
      WebAssembly.instantiate(module, imports).then((instance) => done(instance, module));
      return {};
    },
    print() {},
    printErr() {},
  });
  program.onProgress = (progress) => { postMessage({ progress }); };
  program.onTimeline = timeLine();
  for (const [path, text] of Object.entries(texts)) write(path, text);
  write('/out/empty', '');
  program.FS.mkdir('/in');
  if (files.length) program.FS.mount(program.WORKERFS, { blobs: files }, '/in');
  program.FS.chdir(files.length ? '/in' : '/');
}

/** The file that the program wrote, taken out of its file system. */
function taken(path) {
  if (!program.FS.analyzePath(path).exists) return null;
  const bytes = program.FS.readFile(path);
  program.FS.unlink(path);
  return bytes;
}

function ask({ words, texts, outputs, page }) {
  const answer = program.ask(words, texts, page);
  const files = Object.fromEntries(outputs.map((path) => [path, taken(path)]));
  return { ...answer, files };
}

onmessage = async ({ data }) => {
  try {
    postMessage({ answer: data.begin ? await begin(data.begin) : ask(data.ask) });
  } catch (error) {
    postMessage({ failure: String(error?.message ?? error) });
  }
};
