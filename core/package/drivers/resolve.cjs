'use strict';
/*
 * Which packages a list of npm requirements comes to: has npm write a package-lock.json, and prints one JSON document
 * (reeve.closure/1) that holds it.
 *
 * It runs inside the sandbox, in network mode `registries`. The job is one JSON document on standard input; what a user's
 * npmrc would say (registries, credentials) is the text of the variable REEVE_NPMRC. Nothing that it prints is trusted:
 * reeve reads the closure as any other stranger's text. For node 18 and later, and npm 9 and later.
 */
const { spawnSync } = require('child_process');
const { createRequire } = require('module');
const fs = require('fs');
const path = require('path');

const TEXT_MAX = 4096;                 // characters of the tool's messages
const OUTPUT_MAX = 64 << 20;
const ALTERNATIVES_MAX = 64;           // of a range that two requirements were joined to
const NAME = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;
const RANGE = /^[0-9A-Za-z.*^~<>=|+ \t-]+$/;
const VERSION = /^[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;

class Failure extends Error {
  constructor(code, text, status = 1) {
    super(text);
    Object.assign(this, { code, status });
  }
}

// npm-cli.js by its own path: what PATH says may be somebody's shim.
function findNpm() {
  const bin = path.dirname(process.execPath);
  const places = [path.join(bin, '../lib/node_modules/npm'), '/usr/share/nodejs/npm', '/usr/lib/node_modules/npm',
    '/usr/local/lib/node_modules/npm'];
  const found = places.find((p) => fs.existsSync(path.join(p, 'bin/npm-cli.js')));
  if (!found) throw new Failure('ENOTOOL', 'npm is not there: it is looked for in ' + places.join(', '));
  return fs.realpathSync(found);
}

// npm's own reading of versions and ranges; null where a distribution has moved it out of sight.
function semverOf(npm) {
  try {
    return createRequire(path.join(npm, 'bin/npm-cli.js'))('semver');
  } catch {
    return null;
  }
}

function parseRequirement(text) {
  const at = text.indexOf('@', 1);
  const name = text.slice(0, at).trim(), range = text.slice(at + 1).trim();
  if (at < 0 || !NAME.test(name) || name.length > 214 || !range || !RANGE.test(range)) {
    throw new Failure('EJOB', `no requirement that is taken: ${JSON.stringify(text)}`);
  }
  return { name, range };
}

// What both ranges allow. npm joins the comparators of a set by spaces; a hyphen range and a tag cannot be joined.
function joined(name, a, b) {
  if (a === b || b === '*') return a;
  if (a === '*') return b;
  const sets = [a, b].map((range) => range.split('||').map((s) => s.trim()));
  if (sets.flat().some((s) => s === 'latest' || /\s-\s/.test(s)) || sets[0].length * sets[1].length > ALTERNATIVES_MAX) {
    throw new Failure('ERESOLVE', `${name} is asked for twice, as ${a} and as ${b}, which cannot be joined: ask for it once`);
  }
  return sets[0].flatMap((x) => sets[1].map((y) => `${x} ${y}`.trim())).join(' || ');
}

function dependenciesOf(job, npm) {
  const wanted = new Map();
  for (const text of job.packages) {
    const { name, range } = parseRequirement(text);
    wanted.set(name, wanted.has(name) ? joined(name, wanted.get(name), range) : range);
  }
  const overrides = {}, pins = Object.entries(job.pins || {});
  const semver = pins.length ? semverOf(npm) : null;
  for (const [name, version] of pins) {
    if (!NAME.test(name) || !VERSION.test(version)) {
      throw new Failure('EJOB', `no pin that is taken: ${JSON.stringify([name, version])}`);
    }
    const range = wanted.get(name);
    if (semver && range && range !== 'latest' && !semver.satisfies(version, range, { includePrerelease: true })) {
      throw new Failure('ERESOLVE', `${name} is asked for as ${range}, and ${version} is what policy allows`);
    }
    if (wanted.has(name)) wanted.set(name, version);
    overrides[name] = version;
  }
  return { dependencies: Object.fromEntries([...wanted].sort()), overrides };
}

// The tool's environment: nothing of ours but certificates. There is nothing to be found in its PATH, git least of all.
function environment(work) {
  const env = { PATH: path.join(work, 'bin'), HOME: work, TMPDIR: work, LANG: 'C.UTF-8', NO_COLOR: '1', TERM: 'dumb' };
  for (const name of ['NODE_EXTRA_CA_CERTS', 'npm_config_cafile', 'npm_config_registry']) {
    if (process.env[name]) env[name] = process.env[name];
  }
  const settings = {
    cache: path.join(work, 'cache'), userconfig: path.join(work, 'user.npmrc'), globalconfig: path.join(work, 'global.npmrc'),
    fetch_retries: '0', fetch_timeout: '10000', update_notifier: 'false', audit: 'false', fund: 'false', ignore_scripts: 'true',
    progress: 'false', omit_lockfile_registry_resolved: 'true', package_lock: 'true', lockfile_version: '3',
    logs_max: '0', workspaces: 'false', git: path.join(work, 'bin/git'),
  };
  for (const [name, value] of Object.entries(settings)) env['npm_config_' + name] = value;
  return env;
}

function plain(text) {
  return String(text).replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '').replace(/\/\/[^/@\s]*@/g, '//')
    // eslint-disable-next-line no-control-regex
    .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, ' ').trim().slice(0, TEXT_MAX);
}

