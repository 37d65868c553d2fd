// The module of scripts/build-web against the native program, in turns: node bench/web_module.mjs PROGRAM SNAPSHOT [RUNS]
// Of each run: wall and CPU time of the first answer of whatif, in the module also of a further setting and card, and
// the most memory. Other load on the machine moves CPU time less than the time on the clock.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';

const built = resolve(dirname(fileURLToPath(import.meta.url)), '../build/web');
const [program, snapshot, runs = '3'] = process.argv.slice(2);
const kFurther = ['--alloc-conf', 'max_split_size_mb:64', '--capacity', '24GiB'];
const kMib = 1024 * 1024;
const hash = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16);

/** In a process of its own: what the module takes, as JSON. */
async function module() {
  const createVramlab = createRequire(import.meta.url)(`${built}/vramlab.js`);
  const vramlab = await createVramlab({wasmBinary: readFileSync(`${built}/vramlab.wasm`)});
  const folder = dirname(resolve(snapshot));
  vramlab.FS.mkdirTree(folder);
  vramlab.FS.mount(vramlab.FS.filesystems.NODEFS, {root: folder}, folder);
  const timed = (words) => {
    const [wall, cpu] = [performance.now(), process.cpuUsage()];
    const answer = vramlab.ask(words);
    assert.equal(answer.code, 0, answer.error);
    const used = process.cpuUsage(cpu);
    return {wall: (performance.now() - wall) / 1e3, cpu: (used.user + used.system) / 1e6, hash: hash(answer.json)};
  };
  const first = timed(['whatif', resolve(snapshot)]);
  const further = timed(['whatif', resolve(snapshot), ...kFurther]);
  const pages = vramlab.memoryBytes() / kMib;
  console.log(JSON.stringify({first, further, pages, peak: process.resourceUsage().maxRSS / 1024}));
}

/** The native program with these words. */
function native(words) {
  const ran = spawnSync('/usr/bin/time', ['-f', '%e %U %S %M', program, 'whatif', resolve(snapshot), '-j1', '--json', '-', ...words],
                        {encoding: 'utf8', maxBuffer: 1 << 30});
  assert.equal(ran.status, 0, ran.stderr);
  const [wall, user, system, peak] = ran.stderr.trim().split('\n').pop().split(' ').map(Number);
  return {wall, cpu: user + system, hash: hash(ran.stdout), peak: peak / 1024};
}

const shown = (one) => `${one.wall.toFixed(1)} s (CPU ${one.cpu.toFixed(1)} s)`;
if (program === '--module') {
  await module();
} else {
  assert.ok(snapshot, 'node bench/web_module.mjs PROGRAM SNAPSHOT [RUNS]');
  for (let run = 0; run < Number(runs); ++run) {
    const [first, further] = [native([]), native(kFurther)];
    const ran = spawnSync(process.execPath, [fileURLToPath(import.meta.url), '--module', snapshot], {encoding: 'utf8'});
    assert.equal(ran.status, 0, ran.stderr);
    const web = JSON.parse(ran.stdout);
    assert.deepEqual([web.first.hash, web.further.hash], [first.hash, further.hash], 'another answer');
    console.log(`native: first ${shown(first)}, a further one reads again ${shown(further)}, peak ${first.peak.toFixed(0)} MiB`);
    console.log(`module: first ${shown(web.first)}, a further one ${shown(web.further)}, ` +
                `peak ${web.peak.toFixed(0)} MiB of the process, ${web.pages.toFixed(0)} MiB of it WebAssembly's`);
  }
}