function prepare(job, work, npm) {
  fs.mkdirSync(path.join(work, 'bin'), { recursive: true, mode: 0o700 });
  fs.mkdirSync(path.join(work, 'project'));
  fs.writeFileSync(path.join(work, 'user.npmrc'), process.env.REEVE_NPMRC || '', { mode: 0o600 });
  fs.writeFileSync(path.join(work, 'global.npmrc'), '');
  fs.writeFileSync(path.join(work, 'project/package.json'), JSON.stringify({ private: true, ...dependenciesOf(job, npm) }));
}

function runNpm(job, work, npm) {
  const args = [path.join(npm, 'bin/npm-cli.js'), 'install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund', '--json',
    '--loglevel=error'];
  if (job.newest_published !== null && job.newest_published !== undefined) {
    // npm leaves out what is younger; what is of the very second is old enough.
    args.push('--before=' + new Date(job.newest_published * 1000 + 999).toISOString());
  }
  return spawnSync(process.execPath, args, { cwd: path.join(work, 'project'), env: environment(work), encoding: 'utf8',
    maxBuffer: OUTPUT_MAX, stdio: ['ignore', 'pipe', 'pipe'] });
}

// npm's own account of a failure: code and summary. Its details name places of its cache, but for what is not found: there
// their first line alone names the package.
function failureOf(p) {
  const status = p.status === null ? 128 : p.status;
  let error = {};
  try {
    error = JSON.parse(p.stdout.slice(p.stdout.indexOf('{'))).error || {};
  } catch {
    // what it printed is no JSON: standard error is what there is
  }
  // The git that it is given is not there (environment() above): it looked for one, as a package names one's repository.
  const has_no_git = error.code === 'ENOENT' && /syscall spawn \S*bin\/git$/m.test(p.stderr);
  const code = has_no_git ? 'ENOGIT' : error.code === undefined || error.code === null ? null : String(error.code).slice(0, 64);
  const stderr = p.stderr.replace(/^npm (?:error|ERR!) A complete log of this run.*\n?.*$/gm, '');
  const detail = code === 'E404' ? '\n' + String(error.detail).split('\n', 1)[0] : '';
  return new Failure(code, plain(error.summary ? error.summary + detail : stderr), status);
}

function resolve(job, tool, work) {
  if ((job.language || 'javascript') !== 'javascript') throw new Failure('EJOB', 'this resolves the packages of JavaScript');
  const npm = findNpm();
  tool.version = JSON.parse(fs.readFileSync(path.join(npm, 'package.json'), 'utf8')).version;
  prepare(job, work, npm);
  const p = runNpm(job, work, npm);
  if (p.error && p.status === null && !p.signal) throw new Failure('ENOTOOL', `npm cannot be started: ${p.error.code}`);
  if (p.status !== 0) throw failureOf(p);
  return JSON.parse(fs.readFileSync(path.join(work, 'project/package-lock.json'), 'utf8'));
}

// A dynamic executable names its loader near its beginning.
function libcOf(file) {
  const head = Buffer.alloc(1 << 16);
  const fd = fs.openSync(file, 'r');
  const n = fs.readSync(fd, head, 0, head.length, 0);
  fs.closeSync(fd);
  return head.subarray(0, n).includes('/ld-musl-') ? 'musl' : 'glibc';
}

function main() {
  const job = JSON.parse(fs.readFileSync(0, 'utf8'));
  const tool = { name: 'npm', version: '' };
  const work = path.join(job.work_dir || '/tmp', `reeve-resolve-${process.pid}`);
  const answer = { schema: 'reeve.closure/1', ok: true, exit: 0, code: null, text: '', tool,
    runtime: { tag: `node-${process.platform}-${process.arch}-${libcOf(process.execPath)}`, version: '', interpreter: process.execPath } };
  try {
    answer.lock = resolve(job, tool, work);
  } catch (e) {
    const is_ours = e instanceof Failure;
    Object.assign(answer, { ok: false, exit: is_ours ? e.status : 1, code: is_ours ? e.code : 'EANSWER',
      text: is_ours ? plain(e.message) : plain(`the answer of npm cannot be used: ${e.message}`) });
  }
  const data = Buffer.from(JSON.stringify(answer));
  for (let at = 0; at < data.length;) at += fs.writeSync(1, data, at);
}

main();
